"""Hints on the format that a file should have, and on the one that it may have instead."""

from __future__ import annotations

from functools import cache
from typing import TypedDict

from variantlake.ingest.sources.document_format import DocumentFormat


class SurfaceHints(TypedDict):
    """The hints of an error, for Python and for the command line."""

    hint: str
    cli_hint: str


_EXPECTED = {
    DocumentFormat.LINES: "write each document on one line, as JSON in UTF-8",
    DocumentFormat.ARRAY: "one array of documents is expected, in UTF-8 with commas between them",
    DocumentFormat.WHOLE: "one document is expected, as JSON in UTF-8",
}
_READERS = {
    DocumentFormat.LINES: ("one document a line", "vl.ndjson(...)", "--format ndjson"),
    DocumentFormat.ARRAY: ("one array of documents", "vl.json_array(...)", "--format array"),
    DocumentFormat.WHOLE: ("one document over many lines", "vl.json_files(...)", "--format json"),
}


@cache
def expected(format_: DocumentFormat, *others: DocumentFormat) -> SurfaceHints:
    """Return hints on the expected format of a file, and on how to read it as one of `others`."""
    found = [_READERS[other] for other in others]
    python = [f"is it {what}? {reader} reads that" for what, reader, _ in found]
    options = [f"is it {what}? {option} reads that" for what, _, option in found]
    return SurfaceHints(
        hint="; ".join([_EXPECTED[format_], *python]),
        cli_hint="; ".join([_EXPECTED[format_], *options]),
    )


def expected_at(format_: DocumentFormat, text: bytes, end: int) -> SurfaceHints:
    """Return hints for a document's text that is not JSON from its byte `end` on."""
    cut = end >= len(text.rstrip())
    if format_ is DocumentFormat.LINES and cut and text.startswith(b"{"):
        return expected(format_, DocumentFormat.WHOLE)
    if format_ is DocumentFormat.LINES and cut and text.startswith(b"["):
        return expected(format_, DocumentFormat.ARRAY)
    if format_ is DocumentFormat.WHOLE and not cut:
        return expected(format_, DocumentFormat.LINES)
    return expected(format_)
