"""Keep partition values, statistics and tags, which are most of a log, compressed until used.

Texts of neighbouring files are alike, so compressed they take a tenth of the memory or less.
Unpacking is ten times as fast as parsing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, Self

import pyarrow as pa

from variantlake.arrays import numpy_array
from variantlake.parquet.stats.fact_columns import Bools, ColumnPath, Int64s

EncodedMaps = Literal["tags", "partition_values"]
"""Maps with few distinct keys, and mostly few distinct values, across many files."""

_TEXTS = ("path", "partition_values", "stats", "tags")

_SMALL = 1 << 14
"""Columns of at least this many bytes are packed."""


class FileTexts(Protocol):
    """The long texts in the log about some files.

    Each call builds its result anew; nothing is cached.
    """

    @property
    def rows(self) -> int:
        """The number of files."""

    @property
    def sizes(self) -> Int64s:
        """The size of each file in bytes."""

    @property
    def marked(self) -> Bools:
        """Marks the files that have a deletion vector."""

    @property
    def is_plain(self) -> bool:
        """Whether each path is, verbatim, the name of a file directly in the table's folder."""

    def paths(self) -> Any:
        """Return the paths as in the log, an array of strings."""

    def partition_values(self) -> Any:
        """Return the partition values, an array of maps."""

    def stats(self) -> Any:
        """Return the statistics, an array of strings."""

    def tags(self) -> Any:
        """Return the tags, an array of maps."""

    def encoded(self, name: EncodedMaps) -> Any:
        """Return tags or partition values, dictionary-encoded if they are stored so."""

    def struct(self) -> StatsStruct | None:
        """Return the statistics as a struct, if the log has them in that form."""


class StatsStruct(Protocol):
    """The column `stats_parsed` of some files."""

    def column(self, path: ColumnPath) -> Any:
        """Return a field by the names that lead to it, an Arrow array; None if it is missing."""

    def agreed(self, key: object, path: ColumnPath, compare: Callable[[Any, Any], bool]) -> bool:
        """Whether `compare` accepts the texts and fields of sampled files. Cached by `key`.

        True if there are no texts.
        """


class TextRuns(Protocol):
    """A table's files with packed texts, for `log_facts.LogFacts`."""

    def runs(self) -> Sequence[tuple[FileTexts, Int64s]]:
        """Return the texts, in file order, each with the rows in it that belong to the table."""


class PackedTexts:
    """FileTexts in memory."""

    is_plain = False

    def __init__(self, sizes: Int64s, marked: Bools, texts: Mapping[str, Any]) -> None:
        """`texts` holds the columns `path`, which stays unpacked, and those to pack."""
        self.rows: int = len(sizes)
        self.sizes, self.marked, self._paths = sizes, marked, texts["path"]
        self._partitions = packed(texts["partition_values"])
        self._stats, self._tags = packed(texts["stats"]), packed(texts["tags"])

    @classmethod
    def of(cls, files: pa.RecordBatch) -> Self:
        """Pack the texts of files with the columns of `logical_files.FILES`."""
        sizes: Any = files.column("size")
        vectors: Any = files.column("deletion_vector")
        marked = numpy_array(vectors.is_valid())
        return cls(numpy_array(sizes), marked, {name: files.column(name) for name in _TEXTS})

    def paths(self) -> Any:
        """See FileTexts."""
        return self._paths

    def partition_values(self) -> Any:
        """See FileTexts."""
        return unpacked(self._partitions)

    def stats(self) -> Any:
        """See FileTexts."""
        return unpacked(self._stats)

    def tags(self) -> Any:
        """See FileTexts."""
        return unpacked(self._tags)

    def encoded(self, name: EncodedMaps) -> Any:
        """See FileTexts."""
        return self.tags() if name == "tags" else self.partition_values()

    def struct(self) -> StatsStruct | None:
        """See FileTexts."""
        return None


def packed(column: Any) -> Any:
    """Return a column as a compressed Arrow stream; small or all-null columns stay arrays."""
    if column.null_count == len(column):
        return pa.nulls(len(column), column.type)
    if column.nbytes < _SMALL:
        # Copy a slice: otherwise it would keep its whole batch in memory.
        return pa.concat_arrays([column, column.slice(0, 0)]) if column.offset else column
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", 1), use_threads=False)
    schema = pa.schema([("text", column.type)])
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        writer.write_batch(pa.record_batch([column], schema=schema))
    return sink.getvalue()


def unpacked(column: Any) -> Any:
    """Return the column that `packed` was given."""
    if isinstance(column, pa.Buffer):
        return pa.ipc.open_stream(column).read_next_batch().column(0)
    return column
