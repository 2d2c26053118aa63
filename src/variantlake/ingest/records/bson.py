"""Read a sequence of BSON documents, as MongoDB dumps a collection. Spec: BSON 1.1.

| BSON                   | Variant                                         |
|------------------------|-------------------------------------------------|
| ObjectId               | string of 24 hexadecimal digits                 |
| UTC datetime           | timestamp                                       |
| Decimal128             | decimal                                         |
| binary; of subtype 4   | binary; uuid                                    |
| timestamp              | object with the numbers `t` and `i`             |
| regular expression     | object with `pattern` and `options`, as letters |
| JavaScript code, DBRef, MinKey, MaxKey, others | none: the document is bad |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from variantlake.errors import InvalidValue, MalformedFile
from variantlake.ingest.records.record import MAX_BYTES, FileRecord, library, opened
from variantlake.ingest.sources.sources import Source

_LENGTH = 4
_SHORTEST = 5


def read_bson(source: Source) -> Iterator[FileRecord]:
    """Read the documents of a file. Raises MalformedFile if it is cut, or has a wrong length."""
    decoder = _BsonDecoder()
    with opened(source) as file:
        row, offset = 0, 0
        while head := file.read(_LENGTH):
            size = int.from_bytes(head, "little", signed=True)
            if len(head) < _LENGTH or not _SHORTEST <= size <= MAX_BYTES:
                raise MalformedFile(
                    f"no BSON document starts at byte {offset:,}",
                    file=source.label, row=row, offset=offset,
                )  # fmt: skip
            raw = head + file.read(size - _LENGTH)
            if len(raw) < size:
                raise MalformedFile(
                    f"the file ends within the document at byte {offset:,}",
                    file=source.label, row=row, offset=offset, hint="is the file complete?",
                )  # fmt: skip
            try:
                record = FileRecord(row, decoder.value(raw), None, offset, raw)
            except InvalidValue as error:
                record = FileRecord(row, None, error, offset, raw)
            yield record
            row, offset = row + 1, offset + size


class UniqueKeys(dict[str, Any]):
    """An object that refuses a repeated key."""

    def __setitem__(self, key: str, value: Any) -> None:
        if key in self:
            raise InvalidValue(f"the document has the key {key!r} twice")
        super().__setitem__(key, value)


class _BsonDecoder:
    def __init__(self) -> None:
        self._bson = library("bson", "bson")
        options = self._bson.codec_options
        self._options = options.CodecOptions(
            document_class=UniqueKeys,
            tz_aware=True,
            uuid_representation=library("bson.binary", "bson").UuidRepresentation.STANDARD,
            datetime_conversion=options.DatetimeConversion.DATETIME_AUTO,
        )
        types = {
            name: library(f"bson.{module}", "bson")
            for module, name in (
                ("objectid", "ObjectId"), ("decimal128", "Decimal128"), ("timestamp", "Timestamp"),
                ("regex", "Regex"), ("datetime_ms", "DatetimeMS"), ("int64", "Int64"),
                ("binary", "Binary"),
            )
        }  # fmt: skip
        self._types = {name: getattr(module, name) for name, module in types.items()}

    def value(self, raw: bytes) -> Any:
        """Decode a document to Python values. Raises InvalidValue."""
        try:
            return self._plain(self._bson.decode(raw, self._options))
        except InvalidValue:
            raise
        except (self._bson.errors.BSONError, ValueError, RecursionError, OverflowError) as error:
            raise InvalidValue(f"the document is not BSON: {error}") from None

    def _plain(self, value: Any) -> Any:
        types = self._types
        if isinstance(value, Mapping):
            return {key: self._plain(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._plain(each) for each in value]
        if isinstance(value, types["ObjectId"]):
            return str(value)
        if isinstance(value, types["Decimal128"]):
            return value.to_decimal()
        if isinstance(value, types["Timestamp"]):
            return {"t": value.time, "i": value.inc}
        if isinstance(value, types["Int64"]):
            return int(value)
        if isinstance(value, types["Regex"]):
            return {"pattern": value.pattern, "options": _letters(value.flags)}
        if isinstance(value, types["DatetimeMS"]):
            raise InvalidValue(f"{int(value)} ms is no time of the years 1 to 9999")
        if isinstance(value, str) and type(value) is not str:
            raise InvalidValue("no Variant type holds JavaScript code")
        if isinstance(value, types["Binary"]) and value.subtype not in (0, 2, 128):
            raise InvalidValue(f"no Variant type holds binary data of subtype {value.subtype}")
        return value


def _letters(flags: int) -> str:
    """Return the options of a regular expression as the letters of BSON."""
    known = {2: "i", 4: "l", 8: "m", 16: "s", 32: "u", 64: "x"}
    return "".join(letter for bit, letter in known.items() if flags & bit)
