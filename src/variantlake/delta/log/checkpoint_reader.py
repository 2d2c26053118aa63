"""Reading checkpoints: classic, in parts, and V2 with sidecars, in Parquet or JSON.

Files stay in Arrow from Parquet to `LogState.files`; only the few other actions become objects.
Spec: PROTOCOL, "Checkpoints", "Checkpoint Schema", "V2 Spec".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from variantlake.delta.actions.actions import (
    ACTIONS,
    FEW,
    Action,
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    Sidecar,
    Transaction,
    UnknownAction,
    parse_log,
)
from variantlake.delta.actions.json_fields import Record, fields_of
from variantlake.delta.log.files.checkpoint_texts import (
    CheckpointFile,
    CheckpointTexts,
    named,
    not_null,
    of_type,
    opened_checkpoint,
    stats_of,
)
from variantlake.delta.log.files.file_keys import Key, key_of
from variantlake.delta.log.files.file_paths import (
    AbsolutePaths,
    check_absolute,
    decode_path,
    decoded_paths,
)
from variantlake.delta.log.files.logical_files import (
    ADD_FIELDS,
    FILES,
    REQUIRED,
    LogicalFiles,
    files_of,
    one_chunk,
    struct_type,
    values,
)
from variantlake.delta.log.files.parted_files import PartedFiles, check_unique, index_of
from variantlake.delta.log.files.path_index import PathIndex
from variantlake.delta.log.log_segment import SIDECARS, CheckpointFiles
from variantlake.delta.log.reconciliation import LogState
from variantlake.errors import MalformedLog
from variantlake.storage.store import Entry, LocalStore, Store

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_ADD_KEYS = [field.key for field in ADD_FIELDS.values()]
_BATCH_ROWS = 1 << 16


def read_checkpoint(
    store: Store, checkpoint: CheckpointFiles, *, tombstones: bool = False
) -> LogState:
    """Read the state that a checkpoint holds, with `removes` if `tombstones` is true.

    Its protocol or metadata is None if the checkpoint has none; the caller must refuse such a
    state. Without `tombstones`, the files of a very large checkpoint are PartedFiles.
    Raises MalformedLog naming the file: not Parquet, columns of wrong types, required ones missing.
    """
    removes: tuple[type[Action], ...] = (RemoveFile,) if tombstones else ()
    file = store.join(checkpoint.files[0].path)
    actions: list[Action] = []
    parts: list[LogicalFiles] = []
    later: list[CheckpointPart] = []
    may_be_parted = not tombstones
    if may_be_parted and sum(entry.size for entry in checkpoint.files) >= PARTED_BYTES:
        later = _parts_if_many(store, [entry.path for entry in checkpoint.files])
    for entry in checkpoint.files:
        found, read = _read(store, entry.path, (*FEW, *removes, UnknownAction), adds=not later)
        actions += found
        parts += read
    sidecars = list(_sidecar_paths(store, checkpoint, actions))
    size = sum(action.size_in_bytes for action in actions if isinstance(action, Sidecar))
    if later:
        later += _parts(store, sidecars)
    elif may_be_parted and size >= PARTED_BYTES:
        later = _parts_if_many(store, sidecars)
    for path in sidecars:
        found, read = _read(store, path, (*removes, UnknownAction), adds=not later)
        actions += found
        parts += read
    if later:
        whole = PartedFiles(later, LogicalFiles.joined(parts))
        return _state(actions, whole, PathIndex(), file, tombstones=False)
    if not parts and not sidecars:
        raise MalformedLog("the checkpoint has no `add` column", file=file)
    files, index = LogicalFiles.joined(parts), index_of(parts)
    state = _state(actions, files, index, file, tombstones=tombstones)
    # The allocator would keep the pages of a large checkpoint for a while.
    pa.default_memory_pool().release_unused()
    with named(file):
        check_unique(files, index)
    return state


PARTED_BYTES = 4 << 20
"""The reader reads a smaller checkpoint at once, without counting its files."""

PARTED_FILES = 4_000_000
"""From this many files on, they stay in the checkpoint: a million take 100 MB in memory."""

PART_FILES = 500_000
"""The most rows of a part, unless a single row group has more."""


@dataclass(frozen=True, slots=True)
class CheckpointPart:
    """Some row groups of a checkpoint's Parquet file; implements Part."""

    store: Store
    entry: Entry
    groups: tuple[int, ...]
    rows: int

    @property
    def is_local(self) -> bool:
        """See Part."""
        return isinstance(self.store, LocalStore)

    def read(self, *, passing: bool) -> Iterator[LogicalFiles]:
        """See Part."""
        path = self.entry.path
        now = self.store.entry(path)
        if now is None or not self.entry.is_same(now):
            raise MalformedLog(
                "the checkpoint's file is gone" if now is None else "the checkpoint has changed",
                file=self.store.join(path),
                hint="its files are read when they are asked for; open the table again",
            )
        pieces = _pieces(self.store, path, (), adds=True, groups=self.groups, passing=passing)
        for _, files in pieces:
            yield from files


def _parts_if_many(store: Store, paths: Sequence[str]) -> list[CheckpointPart]:
    """Return the parts of a checkpoint's files; none for JSON, or below PARTED_FILES rows."""
    if any(path.endswith(".json") for path in paths):
        return []
    parts = _parts(store, paths)
    return parts if sum(part.rows for part in parts) >= PARTED_FILES else []


def _parts(store: Store, paths: Sequence[str]) -> list[CheckpointPart]:
    return [part for path in paths for part in _parts_of(store, path)]


def _parts_of(store: Store, path: str) -> Iterator[CheckpointPart]:
    entry = store.entry(path)
    if entry is None:
        raise MalformedLog("a file of the checkpoint is missing", file=store.join(path))
    with opened_checkpoint(store, path) as opened:
        counts = opened.row_counts
    groups: list[int] = []
    for number, count in enumerate(counts):
        if groups and sum(counts[each] for each in groups) + count > PART_FILES:
            yield CheckpointPart(store, entry, tuple(groups), sum(counts[each] for each in groups))
            groups = []
        groups.append(number)
    if groups:
        yield CheckpointPart(store, entry, tuple(groups), sum(counts[each] for each in groups))


def read_tombstones(store: Store, checkpoint: CheckpointFiles) -> dict[Key, RemoveFile]:
    """Read the tombstones that a checkpoint holds, by key. Does not read its adds.

    Raises as `read_checkpoint`.
    """
    actions: list[Action] = []
    for entry in checkpoint.files:
        actions += _read(store, entry.path, (Sidecar, RemoveFile), adds=False)[0]
    for path in _sidecar_paths(store, checkpoint, actions):
        actions += _read(store, path, (RemoveFile,), adds=False)[0]
    return _removes_by_key(actions, store.join(checkpoint.files[0].path))


def sidecar_paths(store: Store, checkpoint: CheckpointFiles) -> list[str]:
    """Return the paths of a checkpoint's sidecars, from the table's root.

    Raises MalformedLog naming the file.
    """
    found = [_read(store, entry.path, (Sidecar,), adds=False)[0] for entry in checkpoint.files]
    return [path for actions in found for path in _sidecar_paths(store, checkpoint, actions)]


def read_sidecar_actions(store: Store, checkpoint: CheckpointFiles) -> list[Action]:
    """Read the protocol, metadata and sidecar actions of a checkpoint. Raises MalformedLog."""
    kinds = (Protocol, Metadata, Sidecar)
    found = [_read(store, entry.path, kinds, adds=False)[0] for entry in checkpoint.files]
    return [action for actions in found for action in actions]


def sidecar_path(store: Store, sidecar: Sidecar) -> str:
    """Return the path of a sidecar, from the table's root. Raises MalformedLog."""
    with named(store.join(SIDECARS)):
        return f"{SIDECARS}/{_sidecar_name(sidecar.path)}"


def read_sidecar_paths(store: Store, sidecar: Sidecar) -> pa.Array[Any] | None:
    """Read the decoded paths of the adds in a sidecar; None if it holds anything but adds.

    Raises MalformedLog naming the file, MissingSource.
    """
    path = sidecar_path(store, sidecar)
    with opened_checkpoint(store, path) as opened:
        names = opened.parquet.schema_arrow.names
        columns = [f"{name}.path" for name in ("add", "remove") if name in names]
        opened.check(columns)
        groups = range(opened.parquet.num_row_groups)
        table = pa.concat_tables(each for _, each in _tables(opened.parquet, columns, groups))
        if "add" not in names or set(names) - {"add", "remove"} or table["add"].null_count:
            return None
        if "remove" in names and _is_any(table["remove"]):
            return None
        paths: Any = decoded_paths(pc.struct_field(table["add"], "path"))
        return None if paths.null_count else one_chunk(paths)


def _read(
    store: Store, path: str, kinds: tuple[type[Action], ...], *, adds: bool = True
) -> tuple[list[Action], list[LogicalFiles]]:
    """Read the actions of these kinds in one file, and the files of its adds if `adds` is true."""
    pieces = [*_pieces(store, path, kinds, adds=adds)]
    return [each for some, _ in pieces for each in some], [
        each for _, some in pieces for each in some
    ]


def _pieces(
    store: Store,
    path: str,
    kinds: tuple[type[Action], ...],
    *,
    adds: bool,
    groups: Sequence[int] | None = None,
    passing: bool = False,
) -> Iterator[tuple[list[Action], list[LogicalFiles]]]:
    """Read these row groups like `_read`, some rows at a time; `passing` as in `Part.read`."""
    file = store.join(path)
    if path.endswith(".json"):
        found = list(parse_log(store.stream(path), file))
        if not found:
            raise MalformedLog("the checkpoint is empty", file=file)
        files = [files_of([each for each in found if isinstance(each, AddFile)])] if adds else []
        yield [each for each in found if isinstance(each, kinds)], files
        return
    with opened_checkpoint(store, path, passing=passing) as opened:
        schema = opened.parquet.schema_arrow
        if path.startswith(SIDECARS) and "add" not in schema.names:
            _check_removes(opened)
        there = [kind for kind in kinds if kind.KEY in schema.names]
        wanted = [kind.KEY for kind in there]
        if adds and "add" in schema.names:
            wanted += _add_columns(schema.field("add").type)
        texts = opened.texts(wanted)
        wanted = [name for name in wanted if name not in texts]
        unknown = [name for name in schema.names if name not in ACTIONS and UnknownAction in kinds]
        if not wanted and not unknown:
            return
        groups = range(opened.parquet.num_row_groups) if groups is None else groups
        opened.check([*wanted, *unknown], groups)
        read, columns = _tables, [*wanted, *unknown]
        if texts:
            probes = [_probe(schema.field(name)) if name in ACTIONS else name for name in wanted]
            read, columns = _row_groups, [*probes, *unknown]
        for number, table in read(opened.parquet, columns, groups):
            actions: list[Action] = []
            files = []
            if "add" in table.column_names and texts:
                for batch in _add_files(table, file, texts).combine_chunks().to_batches():
                    stored = CheckpointTexts(opened, number, texts, batch)
                    files.append(LogicalFiles.from_texts(batch, stored))
            elif "add" in table.column_names:
                files.append(LogicalFiles.of(_add_files(table, file)))
            for kind in there:
                whole = _whole(opened.parquet, number, table, kind.KEY) if texts else table
                actions += _objects(whole, kind, file)
            actions += [UnknownAction(name) for name in unknown if _is_any(table[name])]
            yield actions, files


def _check_removes(opened: CheckpointFile) -> None:
    """Raise MalformedLog for a sidecar without adds if a row of it is not a remove either."""
    schema, groups = opened.parquet.schema_arrow, range(opened.parquet.num_row_groups)
    removes = [_probe(schema.field("remove"))] if "remove" in schema.names else []
    opened.check(removes, groups)
    rows = opened.parquet.metadata.num_rows
    if removes:
        rows = sum(
            each["remove"].null_count for _, each in _tables(opened.parquet, removes, groups)
        )
    if rows:
        raise MalformedLog(f"{rows} rows of a sidecar are neither add nor remove")


def _probe(column: pa.Field[Any]) -> str:
    """Return a flat field of an action's column, enough to show which rows have the action."""
    fields: list[Any] = list(column.type) if isinstance(column.type, pa.StructType) else []
    parts = (each.name for each in fields if not pa.types.is_nested(each.type))
    part = next((name for name in parts if "." not in name), None)
    return column.name if part is None else f"{column.name}.{part}"


def _whole(parquet: pq.ParquetFile, group: int, table: pa.Table, name: str) -> pa.Table:
    """Read the whole column of a row group if its `_probe` in `table` has values; most do not."""
    return parquet.read_row_group(group, columns=[name]) if _is_any(table[name]) else table


def _is_any(column: Any) -> bool:
    """Whether a row of the column has a value."""
    return bool(column.null_count < len(column))


def _sidecar_paths(
    store: Store, checkpoint: CheckpointFiles, actions: list[Action]
) -> Iterator[str]:
    """Yield the paths of the sidecars that the actions of a checkpoint name."""
    for action in actions:
        if isinstance(action, Sidecar):
            with named(store.join(checkpoint.files[0].path)):
                path = f"{SIDECARS}/{_sidecar_name(action.path)}"
            yield path


def _state(
    actions: list[Action], files: LogicalFiles, index: PathIndex, file: str, *, tombstones: bool
) -> LogState:
    protocols = [action for action in actions if isinstance(action, Protocol)]
    metadata = [action for action in actions if isinstance(action, Metadata)]
    if len(protocols) > 1 or len(metadata) > 1:
        raise MalformedLog(
            f"the checkpoint has {len(protocols)} protocol and {len(metadata)} metaData actions, "
            f"expected one of each",
            file=file,
        )
    return LogState(
        protocol=protocols[0] if protocols else None,
        metadata=metadata[0] if metadata else None,
        files=files,
        index=index,
        removes=_removes_by_key(actions, file) if tombstones else None,
        transactions={
            action.app_id: action for action in actions if isinstance(action, Transaction)
        },
        domains={
            action.domain: action
            for action in actions
            if isinstance(action, DomainMetadata) and not action.removed
        },
        unknown_actions=frozenset(
            action.name for action in actions if isinstance(action, UnknownAction)
        ),
    )


def _removes_by_key(actions: list[Action], file: str) -> dict[Key, RemoveFile]:
    with named(file):
        return {key_of(action): action for action in actions if isinstance(action, RemoveFile)}


def _add_columns(add: pa.DataType) -> list[str]:
    """Return the columns to read; statistics in struct form only if there is no text form."""
    if not isinstance(add, pa.StructType):
        raise MalformedLog("column `add` is not a struct")
    fields = [name for name in _ADD_KEYS if add.get_field_index(name) >= 0]
    if "stats" not in fields and add.get_field_index("stats_parsed") >= 0:
        fields.append("stats_parsed")
    return [f"add.{name}" for name in fields]


def _row_groups(
    parquet: pq.ParquetFile, columns: list[str], groups: Sequence[int]
) -> Iterator[tuple[int, pa.Table]]:
    """Yield the row groups, each with its number."""
    for group in groups:
        yield group, parquet.read_row_group(group, columns=columns, use_threads=False)


def _tables(
    parquet: pq.ParquetFile, columns: list[str], groups: Sequence[int]
) -> Iterator[tuple[int, pa.Table]]:
    """Yield some rows at a time, in at least one table, each with -1 for its row group.

    Statistics and tags of these files are in memory.
    """
    rows = 0
    batches = parquet.iter_batches(
        _BATCH_ROWS, row_groups=list(groups), columns=columns, use_threads=True
    )
    for batch in batches:
        rows += batch.num_rows
        yield -1, pa.Table.from_batches([batch])
    if not rows:
        yield -1, parquet.read_row_groups(list(groups), columns=columns)


def _objects(table: pa.Table, kind: type[Action], file: str) -> Iterator[Action]:
    column = table[kind.KEY]
    with named(file):
        rows = values(column.filter(pc.is_valid(column)))
        for row in rows:
            if not isinstance(row, dict):
                raise MalformedLog(f"column `{kind.KEY}` is not a struct")
            try:
                yield kind.from_json(row)
            except MalformedLog as error:
                error.say_first(kind.KEY)
                raise


def _add_files(table: pa.Table, file: str, texts: Sequence[str] = ()) -> pa.Table:
    """Read the rows of `add` as FILES, with nulls for the columns in `texts`, which stay unread."""
    with named(file):
        column: Any = table["add"]
        add: Any = pa.chunked_array(map(not_null, column.chunks), column.type)
        fields = {field.name for field in add.type}
        columns: dict[str, Any] = {}
        for name, field in ADD_FIELDS.items():
            key, wanted = field.key, FILES.field(name).type
            if name == "stats":
                columns[name] = stats_of(add, fields)
            elif key not in fields:
                if name in REQUIRED and f"add.{key}" not in texts:
                    raise MalformedLog(f"the checkpoint has no column add.{key}", file=file)
                columns[name] = pa.nulls(len(add), wanted)
            elif field.record:
                columns[name] = _records(pc.struct_field(add, key), field.record, f"add.{key}")
            else:
                columns[name] = of_type(pc.struct_field(add, key), wanted, f"add.{key}")
                if name in REQUIRED and columns[name].null_count:
                    raise MalformedLog(f"add.{key} is null in a row", file=file)
        files = pa.Table.from_arrays([columns[name] for name in FILES.names], schema=FILES)
        files.validate(full=True)  # a string of Parquet need not be UTF-8
        return files


def _records(column: Any, record: type[Record], name: str) -> Any:
    """Structs with the protocol's field names as structs with ours."""
    wanted = struct_type(record, keys=False)
    if column.null_count == len(column):
        return pa.nulls(len(column), wanted)
    column = column.combine_chunks()
    there = column.drop_null()
    for field in fields_of(record):
        if not field.optional and pc.struct_field(there, field.key).null_count:
            raise MalformedLog(f"{name}.{field.key} is null in a row")
    children = [
        of_type(pc.struct_field(column, field.key), type_.type, f"{name}.{field.key}")
        for field, type_ in zip(fields_of(record), wanted, strict=True)
    ]
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=pc.is_null(column))


def _sidecar_name(path: str) -> str:
    """Return the file name of a sidecar, which identifies it: all sidecars are in one folder."""
    check_absolute(path, AbsolutePaths.setting())
    name = decode_path(path).rpartition("/")[2]
    if name in ("", ".", ".."):
        raise MalformedLog(f"sidecar {path!r} names no file")
    return name
