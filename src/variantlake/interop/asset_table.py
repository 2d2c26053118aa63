"""The table that dbt, dlt or Dagster write to: as it is, or made for the columns of their rows."""

from __future__ import annotations

from variantlake.delta.schema.table_schema import StructType
from variantlake.errors import NotADeltaTable
from variantlake.table import Table


def asset_table(place: str, schema: str | StructType) -> Table:
    """The table at a place, whatever its columns are; a new one of `schema` if there is none.

    Raises as `Table.open` and `Table.create`.
    """
    try:
        return Table.open(place)
    except NotADeltaTable:
        return Table.create(place, schema, exist_ok=True)
