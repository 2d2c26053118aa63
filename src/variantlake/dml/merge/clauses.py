"""The WHEN clauses of a MERGE, resolved: decide which one takes a row, and make its new row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.identity_columns import IdentityColumn, is_identity
from variantlake.delta.schema.table_schema import StructField
from variantlake.dml.field_values import AssignedFields, Constant, FieldChanges
from variantlake.dml.field_values import field_at as field_of_struct
from variantlake.dml.merge.sides import Sides, SourceRows, value_in
from variantlake.dml.new_values import AssignedPaths, NewValue, column_of, field_ref, text_value
from variantlake.dml.path_values import PathChanges
from variantlake.dml.read_rows import rows_schema
from variantlake.encoding.variant import Variant
from variantlake.errors import InvalidQuery
from variantlake.expressions.arrays import Values
from variantlake.expressions.rows import of_refs, truth_of
from variantlake.expressions.tree import Expression, Predicate, Ref, refs
from variantlake.ingest.encode.numbers import check_assigned
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.quoting import unquoted
from variantlake.scan.files.chosen_rows import cast_error
from variantlake.sql.changes import STAR, Clause
from variantlake.sql.select import QueryText

MATCHED, NOT_MATCHED, BY_SOURCE = "matched", "not matched", "not matched by source"


@dataclass(frozen=True, slots=True)
class MergeClause:
    """One clause. `values` are by the table's columns; columns without one keep their values.

    `numbered` are the identity columns that assign numbers to the rows that the clause inserts.
    """

    when: str
    then: str
    condition: Predicate | None
    values: Mapping[str, NewValue]
    text: Clause
    numbered: tuple[IdentityColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class Clauses:
    """The clauses in their order, and the MERGE's names of its two sides."""

    all: tuple[MergeClause, ...]
    target: str
    source: str

    def of(self, when: str) -> list[tuple[int, MergeClause]]:
        """Return the clauses of a kind with their places in `all`."""
        return [(at, each) for at, each in enumerate(self.all) if each.when == when]

    def refs(self, *kinds: str) -> list[Ref]:
        """Return the table's columns that conditions of clauses of these kinds name."""
        found = (ref for kind in kinds for _, each in self.of(kind) for ref in refs(each.condition))
        return [ref for ref in found if ref.column[0] == self.target]

    def decide(self, when: str, rows: int, values: Callable[[Ref, Int64s], Values]) -> Int64s:
        """Return for each row the place of the first clause that takes it, -1 for none.

        `values` returns a column's values in some of the rows.
        """
        found = np.full(rows, -1, np.int64)
        left = np.arange(rows)
        for at, clause in self.of(when):
            taken = left
            if clause.condition is not None:
                known = of_refs(partial(_in_rows, values, left))
                truth = truth_of(clause.condition, known, len(left))
                if truth.failed.any():
                    raise cast_error(clause.condition, None)
                taken = left[truth.true]
            found[taken] = at
            left = np.setdiff1d(left, taken, assume_unique=True)
        return found


def _in_rows(values: Callable[[Ref, Int64s], Values], rows: Int64s, ref: Ref) -> Values:
    return values(ref, rows)


def resolved(
    snapshot: Snapshot,
    source: SourceRows,
    clauses: Iterable[Clause],
    names: tuple[str, str],
    *,
    lenient: bool,
    keys: Collection[str] = (),
) -> Clauses:
    """Resolve the clauses of a MERGE into a table.

    With `lenient`, `*` leaves out columns that the source does not have, as in schema evolution.
    `keys` are the lower-case names of columns that are equal in rows that match.

    Raises InvalidQuery, and UnsupportedFeature for anything that only Spark supports.
    """
    reader = _Reader(snapshot, source, *names, lenient, keys)
    return Clauses(tuple(map(reader.clause, clauses)), *names)


@dataclass(frozen=True, slots=True)
class _Reader:
    snapshot: Snapshot
    source: SourceRows
    target_name: str
    source_name: str
    lenient: bool
    keys: Collection[str] = ()

    def clause(self, clause: Clause) -> MergeClause:
        own = {self.target_name: self.snapshot.schema}
        other = {self.source_name: self.source.schema}
        seen = {MATCHED: own | other, NOT_MATCHED: other, BY_SOURCE: own}[clause.when]
        text = QueryText.over(Sides(seen))
        condition = None if clause.condition is None else text.condition(clause.condition)
        values: dict[str, NewValue] = {}
        if clause.set == STAR:
            if clause.when == BY_SOURCE:
                raise InvalidQuery("a row that the source does not have cannot be set to *")
            values = dict(self._all_columns(clause))
        paths, structs = AssignedPaths(QueryText.over(Sides(own))), AssignedFields()
        fields = QueryText(self.snapshot.schema, self.target_name)
        for written, given in () if clause.set == STAR else clause.set:
            if ":" in written and clause.then == "update":
                paths.add(written, text.value(given))
                continue
            if clause.then == "update" and (ref := field_ref(fields, written)) is not None:
                inner = field_of_struct(self.snapshot.schema, ref.shown or ref.column)
                structs.add(ref, text_value(text, given, inner))
                continue
            field = self._field(written)
            if field.name in values:
                raise InvalidQuery(f"the column {field.name!r} is set twice")
            is_default = given.upper() == "DEFAULT"
            check_assigned(field, inserts=clause.then == "insert", is_default=is_default)
            value = self._default(field) if is_default else text_value(text, given, field)
            values[field.name] = value
        values = structs.joined(paths.joined(values), self.target_name)
        numbered: list[IdentityColumn] = []
        if clause.then == "insert":
            for field in self.snapshot.schema.fields:
                if field.name not in values and is_identity(field):
                    numbered.append(IdentityColumn.of(field))
                values.setdefault(field.name, self._default(field))
        return MergeClause(clause.when, clause.then, condition, values, clause, tuple(numbered))

    def _all_columns(self, clause: Clause) -> Iterable[tuple[str, NewValue]]:
        sides = Sides({self.source_name: self.source.schema})
        known = {field.name.lower(): field.name for field in self.source.schema.fields}
        for field in self.snapshot.schema.fields:
            name = known.get(field.name.lower())
            if clause.then == "update" and is_identity(field) and field.name.lower() in self.keys:
                continue
            if name is not None:
                check_assigned(field, inserts=clause.then == "insert")
                yield field.name, sides.whole(f"{self.source_name}.{name}")
            elif not self.lenient and not is_identity(field):
                raise InvalidQuery(
                    f"{clause.then.upper()} * needs the column {field.name!r}, which the source "
                    "does not have",
                    hint="merge_schema=True keeps what the source lacks; or name the columns",
                    cli_hint="--merge-schema keeps what the source lacks; or name the columns",
                )

    def _field(self, written: str) -> StructField:
        fields = self.snapshot.schema.fields
        name = written.strip()
        prefix = f"{self.target_name}."
        if name.lower().startswith(prefix.lower()):
            name = name[len(prefix) :]
        for field in fields:
            if field.name.lower() == unquoted(name).lower():
                return field
        raise InvalidQuery(
            f"the table has no column {written}", hint=f"it has {', '.join(f.name for f in fields)}"
        )

    def _default(self, field: StructField) -> Expression:
        return QueryText(self.snapshot.schema).value(field.default or "NULL")


@dataclass(frozen=True, slots=True)
class RowMaker:
    """Makes the new rows of clauses, in the form of `rows_at`."""

    snapshot: Snapshot
    source: SourceRows
    target: str

    def rows(self, clause: MergeClause, own: pa.Table | None, source: Int64s | None) -> pa.Table:
        """Make a clause's new rows from pairs of a table row (`own`) and a row of the source."""
        count = own.num_rows if own is not None else 0 if source is None else len(source)

        def values(ref: Ref) -> Values:
            if ref.column[0] == self.target and own is not None:
                return value_in(own, ref)
            return self.source.values(ref, source)

        schema = rows_schema(self.snapshot)
        arrays: list[Any] = []
        for item in schema:
            value = clause.values.get(item.name)
            if value is not None:
                arrays.append(column_of(value, item, values, count))
            elif own is not None:
                arrays.append(own.column(item.name))
        return pa.Table.from_arrays(arrays, schema=schema)

    def needs_own(self, clause: MergeClause) -> bool:
        """Whether the clause's new rows depend on the old ones."""
        values = [clause.values.get(field.name) for field in self.snapshot.schema.fields]
        return any(
            value is None or any(ref.column[0] == self.target for ref in _refs(value))
            for value in values
        )


def _refs(value: NewValue) -> Iterable[Ref]:
    if isinstance(value, PathChanges):
        return value.refs()
    if isinstance(value, FieldChanges):
        return (value.base, *(ref for each in value.values.values() for ref in _refs(each)))
    if isinstance(value, Constant | Variant):
        return ()
    return refs(value)
