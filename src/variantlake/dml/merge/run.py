"""MERGE and upsert of Arrow rows as one commit."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.delta.actions.actions import AddFile, Metadata, Protocol
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.table_schema import StructField, StructType, VariantType, arrow_type
from variantlake.dml.delete import decided_again
from variantlake.dml.files.new_files import NewFiles
from variantlake.dml.found_rows import finds_any
from variantlake.dml.merge.clauses import (
    BY_SOURCE,
    MATCHED,
    NOT_MATCHED,
    Clauses,
    MergeClause,
    RowMaker,
    resolved,
)
from variantlake.dml.merge.evolution import evolution
from variantlake.dml.merge.keys import split_condition
from variantlake.dml.merge.matches import FileMatches, Matcher
from variantlake.dml.merge.sides import Sides, SourceRows, side_names
from variantlake.dml.merge.upserts import check_complete, check_key, two_rows_of_a_key
from variantlake.dml.read_rows import rows_at
from variantlake.dml.result import ChangeResult
from variantlake.dml.row_actions import DELETED, UPDATED, check_once, removed_rows
from variantlake.dml.row_actions import MATCHED as ONLY_MATCHED
from variantlake.dml.row_change import (
    NewRows,
    RowChange,
    check_not_append_only,
    clause_predicates,
    predicate_parameter,
)
from variantlake.dml.row_ids import RowIds
from variantlake.errors import InvalidSchema, InvalidValue
from variantlake.expressions.rows import evaluate, of_refs
from variantlake.expressions.tree import And, Predicate, Ref
from variantlake.expressions.typing import compare
from variantlake.ingest.encode.encode import PlainColumn, VariantColumn
from variantlake.ingest.encode.micros import check_nested_micros
from variantlake.ingest.encode.numbers import with_numbers_from
from variantlake.ingest.encode.plain_arrays import plain_array
from variantlake.ingest.encode.rows import given_schema
from variantlake.ingest.inputs import read_input, table_names
from variantlake.ingest.sources.sources import Documents
from variantlake.kernels.variant.variant_writer import write_variant
from variantlake.scan.files.column_reads import as_type
from variantlake.shredding.layout import is_variant_type
from variantlake.sql.changes import Clause, merge_clauses
from variantlake.sql.select import QueryText
from variantlake.writing.options.keywords import names_of
from variantlake.writing.table_write import UNSHREDDED

_THEN = {"delete": DELETED, "update": UPDATED}


def merge(
    snapshot: Snapshot,
    source: Any,
    on: str,
    clauses: Sequence[str] = (),
    *,
    names: tuple[str, str] = ("t", "s"),
    json_columns: Collection[str] = (),
    merge_schema: bool = False,
    dry_run: bool = False,
) -> ChangeResult:
    """Merge rows into the table of `snapshot`, in one commit, as Delta Spark's MERGE does.

    `names` are the names of table and source in `on` and the clauses. Without clauses it updates
    rows that match and inserts the others. `merge_schema` adds the columns of the source that the
    table does not have.

    Raises InvalidQuery, also if several source rows match one row; UnsupportedFeature, by name, for
    anything that only Spark supports; InvalidValue, InvalidSchema, CommitConflict.
    """
    side_names(*names)
    parsed = merge_clauses(clauses)
    rows = source_rows(source, snapshot.schema, json_columns, takes_documents=False)
    own = getattr(source, "snapshot", None)
    is_own = isinstance(own, Snapshot) and own.store.uri == snapshot.store.uri

    def run(newest: Snapshot) -> ChangeResult:
        merged = _LocalMerge.of(newest, rows, names, parsed, merge_schema=merge_schema)
        schemas = {names[0]: merged.snapshot.schema, names[1]: rows.schema}
        condition = QueryText.over(Sides(schemas)).condition(on)
        return merged.run(condition, on, is_exclusive=is_own, dry_run=dry_run)

    return decided_again(snapshot, run)


def upsert(
    snapshot: Snapshot,
    source: Any,
    key: str | Iterable[str],
    *,
    json_columns: Collection[str] = (),
    merge_schema: bool = False,
    dry_run: bool = False,
) -> ChangeResult:
    """Replace the table's rows that have the same key as a given row, and insert the other rows.

    `key` are columns and paths of the table. A row whose key has a NULL matches none. Raises as
    `merge`; InvalidQuery if two given rows have one key, even if no row of the table has it.
    """
    rows = source_rows(source, snapshot.schema, json_columns, takes_documents=True)
    names = ("t", "s")

    def run(newest: Snapshot) -> ChangeResult:
        if not merge_schema:
            check_complete(newest.schema, (field.name for field in rows.schema.fields))
        keys = {item.ref.column[0].lower() for item in QueryText(rows.schema).items(key)}
        merged = _LocalMerge.of(
            newest, rows, names, merge_clauses(()), merge_schema=merge_schema, keys=keys
        )
        sides = (merged.snapshot.schema, rows.schema)
        own, other = ([item.ref for item in QueryText(each).items(key)] for each in sides)
        check_key(own)
        pairs = [
            (replace(a, column=("t", *a.column)), replace(b, column=("s", *b.column)))
            for a, b in zip(own, other, strict=True)
        ]
        _check_distinct(rows, [each for _, each in pairs])
        condition = And(tuple(compare("=", a, b) for a, b in pairs))
        return merged.run(condition, str(condition), dry_run=dry_run)

    return decided_again(snapshot, run)


def _check_distinct(rows: SourceRows, key: Sequence[Ref]) -> None:
    count = rows.table.num_rows
    arrays = [evaluate(ref, of_refs(rows.values), count).array for ref in key]
    names = [str(number) for number in range(len(arrays))]
    table = pa.table(arrays, names=names)
    for name in names:
        table = table.filter(table[name].is_valid())
    if table.group_by(names).aggregate([]).num_rows < table.num_rows:
        raise two_rows_of_a_key()


def source_rows(
    source: Any, table: StructType, json_columns: Collection[str], *, takes_documents: bool
) -> SourceRows:
    """Read the source and convert its columns to types of a table, `json_columns` to Variants.

    Python rows get the types of the columns of `table` with the same names.

    Raises InvalidValue for something that is not a source, InvalidSchema, InvalidJson with the row.
    """
    json_columns = table_names(names_of("json_columns", json_columns), table)
    with read_input(
        source,
        table,
        None,
        is_complete=False,
        takes_documents=takes_documents,
        json_columns=json_columns,
    ) as reader:
        if isinstance(reader, Documents):
            raise InvalidValue(
                "cannot merge files of JSON documents",
                hint="give rows as dicts or Arrow data; json_columns= names columns of JSON text",
                cli_hint="",
            )
        given = reader.read_all()
    if takes_documents:
        given = _as_appended(given, table)
    becomes = {*json_columns, *_for_variants(given.schema, table if takes_documents else None)}
    schema = given_schema(given.schema, becomes)
    for name in json_columns:
        if schema.get(name) is None:
            raise InvalidSchema(f"the source has no column {name!r}")
    arrays = [
        _as_variants(given.column(at), field, from_json=field.name in json_columns)
        if field.name in becomes
        else _as_column(given.column(at), field)
        for at, field in enumerate(schema.fields)
    ]
    columns = pa.table(arrays, names=[field.name for field in schema.fields])
    return SourceRows(columns, schema)


def _as_appended(given: pa.Table, table: StructType) -> pa.Table:
    """Convert columns of numbers, text and times to those of the table, as `Table.append` does."""
    for at, field in enumerate(given.schema):
        there = table.find(field.name)
        if there is None or isinstance(there.type, VariantType) or pa.types.is_nested(field.type):
            continue
        wanted = arrow_type(there.type)
        if field.type != wanted and not pa.types.is_nested(wanted):
            array = plain_array(given.column(at).combine_chunks())
            given = given.set_column(at, field.name, PlainColumn(there, array.type).encode(array))
    return given


def _for_variants(given: pa.Schema, table: StructType | None) -> Iterator[str]:
    """Yield the columns to encode as Variants for VARIANT columns, as `Table.append` does."""
    for field in given:
        there = None if table is None else table.find(field.name)
        is_for = there is not None and isinstance(there.type, VariantType)
        if is_for and not is_variant_type(field.type):
            yield field.name


def _as_variants(column: Any, field: StructField, *, from_json: bool) -> Any:
    array = plain_array(column.combine_chunks())
    values = VariantColumn(field, array.type, lambda _: UNSHREDDED, from_json=from_json)
    return write_variant(values.read(array))


def _as_column(column: Any, field: StructField) -> Any:
    array = plain_array(column.combine_chunks())
    check_nested_micros(array, field.name)  # `as_type` would truncate to microseconds
    return as_type(array, arrow_type(field.type))


@dataclass(frozen=True, slots=True)
class _LocalMerge:
    """A MERGE into one version of the table; `altered` are the actions of its schema evolution."""

    snapshot: Snapshot
    rows: SourceRows
    clauses: Clauses
    altered: tuple[Protocol | None, Metadata] | None

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        rows: SourceRows,
        names: tuple[str, str],
        parsed: Sequence[Clause],
        *,
        merge_schema: bool,
        keys: Collection[str] = (),
    ) -> _LocalMerge:
        found = evolution(snapshot, rows.schema, parsed) if merge_schema else None
        snapshot = snapshot if found is None else found.snapshot
        clauses = resolved(snapshot, rows, parsed, names, lenient=merge_schema, keys=keys)
        if any(each.when != NOT_MATCHED for each in clauses.all):
            check_not_append_only(snapshot)
        return cls(snapshot, rows, clauses, None if found is None else found.altered)

    def run(
        self, on: Predicate, text: str, *, is_exclusive: bool = False, dry_run: bool = False
    ) -> ChangeResult:
        """Find the rows and commit. Raises as `merge`."""
        started = time.perf_counter()
        files = NewFiles.of(self.snapshot, evaluated=False)
        keys, rest = split_condition(on, self.clauses.target, self.clauses.source)
        matcher = Matcher.of(self.snapshot, self.rows, self.clauses, keys, rest)
        found = list(matcher.files())
        inserted = matcher.inserted()
        bound = matcher.bound
        actions, numbers, places = self._actions(found)
        others = [each for each in self.clauses.all if each.when != NOT_MATCHED]
        only = [(each.then, each.condition) for each in others if each.when == MATCHED]
        # As in Delta Spark, several source rows may match one row if the only matched clause is an
        # unconditional DELETE, or if the MERGE only inserts.
        check_once(numbers, places, multiple=not others or only == [("delete", None)])
        gone = actions != ONLY_MATCHED
        taken, preimages = removed_rows(self.snapshot, actions[gone], numbers[gone], places[gone])
        watched, _ = removed_rows(
            self.snapshot, *(each[~gone] for each in (actions, numbers, places))
        )
        inserts = any(each.then == "insert" for each in self.clauses.all)

        def finds(add: AddFile) -> bool:
            return bool(self.clauses.of(BY_SOURCE)) or finds_any(self.snapshot, bound, add)

        change = RowChange(
            self.snapshot,
            "MERGE",
            self._parameters(text),
            taken,
            finds,
            started,
            time.perf_counter(),
            NewRows(
                updated=lambda: self._updated(found),
                inserted=lambda: self._inserted(inserted),
                updated_count=int((actions == UPDATED).sum()),
                inserted_count=int((inserted >= 0).sum()),
            ),
            preimages,
            watched if inserts else (),
            is_exclusive,
            altered=self.altered,
            metrics={"numSourceRows": str(self.rows.table.num_rows)},
        )
        return change.planned(files) if dry_run else change.commit(files)

    def _actions(self, found: Sequence[FileMatches]) -> tuple[Any, Any, Any]:
        """Return actions on rows of the table, the numbers of their files, and their places."""
        of_clause = np.array(
            [_THEN.get(each.then, 0) for each in self.clauses.all] + [ONLY_MATCHED]
        )
        paths = {path: row for row, path in enumerate(self.snapshot.files["path"].to_pylist())}
        none = np.empty(0, np.int64)
        return (
            np.concatenate([none, *(of_clause[each.clauses] for each in found)]),
            np.concatenate(
                [none, *(np.full(len(each.places), paths[each.add.path]) for each in found)]
            ),
            np.concatenate([none, *(each.places for each in found)]),
        )

    def _updated(self, found: Iterable[FileMatches]) -> Iterator[pa.Table]:
        """Yield the new forms of updated rows, file by file."""
        ids = RowIds.of(self.snapshot)
        for each in found:
            for at, clause in enumerate(self.clauses.all):
                if clause.then != "update":
                    continue
                chosen = np.flatnonzero(each.clauses == at)
                chosen = chosen[np.argsort(each.places[chosen])]
                if len(chosen):
                    new = self._updated_by(clause, each, chosen)
                    yield from ids.updated(new, each.add, each.file, each.places[chosen])

    def _updated_by(
        self, clause: MergeClause, found: FileMatches, chosen: Any
    ) -> Iterator[pa.Table]:
        """Yield the new forms of the rows of a file that a clause updates."""
        maker = RowMaker(self.snapshot, self.rows, self.clauses.target)
        source = None if clause.when == BY_SOURCE else found.source[chosen]
        if source is not None and not maker.needs_own(clause):
            yield maker.rows(clause, None, source)
            return
        start = 0
        for own in rows_at(self.snapshot, found.file, found.places[chosen]):
            end = start + own.num_rows
            yield maker.rows(clause, own, None if source is None else source[start:end])
            start = end

    def _inserted(self, inserted: Any) -> Iterator[pa.Table]:
        maker = RowMaker(self.snapshot, self.rows, self.clauses.target)
        before = 0
        for at, clause in enumerate(self.clauses.all):
            rows = np.flatnonzero(inserted == at)
            if len(rows):
                made = maker.rows(clause, None, rows)
                yield with_numbers_from(made, clause.numbered, before)
                before += len(rows)

    def _parameters(self, on: str) -> dict[str, str]:
        """Return the operation's parameters as Delta Spark records them in the history."""
        names = {
            "matchedPredicates": MATCHED,
            "notMatchedPredicates": NOT_MATCHED,
            "notMatchedBySourcePredicates": BY_SOURCE,
        }
        return {"predicate": predicate_parameter(on)} | {
            name: clause_predicates((each.text for each in self.clauses.all), when)
            for name, when in names.items()
        }
