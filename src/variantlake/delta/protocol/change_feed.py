"""The change data feed of a table: its property, and the columns that readers of the feed add.

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
    """Return the first column whose name the change data feed reserves, else None.

    Physical names count, too, because change files hold `_change_type` next to them.
    """
    for field in schema.fields:
        if {field.name.lower(), field.physical_name.lower()} & {*CHANGE_COLUMNS}:
            return field.name
    return None


def check_change_feed(schema: StructType, properties: Mapping[str, str]) -> None:
    """Raise InvalidSchema if the change data feed is on and a column has a reserved name."""
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
