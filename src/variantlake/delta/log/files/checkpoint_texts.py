"""An open checkpoint file, whose largest columns are read on demand.

Spec: PROTOCOL, "Checkpoint Schema".
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array, numpy_array
from variantlake.delta.log.files.file_paths import are_plain, decoded_paths
from variantlake.delta.log.files.logical_files import STRING_MAP, one_chunk
from variantlake.delta.log.files.path_index import hashes_of
from variantlake.delta.stats.columns.stats_struct_to_json import is_text, stats_to_json
from variantlake.delta.stats.file_texts import EncodedMaps, PackedTexts, StatsStruct
from variantlake.errors import MalformedFile, MalformedLog, in_file
from variantlake.parquet.metadata.column_chunks import places
from variantlake.parquet.metadata.footer import RowGroup, read_footer
from variantlake.parquet.metadata.pages import check_pages, pages_are_usual
from variantlake.parquet.metadata.schema_tree import SchemaNode
from variantlake.parquet.stats.fact_columns import Bools, ColumnPath, Int64s
from variantlake.storage.input_file import InputFile
from variantlake.storage.store import LocalStore, Store

if TYPE_CHECKING:
    import pyarrow.parquet as pq

LEAST_ROWS = 4096
"""From this many rows on, a checkpoint file's texts stay in it."""

_MOST_ROWS, _MOST_BYTES = 1 << 17, 256 << 20
"""The most rows, and bytes of texts, in each row group of such a file: readers hold one at once."""

_AT_ONCE = 64 << 20
"""The most bytes of a row group that the kernel checks in one go."""

_PARSED = "stats_parsed"
_TEXTS = {"add.partitionValues", "add.stats", f"add.{_PARSED}", "add.tags"}
_KEYS: dict[EncodedMaps, str] = {"tags": "tags", "partition_values": "partitionValues"}

_COMPARED = 64
"""The most adds whose statistics are compared in both of their forms."""


class CheckpointFile:
    """An open checkpoint file in Parquet. `name` is what errors call it."""

    def __init__(self, source: InputFile, name: str, *, can_stay: bool) -> None:
        self.name = name
        # Read the footer before pyarrow does, which trusts footers and page headers: see
        # parquet.metadata.pages.
        self._footer = read_footer(source)
        self._source, self._can_stay = source, can_stay
        self._lock = threading.Lock()
        self.parquet = self._open()
        self.stays = False
        self._agreed: dict[object, bool] = {}

    @property
    def row_counts(self) -> list[int]:
        """The rows of each row group."""
        return [group.num_rows for group in self._footer.row_groups]

    def check(self, columns: Sequence[str], groups: Sequence[int] | None = None) -> None:
        """Check the pages of columns before a read, in all row groups if `groups` is None."""
        leaves = [
            leaf for name in columns for leaf in _leaves_of(self._footer.schema, name.split("."))
        ]
        every = self._footer.row_groups
        self._check(leaves, every if groups is None else [every[number] for number in groups])

    def _check(self, leaves: Sequence[int], groups: Sequence[RowGroup]) -> None:
        ranges = [_ranges(each, leaves) for each in groups]
        self._source.prefetch(each for some in ranges for each in some)
        for group, some in zip(groups, ranges, strict=True):
            if self._are_usual(group, leaves, some):
                continue
            for leaf in leaves:
                column = self._footer.leaves[leaf]
                check_pages(self._source.read_at, column, group.columns[leaf], group)

    def _are_usual(
        self, group: RowGroup, leaves: Sequence[int], ranges: Sequence[tuple[int, int]]
    ) -> bool:
        """Whether the kernel checked all pages in these ranges of the file and found them usual."""
        sizes = [size for _, size in ranges]
        if sum(sizes) > _AT_ONCE or any(start < 0 for start, _ in ranges):
            return False
        data = b"".join(self._source.read_at(size, start) for start, size in ranges)
        starts = np.cumsum([0, *sizes], dtype=np.int64)
        if len(data) != starts[-1]:
            return False
        leaf_of = self._footer.leaves
        return pages_are_usual(data, leaf_of, group, leaves, starts=starts[:-1]) >= 0

    def texts(self, columns: Sequence[str]) -> list[str]:
        """Those of the columns that stay in the file until a caller reads them.

        A local file stays readable if it is removed or replaced; an object may change meanwhile.
        """
        found = [name for name in columns if name in _TEXTS]
        leaves = [
            leaf for name in found for leaf in _leaves_of(self._footer.schema, name.split("."))
        ]
        groups = self._footer.row_groups
        stay = self._can_stay and sum(group.num_rows for group in groups) >= LEAST_ROWS
        for group in groups:
            size = sum(group.columns[leaf].uncompressed_size for leaf in leaves)
            stay = stay and group.num_rows <= _MOST_ROWS and size <= _MOST_BYTES
        self.stays = stay and bool(found)
        return found if stay else []

    def field(self, group: int, path: Sequence[str]) -> Any:
        """Read a field of the adds in a row group, as an array; None if the file has no such field.

        Raises MalformedLog.
        """
        leaves = _leaves_of(self._footer.schema, ("add", *path))
        return self._column(self.parquet, group, path, leaves) if leaves else None

    def encoded(self, group: int, key: str) -> Any:
        """Read a map of strings in a row group, dictionary-encoded; None for another type."""
        type_: Any = self._encoded.schema_arrow.field("add").type.field(key).type
        is_map = pa.types.is_map(type_) and all(
            pa.types.is_dictionary(each) and is_text(each.value_type)
            for each in (type_.key_type, type_.item_type)
        )
        leaves = _leaves_of(self._footer.schema, ("add", key))
        return self._column(self._encoded, group, (key,), leaves) if is_map else None

    @cached_property
    def _encoded(self) -> pq.ParquetFile:
        """The file opened for dictionary-encoded maps: many adds share their strings."""
        keys = _KEYS.values()
        leaves = [leaf for key in keys for leaf in _leaves_of(self._footer.schema, ("add", key))]
        names = [self.parquet.metadata.schema.column(leaf).path for leaf in leaves]
        return self._open(self.parquet.metadata, names)

    def _open(self, metadata: Any = None, encoded: Sequence[str] = ()) -> pq.ParquetFile:
        import pyarrow.parquet as pq  # most opened tables have no checkpoint to read

        return pq.ParquetFile(
            self._source.native,
            metadata=metadata,
            read_dictionary=list(encoded),
            page_checksum_verification=True,
            pre_buffer=False,
        )

    def _column(
        self, parquet: pq.ParquetFile, group: int, path: Sequence[str], leaves: Sequence[int]
    ) -> Any:
        with named(self.name), self._lock:
            self._check(leaves, self._footer.row_groups[group : group + 1])
            # By number, because the name of another field may contain a dot.
            table = parquet.reader.read_row_group(
                group, column_indices=list(leaves), use_threads=False
            )
            column: Any = table["add"]
            column = pa.chunked_array(map(not_null, column.chunks), column.type)
            for name in path:
                column = pc.struct_field(column, name)
            return one_chunk(column)

    def agreed(self, key: object, path: Sequence[str], compare: Callable[[Any, Any], bool]) -> bool:
        """Whether `compare` accepts a sample of the texts of statistics and their struct's field.

        True if the file has no texts. The writer of the file may have erred in one of the two.
        """
        if key not in self._agreed:
            group, rows, texts = self._some_texts
            column = None if texts is None else self.field(group, path)
            self._agreed[key] = texts is None or (
                column is not None and compare(texts, column.take(rows))
            )
        return self._agreed[key]

    @cached_property
    def _some_texts(self) -> tuple[int, Any, Any]:
        """A row group, a sample of its adds, and their statistics as text; None without texts."""
        for group in range(len(self._footer.row_groups)):
            texts = self.field(group, ("stats",))
            if texts is not None and len(texts):
                step = -(-len(texts) // _COMPARED)
                rows = arrow_array(np.arange(0, len(texts), step))
                return group, rows, of_type(texts.take(rows), pa.string(), "add.stats")
        return 0, None, None


@contextlib.contextmanager
def opened_checkpoint(
    store: Store, path: str, *, passing: bool = False
) -> Iterator[CheckpointFile]:
    """Open a checkpoint file, and close it at the end unless it is local and texts stay in it.

    With `passing`, texts stay in any file, and those of one that is not local cannot be read after
    the end.

    Raises MalformedLog naming the file, also for errors inside the context.
    """
    file = store.join(path)
    with named(file), contextlib.ExitStack() as stack:
        source = stack.enter_context(store.open(path))
        is_local = isinstance(store, LocalStore)
        opened = CheckpointFile(source, file, can_stay=is_local or passing)
        yield opened
        if opened.stays and is_local:
            stack.pop_all()


class CheckpointTexts:
    """Paths, partition values, statistics and tags of one row group; implements FileTexts.

    `columns` stay in the file; so do the paths if they are plain. `hashes` are the sorted hashes of
    the decoded paths.
    """

    def __init__(
        self, file: CheckpointFile, group: int, columns: Sequence[str], files: pa.RecordBatch
    ) -> None:
        paths: Any = files.column("path")
        self.is_plain: bool = are_plain(paths)
        self._paths: Any = None if self.is_plain else paths
        decoded = decoded_paths(pa.chunked_array([paths]))
        self.hashes: Int64s = np.sort(hashes_of(one_chunk(decoded)))
        sizes: Any = files.column("size")
        vectors: Any = files.column("deletion_vector")
        self.rows: int = files.num_rows
        self.sizes: Int64s = numpy_array(sizes)
        self.marked: Bools = numpy_array(vectors.is_valid())
        self._file, self._group, self._columns = file, group, columns

    def paths(self) -> Any:
        """See FileTexts. Raises MalformedLog."""
        if self._paths is None:
            # All paths of the row group stay in memory from now on, even if one file is kept.
            paths = self._read("add.path", pa.string())
            if paths.null_count or not are_plain(paths):
                raise MalformedLog("the paths have changed", file=self._file.name)
            self._paths = paths
        return self._paths

    def partition_values(self) -> Any:
        """See FileTexts. Raises MalformedLog."""
        return self._read("add.partitionValues", STRING_MAP)

    def stats(self) -> Any:
        """See FileTexts. Raises MalformedLog."""
        name = "add.stats" if "add.stats" in self._columns else "add.stats_parsed"
        return self._read(name, pa.string())

    def tags(self) -> Any:
        """See FileTexts. Raises MalformedLog."""
        return self._read("add.tags", STRING_MAP)

    def encoded(self, name: EncodedMaps) -> Any:
        """See FileTexts. Raises MalformedLog."""
        key = _KEYS[name]
        maps = None
        with named(self._file.name):
            if f"add.{key}" in self._columns:
                maps = self._file.encoded(self._group, key)
            if maps is None:
                return self.tags() if name == "tags" else self.partition_values()
            self._check_rows(maps, key)
            return self._sound(maps, f"add.{key}")

    def _read(self, name: str, type_: pa.DataType) -> Any:
        if name not in (*self._columns, "add.path"):
            return pa.nulls(self.rows, type_)  # type: ignore[call-overload]
        with named(self._file.name):
            column = self.field(name.split(".")[1:])
            if name == "add.stats_parsed":
                column = one_chunk(stats_to_json(pa.chunked_array([column])))
            else:
                column = of_type(column, type_, name)
            return self._sound(column, name)

    def _sound(self, column: Any, name: str) -> Any:
        column.validate(full=True)  # a string of Parquet need not be UTF-8
        if name == "add.partitionValues" and column.null_count:
            raise MalformedLog(f"{name} is null in a row")
        return column

    def field(self, path: Sequence[str]) -> Any:
        """Return a field of `add`, None if the file has no such field. Raises MalformedLog."""
        column = self._file.field(self._group, path)
        if column is not None:
            self._check_rows(column, ".".join(path))
        return column

    def _check_rows(self, column: Any, name: str) -> None:
        if len(column) != self.rows:
            what = f"{name} has {len(column)} rows, expected {self.rows}"
            raise MalformedLog(what, file=self._file.name)

    def struct(self) -> StatsStruct | None:
        """See FileTexts."""
        return _ParsedOfGroup(self, self._file)

    def __reduce__(self) -> Any:
        texts = {"path": self.paths(), "partition_values": self.partition_values()}
        texts |= {"stats": self.stats(), "tags": self.tags()}
        return PackedTexts, (self.sizes, self.marked, texts)


class _ParsedOfGroup:
    """`stats_parsed` of the files of one row group; implements StatsStruct."""

    def __init__(self, texts: CheckpointTexts, file: CheckpointFile) -> None:
        self._texts, self._file = texts, file

    def column(self, path: ColumnPath) -> Any:
        """See StatsStruct. Raises MalformedLog."""
        return self._texts.field((_PARSED, *path))

    def agreed(self, key: object, path: ColumnPath, compare: Callable[[Any, Any], bool]) -> bool:
        """See StatsStruct. Raises MalformedLog."""
        return self._file.agreed(key, (_PARSED, *path), compare)


def _ranges(group: RowGroup, leaves: Sequence[int]) -> list[tuple[int, int]]:
    return [(first, size) for first, size, _ in places(group.columns, leaves).tolist()]


def _leaves_of(schema: SchemaNode, path: Sequence[str]) -> list[int]:
    """Return the numbers of a column's leaves, in order; `path` names its nodes from the root."""
    nodes = [schema]
    for name in path:
        nodes = [child for node in nodes for child in node.children if child.name == name]
    leaves: list[int] = []
    while nodes:
        node = nodes.pop()
        nodes += node.children
        if node.leaf is not None:
            leaves.append(node.leaf)
    return sorted(leaves)


def not_null(array: Any) -> Any:
    """Return the values that are not null, without a copy if all nulls come first."""
    count = array.null_count
    if not count or array.slice(0, count).null_count == count:
        return array.slice(count)
    return array.filter(array.is_valid())


def stats_of(add: Any, fields: set[str]) -> Any:
    """Return the statistics of `add` as JSON texts; nulls if it has none of these `fields`."""
    if "stats" in fields:
        return of_type(pc.struct_field(add, "stats"), pa.string(), "add.stats")
    if "stats_parsed" in fields:
        return stats_to_json(pc.struct_field(add, "stats_parsed"))
    return pa.nulls(len(add), pa.string())


def of_type(column: Any, wanted: pa.DataType, name: str) -> Any:
    """Cast `column` to a type that differs only in width or layout. Raises MalformedLog."""
    found = column.type
    if found == wanted:
        return column
    alike = (
        (pa.types.is_integer(found) and pa.types.is_integer(wanted))
        or (is_text(found) and is_text(wanted))
        or (isinstance(found, pa.MapType) and wanted == STRING_MAP and is_text(found.key_type))
    )
    if not alike:
        raise MalformedLog(f"column {name} is {found}, expected {wanted}")
    return column.cast(wanted)


@contextlib.contextmanager
def named(file: str) -> Iterator[None]:
    """Raise errors of the Parquet reader as MalformedLog, and add the file's name to our errors."""
    with in_file(file):
        try:
            yield
        except pa.ArrowMemoryError:
            raise  # the file may be whole
        except (MalformedFile, pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise MalformedLog(
                f"the checkpoint cannot be read: {error}",
                hint="it is not Parquet, cut, or damaged",
            ) from error
