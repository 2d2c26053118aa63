"""Names in a MERGE: columns of the table and of the source, qualified by the side's name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from variantlake.arrays import arrow_array
from variantlake.delta.schema.table_schema import StructType
from variantlake.errors import InvalidQuery, InvalidValue
from variantlake.expressions.arrays import Values, column_at
from variantlake.expressions.columns import Columns
from variantlake.expressions.tree import Expression, Ref, refs
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.quoting import PLAIN_NAME
from variantlake.scan.files.casts import extract


class Sides(Columns):
    """The columns that a text may name, with or without the name of their side."""

    def __init__(self, schemas: Mapping[str, StructType]) -> None:
        super().__init__(StructType(()), "")
        self._sides = {
            name.lower(): (name, Columns(schema, name.lower())) for name, schema in schemas.items()
        }
        if len(self._sides) < len(schemas):
            raise InvalidQuery("the table and the source of a MERGE have one name")

    def whole(self, name: str) -> Ref:
        """Return the column that `side.column` names."""
        side, _, column = name.partition(".")
        ref = self._sides[side.lower()][1].whole(column)
        return replace(ref, column=(side, *ref.column))

    def _field(self, node: exp.Column) -> Ref | None:
        """Return a field of a struct after the name of its side, else None."""
        if len(node.parts) < 3 or node.parts[0].name.lower() not in self._sides:
            return None
        side, columns = self._sides[node.parts[0].name.lower()]
        ref = Columns(columns.schema, side.lower(), is_only=True)._field(node)  # noqa: SLF001
        return None if ref is None else replace(ref, column=(side, *ref.column))

    def _column(self, node: exp.Column) -> str:
        first = node.parts[0].name.lower() if len(node.parts) > 1 else ""
        if first in self._sides:
            side, columns = self._sides[first]
            return f"{side}.{columns._column(node)}"  # noqa: SLF001 - of the same class
        found: list[str] = []
        for side, columns in self._sides.values():
            try:
                found.append(f"{side}.{columns._column(node)}")  # noqa: SLF001
            except InvalidQuery as error:
                missing = error
        if len(found) > 1:
            raise InvalidQuery(
                f"both sides of the MERGE have a column {node.name!r}",
                hint=f"say which: {' or '.join(found)}",
            )
        if not found:
            raise missing
        return found[0]


def side_names(target: str, source: str) -> tuple[str, str]:
    """Check a MERGE's names of table and source. Raises InvalidValue for one that is not plain."""
    for name in (target, source):
        if not isinstance(name, str) or not PLAIN_NAME.fullmatch(name):
            raise InvalidValue(f"a MERGE cannot call a table {name!r}", hint="a plain name")
    return target, source


def sides_of(expression: Expression | None) -> set[str]:
    """Return the sides whose columns an expression names."""
    return {ref.column[0] for ref in refs(expression)}


def in_table(ref: Ref) -> Ref:
    """Return the Ref without the name of its side."""
    return replace(ref, column=ref.column[1:])


@dataclass(frozen=True, slots=True)
class SourceRows:
    """The source rows. Each column is one chunk, VARIANT ones are struct<metadata, value>."""

    table: pa.Table
    schema: StructType

    def values(self, ref: Ref, rows: Int64s | None = None) -> Values:
        """Return a column or path in all rows, or in the rows at these numbers."""
        return value_in(self.table, ref, rows)


def value_in(table: pa.Table, ref: Ref, rows: Int64s | None = None) -> Values:
    """Return a column or path of a table's rows, or of some; `ref` starts with its side's name."""
    column = column_at(table, ref.column[1:])
    if rows is not None:
        column = column.take(arrow_array(rows, pa.int64()))
    return Values(column) if ref.path is None else extract(column, in_table(ref))
