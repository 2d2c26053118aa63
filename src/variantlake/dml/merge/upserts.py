"""Checks of an upsert's key and rows, for this process and for Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from variantlake.delta.protocol.identity_columns import is_identity
from variantlake.delta.schema.table_schema import StructType
from variantlake.dml.merge.keys import check_key_types
from variantlake.errors import InvalidQuery
from variantlake.expressions.tree import Ref


def check_key(refs: Sequence[Ref]) -> None:
    """Raise InvalidQuery for an empty key or a Variant in it; otherwise as `check_key_types`."""
    if not refs:
        raise InvalidQuery("an upsert needs a key")
    check_key_types(refs)


def check_complete(table: StructType, names: Iterable[str]) -> None:
    """Raise InvalidQuery if rows lack a column of the table, since an upsert replaces whole rows.

    Identity columns may be missing.
    """
    there = {name.lower() for name in names}
    for field in table.fields:
        if field.name.lower() not in there and not is_identity(field):
            raise InvalidQuery(
                f"the rows do not have the column {field.name!r}, and an upsert replaces whole "
                "rows",
                hint="merge_schema=True keeps such columns as they are; merge(..., 'WHEN MATCHED "
                "THEN UPDATE SET ...') names what is set",
                cli_hint="",
            )


def two_rows_of_a_key() -> InvalidQuery:
    """Return the error for two rows with the same key."""
    return InvalidQuery(
        "two rows of an upsert have the same key, so it is not clear which of them counts",
        hint="leave one row for each key",
    )
