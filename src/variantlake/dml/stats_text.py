"""The statistics of a file that gets a deletion vector, every number of them as it stands.

Spec: PROTOCOL, "Per-file Statistics": `tightBounds` is false where deleted rows count too, and a
file with a deletion vector must have `numRecords`, of all rows of the data file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from variantlake.errors import MalformedLog


def wide_stats(text: str | None, num_records: int) -> str:
    """The statistics with `numRecords` and without tight bounds.

    Numbers of other members are not parsed: a decimal of 38 digits stays what it is.

    Raises MalformedLog for text that is no JSON object.
    """
    kept = [
        f"{json.dumps(key, ensure_ascii=False)}:{value}"
        for key, value in _members(text or "{}")
        if key not in ("numRecords", "tightBounds")
    ]
    return "{" + ",".join([f'"numRecords":{num_records}', '"tightBounds":false', *kept]) + "}"


def _members(text: str) -> Iterator[tuple[str, str]]:
    """The members of an object, values as they are written."""
    try:
        yield from _scan(text)
    except (ValueError, IndexError, RecursionError) as error:
        raise MalformedLog(f"the statistics of a file are no JSON object: {error}") from error


def _scan(text: str) -> Iterator[tuple[str, str]]:
    decoder = json.JSONDecoder(parse_float=str, parse_int=str)
    place = _expect(text, 0, "{")
    if text[_blank(text, place)] == "}":
        return
    while True:
        _expect(text, place, '"')
        key, place = decoder.raw_decode(text, _blank(text, place))
        start = _blank(text, _expect(text, place, ":"))
        _, place = decoder.raw_decode(text, start)
        yield key, text[start:place]
        if text[_blank(text, place)] == "}":
            return
        place = _expect(text, place, ",")


def _expect(text: str, place: int, character: str) -> int:
    place = _blank(text, place)
    if text[place] != character:
        raise ValueError(f"expected {character!r} at {place}")
    return place + 1


def _blank(text: str, place: int) -> int:
    while text[place] in " \t\r\n":
        place += 1
    return place
