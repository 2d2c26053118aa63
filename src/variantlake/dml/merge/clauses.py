"""The WHEN clauses of a MERGE, resolved: which takes a row, and the new row that it makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.table_schema import StructField
from variantlake.dml.field_values import Constant, FieldChanges
from variantlake.dml.merge.sides import Sides, SourceRows, value_in
from variantlake.dml.new_values import AssignedPaths, NewValue, column_of, text_value
from variantlake.dml.path_values import PathChanges
from variantlake.dml.read_rows import rows_schema
from variantlake.encoding.variant import Variant
from variantlake.errors import InvalidQuery
from variantlake.expressions.arrays import Values
from variantlake.expressions.rows import of_refs, truth_of
from variantlake.expressions.tree import Expression, Predicate, Ref, refs
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.scan.table_scan import cast_error
from variantlake.sql.changes import STAR, Clause
from variantlake.sql.select import QueryText

MATCHED, NOT_MATCHED, BY_SOURCE = "matched", "not matched", "not matched by source"


@dataclass(frozen=True, slots=True)
class MergeClause:
    """One clause; `values` are by the table's columns: those that it leaves out stay."""

    when: str
    then: str
    condition: Predicate | None
    values: Mapping[str, NewValue]
    text: Clause


@dataclass(frozen=True, slots=True)
class Clauses:
    """The clauses in their order, with what the MERGE calls its sides."""

    all: tuple[MergeClause, ...]
    target: str
    source: str

    def of(self, when: str) -> list[tuple[int, MergeClause]]:
        """The clauses of a kind, with their places."""
        return [(at, each) for at, each in enumerate(self.all) if each.when == when]

    def refs(self, *kinds: str) -> list[Ref]:
        """The columns of the table that conditions of these kinds name."""
        found = (ref for kind in kinds for _, each in self.of(kind) for ref in refs(each.condition))
        return [ref for ref in found if ref.column[0] == self.target]

    def decide(self, when: str, rows: int, values: Callable[[Ref, Int64s], Values]) -> Int64s:
        """The place of the clause that takes each row, -1 for none.

        `values` gives a column in some of the rows. A row that one clause takes is asked no more.
        """
        found = np.full(rows, -1, np.int64)
        left = np.arange(rows)
        for at, clause in self.of(when):
            taken = left
            if clause.condition is not None:
                known = of_refs(partial(_in_rows, values, left))
                truth = truth_of(clause.condition, known, len(left))
                if truth.failed.any():
                    raise cast_error(str(clause.condition), None)
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
) -> Clauses:
    """The clauses of a MERGE into a table.

    `lenient` lets `*` leave out columns that the source does not have, as schema evolution does.

    Raises InvalidQuery, UnsupportedFeature for what only Spark takes.
    """
    reader = _Reader(snapshot, source, *names, lenient)
    return Clauses(tuple(map(reader.clause, clauses)), *names)


@dataclass(frozen=True, slots=True)
class _Reader:
    snapshot: Snapshot
    source: SourceRows
    target_name: str
    source_name: str
    lenient: bool

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
        paths = AssignedPaths(QueryText.over(Sides(own)))
        for written, given in () if clause.set == STAR else clause.set:
            if ":" in written and clause.then == "update":
                paths.add(written, text.value(given))
                continue
            field = self._field(written)
            if field.name in values:
                raise InvalidQuery(f"the column {field.name!r} is set twice")
            is_default = given.upper() == "DEFAULT"
            value = self._default(field) if is_default else text_value(text, given, field)
            values[field.name] = value
        values = paths.joined(values)
        if clause.then == "insert":
            for field in self.snapshot.schema.fields:
                values.setdefault(field.name, self._default(field))
        return MergeClause(clause.when, clause.then, condition, values, clause)

    def _all_columns(self, clause: Clause) -> Iterable[tuple[str, NewValue]]:
        sides = Sides({self.source_name: self.source.schema})
        known = {field.name.lower(): field.name for field in self.source.schema.fields}
        for field in self.snapshot.schema.fields:
            name = known.get(field.name.lower())
            if name is not None:
                yield field.name, sides.whole(f"{self.source_name}.{name}")
            elif not self.lenient:
                raise InvalidQuery(
                    f"{clause.then.upper()} * needs the column {field.name!r}, which the source "
                    "does not have",
                    hint="name the columns, or give the source all of the table's",
                )

    def _field(self, written: str) -> StructField:
        fields = self.snapshot.schema.fields
        name = written.strip()
        prefix = f"{self.target_name}."
        if name.lower().startswith(prefix.lower()):
            name = name[len(prefix) :]
        name = name[1:-1].replace("``", "`") if name[:1] == name[-1:] == "`" else name
        for field in fields:
            if field.name.lower() == name.lower():
                return field
        raise InvalidQuery(
            f"the table has no column {written}", hint=f"it has {', '.join(f.name for f in fields)}"
        )

    def _default(self, field: StructField) -> Expression:
        return QueryText(self.snapshot.schema).value(field.default or "NULL")


@dataclass(frozen=True, slots=True)
class RowMaker:
    """The new rows of clauses, as `rows_at` gives rows."""

    snapshot: Snapshot
    source: SourceRows
    target: str

    def rows(self, clause: MergeClause, own: pa.Table | None, source: Int64s | None) -> pa.Table:
        """Rows made of rows of the table and of the source, which stand side by side."""
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
        """Whether the old rows are needed for the new ones."""
        values = [clause.values.get(field.name) for field in self.snapshot.schema.fields]
        return any(
            value is None or any(ref.column[0] == self.target for ref in _refs(value))
            for value in values
        )


def _refs(value: NewValue) -> Iterable[Ref]:
    if isinstance(value, PathChanges):
        return value.refs()
    if isinstance(value, FieldChanges | Constant | Variant):
        return ()  # no clause has a FieldChanges
    return refs(value)
