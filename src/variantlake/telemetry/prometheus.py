"""Write metrics to a file for the textfile collector of Prometheus' node exporter.

`prometheus_client` writes and reads the text; `variantlake[prometheus]` installs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from variantlake.extras import extra_library
from variantlake.shown import utf8_text
from variantlake.storage.unreachable import disk_failure

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Figure:
    """One metric: its full name, kind and meaning, and its values by labels."""

    name: str
    kind: Literal["counter", "gauge"]
    meaning: str
    values: Sequence[tuple[Labels, float]]


def check_installed() -> None:
    """Raise MissingDependency if the library is missing, so that callers fail before their work."""
    _client("prometheus_client")


def write_figures(file: Path, figures: Sequence[Figure]) -> None:
    """Write the metrics to the file, all of them or none. Raises StoreFailed."""
    client = _client("prometheus_client")
    registry = client.CollectorRegistry()
    registry.register(_Collector(figures))
    try:
        client.write_to_textfile(str(file), registry)
    except OSError as error:
        raise disk_failure(error, str(file), "the metrics cannot be written") from error


def read_figures(file: Path) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Read a file's values by name and labels; empty if there is no file or it does not parse.

    Raises OSError for a file that cannot be read.
    """
    parser = _client("prometheus_client.parser")
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return {}
    try:
        families = list(parser.text_string_to_metric_families(text))
    except (ValueError, KeyError, IndexError):
        return {}
    return {
        (sample.name, label_key(sample.labels)): float(sample.value)
        for family in families
        for sample in family.samples
    }


def label_key(labels: Labels) -> frozenset[tuple[str, str]]:
    """Return labels as a part of a key of `read_figures`."""
    return frozenset((name, utf8_text(text)) for name, text in labels.items())


@dataclass(frozen=True, slots=True, eq=False)
class _Collector:
    """A collector of prometheus_client for metrics that are counted elsewhere."""

    figures: Sequence[Figure]

    def collect(self) -> Iterator[Any]:
        core = _client("prometheus_client.core")
        kinds = {"counter": core.CounterMetricFamily, "gauge": core.GaugeMetricFamily}
        for figure in self.figures:
            labels = list(figure.values[0][0]) if figure.values else []
            family = kinds[figure.kind](figure.name, figure.meaning, labels=labels)
            for given, value in figure.values:
                family.add_metric([utf8_text(given[name]) for name in labels], value)
            yield family


def _client(module: str) -> Any:
    return extra_library(module, "prometheus", "writes figures for Prometheus")
