"""The change data feed of a table: its property, and the columns that its readers add.

Spec: PROTOCOL, "Change Data Files", "Reader Requirements for AddCDCFile".
"""

from __future__ import annotations

from collections.abc import Mapping

from variantlake.delta.schema.table_schema import StructType
from variantlake.errors import InvalidSchema

CHANGE_FEED = "delta.enableChangeDataFeed"
CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = CHANGE_COLUMNS = (
    "_change_type",
    "_commit_version",
    "_commit_timestamp",
)


def reserved_column(schema: StructType) -> str | None:
    """The name of a column that a reader of the feed could not tell from one of its own.

    Change files have `_change_type` beside the columns by their physical names: those count too.
    """
    for field in schema.fields:
        if {field.name.lower(), field.physical_name.lower()} & {*CHANGE_COLUMNS}:
            return field.name
    return None


def check_change_feed(schema: StructType, properties: Mapping[str, str]) -> None:
    """Raise InvalidSchema for a change data feed over columns with names of the feed's own."""
    if properties.get(CHANGE_FEED, "").lower() != "true":
        return
    name = reserved_column(schema)
    if name is not None:
        raise InvalidSchema(
            f"a table with a change data feed ({CHANGE_FEED}) cannot have the column {name!r}: "
            "the feed has a column of this name itself",
            hint=f"choose another name, or leave the feed off; reserved: "
            f"{', '.join(CHANGE_COLUMNS)}",
        )
