"""Check in this process whether rows allow a change of their table."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.table_schema import StructField, StructType
from variantlake.dml.new_values import NewValues
from variantlake.errors import InvalidQuery, InvalidValue, UnsupportedFeature
from variantlake.quoting import quote_identifier
from variantlake.scan.table_scan import Scan
from variantlake.sql.select import QueryText

_BY_SPARK = "lake.sql(...) runs the statement, with any expression that Spark takes"


@dataclass(frozen=True, slots=True)
class LocalChecks:
    """Checks by the local engine. All raise UnsupportedFeature for expressions only Spark takes.

    For a new table, `lenient` accepts defaults and generated columns with such expressions.
    """

    lenient: bool = False

    def constraint(self, snapshot: Snapshot, name: str, expression: str) -> None:
        """Raise InvalidQuery unless it is a condition, InvalidValue if a row does not fulfil it."""
        broken = _failing(snapshot, expression)
        if broken:
            raise InvalidValue(
                f"{broken} rows break the CHECK constraint {name!r} ({expression})",
                hint="a condition that is NULL is not fulfilled; nothing was changed",
            )

    def not_null(self, snapshot: Snapshot, column: str) -> None:
        """Raise InvalidValue if a row has NULL in this column."""
        nulls = _failing(snapshot, f"{quote_identifier(column)} IS NOT NULL")
        if nulls:
            raise InvalidValue(
                f"{nulls} rows have NULL in column {column!r}", hint="nothing was changed"
            )

    def default(self, field: StructField, expression: str) -> None:
        """Raise InvalidQuery or InvalidValue unless it is a constant of the column's type."""
        try:
            value = QueryText(StructType(())).value(expression)
            schema = StructType((field,)).to_arrow()
            row = pa.Table.from_pylist([{field.name: None}], schema)
            NewValues({field.name: field}, {field.name: value}).applied(row)
        except UnsupportedFeature as error:
            if self.lenient:
                return
            error.hint = _BY_SPARK
            raise
        except InvalidQuery as error:
            refusal = _named("the default", field, error)
            if refusal.hint.startswith("it has"):
                refusal.hint = "a constant expression, as in DEFAULT 'unknown'"
            raise refusal from None

    def generated(self, schema: StructType, field: StructField) -> None:
        """Raise InvalidQuery unless the other columns of a row determine the generated one."""
        others = StructType(tuple(each for each in schema.fields if each.name != field.name))
        try:
            QueryText(others).value(field.generation or "")
        except UnsupportedFeature:
            if not self.lenient:
                raise
        except InvalidQuery as error:
            raise _named("the expression", field, error) from None


def _named(what: str, field: StructField, error: InvalidQuery) -> InvalidQuery:
    message = f"{what} of column {field.name!r}: {error.message}"
    return InvalidQuery(message, hint=error.hint, cli_hint=error.cli_hint)


def _failing(snapshot: Snapshot, condition: str) -> int:
    """The number of rows for which a condition is not true."""
    try:
        wanted = QueryText(snapshot.schema).condition(condition)
    except UnsupportedFeature as error:
        error.hint = _BY_SPARK
        raise
    return Scan(snapshot, ()).count() - Scan(snapshot, (), wanted).count()
