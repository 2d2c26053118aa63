"""Write the query that finds the rows that a statement changes, over the table with places.

Its columns are ACTION, FILE and ROW, then the table's columns for which new rows have values. All
conditions and expressions are the user's text, which Spark evaluates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.row_tracking import RowIdColumns
from variantlake.delta.schema.columns_by_path import in_structs, resolved
from variantlake.delta.schema.table_schema import DataType, StructType
from variantlake.dml.path_values import assigned_path
from variantlake.dml.row_actions import DELETED, INSERTED, UPDATED
from variantlake.errors import InvalidQuery
from variantlake.expressions.typing import refused
from variantlake.ingest.encode.numbers import check_assigned
from variantlake.paths import Path
from variantlake.quoting import quote_identifier, quote_string
from variantlake.spark.dml.change_task import ACTION
from variantlake.spark.dml.row_places import FILE, ROW, ROW_ID, row_id_in
from variantlake.spark.dml.stored_values import StoredValues
from variantlake.spark.query.table_locations import name_parts
from variantlake.sql.changes import Assignments, DeleteText, Named, UpdateText
from variantlake.sql.select import QueryText

TARGET = "__vl_target"
"""The name of the table with places in these queries."""


@dataclass(frozen=True, slots=True)
class RowsText:
    """A query, and the names for its columns, which have others in the text.

    `numbered` maps identity columns to a condition, over these names, for the rows that still need
    a number.
    """

    text: str
    columns: tuple[str, ...]
    numbered: Mapping[str, str] = field(default_factory=dict)


def deleted_rows_text(statement: DeleteText) -> RowsText:
    """Write the query of the rows that a DELETE removes."""
    target = quote_identifier(statement.target.alias)
    where = "" if statement.where is None else f" WHERE ({statement.where})"
    leading = f"{DELETED} AS c0, {target}.{FILE} AS c1, {target}.{ROW} AS c2"
    return RowsText(
        f"SELECT {leading} FROM {TARGET} AS {target}{where}",  # noqa: S608 - the user's own text
        (ACTION, FILE, ROW),
    )


def updated_rows_text(snapshot: Snapshot, statement: UpdateText, stored: StoredValues) -> RowsText:
    """Write the query of the rows that an UPDATE changes, in their new form.

    It leaves out generated columns that the statement does not set; they are computed later.

    Raises InvalidQuery for a column that the table does not have, or that is set twice.
    """
    target = quote_identifier(statement.target.alias)
    given = assigned(snapshot, statement.set, statement.target)
    columns = [f for f in snapshot.schema.fields if f.name in given or f.generation is None]
    parts = [f"{UPDATED}", f"{target}.{FILE}", f"{target}.{ROW}"]
    for column in columns:
        own = f"{target}.{quote_identifier(column.name)}"
        value = given.get(column.name)
        parts.append(own if value is None else stored(column.name, value))
    names = [column.name for column in columns]
    if RowIdColumns.of(snapshot.properties) is not None:
        parts.append(row_id_in(target))
        names.append(ROW_ID)
    where = "" if statement.where is None else f" WHERE ({statement.where})"
    return RowsText(
        f"SELECT {numbered(parts)} FROM {TARGET} AS {target}{where}",  # noqa: S608
        (ACTION, FILE, ROW, *names),
    )


def replaced_rows_text(
    target: Named, where: str, source: str, columns: Sequence[str], numbered_ones: Sequence[str]
) -> RowsText:
    """Write the query that deletes the rows of a condition, and inserts all rows of a view.

    `source` is the view, `columns` its columns, and `numbered_ones` are identity columns that it
    does not have.
    """
    gone = deleted_rows_text(DeleteText(target, where))
    nulls = "".join(f", NULL AS n{at}" for at in range(len(columns) + len(numbered_ones)))
    values = ["CAST(NULL AS BIGINT)"] * len(numbered_ones)
    new = numbered(
        [str(INSERTED), "NULL", "NULL", *map(quote_identifier, columns), *values],
    )
    return RowsText(
        f"SELECT *{nulls} FROM ({gone.text}) UNION ALL SELECT {new} FROM {source}",  # noqa: S608
        (ACTION, FILE, ROW, *columns, *numbered_ones),
        dict.fromkeys(numbered_ones, f"{ACTION} = {INSERTED}"),
    )


def assigned(
    snapshot: Snapshot, given: Assignments, target: Named, *, inserts: bool = False
) -> dict[str, str]:
    """Return the assigned expressions by the table's columns. DEFAULT alone is replaced.

    Raises as `updated_rows_text`, and as `check_assigned` for a row that `inserts`.
    """
    names = {each.name.lower(): each.name for each in snapshot.schema.fields}
    columns = {each.name: each for each in snapshot.schema.fields}
    found: dict[str, str] = {}
    inner: dict[str, dict[tuple[str, ...], str]] = {}
    at_paths: dict[str, list[tuple[Path, str]]] = {}
    for written, expression in given:
        if ":" in written and written.lower() not in names and not inserts:
            name, path = _path_in(snapshot, written, target)
            at_paths.setdefault(name, []).append((path, expression))
            continue
        plain = (written,) if written.lower() in names else name_parts(written) or (written,)
        if len(plain) > 1 and plain[0].lower() == target.alias.lower():
            plain = plain[1:]
        known = names.get(plain[0].lower())
        if len(plain) > 1 and known is not None and not inserts:
            place = resolved(snapshot.schema, plain)
            if not in_structs(snapshot.schema, place):
                raise InvalidQuery(
                    f"{written} is not a field of a struct",
                    hint="set the column; event:user.name is a path of a VARIANT",
                )
            _check_once(place, inner.setdefault(known, {}))
            inner[known][place[1:]] = "NULL" if expression.upper() == "DEFAULT" else expression
            continue
        if known is None or len(plain) > 1:
            raise InvalidQuery(
                f"the table has no column {written}", hint=f"it has {', '.join(names.values())}"
            )
        if known in found:
            raise InvalidQuery(f"the column {known!r} is set twice")
        is_default = expression.upper() == "DEFAULT"
        check_assigned(columns[known], inserts=inserts, is_default=is_default)
        found[known] = columns[known].default or "NULL" if is_default else expression
    for name, values in inner.items():
        if name in found:
            raise InvalidQuery(f"the column {name!r} is set as a whole and in its fields")
        own = f"{quote_identifier(target.alias)}.{quote_identifier(name)}"
        found[name] = _with_fields(own, columns[name].type, values)
    for name, changes in at_paths.items():
        if name in found:
            raise InvalidQuery(f"the column {name!r} is set as a whole and at a path")
        own = f"{quote_identifier(target.alias)}.{quote_identifier(name)}"
        found[name] = reduce(_with_path, changes, own)
    return found


def _path_in(snapshot: Snapshot, written: str, target: Named) -> tuple[str, Path]:
    """Return the VARIANT column and the path in it that an assignment names."""
    ref = assigned_path(QueryText(snapshot.schema, target.alias), written)
    column = ref.shown or ref.column
    if len(column) > 1 or ref.path is None:
        raise refused("a path of a Variant in a struct to assign to")
    return column[0], ref.path


def _with_path(own: str, change: tuple[Path, str]) -> str:
    """Set a path of a Variant to a value; NULL becomes the Variant null."""
    path, value = change
    if value.upper() == "DEFAULT":
        raise InvalidQuery("a path has no default", hint="set it to NULL")
    new = f"coalesce(CAST(({value}) AS VARIANT), parse_json('null'))"
    return f"variant_set({own}, {quote_string(path.spark())}, {new})"


def _check_once(path: tuple[str, ...], values: Mapping[tuple[str, ...], str]) -> None:
    for other in values:
        least = min(len(other), len(path) - 1)
        if other[:least] == path[1 : least + 1]:
            raise InvalidQuery(f"the field {'.'.join(path)} is set twice")


def _with_fields(own: str, kind: DataType, values: Mapping[tuple[str, ...], str]) -> str:
    """Set fields of a struct. As in Delta Spark, a NULL struct becomes a struct of NULLs."""
    if () in values:
        return values[()]
    if not isinstance(kind, StructType):
        return own
    parts = []
    for each in kind.fields:
        below = {path[1:]: value for path, value in values.items() if path[0] == each.name}
        field_text = f"{own}.{quote_identifier(each.name)}"
        value = _with_fields(field_text, each.type, below) if below else field_text
        parts.append(f"{quote_string(each.name)}, {value}")
    return f"named_struct({', '.join(parts)})"


def numbered(parts: Sequence[str]) -> str:
    """Return the SELECT list of these columns under unique names."""
    return ", ".join(f"{part} AS __vl_c{number}" for number, part in enumerate(parts))
