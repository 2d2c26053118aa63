"""Inputs that every way of loading must refuse: each with what its error must say."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from variantlake.encoding.limits import MAX_DEPTH
from variantlake.errors import (
    InvalidJson,
    LimitExceeded,
    MalformedFile,
    MissingSource,
    UnsupportedFeature,
    VariantLakeError,
)
from variantlake.ingest.sources import blocks

GOOD = b'{"a": 1}\n' * 5


@dataclass(frozen=True, slots=True)
class BadInput:
    """Content of a source (None: there is none), the error's class, and where it points to."""

    content: bytes | None
    error: type[VariantLakeError]
    line: int | None = None
    column: int | None = None
    patch: Callable[[pytest.MonkeyPatch], None] | None = None

    def prepare(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Make the source (and what is patched); its path."""
        if self.patch is not None:
            self.patch(monkeypatch)
        path = folder / "bad.ndjson"
        if self.content is not None:
            path.write_bytes(self.content)
        return path

    def check(self, error: VariantLakeError, source: Path) -> None:
        """The class, the file, the line and the column."""
        assert type(error) is self.error
        assert error.file == str(source)
        assert (error.line, error.column) == (self.line, self.column)
        assert "\n" not in error.message
        assert error.hint


def _short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MAX_VALUE_BYTES", 100)


CASES = {
    "malformed-line": BadInput(GOOD + b'{"a": 1,}\n' + GOOD, InvalidJson, 6, 9),
    "malformed-line-after-blanks": BadInput(GOOD + b'\n\r\n \t {"a" 1}\n', InvalidJson, 8, 9),
    "cut-last-line": BadInput(GOOD + b'{"a": [1, 2', InvalidJson, 6, 12),
    "two-documents-on-a-line": BadInput(b"1 2\n", InvalidJson, 1, 3),
    "column-in-characters": BadInput('{"é": x}\n'.encode(), InvalidJson, 1, 7),
    "invalid-utf8": BadInput(GOOD + b'{"a": "\xff"}\n', InvalidJson, 6, 8),
    "lone-surrogate": BadInput(b'"\\ud800"\n', InvalidJson, 1, 2),
    "utf16": BadInput('{"a": 1}\n'.encode("utf-16"), UnsupportedFeature),
    "duplicate-keys": BadInput(GOOD + b'{"b": {"a": 1, "a": 2}}\n', InvalidJson, 6, 16),
    "not-a-number": BadInput(b'{"a": NaN}\n', InvalidJson, 1, 7),
    "too-deep": BadInput(
        GOOD + b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), LimitExceeded, 6, MAX_DEPTH + 1
    ),
    "too-long": BadInput(GOOD + b'"' + b"x" * 200 + b'"\n', LimitExceeded, 6, 1, _short_lines),
    "empty-file": BadInput(b"", InvalidJson, 1, 1),
    "empty-gzip": BadInput(gzip.compress(b""), InvalidJson, 1, 1),
    "missing-source": BadInput(None, MissingSource),
    "cut-gzip": BadInput(gzip.compress(GOOD * 20_000)[:-20], MalformedFile),
}


def listing(table: Path) -> list[str]:
    """Every file under a table, hidden ones too; nothing when it is not there."""
    return sorted(str(path.relative_to(table)) for path in table.rglob("*"))
