"""Where a text is left below a folder: in names, raw bytes, pages, rows, and texts in texts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from variantlake.delta.stats import z85
from variantlake.errors import VariantLakeError
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.metadata.pages import _PAGE_HEADER
from variantlake.parquet.metadata.thrift import CompactReader, Wire


def holders(folder: Path, secret: str) -> set[str]:
    """The files below a folder that hold a text: as bytes, decompressed, or below Z85."""
    found = set()
    for path in folder.rglob("*"):
        if secret in path.relative_to(folder).as_posix() or (
            path.is_file() and any(secret.encode() in each for each in readings(path))
        ):
            found.add(path.relative_to(folder).as_posix())
    return found


def readings(path: Path) -> Iterator[bytes]:
    """All that a file can be read as."""
    data = path.read_bytes()
    yield data
    texts: list[str] = []
    if path.suffix == ".parquet":
        yield from pages(path)
        file = pq.ParquetFile(path)
        for row in file.read().to_pylist(maps_as_pydicts="lossy"):
            yield repr(row).encode()
            texts += strings(row)
        texts += [text.decode() for pair in (file.metadata.metadata or {}).items() for text in pair]
        for group in range(file.metadata.num_row_groups):
            for column in range(file.metadata.num_columns):
                yield repr(file.metadata.row_group(group).column(column).to_dict()).encode()
    elif path.suffix in (".json", ".crc") and not data.startswith(b"crc"):
        for line in data.splitlines():
            texts += strings(json.loads(line))
    for each in texts:
        yield each.encode()
        try:
            yield z85.decode(each)
        except VariantLakeError:
            continue


def pages(path: Path) -> Iterator[bytes]:
    """Every page of a Parquet file without its compression, dictionaries as they stand."""
    data = path.read_bytes()
    for group in read_footer(path).row_groups:
        for chunk in group.columns:
            at, end = chunk.first_page, chunk.first_page + chunk.compressed_size
            while at < end:
                reader = CompactReader(data[at:end], at, "page header")
                page = reader.read(_PAGE_HEADER, Wire.STRUCT)
                start = at + reader.position
                at = start + page[3]
                body = data[start:at]
                if 8 in page:  # levels, which nobody compresses, are in front
                    yield body
                    continue
                codec: Any = chunk.codec.lower()
                if codec == "uncompressed":
                    yield body
                else:
                    yield pa.Codec(codec).decompress(body, page[2]).to_pybytes()


def strings(value: Any) -> list[str]:
    """The texts in a document, those in texts that are JSON as well."""
    if isinstance(value, dict):
        return [each for pair in value.items() for part in pair for each in strings(part)]
    if isinstance(value, list | tuple):
        return [each for part in value for each in strings(part)]
    if not isinstance(value, str):
        return []
    try:
        inner = orjson.loads(value)
    except orjson.JSONDecodeError:
        inner = None
    return [value, *(strings(inner) if isinstance(inner, dict | list) else [])]
