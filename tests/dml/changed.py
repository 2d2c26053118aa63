"""A small table with a model of its rows, for tests that change them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

import variantlake as vl
from variantlake.shredding.layout import VARIANT_TYPE

VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
DDL = {"event": "user STRING, n BIGINT"}

Row = tuple[int, str, str]


def new_table(
    folder: Path,
    *,
    rows: int = 40,
    per_file: int = 10,
    properties: Mapping[str, str] = VECTORS,
    partition_by: str | None = None,
    schema: str = "id BIGINT, day STRING, event VARIANT",
) -> vl.Table:
    """Rows 0 … rows - 1: two days, five users, an explicit null in every seventh."""
    table = vl.Table.create(
        folder, schema, partition_by=partition_by, properties=properties, shredding=DDL
    )
    table.append(arrow(range(rows)), max_rows_per_file=per_file)
    return table.refresh()


def arrow(ids: Iterable[int]) -> pa.Table:
    """The rows with these ids."""
    ids = list(ids)
    values = [vl.parse_json(text(each)) for each in ids]
    pairs = [{"metadata": each.metadata, "value": each.value} for each in values]
    days = [f"d{each % 2}" for each in ids]
    columns: list[Any] = [
        pa.array(ids, pa.int64()),
        pa.array(days, pa.string()),
        pa.array(pairs, VARIANT_TYPE),
    ]
    return pa.table(columns, names=["id", "day", "event"])


def text(number: int) -> str:
    """The document of a row."""
    user = "null" if number % 7 == 0 else f'"u{number % 5}"'
    return f'{{"n":{number},"rest":[{number % 3}],"user":{user}}}'


def ids(table: vl.Table) -> list[int]:
    """The ids of the newest version, sorted."""
    found: list[Any] = table.refresh().scan("id").to_arrow()["id"].to_pylist()
    return sorted(found)


def documents(table: vl.Table) -> dict[int, str]:
    """The documents of the newest version by their ids."""
    found = table.refresh().scan("id, event").to_arrow().to_pylist()
    return {
        row["id"]: "NULL"
        if row["event"] is None
        else vl.Variant(row["event"]["metadata"], row["event"]["value"]).to_json()
        for row in found
    }
