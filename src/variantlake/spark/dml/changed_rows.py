"""The rows that a statement changes, as one query over the table with places.

Its columns are ACTION, FILE and ROW, then those of the table in which new rows have values. Every
condition and expression is the user's own text, so Spark gives it its meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.table_schema import StructField
from variantlake.errors import InvalidQuery, UnsupportedFeature
from variantlake.quoting import quote_identifier
from variantlake.spark.dml.change_task import ACTION, DELETED, INSERTED, MATCHED, UPDATED
from variantlake.spark.dml.row_places import FILE, ROW
from variantlake.spark.query.table_locations import name_parts
from variantlake.sql.changes import (
    STAR,
    Assignments,
    Clause,
    DeleteText,
    MergeText,
    Named,
    UpdateText,
)

TARGET = "__vl_target"
"""How the queries call the table with places."""

CLAUSE = "__vl_clause"
"""The column that says which clause of a MERGE takes a row."""

_SOURCE_ROW = "__vl_source"
_JOINS = {
    (False, False): "INNER JOIN",
    (True, False): "RIGHT OUTER JOIN",
    (False, True): "LEFT OUTER JOIN",
    (True, True): "FULL OUTER JOIN",
}
"""By whether rows of the source, and of the table, are kept without the other."""


@dataclass(frozen=True, slots=True)
class RowsText:
    """A query, and the names of its columns: the text calls them otherwise."""

    text: str
    columns: tuple[str, ...]


Cast = Callable[[str, str], str]
"""An expression as the type of a column of the table: the column's name, the text."""


def deleted_rows_text(statement: DeleteText) -> RowsText:
    """The rows that a DELETE takes away."""
    target = quote_identifier(statement.target.alias)
    where = "" if statement.where is None else f" WHERE ({statement.where})"
    leading = f"{DELETED} AS c0, {target}.{FILE} AS c1, {target}.{ROW} AS c2"
    return RowsText(
        f"SELECT {leading} FROM {TARGET} AS {target}{where}",  # noqa: S608 - the user's own text
        (ACTION, FILE, ROW),
    )


def updated_rows_text(snapshot: Snapshot, statement: UpdateText, cast: Cast) -> RowsText:
    """The rows that an UPDATE changes, in their new form.

    Generated columns that it does not set are left out: they follow from the others.

    Raises InvalidQuery for a column that the table has not, or that is set twice;
    UnsupportedFeature for a field of a column.
    """
    target = quote_identifier(statement.target.alias)
    given = assigned(snapshot, statement.set, statement.target)
    columns = [f for f in snapshot.schema.fields if f.name in given or f.generation is None]
    parts = [f"{UPDATED}", f"{target}.{FILE}", f"{target}.{ROW}"]
    for field in columns:
        own = f"{target}.{quote_identifier(field.name)}"
        value = given.get(field.name)
        parts.append(own if value is None else cast(field.name, value))
    where = "" if statement.where is None else f" WHERE ({statement.where})"
    return RowsText(
        f"SELECT {_numbered(parts)} FROM {TARGET} AS {target}{where}",  # noqa: S608
        (ACTION, FILE, ROW, *(field.name for field in columns)),
    )


def merged_rows_text(
    snapshot: Snapshot, statement: MergeText, source_columns: Sequence[str], cast: Cast
) -> RowsText:
    """The rows that a MERGE changes, deletes and inserts, and those that it matches besides.

    `source_columns` are those of the source.

    Raises as `updated_rows_text`; InvalidQuery where `*` needs a column that the source has not.
    """
    check_clauses(statement.clauses)
    values = [_values(snapshot, each, statement, source_columns) for each in statement.clauses]
    columns = _written_columns(snapshot, values)
    target, source = (quote_identifier(each.alias) for each in (statement.target, statement.source))
    kinds = {clause.when for clause in statement.clauses}
    join = _JOINS["not matched" in kinds, "not matched by source" in kinds]
    parts = [_action(statement.clauses), f"{target}.{FILE}", f"{target}.{ROW}"]
    parts += [_value(field, statement.clauses, values, target, cast) for field in columns]
    text = (
        f"SELECT {_clause_number(statement, target, source)} AS {CLAUSE}, {_numbered(parts)} "  # noqa: S608
        f"FROM {TARGET} AS {target} {join} "
        f"(SELECT *, true AS {_SOURCE_ROW} FROM {statement.source.text}) AS {source} "
        f"ON ({statement.on})"
    )
    return RowsText(text, (CLAUSE, ACTION, FILE, ROW, *(field.name for field in columns)))


def assigned(snapshot: Snapshot, given: Assignments, target: Named) -> dict[str, str]:
    """Expressions by the names of the table's columns."""
    names = {field.name.lower(): field.name for field in snapshot.schema.fields}
    found: dict[str, str] = {}
    for written, expression in given:
        plain = name_parts(written) or (written,)
        if len(plain) == 2 and plain[0].lower() == target.alias.lower():
            plain = plain[1:]
        name = names.get(plain[0].lower())
        if len(plain) > 1 and name is not None:
            raise UnsupportedFeature(
                f"{written} is a field of a column, which is not set by itself here",
                hint="set the whole column, or run the statement with Delta Spark",
                cli_hint="Delta Spark runs it",
            )
        if name is None or len(plain) > 1:
            raise InvalidQuery(
                f"the table has no column {written}", hint=f"it has {', '.join(names.values())}"
            )
        if name in found:
            raise InvalidQuery(f"the column {name!r} is set twice")
        found[name] = expression
    return found


def check_clauses(clauses: Sequence[Clause]) -> None:
    """Raise InvalidQuery for a clause that is never reached, as Spark does."""
    open_ended = set()
    for clause in clauses:
        if clause.when in open_ended:
            raise InvalidQuery(
                f"only the last WHEN {clause.when.upper()} clause of a MERGE may have no condition"
            )
        if clause.condition is None:
            open_ended.add(clause.when)


def _values(
    snapshot: Snapshot, clause: Clause, statement: MergeText, source_columns: Sequence[str]
) -> dict[str, str]:
    """What a clause assigns, by the names of the table's columns."""
    if clause.set != STAR:
        return assigned(snapshot, clause.set, statement.target)
    known = {name.lower(): name for name in source_columns}
    source = quote_identifier(statement.source.alias)
    found = {}
    for field in snapshot.schema.fields:
        name = known.get(field.name.lower())
        if name is not None:
            found[field.name] = f"{source}.{quote_identifier(name)}"
        elif field.generation is None:
            raise InvalidQuery(
                f"{clause.then.upper()} * needs the column {field.name!r}, which the source has "
                "not",
                hint="name the columns, or give the source all of the table's",
            )
    return found


def _written_columns(snapshot: Snapshot, values: Sequence[Mapping[str, str]]) -> list[StructField]:
    """All columns but the generated ones that no clause sets: they follow from the others."""
    columns = []
    for field in snapshot.schema.fields:
        setting = [field.name in each for each in values if each]
        if field.generation is not None:
            if not any(setting):
                continue
            if not all(setting):
                raise UnsupportedFeature(
                    f"the generated column {field.name!r} is set by one clause of the MERGE and "
                    "left to another",
                    hint="set it in all clauses or in none",
                )
        columns.append(field)
    return columns


def _value(
    field: StructField,
    clauses: Sequence[Clause],
    values: Sequence[Mapping[str, str]],
    target: str,
    cast: Cast,
) -> str:
    """A column in the rows that each clause writes."""
    cases = []
    for number, (clause, given) in enumerate(zip(clauses, values, strict=True), start=1):
        value = given.get(field.name)
        if clause.then == "update" and value is None:
            cases.append(f"WHEN {number} THEN {target}.{quote_identifier(field.name)}")
        elif clause.then == "insert" and value is None and field.default is not None:
            cases.append(f"WHEN {number} THEN {cast(field.name, field.default)}")
        elif value is not None:
            cases.append(f"WHEN {number} THEN {cast(field.name, value)}")
    null = cast(field.name, "NULL")
    return f"CASE {CLAUSE} {' '.join(cases)} ELSE {null} END" if cases else null


_ACTIONS = {"delete": DELETED, "update": UPDATED, "insert": INSERTED}


def _action(clauses: Sequence[Clause]) -> str:
    cases = " ".join(
        f"WHEN {number} THEN {_ACTIONS[clause.then]}"
        for number, clause in enumerate(clauses, start=1)
    )
    # Where nothing is inserted Delta counts only the matches that some clause takes.
    inserts = any(clause.when == "not matched" for clause in clauses)
    return f"CASE {CLAUSE} {f'WHEN 0 THEN {MATCHED} ' if inserts else ''}{cases} END"


def _clause_number(statement: MergeText, target: str, source: str) -> str:
    """The first clause that takes the row; 0 for a match that none takes, NULL for nothing."""

    def first(when: str, otherwise: str) -> str:
        cases = [
            f"WHEN {'true' if clause.condition is None else f'({clause.condition})'} THEN {number}"
            for number, clause in enumerate(statement.clauses, start=1)
            if clause.when == when
        ]
        return f"CASE {' '.join(cases)} ELSE {otherwise} END" if cases else otherwise

    here, there = f"{target}.{ROW} IS NOT NULL", f"{source}.{_SOURCE_ROW} IS NOT NULL"
    null = "CAST(NULL AS INT)"
    return (
        f"CASE WHEN {here} AND {there} THEN {first('matched', '0')} "
        f"WHEN {there} THEN {first('not matched', null)} "
        f"ELSE {first('not matched by source', null)} END"
    )


def _numbered(parts: Sequence[str]) -> str:
    """The columns under names that nothing else has."""
    return ", ".join(f"{part} AS __vl_c{number}" for number, part in enumerate(parts))
