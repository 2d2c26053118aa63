"""The statistics of a file that gets a deletion vector, with all numbers kept as text.

Spec: PROTOCOL, "Per-file Statistics": `tightBounds` is false if deleted rows count too, and a
file with a deletion vector must have `numRecords`, of all rows of the data file.
"""

from __future__ import annotations

import json

import orjson

from variantlake.errors import MalformedLog

_DECODER = json.JSONDecoder(
    parse_float=orjson.Fragment, parse_int=orjson.Fragment, parse_constant=orjson.Fragment
)
"""Keeps the text of numbers, so that a decimal of 38 digits stays exact."""


def wide_stats(text: str | None, num_records: int) -> str:
    """Return the statistics with `numRecords` and `tightBounds` false.

    Raises MalformedLog for text that is not a JSON object.
    """
    try:
        stats = _DECODER.decode(text or "{}")
        if not isinstance(stats, dict):
            raise TypeError(f"they are a {type(stats).__name__}")  # noqa: TRY301 - as the others
        wide = {**stats, "numRecords": num_records, "tightBounds": False}
        return orjson.dumps(wide).decode()
    except (ValueError, TypeError, RecursionError) as error:
        raise MalformedLog(f"the statistics of a file are not a JSON object: {error}") from error
