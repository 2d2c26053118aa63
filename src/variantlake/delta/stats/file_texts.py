"""Paths, partition values, statistics and tags, packed until asked for: they are most of a log.

Texts of neighbours repeat each other, so packed they take a tenth of the memory or less; unpacking
is ten times as fast as parsing them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, Self

import pyarrow as pa

from variantlake.arrays import numpy_array
from variantlake.parquet.stats.fact_columns import Bools, ColumnPath, Int64s

EncodedMaps = Literal["tags", "partition_values"]
"""Maps whose keys, and mostly texts, are few and come again in many files."""

_TEXTS = ("path", "partition_values", "stats", "tags")

_SMALL = 1 << 14
"""From this many bytes on, a column is worth packing."""


class FileTexts(Protocol):
    """What the log says of some files at length.

    What is asked for is made anew each time, and goes when its user lets it go.
    """

    @property
    def rows(self) -> int:
        """How many files."""

    @property
    def sizes(self) -> Int64s:
        """Bytes of each."""

    @property
    def marked(self) -> Bools:
        """Those with a deletion vector."""

    @property
    def is_plain(self) -> bool:
        """Whether each path is the name of a file in the table's folder, as it stands there."""

    def paths(self) -> Any:
        """The paths as in the log, an array of strings."""

    def partition_values(self) -> Any:
        """The partition values, an array of maps."""

    def stats(self) -> Any:
        """The statistics, an array of strings."""

    def tags(self) -> Any:
        """The tags, an array of maps."""

    def encoded(self, name: EncodedMaps) -> Any:
        """Tags or partition values, dictionary-encoded if that is how they are stored."""

    def struct(self) -> StatsStruct | None:
        """The statistics as a struct, if they are there in that form."""


class StatsStruct(Protocol):
    """The column `stats_parsed` of some files."""

    def column(self, path: ColumnPath) -> Any:
        """A field by the names that lead to it, an Arrow array; None if it is not there."""

    def agreed(self, key: object, path: ColumnPath, compare: Callable[[Any, Any], bool]) -> bool:
        """Whether some files' texts and fields compare; true without texts, remembered by `key`."""


class TextRuns(Protocol):
    """Files whose texts are packed: a table's, for `log_facts.LogFacts`."""

    def runs(self) -> Sequence[tuple[FileTexts, Int64s]]:
        """The texts of the files, in their order, and the rows of these that they are."""


class PackedTexts:
    """Texts in memory, as FileTexts."""

    is_plain = False

    def __init__(self, sizes: Int64s, marked: Bools, texts: Mapping[str, Any]) -> None:
        """`texts` are the columns of `logical_files.FILES` that are packed, and `path`."""
        self.rows: int = len(sizes)
        self.sizes, self.marked, self._paths = sizes, marked, texts["path"]
        self._partitions = packed(texts["partition_values"])
        self._stats, self._tags = packed(texts["stats"]), packed(texts["tags"])

    @classmethod
    def of(cls, files: pa.RecordBatch) -> Self:
        """Of files with the columns of `logical_files.FILES`."""
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
    """A column as a compressed Arrow stream; as it is if it is small or holds nothing."""
    if column.null_count == len(column):
        return pa.nulls(len(column), column.type)
    if column.nbytes < _SMALL:
        # A copy: the batch may be a few rows of a large one, which would stay in memory.
        return pa.concat_arrays([column, column.slice(0, 0)]) if column.offset else column
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", 1), use_threads=False)
    schema = pa.schema([("text", column.type)])
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        writer.write_batch(pa.record_batch([column], schema=schema))
    return sink.getvalue()


def unpacked(column: Any) -> Any:
    """What `packed` was given."""
    if isinstance(column, pa.Buffer):
        return pa.ipc.open_stream(column).read_next_batch().column(0)
    return column
