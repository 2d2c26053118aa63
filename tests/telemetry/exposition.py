"""The text form of Prometheus, read by its own library."""

from __future__ import annotations

from tests.corpora import library

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
"""Values by the name of their metric and their labels."""


def samples(text: str) -> Samples:
    """All values; fails if a metric is in the text twice, or has no type or meaning."""
    parser = library("prometheus_client.parser")
    found: Samples = {}
    names: set[str] = set()
    for family in parser.text_string_to_metric_families(text):
        assert family.name not in names
        names.add(family.name)
        assert family.type in ("counter", "gauge")
        assert family.documentation
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter")
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found
            found[key] = sample.value
    return found
