"""The rows that a statement changes, as one query over the table with places.

Its columns are ACTION, FILE and ROW, then those of the table in which new rows have values. Every
condition and expression is the user's own text, so Spark gives it its meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from variantlake.delta.log.snapshot import Snapshot
from variantlake.dml.row_actions import DELETED, UPDATED
from variantlake.errors import InvalidQuery, UnsupportedFeature
from variantlake.quoting import quote_identifier
from variantlake.spark.dml.change_task import ACTION
from variantlake.spark.dml.row_places import FILE, ROW
from variantlake.spark.dml.stored_values import StoredValues
from variantlake.spark.query.table_locations import name_parts
from variantlake.sql.changes import Assignments, DeleteText, Named, UpdateText

TARGET = "__vl_target"
"""How the queries call the table with places."""


@dataclass(frozen=True, slots=True)
class RowsText:
    """A query, and the names of its columns: the text calls them otherwise."""

    text: str
    columns: tuple[str, ...]


def deleted_rows_text(statement: DeleteText) -> RowsText:
    """The rows that a DELETE takes away."""
    target = quote_identifier(statement.target.alias)
    where = "" if statement.where is None else f" WHERE ({statement.where})"
    leading = f"{DELETED} AS c0, {target}.{FILE} AS c1, {target}.{ROW} AS c2"
    return RowsText(
        f"SELECT {leading} FROM {TARGET} AS {target}{where}",  # noqa: S608 - the user's own text
        (ACTION, FILE, ROW),
    )


def updated_rows_text(snapshot: Snapshot, statement: UpdateText, stored: StoredValues) -> RowsText:
    """The rows that an UPDATE changes, in their new form.

    Generated columns that it does not set are left out: they follow from the others.

    Raises InvalidQuery for a column that the table does not have, or that is set twice;
    UnsupportedFeature for a field of a column.
    """
    target = quote_identifier(statement.target.alias)
    given = assigned(snapshot, statement.set, statement.target)
    columns = [f for f in snapshot.schema.fields if f.name in given or f.generation is None]
    parts = [f"{UPDATED}", f"{target}.{FILE}", f"{target}.{ROW}"]
    for field in columns:
        own = f"{target}.{quote_identifier(field.name)}"
        value = given.get(field.name)
        parts.append(own if value is None else stored(field.name, value))
    where = "" if statement.where is None else f" WHERE ({statement.where})"
    return RowsText(
        f"SELECT {numbered(parts)} FROM {TARGET} AS {target}{where}",  # noqa: S608
        (ACTION, FILE, ROW, *(field.name for field in columns)),
    )


def assigned(snapshot: Snapshot, given: Assignments, target: Named) -> dict[str, str]:
    """Expressions by the names of the table's columns; DEFAULT alone is the column's default."""
    names = {field.name.lower(): field.name for field in snapshot.schema.fields}
    defaults = {field.name: field.default or "NULL" for field in snapshot.schema.fields}
    found: dict[str, str] = {}
    for written, expression in given:
        plain = name_parts(written) or (written,)
        if len(plain) == 2 and plain[0].lower() == target.alias.lower():
            plain = plain[1:]
        name = names.get(plain[0].lower())
        if len(plain) > 1 and name is not None:
            raise UnsupportedFeature(
                f"{written} is a field of a column, which cannot be set on its own here",
                hint="set the whole column, or run the statement with Delta Spark",
                cli_hint="Delta Spark runs it",
            )
        if name is None or len(plain) > 1:
            raise InvalidQuery(
                f"the table has no column {written}", hint=f"it has {', '.join(names.values())}"
            )
        if name in found:
            raise InvalidQuery(f"the column {name!r} is set twice")
        found[name] = defaults[name] if expression.upper() == "DEFAULT" else expression
    return found


def numbered(parts: Sequence[str]) -> str:
    """The columns under names that nothing else has."""
    return ", ".join(f"{part} AS __vl_c{number}" for number, part in enumerate(parts))
