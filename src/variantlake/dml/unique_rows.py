"""Loads that keep a key unique, in the load and in the table (`unique_by`).

The load's rows are already in files that no commit names yet. This module reads only their keys and
compares them with each other and with the table's, as an upsert does. Rows that give way are marked
by deletion vectors, or their file is rewritten without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.delta.actions.actions import AddFile
from variantlake.delta.log.files.file_paths import decode_path
from variantlake.delta.log.files.logical_files import files_of
from variantlake.delta.log.files.path_index import PathIndex
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.change_feed import CHANGE_FEED
from variantlake.delta.protocol.row_tracking import PROPERTY as ROW_TRACKING
from variantlake.delta.schema.table_schema import StructType
from variantlake.delta.transaction.conflicts import Reads, whole_table
from variantlake.delta.transaction.new_actions import removes_of
from variantlake.dml.files.change_feed import AFTER, BEFORE, INSERT, write_changes
from variantlake.dml.files.copied_files import copy_files
from variantlake.dml.files.deletion_vectors import write_vectors
from variantlake.dml.files.new_files import NewFiles
from variantlake.dml.found_rows import finds_any
from variantlake.dml.merge.clauses import resolved
from variantlake.dml.merge.keys import Key, check_key_types, split_condition
from variantlake.dml.merge.matches import Matcher
from variantlake.dml.merge.sides import SourceRows
from variantlake.dml.removed_rows import (
    FileOutcomes,
    RemovedRows,
    file_outcomes,
    is_on,
    removed_rows_of,
    with_vector,
)
from variantlake.dml.row_actions import removed_rows
from variantlake.dml.row_change import by_path, check_not_append_only
from variantlake.dml.row_conflicts import RowLevel
from variantlake.errors import InvalidQuery, InvalidValue, UnsupportedFeature
from variantlake.expressions.tree import And
from variantlake.expressions.typing import compare
from variantlake.parquet.stats.fact_columns import Bools, Int64s
from variantlake.planning.files import NO_ROWS
from variantlake.planning.log_files import LogFiles
from variantlake.scan.table_scan import Scan
from variantlake.sql.changes import merge_clauses
from variantlake.sql.select import Item, QueryText
from variantlake.storage.store import Entry
from variantlake.writing.commit_files import DecidedRows
from variantlake.writing.file_plan import FilePlan
from variantlake.writing.files import task_of
from variantlake.writing.options.load_options import LoadOptions
from variantlake.writing.options.row_policies import OnDuplicate
from variantlake.writing.table_write import READER_FEATURES, TableWrite

_MATCHED = merge_clauses(["WHEN MATCHED THEN DELETE"])


def key_items(schema: StructType, unique_by: Sequence[str]) -> tuple[Item, ...]:
    """Return the typed columns and paths of a key.

    Raises InvalidQuery, UnsupportedFeature for a part that is not a column or path, or whose type
    cannot be compared.
    """
    items = QueryText(schema).items(unique_by)
    check_key_types([item.ref for item in items])
    return items


@dataclass(slots=True)
class UniqueRows:
    """Decides which rows of a load and of the table give way; a `Decide` of `commit_files`.

    `replaced` counts the table's rows that gave way in the last decision, `left_out` the load's.
    """

    plan: FilePlan
    options: LoadOptions
    replaced: int = 0
    left_out: int = 0

    def __call__(self, target: TableWrite, adds: Sequence[AddFile]) -> DecidedRows:
        """Decide for a version of the table. Raises as `Table.upsert`."""
        load = _LoadedKeys.of(target, adds, self.options)
        replaces = self.options.on_duplicate is OnDuplicate.REPLACE
        kept = load.one_for_each_key(last=replaces, partitioned=bool(target.partition_columns))
        matched, taken = load.matches(kept)
        if not replaces:
            kept &= ~matched
        if replaces and taken:
            check_not_append_only(load.table)
        self.left_out = int((~kept).sum())
        self.replaced = sum(each.count for each in taken) if replaces else 0
        return _Decision(target, self.plan, load, kept, matched, taken, replaces=replaces).made()


@dataclass(frozen=True, slots=True)
class _LoadedKeys:
    """The keys of a load's rows. `new` holds the load's files, `table` those of the table.

    `source` holds the keys, one row for each row of the load; `numbers` are the indexes of their
    files in `new`, and `places` the places in them. `replaced` tells which files an overwrite
    removes; `table` is without these.
    """

    new: Snapshot
    table: Snapshot
    source: SourceRows
    keys: Sequence[Key]
    numbers: Int64s
    places: Int64s
    replaced: Reads | None

    @classmethod
    def of(cls, target: TableWrite, adds: Sequence[AddFile], options: LoadOptions) -> _LoadedKeys:
        """Read the keys of a load's rows from its files."""
        table = _table_after_it(target)
        replaced = None if target.replacing is None else target.replacing(adds)
        if replaced is not None:
            stays = [add for add in table.add_files() if not replaced(add.partition_values)]
            table = replace(table, files=files_of(stays), index=PathIndex())
        # The commit assigns row ids, so copies of the load's files have none.
        configuration = {**table.metadata.configuration, ROW_TRACKING: "false"}
        metadata = replace(table.metadata, configuration=configuration)
        ordered = sorted(adds, key=lambda add: decode_path(add.path))
        new = replace(table, files=files_of(ordered), metadata=metadata)
        items = key_items(new.schema, options.unique_by)
        scan = Scan(new, items)
        parts, numbers, places = [scan.schema.empty_table()], [NO_ROWS], [NO_ROWS]
        every = np.arange(len(ordered), dtype=np.int64)
        for number, file in zip(every.tolist(), LogFiles(new).files(every), strict=True):
            part = pa.Table.from_batches(list(scan.batches_of([file])), scan.schema)
            parts.append(part)
            numbers.append(np.full(part.num_rows, number, np.int64))
            places.append(np.arange(part.num_rows, dtype=np.int64))
        whole = pa.concat_tables(parts).combine_chunks()
        names = [f"key{at}" for at in range(len(items))]
        arrays = [column.combine_chunks() for column in whole.columns]
        rows = pa.table(dict(zip(names, arrays, strict=True)))
        source = SourceRows(rows, StructType.from_arrow(rows.schema))
        others = QueryText(source.schema).items(names)
        pairs = [
            compare(
                "=",
                replace(own.ref, column=("t", *own.ref.column)),
                replace(other.ref, column=("s", *other.ref.column)),
            )
            for own, other in zip(items, others, strict=True)
        ]
        keys, rest = split_condition(And(tuple(pairs)), "t", "s")
        if rest:
            raise InvalidQuery(f"the key {', '.join(options.unique_by)} cannot be compared")
        at, where = np.concatenate(numbers), np.concatenate(places)
        return cls(new, table, source, keys, at, where, replaced)

    @property
    def adds(self) -> list[AddFile]:
        """The files of the load, in the order of their paths."""
        return list(self.new.add_files())

    def one_for_each_key(self, *, last: bool, partitioned: bool) -> Bools:
        """Choose the last or the first row of each key, and all rows whose key has a NULL.

        Raises InvalidValue if a task wrote rows of one key to several partitions, because their
        order is unknown.
        """
        codes = self._matcher(self.source).join.codes
        kept = codes < 0
        rows = np.flatnonzero(~kept)
        order = rows[::-1] if last else rows
        _, first = np.unique(codes[order], return_index=True)
        kept[order[first]] = True
        if partitioned and not kept.all():
            self._check_partitions(codes, kept)
        return kept

    def _check_partitions(self, codes: Int64s, kept: Bools) -> None:
        adds = self.adds
        tasks = np.array([task_of(decode_path(add.path)) for add in adds])
        texts = [str(sorted(add.partition_values.items(), key=str)) for add in adds]
        partitions = np.unique(texts, return_inverse=True)[1]
        winner = np.zeros(codes.max() + 1, np.int64)
        at = np.flatnonzero(kept & (codes >= 0))
        winner[codes[at]] = self.numbers[at]
        for row in np.flatnonzero(~kept):
            own, other = self.numbers[row], winner[codes[row]]
            if tasks[own] == tasks[other] and partitions[own] != partitions[other]:
                key = self.source.table.slice(int(row), 1).to_pylist()[0]
                raise InvalidValue(
                    f"two rows of the load have the key {tuple(key.values())!r} in different "
                    "partitions, so it is not clear which of them was there first",
                    hint="leave one row for each key",
                )

    def _matcher(self, source: SourceRows) -> Matcher:
        clauses = resolved(self.table, source, _MATCHED, ("t", "s"), lenient=False)
        return Matcher.of(self.table, source, clauses, self.keys, ())

    def matches(self, kept: Bools) -> tuple[Bools, list[RemovedRows]]:
        """Return which `kept` rows have a key of the table, and the table's rows with that key."""
        rows = np.flatnonzero(kept)
        matched = np.zeros(len(kept), np.bool_)
        if not self.table.files.num_rows or not len(rows):
            return matched, []
        own = replace(self.source, table=self.source.table.take(rows))
        matcher = self._matcher(own)
        paths = {path: at for at, path in enumerate(self.table.files["path"].to_pylist())}
        numbers, places = [NO_ROWS], [NO_ROWS]
        for each in matcher.files():
            numbers.append(np.full(len(each.places), paths[each.add.path], np.int64))
            places.append(each.places)
        matched[rows] = matcher.matched_source
        at, where = np.concatenate(numbers), np.concatenate(places)
        return matched, removed_rows(self.table, np.zeros(len(at), np.int64), at, where)[0]

    def finds(self, kept: Bools, add: AddFile) -> bool:
        """Whether a file that another writer added may have a key of ours."""
        own = replace(self.source, table=self.source.table.take(np.flatnonzero(kept)))
        return finds_any(self.table, self._matcher(own).bound, add)

    def left_out(self, kept: Bools) -> list[RemovedRows]:
        """Return the load's rows that give way, file by file."""
        found = []
        every = np.arange(self.new.files.num_rows, dtype=np.int64)
        adds = self.adds
        for number, file in zip(every.tolist(), LogFiles(self.new).files(every), strict=True):
            here = self.numbers == number
            rows = self.places[here & ~kept]
            if len(rows):
                found.append(RemovedRows.of(self.new, adds[number], file, rows, int(here.sum())))
        return found

    def chosen(self, chosen: Bools) -> Iterator[pa.Table]:
        """Read the chosen rows of the load with all columns."""
        every = np.arange(self.new.files.num_rows, dtype=np.int64)
        adds = self.adds
        for number, file in zip(every.tolist(), LogFiles(self.new).files(every), strict=True):
            here = self.numbers == number
            rows = self.places[here & chosen]
            if len(rows):
                each = RemovedRows.of(self.new, adds[number], file, rows, int(here.sum()))
                yield from removed_rows_of(self.new, [each])


@dataclass(frozen=True, slots=True)
class _Decision:
    """The decision on a load. `same_keys` are the table's rows that share a key with the load."""

    target: TableWrite
    plan: FilePlan
    load: _LoadedKeys
    kept: Bools
    matched: Bools
    same_keys: list[RemovedRows]
    replaces: bool
    written: list[str] = field(default_factory=list)

    def made(self) -> DecidedRows:
        """Write the files that the decision needs; deletes them again if that fails."""
        try:
            return self._made()
        except BaseException:
            for path in self.written:
                self.target.store.delete(path)
            raise

    def _made(self) -> DecidedRows:
        removed = self.same_keys if self.replaces else []
        old = file_outcomes(self.load.table, removed)
        fed = is_on(self.load.table, CHANGE_FEED)
        if fed and removed and self.load.replaced is not None:
            raise UnsupportedFeature(
                "an overwrite with a key replaces rows of other partitions, which the change feed "
                "cannot say together with those of its own",
                file=self.target.store.uri,
                hint="overwrite the partitions first, and upsert then",
            )
        left_out = self.load.left_out(self.kept)
        new = file_outcomes(self.load.new, left_out)
        if fed:  # readers of the feed take an added file as a whole
            new = FileOutcomes(new.gone, (), (*new.marked, *new.rewritten))
        marked_old, marked_new = self._marked(old), self._marked(new)
        again = (*self._copied(self.load.table, old), *self._copied(self.load.new, new))
        changed = {each.add.path for each in left_out}
        adds = [add for add in self.load.adds if add.path not in changed]
        watched = [] if self.replaces else self.same_keys
        decided = DecidedRows(
            adds=(*adds, *marked_new, *marked_old, *again),
            removes=removes_of(each.add for each in removed),
            change_files=self._change_files() if fed and removed else (),
            reads=whole_table,
            rebased=RowLevel(
                self.load.table,
                marked=by_path(old.marked),
                gone=by_path(old.gone),
                rewritten=by_path(old.rewritten),
                overlaps=False,
                finds=lambda add: self.load.finds(self.kept, add),
                watched=by_path(watched),
                written=self.written,
            ),
            metrics={
                "numReplacedRows": str(sum(each.count for each in removed)),
                "numLeftOutRows": str(int((~self.kept).sum())),
            },
            written=self.written,
            unused=[decode_path(each.add.path) for each in (*new.gone, *new.rewritten)],
        )
        if self.load.replaced is None:
            return decided
        # Keys do not matter for rows that others add to the partitions that are replaced.
        return replace(decided, rebased=None, replaced=self.load.replaced)

    def _marked(self, decided: FileOutcomes) -> list[AddFile]:
        store = self.target.store
        vectors, path = write_vectors(store, [each.deleted for each in decided.marked])
        self.written.extend([] if path is None else [path])
        return [
            with_vector(each.add, vector, each.num_rows)
            for each, vector in zip(decided.marked, vectors, strict=True)
        ]

    def _copied(self, snapshot: Snapshot, decided: FileOutcomes) -> tuple[AddFile, ...]:
        copies = copy_files(snapshot, self.plan.load_id, decided.rewritten)
        self.written.extend(decode_path(add.path) for add in copies)
        return copies

    def _change_files(self) -> Any:
        files = NewFiles(self.target, self.plan)
        changes = [
            (BEFORE, removed_rows_of(self.load.table, self.same_keys)),
            (AFTER, self.load.chosen(self.kept & self.matched)),
            (INSERT, self.load.chosen(self.kept & ~self.matched)),
        ]
        made = write_changes(files, changes)
        self.written.extend(decode_path(each.path) for each in made)
        return made


def _table_after_it(target: TableWrite) -> Snapshot:
    """Return the table as the load alters it; a table without files if it does not exist yet."""
    if target.snapshot is None:
        if target.altered is None:
            raise TypeError("a new table is made by TableWrite.new")
        protocol, metadata = target.altered
        none = files_of(())
        return Snapshot(
            target.store, -1, Entry("", 0, 0), protocol, metadata, target.schema, none,
            applies=frozenset(READER_FEATURES),
        )  # fmt: skip
    if target.altered is None:
        return target.snapshot
    protocol, metadata = target.altered
    return replace(target.snapshot, protocol=protocol, metadata=metadata, schema=target.schema)
