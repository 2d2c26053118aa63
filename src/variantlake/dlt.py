"""`variantlake.dlt`: tables as a destination of dlt (`pip install variantlake[dlt]`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import dlt
import pyarrow.parquet as pq

from variantlake.errors import UnsupportedFeature
from variantlake.ingest.encode.rows import given_schema
from variantlake.interop.asset_table import asset_table
from variantlake.storage.options import reach_with

__all__ = ["destination"]


def destination(
    folder: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None
) -> Any:
    """Make a dlt destination that stores each dlt table in `folder`; documents become Variants.

    `dlt.pipeline("shop", destination=variantlake.dlt.destination("/lake"))`. Each file of a load is
    one commit that records the file, so a file that dlt retries is loaded once. `merge` replaces
    rows that have the same primary key. New columns are added.

    Args:
        folder: The path or URL of a folder.
        storage_options: Options to access the folder's bucket, as for `Table.open`.
    """
    location = os.fspath(folder)

    def load(items: str, table: dict[str, Any]) -> None:
        reach_with(location, storage_options)
        store(location, items, table)

    # With nesting 0, a nested value stays one document and does not become a table.
    factory = dlt.destination(
        load, name="variantlake", batch_size=0, loader_file_format="parquet", max_table_nesting=0
    )
    return factory()


def store(folder: str, file: str, schema: Mapping[str, Any]) -> None:
    """Load a Parquet file into the dlt table that `schema` describes.

    Raises UnsupportedFeature for `merge` without a primary key, and for `replace`: dlt does not say
    how many files replace the rows.
    """
    name, columns = schema["name"], schema["columns"]
    disposition = schema.get("write_disposition", "append")
    keys = [each for each, column in columns.items() if column.get("primary_key")]
    if disposition == "replace" or (disposition == "merge" and not keys):
        raise UnsupportedFeature(
            f"the destination does not take {disposition} of {name}",
            hint="append, or merge with a primary_key",
            cli_hint="",
        )
    rows = pq.read_table(file)
    rows = rows.drop_columns([each for each in rows.column_names if each.startswith("_dlt_")])
    documents = [
        each for each in rows.column_names if columns.get(each, {}).get("data_type") == "json"
    ]
    table = asset_table(f"{folder}/{name}", given_schema(rows.schema, documents))
    # dlt names its files table.file.retry.format
    table.append(
        rows,
        json_columns=documents,
        merge_schema=True,
        load_id="dlt/" + ".".join(PurePath(file).name.split(".")[:2]),
        unique_by=keys if disposition == "merge" else (),
    )
