"""An open checkpoint file; the statistics and tags in it are read if somebody asks.

Spec: PROTOCOL, "Checkpoint Schema".
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.delta.log.logical_files import STRING_MAP, one_chunk
from variantlake.delta.stats.file_texts import PackedTexts, StatsStruct
from variantlake.delta.stats.stats_struct_to_json import is_text, stats_to_json
from variantlake.errors import MalformedFile, MalformedLog, in_file
from variantlake.parquet.metadata.footer import RowGroup, read_footer
from variantlake.parquet.metadata.pages import check_pages
from variantlake.parquet.metadata.schema_tree import SchemaNode
from variantlake.parquet.stats.fact_columns import Bools, ColumnPath, Int64s
from variantlake.storage.input_file import InputFile
from variantlake.storage.store import LocalStore, Store

LEAST_ROWS = 4096
"""Rows of a checkpoint file from which on its texts stay in it."""

_MOST_ROWS, _MOST_BYTES = 1 << 17, 256 << 20
"""Rows and bytes of texts of the row groups of such a file: one is in memory at a time."""

_PARSED = "stats_parsed"
_TEXTS = {"add.stats", f"add.{_PARSED}", "add.tags"}

_COMPARED = 64
"""Adds whose statistics are compared in both of their forms."""


class CheckpointFile:
    """An open checkpoint file in Parquet. `name` is what errors call it."""

    def __init__(self, source: InputFile, name: str, *, is_local: bool) -> None:
        self.name = name
        # Before pyarrow, which believes what a footer and a page header say: see
        # parquet.metadata.pages.
        self._footer = read_footer(source)
        self._source, self._is_local = source, is_local
        self._lock = threading.Lock()
        import pyarrow.parquet as pq  # most opened tables have no checkpoint to read

        self.parquet = pq.ParquetFile(source.native, page_checksum_verification=True)
        self.stays = False
        self._agreed: dict[object, bool] = {}

    def check(self, columns: Sequence[str]) -> None:
        """Look at the pages of columns before they are read."""
        leaves = [
            leaf for name in columns for leaf in _leaves_of(self._footer.schema, name.split("."))
        ]
        self._check(leaves, self._footer.row_groups)

    def _check(self, leaves: Sequence[int], groups: Sequence[RowGroup]) -> None:
        chunks = [each.columns[leaf] for each in groups for leaf in leaves]
        self._source.prefetch((chunk.first_page, chunk.compressed_size) for chunk in chunks)
        for each in groups:
            for leaf in leaves:
                column = self._footer.leaves[leaf]
                check_pages(self._source.read_at, column, each.columns[leaf], each)

    def texts(self, columns: Sequence[str]) -> list[str]:
        """Those of the columns that are left in the file until somebody asks for them.

        A local file stays open, whoever removes or replaces it; objects may change meanwhile.
        """
        found = [name for name in columns if name in _TEXTS]
        leaves = [
            leaf for name in found for leaf in _leaves_of(self._footer.schema, name.split("."))
        ]
        groups = self._footer.row_groups
        stay = self._is_local and sum(group.num_rows for group in groups) >= LEAST_ROWS
        for group in groups:
            size = sum(group.columns[leaf].uncompressed_size for leaf in leaves)
            stay = stay and group.num_rows <= _MOST_ROWS and size <= _MOST_BYTES
        self.stays = stay and bool(found)
        return found if stay else []

    def field(self, group: int, path: Sequence[str]) -> Any:
        """A field of the adds in a row group, an array; None if there is none of the name.

        Raises MalformedLog.
        """
        leaves = _leaves_of(self._footer.schema, ("add", *path))
        if not leaves:
            return None
        with named(self.name), self._lock:
            self._check(leaves, self._footer.row_groups[group : group + 1])
            # By number: a field of another name may have a dot in it.
            table = self.parquet.reader.read_row_group(group, column_indices=leaves)
            column: Any = table["add"]
            column = pa.chunked_array(map(not_null, column.chunks), column.type)
            for name in path:
                column = pc.struct_field(column, name)
            return one_chunk(column)

    def agreed(self, key: object, path: Sequence[str], compare: Callable[[Any, Any], bool]) -> bool:
        """Whether the first adds' statistics as texts and a field of their struct `compare`.

        Both come from whoever wrote the file, who may have erred in one of them.
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
        """A row group, some of its adds, and their statistics as text; None without any."""
        for group in range(len(self._footer.row_groups)):
            texts = self.field(group, ("stats",))
            if texts is not None and len(texts):
                step = -(-len(texts) // _COMPARED)
                rows = pa.array(np.arange(0, len(texts), step))
                return group, rows, of_type(texts.take(rows), pa.string(), "add.stats")
        return 0, None, None


@contextlib.contextmanager
def opened_checkpoint(store: Store, path: str) -> Iterator[CheckpointFile]:
    """The file, which is closed at the end unless texts stay in it.

    Raises MalformedLog naming it, then and there.
    """
    file = store.join(path)
    with named(file), contextlib.ExitStack() as stack:
        source = stack.enter_context(store.open(path))
        opened = CheckpointFile(source, file, is_local=isinstance(store, LocalStore))
        yield opened
        if opened.stays:
            stack.pop_all()


class CheckpointTexts:
    """Statistics and tags of the files of one row group, as FileTexts."""

    def __init__(
        self, file: CheckpointFile, group: int, columns: Sequence[str], files: pa.RecordBatch
    ) -> None:
        sizes: Any = files.column("size")
        vectors: Any = files.column("deletion_vector")
        self.rows: int = files.num_rows
        self.sizes: Int64s = sizes.to_numpy()
        self.marked: Bools = vectors.is_valid().to_numpy(zero_copy_only=False)
        self._file, self._group, self._columns = file, group, columns

    def stats(self) -> Any:
        """See FileTexts. Raises MalformedLog."""
        name = "add.stats" if "add.stats" in self._columns else "add.stats_parsed"
        return self._read(name, pa.string())

    def tags(self) -> Any:
        """See FileTexts. Raises MalformedLog."""
        return self._read("add.tags", STRING_MAP)

    def _read(self, name: str, type_: pa.DataType) -> Any:
        if name not in self._columns:
            return pa.nulls(self.rows, type_)  # type: ignore[call-overload]
        with named(self._file.name):
            column = self.field(name.split(".")[1:])
            if name == "add.stats_parsed":
                column = one_chunk(stats_to_json(pa.chunked_array([column])))
            else:
                column = of_type(column, type_, name)
            column.validate(full=True)  # a string of Parquet need not be UTF-8
        return column

    def field(self, path: Sequence[str]) -> Any:
        """A field of `add`, None if there is none of the name. Raises MalformedLog."""
        column = self._file.field(self._group, path)
        if column is not None and len(column) != self.rows:
            what = f"{'.'.join(path)} has {len(column)} rows, expected {self.rows}"
            raise MalformedLog(what, file=self._file.name)
        return column

    def struct(self) -> StatsStruct | None:
        """See FileTexts."""
        return _ParsedOfGroup(self, self._file)

    def __reduce__(self) -> Any:
        return PackedTexts, (self.sizes, self.marked, self.stats(), self.tags())


class _ParsedOfGroup:
    """`stats_parsed` of the files of one row group, as StatsStruct."""

    def __init__(self, texts: CheckpointTexts, file: CheckpointFile) -> None:
        self._texts, self._file = texts, file

    def column(self, path: ColumnPath) -> Any:
        """See StatsStruct. Raises MalformedLog."""
        return self._texts.field((_PARSED, *path))

    def agreed(self, key: object, path: ColumnPath, compare: Callable[[Any, Any], bool]) -> bool:
        """See StatsStruct. Raises MalformedLog."""
        return self._file.agreed(key, (_PARSED, *path), compare)


def _leaves_of(schema: SchemaNode, path: Sequence[str]) -> list[int]:
    """The leaves of a column, by the names that lead to it."""
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
    """The values that are there. They stay where they are in memory if all others stand first."""
    count = array.null_count
    if not count or array.slice(0, count).null_count == count:
        return array.slice(count)
    return array.filter(array.is_valid())


def stats_of(add: Any, fields: set[str]) -> Any:
    """The texts of statistics."""
    if "stats" in fields:
        return of_type(pc.struct_field(add, "stats"), pa.string(), "add.stats")
    if "stats_parsed" in fields:
        return stats_to_json(pc.struct_field(add, "stats_parsed"))
    return pa.nulls(len(add), pa.string())


def of_type(column: Any, wanted: pa.DataType, name: str) -> Any:
    """`column` as `wanted`, between types that differ in nothing but width or layout."""
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
    """Errors of the Parquet reader as ours, and ours with the file's name."""
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
