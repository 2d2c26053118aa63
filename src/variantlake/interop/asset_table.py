"""Open the table that dbt, dlt or Dagster write to, or create it for the columns of their rows."""

from __future__ import annotations

from variantlake.delta.schema.table_schema import StructType
from variantlake.errors import NotADeltaTable
from variantlake.table import Table


def asset_table(place: str, schema: str | StructType) -> Table:
    """Open the table at `place`, whatever its columns; creates one with `schema` if it is missing.

    Raises as `Table.open` and `Table.create`.
    """
    try:
        return Table.open(place)
    except NotADeltaTable:
        return Table.create(place, schema, exist_ok=True)
