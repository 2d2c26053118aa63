"""Collect the values at each path in the texts of a sample: examples, distinct values, bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from variantlake.paths import Path
from variantlake.shown import shortened

MAX_DISTINCT = 1_000
"""The most distinct values to count at a path; beyond it the count means "at least"."""

MAX_EXAMPLES = 3
"""The most examples of a path."""

MAX_EXAMPLE_LENGTH = 60
"""The most characters of an example; longer ones are cut."""

MAX_PATHS = 10_000
"""The most paths; keys that are ids would make as many paths as there are rows."""

MAX_ELEMENTS = 100
"""The most elements of an array that are read."""


@dataclass(slots=True)
class PathValues:
    """Values at one path. `text_bytes` is the length of its values as JSON, without their keys."""

    text_bytes: int = 0
    distinct: set[str] = field(default_factory=set)
    examples: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Count one value by its JSON text."""
        self.text_bytes += len(text.encode())
        if text in self.distinct or len(self.distinct) >= MAX_DISTINCT:
            return
        self.distinct.add(text)
        if len(self.examples) < MAX_EXAMPLES and text != "null":
            self.examples.append(shortened(text, MAX_EXAMPLE_LENGTH))


def values_of(texts: Iterable[str]) -> dict[Path, PathValues]:
    """Collect the scalar values of each path; in a path, the step 0 means all elements of an array.

    Ignores a text that is not JSON, such as a bad document.
    """
    found: dict[tuple[str | int, ...], PathValues] = {}
    for text in texts:
        try:
            _add(orjson.loads(text), found)
        except (orjson.JSONDecodeError, UnicodeError):
            continue
    return {Path(steps): values for steps, values in found.items()}


def _add(document: Any, found: dict[tuple[str | int, ...], PathValues]) -> None:
    """Add the values of a document, whose depth the JSON parser limits."""
    todo: list[tuple[tuple[str | int, ...], Any]] = [((), document)]
    while todo:
        steps, value = todo.pop()
        if isinstance(value, dict):
            todo.extend(((*steps, key), child) for key, child in value.items())
        elif isinstance(value, list):
            todo.extend(((*steps, 0), child) for child in value[:MAX_ELEMENTS])
        elif steps in found or len(found) < MAX_PATHS:
            text = json.dumps(value, ensure_ascii=False)
            found.setdefault(steps, PathValues()).add(text)
