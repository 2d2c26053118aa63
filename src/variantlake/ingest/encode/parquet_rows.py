"""Read rows of Parquet files in the tasks of a load, with the same result as Spark's scan.

If the result might differ, these functions raise `LeftToSpark`, and the load goes through Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from variantlake.batches import packed
from variantlake.errors import InvalidPath, VariantLakeError
from variantlake.parquet.metadata.footer import Footer, RowGroup
from variantlake.parquet.read.parquet_source import BATCH_ROWS
from variantlake.parquet.read.reader import VariantFile
from variantlake.shredding.layout import is_variant_type

BATCH_BYTES = 4 << 20
"""The default bytes of rows to read at a time: they stay in the cache until they are written."""

_LARGEST_PART, _SMALLEST_PART, _OPEN_BYTES = 128 << 20, 4 << 20, 4 << 20
"""Bytes as stored: Spark's bounds for a task's part, and the bytes that it adds for each file."""

SAMPLE_ROWS, SAMPLE_BYTES = 4096, 8 << 20
"""The rows for schema inference, and the most bytes of them."""

_SAMPLE_PIECES = 16

VARIANT = "variant"
"""The type of a column of Variants, for which Arrow has no type."""

_TIMES = ("date32[day]", "timestamp[us]", "timestamp[us, tz=UTC]")
_VERSION, _OLD_CALENDAR = "org.apache.spark.version", "org.apache.spark.legacyDateTime"


class LeftToSpark(VariantLakeError):
    """Spark may read a file differently."""


@dataclass(frozen=True, slots=True)
class RowGroupRange:
    """The row groups of a file with their middle in the bytes start <= byte < end, as in Spark."""

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class FileColumn:
    """A column: its names in the rows and in the files, and its Arrow type as text, or VARIANT."""

    name: str
    stored: str
    type: str


def file_parts(
    files: Sequence[tuple[str, int]], cores: int
) -> tuple[tuple[RowGroupRange, ...], ...]:
    """Return the parts of each task, as large as Spark's; `files` are paths with sizes."""
    total = sum(size + _OPEN_BYTES for _, size in files)
    limit = min(_LARGEST_PART, max(_SMALLEST_PART, total // max(cores, 1)))
    parts = [
        RowGroupRange(path, start, min(start + limit, size))
        for path, size in files
        for start in range(0, size, limit)
    ]
    parts.sort(key=lambda part: part.start - part.end)
    return tuple(
        packed(parts, lambda part: part.end - part.start + _OPEN_BYTES, limit + _OPEN_BYTES)
    )


def part_rows(
    parts: Iterable[RowGroupRange], columns: Sequence[FileColumn], batch_bytes: int = BATCH_BYTES
) -> Iterator[pa.RecordBatch]:
    """Read the rows of some parts; a column of Variants is struct<metadata, value>.

    Raises LeftToSpark for a file whose columns are not exactly these, MalformedFile and
    MissingSource for one that cannot be read.
    """
    for part in parts:
        with _open(part.path, columns) as file:
            groups = _groups(file.footer, part)
            if not groups:
                continue
            _check(file, part.path, columns)
            rows = sum(file.footer.row_groups[group].num_rows for group in groups)
            size = sum(file.footer.row_groups[group].total_byte_size for group in groups)
            most = max(1, min(BATCH_ROWS, batch_bytes * rows // max(size, 1)))
            for batch in file.batches(most, groups):
                yield pa.record_batch(
                    [batch.column(each.stored) for each in columns],
                    names=[each.name for each in columns],
                )


def _open(path: str, columns: Sequence[FileColumn]) -> VariantFile:
    try:
        return VariantFile(path, list(dict.fromkeys(each.stored for each in columns)))
    except InvalidPath as error:
        raise LeftToSpark(error.message, file=path) from error


def sample_rows(
    groups: Sequence[Sequence[RowGroupRange]], columns: Sequence[FileColumn]
) -> Iterator[pa.RecordBatch]:
    """Read a bounded sample of rows, from several places of the files. Raises as `part_rows`."""
    parts = [part for group in groups for part in group]
    count = min(len(parts), _SAMPLE_PIECES)
    for part in (parts[len(parts) * i // count] for i in range(count)):
        rows, size = 0, 0
        for batch in part_rows([part], columns):
            yield batch.slice(0, -(-SAMPLE_ROWS // count) - rows)
            rows += batch.num_rows
            size += batch.nbytes
            if rows * count >= SAMPLE_ROWS or size * count >= SAMPLE_BYTES:
                break


def _groups(footer: Footer, part: RowGroupRange) -> list[int]:
    """Return the row groups of a part."""
    return [
        number
        for number, group in enumerate(footer.row_groups)
        if group.num_rows and part.start <= _middle(group) < part.end
    ]


def _middle(group: RowGroup) -> int:
    start = min(chunk.first_page for chunk in group.columns)
    return start + sum(chunk.compressed_size for chunk in group.columns) // 2


def _check(file: VariantFile, path: str, columns: Sequence[FileColumn]) -> None:
    """Raise LeftToSpark if Spark might read these columns differently."""
    known = dict(file.footer.key_value_metadata)
    folded = [node.name.lower() for node in file.footer.schema.children]
    for each in columns:
        found = file.schema.field(each.stored).type
        if each.type == VARIANT:
            fits = is_variant_type(found)
        else:
            fits = str(found).removeprefix("large_") == each.type
        if not fits:
            raise LeftToSpark(f"column {each.stored!r} is {found}, not {each.type}", file=path)
        if folded.count(each.stored.lower()) > 1:
            raise LeftToSpark(f"{each.stored!r} is the name of two columns", file=path)
        if each.type in _TIMES and ((known.get(_VERSION) or "0") < "3" or _OLD_CALENDAR in known):
            raise LeftToSpark(f"column {each.stored!r} may follow another calendar", file=path)
