"""Read Avro object container files. Spec: Avro 1.12, "Object Container Files".

This module reads the blocks, so that no length in a file can exhaust memory; fastavro reads the
records in them. Records become objects; decimals, dates, times and UUIDs keep their types.
Timestamps become timestamps with a zone, local timestamps those without.
"""

from __future__ import annotations

import bz2
import io
import json
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import zstandard

from variantlake.errors import InvalidValue, LimitExceeded, MalformedFile, UnsupportedFeature
from variantlake.ingest.records.record import MAX_BYTES, FileRecord, library, opened
from variantlake.ingest.sources.sources import Source

_MAGIC = b"Obj\x01"
_SYNC = 16
_RAW = 64 << 10
_HEADER = {
    "type": "record",
    "name": "header",
    "fields": [
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": _SYNC}},
    ],
}
_BAD = (
    ValueError,
    KeyError,
    IndexError,
    EOFError,
    TypeError,
    OverflowError,
    ArithmeticError,
    MemoryError,
)
"""The errors of fastavro for bytes that are not a record."""


def read_avro(source: Source) -> Iterator[FileRecord]:
    """Read the records of a file.

    After a bad record, no other record of its block can be found, so it counts for the rest of the
    block. Raises MalformedFile for a file that is cut or not Avro, UnsupportedFeature for a schema
    or a compression that is not supported.
    """
    fastavro = library("fastavro", "avro")
    with opened(source) as file:
        schema, codec, sync = _header(fastavro, source, file)
        row = 0
        while file.peek(1):
            offset = file.tell() if file.seekable() else None
            count, data = _block(source, file, codec, sync, row)
            block = io.BytesIO(data)
            for number in range(count):
                start = block.tell()
                try:
                    value = fastavro.schemaless_reader(block, schema, None)
                except _BAD as error:
                    bad = _bad_record(error, count - number - 1)
                    yield FileRecord(row + number, None, bad, offset, data[start : start + _RAW])
                    break
                yield FileRecord(row + number, value)
            row += count


def _bad_record(error: Exception, more: int) -> InvalidValue:
    rest = f" (and the {more:,} behind it in its block)" if more else ""
    why = error if str(error) else type(error).__name__
    return InvalidValue(f"the record is not one of the file's Avro schema{rest}: {why}")


def _header(fastavro: Any, source: Source, file: io.BufferedReader) -> tuple[Any, str, bytes]:
    """Read the schema, the codec and the sync marker."""
    try:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ValueError("it does not begin as one")
        header = fastavro.schemaless_reader(file, _HEADER, None)
        meta = header["meta"]
        schema = fastavro.parse_schema(json.loads(meta["avro.schema"]))  # has whole names
        codec = meta.get("avro.codec", b"null").decode()
        _check_schema(schema)
        return schema, codec, header["sync"]
    except UnsupportedFeature as error:
        error.file = source.label
        raise
    except (*_BAD, RecursionError, fastavro.schema.SchemaParseException) as error:
        raise MalformedFile(f"this is not an Avro file: {error}", file=source.label) from None


def _block(
    source: Source, file: io.BufferedReader, codec: str, sync: bytes, row: int
) -> tuple[int, bytes]:
    """Read the next block: the number of its records, and their bytes."""
    count, size = _number(file), _number(file)
    if count is None or size is None or count < 0 or size < 0:
        raise MalformedFile("a block is damaged or cut", file=source.label, row=row)
    if size > MAX_BYTES:
        raise LimitExceeded(
            f"a block has more than {MAX_BYTES:,} bytes", file=source.label, row=row
        )
    packed = file.read(size)
    if len(packed) < size or file.read(_SYNC) != sync:
        raise MalformedFile("a block is damaged or cut", file=source.label, row=row)
    unpack = _CODECS.get(codec)
    if unpack is None:
        raise UnsupportedFeature(
            f"Avro compressed by {codec!r} is not read",
            file=source.label,
            hint=f"write it with one of {', '.join(_CODECS)}",
        )
    try:
        data = unpack(packed)
    except (
        OSError,
        EOFError,
        ValueError,
        zlib.error,
        lzma.LZMAError,
        zstandard.ZstdError,
    ) as error:
        raise MalformedFile(f"a block is damaged: {error}", file=source.label, row=row) from None
    if len(data) > MAX_BYTES:
        raise LimitExceeded(
            f"a block has more than {MAX_BYTES:,} bytes unpacked", file=source.label, row=row
        )
    return count, data


def _number(file: BinaryIO) -> int | None:
    """Read a zigzag integer of variable length; None if there is none."""
    found = 0
    for shift in range(0, 70, 7):
        byte = file.read(1)
        if not byte:
            return None
        found |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return (found >> 1) ^ -(found & 1)
    return None


def _snappy(packed: bytes) -> bytes:
    size = _number(io.BytesIO(packed))
    # Snappy's length is not zigzag: convert the number back.
    length = 0 if size is None else (size << 1 if size >= 0 else (-size << 1) - 1)
    if length > MAX_BYTES:
        raise ValueError("it says it is too long")
    return bytes(pa.Codec("snappy").decompress(packed[:-4], length))


_CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": lambda packed: zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, MAX_BYTES + 1),
    "snappy": _snappy,
    "bzip2": lambda packed: bz2.BZ2Decompressor().decompress(packed, MAX_BYTES + 1),
    "xz": lambda packed: lzma.LZMADecompressor().decompress(packed, MAX_BYTES + 1),
    "zstandard": lambda packed: (
        zstandard.ZstdDecompressor().stream_reader(packed).read(MAX_BYTES + 1)
    ),
}


# --- Schemas whose values have bytes --------------------------------------------------------------


def _check_schema(schema: Any) -> None:
    """Raise UnsupportedFeature if a few bytes could be a value of any size.

    An array can claim any number of items without bytes (such as nulls). And with a recursive
    schema, values may nest deeper than fastavro can handle.
    """
    if _least(schema, {}, ()) == 0:
        raise UnsupportedFeature("the records of the Avro schema have no bytes")


def _least(schema: Any, known: dict[str, Any], around: tuple[str, ...]) -> int:
    """Return 0 if a value may have no bytes, else 1. Raises UnsupportedFeature."""
    if isinstance(schema, list):
        return max(1, *(_least(each, known, around) for each in schema)) if schema else 1
    if isinstance(schema, str):
        return _least(known[schema], known, around) if schema in known else int(schema != "null")
    kind, name = schema["type"], str(schema.get("name", ""))
    if not isinstance(kind, str):
        return _least(kind, known, around)
    if name in around and kind in ("record", "error"):
        raise UnsupportedFeature(f"the Avro schema has {name!r} in itself")
    if name:
        known[name] = schema
    if kind in ("record", "error"):
        fields = [_least(each["type"], known, (*around, name)) for each in schema["fields"]]
        return max(fields, default=0)
    if kind == "array" and not _least(schema["items"], known, around):
        raise UnsupportedFeature("the Avro schema has an array of items without bytes")
    if kind == "map":
        _least(schema["values"], known, around)
    if kind == "fixed":
        return int(schema["size"] > 0)
    return _least(kind, known, around) if kind in known else int(kind != "null")
