"""The files of a table by columns, one row per logical file, as planning needs them.

Columns are named as in the protocol, in snake case; `path` is as in the log (see
`Snapshot.location`). Paths, partition values, statistics and tags stay where they are until a
caller reads them.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array, numpy_array
from variantlake.delta.actions.actions import AddFile, DeletionVectorDescriptor
from variantlake.delta.actions.json_fields import Field, FieldKind, Record, fields_of
from variantlake.delta.stats.file_texts import EncodedMaps, FileTexts, PackedTexts
from variantlake.errors import MalformedLog
from variantlake.parquet.stats.fact_columns import Int64s, run_of

STRING_MAP: Any = pa.map_(pa.string(), pa.string())

_TYPES: dict[FieldKind, Any] = {
    FieldKind.STRING: pa.string(),
    FieldKind.INT: pa.int32(),
    FieldKind.LONG: pa.int64(),
    FieldKind.BOOLEAN: pa.bool_(),
    FieldKind.MAP: STRING_MAP,
    FieldKind.PROPERTIES: STRING_MAP,
    FieldKind.STRINGS: pa.list_(pa.string()),
}


def _type(field: Field, *, keys: bool) -> Any:
    return struct_type(field.record, keys=keys) if field.record else _TYPES[field.kind]


def struct_type(record: type[Record], *, keys: bool, without: Sequence[str] = ()) -> Any:
    """Return the Arrow struct of an action, in the protocol's spelling (`keys`) or in our names."""
    return pa.struct(
        [
            (field.key if keys else field.name, _type(field, keys=keys))
            for field in fields_of(record)
            if field.name not in without
        ]
    )


ADD_FIELDS = {field.name: field for field in fields_of(AddFile) if field.name != "data_change"}
"""The fields kept of an `add`: all but `data_change`, which a state does not need."""
REQUIRED = {name for name, field in ADD_FIELDS.items() if not field.optional}

DELETION_VECTOR: Any = struct_type(DeletionVectorDescriptor, keys=False)

FILES: pa.Schema = pa.schema(
    [(name, _type(field, keys=False)) for name, field in ADD_FIELDS.items()]
)
"""`size` in bytes, `modification_time` in milliseconds since the epoch; null if absent."""


TEXTS = ("stats", "tags")
"""The columns that take up most of a log."""

_STORED = ("path", "partition_values", *TEXTS)

_LISTED: pa.Schema = pa.schema(
    [*(field for field in FILES if field.name not in _STORED), pa.field("origin", pa.int64())]
)
_ORIGIN_BITS = 32
_NUMBERS = itertools.count()
"""Numbers for the FileTexts of this process, each used once."""

_ADDS = 1 << 16
"""The most files whose texts are in memory while adds are made of them."""


class LogicalFiles:
    """Files of a table, columns FILES. Never changes.

    `listed` holds the columns in memory: all but paths, partition values and TEXTS, and `origin`,
    the number of a FileTexts in `texts` and the row there. A new version shares the unchanged
    files' memory with the version before.
    """

    __slots__ = ("_listed", "_texts")

    def __init__(self, listed: pa.Table, texts: Mapping[int, FileTexts]) -> None:
        self._listed: Any = listed
        self._texts: Mapping[int, FileTexts] = texts

    @property
    def listed(self) -> Any:
        """The columns in memory, a table."""
        return self._listed

    @property
    def texts(self) -> Mapping[int, FileTexts]:
        """The FileTexts that `origin` refers to, by number."""
        return self._texts

    @staticmethod
    def of(files: pa.Table) -> LogicalFiles:
        """Files with all columns of FILES. Batches stay apart."""
        batches = files.to_batches()
        parts = (LogicalFiles.from_texts(each, PackedTexts.of(each)) for each in batches)
        return LogicalFiles.joined(parts)

    @staticmethod
    def from_texts(files: pa.RecordBatch, texts: FileTexts) -> LogicalFiles:
        """Files, and their texts row by row; `files` need not have the columns of the texts."""
        number, count = next(_NUMBERS), files.num_rows
        columns = [_column_of(files, field) for field in _LISTED if field.name != "origin"]
        origins = np.arange(count, dtype=np.int64) | (number << _ORIGIN_BITS)
        listed = pa.Table.from_arrays([*columns, arrow_array(origins)], schema=_LISTED)
        return LogicalFiles(listed, {number: texts})

    @staticmethod
    def joined(parts: Iterable[LogicalFiles]) -> LogicalFiles:
        """Return the files of all parts, one part after the other."""
        found = [part for part in parts if part.num_rows]
        texts = {number: each for part in found for number, each in part.texts.items()}
        return LogicalFiles(
            pa.concat_tables([part.listed for part in found])
            if found
            else pa.Table.from_batches([], _LISTED),
            texts,
        )

    def of_batches(self, batches: Sequence[pa.RecordBatch]) -> LogicalFiles:
        """Return some batches of `listed`, or of rows of them; each has rows of one FileTexts."""
        found = [batch for batch in batches if batch.num_rows]
        numbers = {batch.column("origin")[0].as_py() >> _ORIGIN_BITS for batch in found}
        table = pa.Table.from_batches(found, schema=_LISTED)
        return LogicalFiles(table, {number: self.texts[number] for number in numbers})

    @property
    def num_rows(self) -> int:
        """The number of files."""
        return int(self.listed.num_rows)

    def __len__(self) -> int:
        return self.num_rows

    def __getitem__(self, name: str) -> Any:
        return self._text(name) if name in _STORED else self.listed[name]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LogicalFiles):
            return NotImplemented
        return self is other or self.whole() == other.whole()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        # A stream has only the rows: pickling a slice would include all that it was cut from.
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, FILES) as writer:
            writer.write_table(self.whole())
        return _of_stream, (sink.getvalue(),)

    def take(self, rows: Int64s) -> LogicalFiles:
        """Return the files at these places, in this order."""
        return LogicalFiles(take_of_batches(self.listed, rows), self.texts)

    def filter(self, chosen: Any) -> LogicalFiles:
        """Return the files for which an array of truth values is true."""
        return LogicalFiles(self.listed.filter(chosen), self.texts)

    def slice(self, start: int, count: int | None = None) -> LogicalFiles:
        """Return `count` files from `start` on, or all from there."""
        return LogicalFiles(self.listed.slice(start, count), self.texts)

    def without(self, name: str) -> LogicalFiles:
        """Return the same files with nulls in a column of `listed`."""
        place = _LISTED.get_field_index(name)
        nulls = _nulls(self.num_rows, _LISTED.field(place).type)
        return LogicalFiles(self.listed.set_column(place, _LISTED.field(place), nulls), self.texts)

    def whole(self, *, texts: bool = True) -> pa.Table:
        """Return a table with all columns of FILES; without `texts`, TEXTS are null."""
        columns = [
            self[field.name]
            if texts or field.name not in TEXTS
            else _nulls(self.num_rows, field.type)
            for field in FILES
        ]
        return pa.Table.from_arrays(columns, schema=FILES)

    def odd_paths(self) -> Any:
        """Return the paths, except those of FileTexts whose paths are all plain."""
        odd = [number for number, texts in self.texts.items() if not texts.is_plain]
        if not odd:
            return pa.chunked_array([], pa.string())
        if len(odd) == len(self.texts):
            return self["path"]
        there = np.isin(numpy_array(self.listed["origin"]) >> _ORIGIN_BITS, odd)
        return self.filter(arrow_array(there))["path"]

    def runs(self) -> list[tuple[FileTexts, Int64s]]:
        """See TextRuns."""
        return _runs(numpy_array(self.listed["origin"]), self.texts)

    def _text(self, name: str) -> Any:
        """Return a column that is not listed; each FileTexts is asked once."""
        origins = numpy_array(self.listed["origin"])
        numbers = origins >> _ORIGIN_BITS
        rising = bool((numbers[1:] >= numbers[:-1]).all())
        order = np.argsort(numbers, kind="stable")
        parts = []
        for texts, rows in _runs(origins if rising else origins[order], self.texts):
            parts.append(_text_of_rows(texts, name, rows))
        found: Any = pa.chunked_array(parts, FILES.field(name).type)
        return found if rising else found.take(arrow_array(np.argsort(order)))


def _text_of_rows(texts: FileTexts, name: str, rows: Int64s) -> Any:
    if len(rows) < texts.rows // 8 and name in _MAPS:
        # For many files, reading dictionary codes takes a third of the time of reading strings.
        return texts.encoded(_MAPS[name]).take(arrow_array(rows)).cast(STRING_MAP)
    column = _ASK[name](texts)
    is_all = len(rows) == texts.rows and bool((rows == np.arange(len(rows))).all())
    return column if is_all else column.take(arrow_array(rows))


_MAPS: dict[str, EncodedMaps] = {"partition_values": "partition_values", "tags": "tags"}
_ASK: dict[str, Callable[[FileTexts], Any]] = {
    "path": lambda texts: texts.paths(),
    "partition_values": lambda texts: texts.partition_values(),
    "stats": lambda texts: texts.stats(),
    "tags": lambda texts: texts.tags(),
}


def _runs(origins: Int64s, texts: Mapping[int, FileTexts]) -> list[tuple[FileTexts, Int64s]]:
    numbers, rows = origins >> _ORIGIN_BITS, origins & ((1 << _ORIGIN_BITS) - 1)
    cuts = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
    starts = [0, *cuts.tolist()] if len(rows) else []
    pieces = map(_shared, np.split(rows, cuts))
    return [(texts[int(numbers[at])], piece) for at, piece in zip(starts, pieces, strict=False)]


def _shared(rows: Int64s) -> Int64s:
    """Return the same rows; most are a whole run, and such runs share their numbers."""
    run = run_of(rows)
    return rows.copy() if run is None else _many_rows(1 << run.stop.bit_length())[run]


@cache
def _many_rows(count: int) -> Int64s:
    rows = np.arange(count)
    rows.setflags(write=False)
    return rows


def _column_of(files: pa.RecordBatch, field: pa.Field[Any]) -> Any:
    column = files.column(field.name)
    # Most columns of most logs hold only nulls, which they share.
    return _nulls(len(column), field.type) if column.null_count == len(column) else column


_NULLS = 1 << 17


@cache
def _many_nulls(type_: pa.DataType) -> Any:
    return pa.nulls(_NULLS, type_)  # type: ignore[call-overload]


def _of_stream(data: pa.Buffer) -> LogicalFiles:
    return LogicalFiles.of(pa.ipc.open_stream(data).read_all())


def _nulls(count: int, type_: pa.DataType) -> Any:
    return _many_nulls(type_).slice(0, count) if count <= _NULLS else pa.nulls(count, type_)  # type: ignore[call-overload]


def files_of(adds: Sequence[AddFile]) -> LogicalFiles:
    """Return the rows of these adds, in their order."""
    columns = [
        _column(field, list(map(attrgetter(name), adds))) for name, field in ADD_FIELDS.items()
    ]
    return LogicalFiles.of(pa.Table.from_arrays(columns, schema=FILES))


def adds_of(files: LogicalFiles, *, texts: bool = True) -> Iterator[AddFile]:
    """Yield the adds of these rows, in their order, without statistics and tags if not `texts`.

    Only some thousands of them are in memory at a time.
    """
    for start in range(0, files.num_rows, _ADDS):
        table = files.slice(start, _ADDS).whole(texts=texts)
        for batch in table.to_batches(max_chunksize=4096):
            for row in values(batch):
                vector = row["deletion_vector"]
                row["deletion_vector"] = vector and DeletionVectorDescriptor(**vector)
                row["partition_values"] = row["partition_values"] or {}
                yield AddFile(**row)


def values(array: Any) -> list[Any]:
    """Return an Arrow array, column or batch as Python values; maps are dictionaries.

    Raises MalformedLog for a map with a key twice.
    """
    try:
        found: list[Any] = array.to_pylist(maps_as_pydicts="strict")
    except KeyError as error:
        raise MalformedLog(f"a map has a key twice: {error}") from error
    return found


def one_chunk(column: Any) -> Any:
    """Return a column as one array."""
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


def take_of_batches(table: pa.Table, rows: Int64s) -> pa.Table:
    """Return these rows of a table, in this order.

    Takes from each batch with such rows: PyArrow would first join all batches, with every string.
    """
    order = np.argsort(rows, kind="stable")
    rising = rows[order]
    parts, first, start = [], 0, 0
    for batch in table.to_batches():
        start += batch.num_rows
        last = int(np.searchsorted(rising, start))
        if first < last:
            places = rising[first:last] - (start - batch.num_rows)
            parts.append(batch.take(arrow_array(places, pa.int64())))
        first = last
    found = pa.Table.from_batches(parts, schema=table.schema)
    is_rising = bool((order[1:] > order[:-1]).all())
    return found if is_rising else found.take(arrow_array(np.argsort(order), pa.int64()))


def bytes_of(files: LogicalFiles) -> int:
    """Bytes of all files."""
    return int(pc.sum(files["size"]).as_py() or 0)


def vector_id(vector: Mapping[str, Any] | None) -> str | None:
    """Return the `deletionVector.uniqueId` of one row's `deletion_vector`."""
    return None if vector is None else DeletionVectorDescriptor(**vector).unique_id


def _column(field: Field, found: list[Any]) -> Any:
    if field.kind is FieldKind.MAP:
        found = [item if item is None else list(item.items()) for item in found]
    elif field.kind is FieldKind.RECORD:
        found = [item if item is None else dataclasses.asdict(item) for item in found]
    return arrow_array(found, _type(field, keys=False))
