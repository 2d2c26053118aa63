"""The text form of Prometheus, read strictly as its specification says.

Spec: https://prometheus.io/docs/instrumenting/exposition_formats/, "Text-based format".
"""

from __future__ import annotations

import re

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
"""Values by the name of their metric and their labels."""

_SAMPLE = re.compile(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)"
    r'\{(?P<labels>([a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\[\\"n])*",?)*)\} (?P<value>\S+)'
)
_LABEL = re.compile(r'(?P<name>\w+)="(?P<text>([^"\\\n]|\\[\\"n])*)",?')


def samples(text: str) -> Samples:
    """All values; fails where the text is not of this form, or a metric is in it twice."""
    assert text.endswith("\n")
    found: Samples = {}
    types: dict[str, str] = {}
    helped, current = "", ""
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("# HELP "):
            helped = line.split(" ", 3)[2]
            assert helped not in types, f"{helped} twice"
        elif line.startswith("# TYPE "):
            _, _, current, kind = line.split(" ")
            assert current == helped
            assert kind in ("counter", "gauge")
            assert (kind == "counter") == current.endswith("_total")
            types[current] = kind
        else:
            match = _SAMPLE.fullmatch(line)
            assert match, line
            assert match["name"] == current, "the lines of a metric stand together"
            labels = frozenset(
                (each["name"], _text(each["text"])) for each in _LABEL.finditer(match["labels"])
            )
            assert (current, labels) not in found
            found[current, labels] = float(match["value"])
    assert set(types) == {name for name, _ in found}
    return found


def _text(escaped: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), escaped)
