"""Write the query of the rows that a MERGE changes, in which each clause sees only its sides.

WHEN MATCHED sees the table and the source, WHEN NOT MATCHED the source, WHEN NOT MATCHED BY SOURCE
the table. So matched clauses go into the join itself. Around it there is one query for each other
kind, in which only the columns of its side have the user's names; the others have names of ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.identity_columns import is_identity
from variantlake.delta.protocol.row_tracking import RowIdColumns
from variantlake.delta.schema.table_schema import StructField, StructType
from variantlake.delta.transaction.widen import PROPERTY as WIDENING
from variantlake.dml.merge.evolution import Evolution, evolution
from variantlake.dml.removed_rows import is_on
from variantlake.dml.row_actions import DELETED, INSERTED, MATCHED, UPDATED
from variantlake.errors import InvalidQuery, UnsupportedFeature
from variantlake.ingest.encode.numbers import check_assigned
from variantlake.quoting import quote_identifier
from variantlake.spark.dml.change_task import ACTION
from variantlake.spark.dml.changed_rows import TARGET, RowsText, assigned, numbered
from variantlake.spark.dml.row_places import FILE, ROW, ROW_ID, row_id_in
from variantlake.spark.dml.stored_values import StoredValues
from variantlake.sql.changes import STAR, Clause, MergeText, check_clauses
from variantlake.sql.tokens import tokenize

CLAUSE = "__vl_clause"
"""The column with the number of the clause of a MERGE that takes a row."""

_SOURCE_ROW = "__vl_source"
_SIDES = ("not matched", "not matched by source")
_HERE = {"not matched": f"{ROW} IS NULL", "not matched by source": f"{_SOURCE_ROW} IS NULL"}
_JOINS = {
    (False, False): "INNER JOIN",
    (True, False): "RIGHT OUTER JOIN",
    (False, True): "LEFT OUTER JOIN",
    (True, True): "FULL OUTER JOIN",
}
"""By whether to keep rows of the source, and of the table, without a match."""

_ACTIONS = {"delete": DELETED, "update": UPDATED, "insert": INSERTED}


def merged_rows_text(
    snapshot: Snapshot,
    statement: MergeText,
    source_columns: Sequence[str],
    stored: StoredValues,
    counted: str = "true",
) -> RowsText:
    """Write the query of the rows that a MERGE updates, deletes, inserts, or only matches.

    The rows include matches that no clause takes if the SQL condition `counted` is true for them.

    Raises as `updated_rows_text`; InvalidQuery if `*` needs a column that the source does not
    have.
    """
    check_clauses(statement.clauses)
    values = [_values(snapshot, each, statement, source_columns) for each in statement.clauses]
    columns = _written_columns(snapshot, values)
    tracked = RowIdColumns.of(snapshot.properties) is not None
    ids = [ROW_ID] if tracked and any(each.then == "update" for each in statement.clauses) else []
    merge = _Merge(statement, values, columns, stored, counted, has_ids=bool(ids))
    names = {
        "not matched": list(source_columns),
        "not matched by source": [field.name for field in snapshot.schema.fields],
    }
    sides = [_Side.of(kind, names[kind], merge) for kind in _SIDES if merge.clauses(kind)]
    text, carried = merge.joined(sides)
    for side in sides:
        text, carried = side.around(text, carried)
    actions = " ".join(f"WHEN {n} THEN {_ACTIONS[each.then]}" for n, each in merge.clauses())
    number = _either([name for name in carried if name.startswith(_NUMBER)])
    row = [f"CASE {CLAUSE} WHEN 0 THEN {MATCHED} {actions} END", FILE, ROW]
    for at, field in enumerate(columns):
        given = [name for name in carried if name.startswith(_VALUE) and name.endswith(f"_{at}")]
        row.append(_either(given) if given else stored.null(field.name))
    row += ids  # NULL in an inserted row
    return RowsText(
        f"SELECT {number} AS {CLAUSE}, {numbered(row)} FROM ({text}) AS __vl_merged",  # noqa: S608
        (CLAUSE, ACTION, FILE, ROW, *(field.name for field in columns), *ids),
        _numbered_rows(columns, merge),
    )


def _numbered_rows(columns: Sequence[StructField], merge: _Merge) -> dict[str, str]:
    """Return the conditions for rows in which identity columns need a number; see RowsText."""
    found = {}
    for field in filter(is_identity, columns):
        clauses = [
            str(number)
            for number, clause in merge.clauses()
            if clause.then == "insert" and field.name not in merge.values[number - 1]
        ]
        if clauses:
            found[field.name] = f"{CLAUSE} IN ({', '.join(clauses)})"
    return found


_NUMBER = "__vl_n"
_VALUE = "__vl_v"
_LETTERS = {"matched": "m", "not matched": "s", "not matched by source": "t"}


@dataclass(frozen=True, slots=True)
class _Merge:
    """A MERGE. `values` are the assignments of each clause, `columns` the columns of its rows.

    `has_ids`: the rows have a column of row ids, which updated rows keep.
    """

    statement: MergeText
    values: Sequence[Mapping[str, str]]
    columns: Sequence[StructField]
    stored: StoredValues
    counted: str
    has_ids: bool

    def clauses(self, kind: str | None = None) -> list[tuple[int, Clause]]:
        """Return the clauses of a kind, or all, with their numbers from 1."""
        numbers = enumerate(self.statement.clauses, start=1)
        return [(n, clause) for n, clause in numbers if kind in (None, clause.when)]

    def decided(self, kind: str, here: str) -> dict[str, str]:
        """Return columns for the number of the clause that takes a row, and for its new values.

        They are NULL in rows that are not of this kind, for which the condition `here` is false. A
        match that counts, but that no clause takes, has the number 0.
        """
        letter, clauses = _LETTERS[kind], self.clauses(kind)
        taken = " ".join(
            f"WHEN {'true' if each.condition is None else f'({each.condition})'} THEN {n}"
            for n, each in clauses
        )
        otherwise = f"IF({self.counted}, 0, NULL)" if kind == "matched" else "CAST(NULL AS INT)"
        number = f"CASE {taken} ELSE {otherwise} END" if taken else otherwise
        parts = {f"{_NUMBER}{letter}": f"CASE WHEN {here} THEN {number} END"}
        for at, field in enumerate(self.columns):
            values = ((n, self._value(field, n, each)) for n, each in clauses)
            cases = " ".join(f"WHEN {n} THEN {value}" for n, value in values if value is not None)
            if cases:
                parts[f"{_VALUE}{letter}_{at}"] = f"CASE {_NUMBER}{letter} {cases} END"
        return parts

    def _value(self, field: StructField, number: int, clause: Clause) -> str | None:
        """Return the expression of a column in the rows that a clause writes; None for NULL."""
        value = self.values[number - 1].get(field.name)
        if value is None and clause.then == "update":
            target = quote_identifier(self.statement.target.alias)
            return f"{target}.{quote_identifier(field.name)}"
        if value is None and clause.then == "insert":
            value = field.default
            if value is None and isinstance(field.type, StructType):
                value = "NULL"  # refused later for a struct with a NOT NULL field
        return None if value is None else self.stored(field.name, value, clause.when)

    def joined(self, sides: Sequence[_Side]) -> tuple[str, list[str]]:
        """Write the join, with the decisions of WHEN MATCHED; also returns its columns' names."""
        named = self.statement.target, self.statement.source
        target, source = (quote_identifier(each.alias) for each in named)
        here = f"{target}.{ROW} IS NOT NULL AND {source}.{_SOURCE_ROW} IS NOT NULL"
        parts = {FILE: f"{target}.{FILE}", ROW: f"{target}.{ROW}"}
        parts[_SOURCE_ROW] = f"{source}.{_SOURCE_ROW}"
        if self.has_ids:
            parts[ROW_ID] = row_id_in(target)
        for side in sides:
            for name, hidden in side.columns.items():
                parts[hidden] = f"{side.alias}.{quote_identifier(name)}"
        parts |= self.decided("matched", here)
        kinds = [side.kind for side in sides]
        join = _JOINS[_SIDES[0] in kinds, _SIDES[1] in kinds]
        text = (
            f"SELECT {_named(parts)} FROM {TARGET} AS {target} {join} "  # noqa: S608
            f"(SELECT *, true AS {_SOURCE_ROW} FROM {self.statement.source.text}) AS {source} "
            f"ON ({self.statement.on})"
        )
        return text, list(parts)


@dataclass(frozen=True, slots=True)
class _Side:
    """The decisions of the clauses that see only one side, and that side's alias.

    `columns` maps the columns that the clauses may read to their names in the join.
    """

    kind: str
    alias: str
    columns: Mapping[str, str]
    decided: Mapping[str, str]

    @classmethod
    def of(cls, kind: str, names: Sequence[str], merge: _Merge) -> _Side:
        """Make the side for clauses of a kind; `names` are the columns of the side."""
        statement = merge.statement
        named = statement.source if kind == _SIDES[0] else statement.target
        decided = merge.decided(kind, _HERE[kind])
        tokens = [token for text in decided.values() for token in tokenize(text)]
        words = {token.text.lower() for token in tokens}
        columns = {
            name: f"__vl_{_LETTERS[kind]}{at}"
            for at, name in enumerate(dict.fromkeys(names))
            if name.lower() in words or "*" in words
        }
        return cls(kind, quote_identifier(named.alias), columns, decided)

    def around(self, text: str, carried: Sequence[str]) -> tuple[str, list[str]]:
        """Wrap the query `text` with columns `carried`; returns the new query and its columns."""
        kept = [name for name in carried if name not in self.columns.values()]
        seen = [f"{hidden} AS {quote_identifier(name)}" for name, hidden in self.columns.items()]
        inner = f"SELECT {', '.join([*kept, *seen])} FROM ({text}) AS __vl_joined"  # noqa: S608
        parts = {name: name for name in kept} | dict(self.decided)
        return f"SELECT {_named(parts)} FROM ({inner}) AS {self.alias}", list(parts)  # noqa: S608


def _named(parts: Mapping[str, str]) -> str:
    return ", ".join(text if text == name else f"{text} AS {name}" for name, text in parts.items())


def _either(names: Sequence[str]) -> str:
    """Return the value of the row's kind of clauses; those of the other kinds are NULL."""
    return names[0] if len(names) == 1 else f"coalesce({', '.join(names)})"


def _values(
    snapshot: Snapshot, clause: Clause, statement: MergeText, source_columns: Sequence[str]
) -> dict[str, str]:
    """Return what a clause assigns, by the table's columns."""
    inserts = clause.then == "insert"
    if clause.set != STAR:
        return assigned(snapshot, clause.set, statement.target, inserts=inserts)
    known = {name.lower(): name for name in source_columns}
    source = quote_identifier(statement.source.alias)
    found = {}
    for field in snapshot.schema.fields:
        name = known.get(field.name.lower())
        if name is not None:
            check_assigned(field, inserts=inserts)
            found[field.name] = f"{source}.{quote_identifier(name)}"
        elif field.generation is None and not statement.evolves:
            raise InvalidQuery(
                f"{clause.then.upper()} * needs the column {field.name!r}, which the source does"
                " not have",
                hint="name the columns, or give the source all of the table's",
            )
    return found


def evolution_by_spark(
    snapshot: Snapshot, source: StructType, clauses: Sequence[Clause]
) -> Evolution | None:
    """Return the result of `evolution` if Delta Spark does the same.

    Raises InvalidSchema as `evolution`; UnsupportedFeature if an existing column would change: if
    its structs get fields, or if its type may widen.
    """
    found = evolution(snapshot, source, clauses)
    new = snapshot.schema if found is None else found.snapshot.schema
    for own, then in zip(snapshot.schema.fields, new.fields, strict=False):
        given = next((f for f in source.fields if f.name.lower() == own.name.lower()), None)
        widens = is_on(snapshot, WIDENING) and given is not None and given.type != own.type
        if own.type != then.type or widens:
            raise UnsupportedFeature(
                f"schema evolution of a MERGE on Spark adds columns, and {own.name} would change",
                hint="Delta Spark changes its type; or change it first (ALTER TABLE)",
                cli_hint="change its type first",
            )
    return found


def _written_columns(snapshot: Snapshot, values: Sequence[Mapping[str, str]]) -> list[StructField]:
    """Return all columns but the generated ones that no clause sets, which are computed later."""
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
