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
    """A destination of dlt: each of its tables is one in `folder`, documents are Variants.

    `dlt.pipeline("shop", destination=variantlake.dlt.destination("/lake"))`. Each file of a load is
    one commit, which knows the file: what dlt tries again is loaded once. `merge` puts rows in the
    place of those with the same primary key; new columns are added.

    Args:
        folder: The path or URL of a folder.
        storage_options: How its bucket is reached, as for `Table.open`.
    """
    place = os.fspath(folder)

    def load(items: str, table: dict[str, Any]) -> None:
        reach_with(place, storage_options)
        store(place, items, table)

    # Nesting 0: what is nested stays one document, and is no table of its own.
    made = dlt.destination(
        load, name="variantlake", batch_size=0, loader_file_format="parquet", max_table_nesting=0
    )
    return made()


def store(folder: str, file: str, schema: Mapping[str, Any]) -> None:
    """Load a Parquet file into one of dlt's tables, of which `schema` tells.

    Raises UnsupportedFeature for `replace`, of which dlt does not say how many files it has.
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
    # dlt's names of files are table.file.retry.format
    table.append(
        rows,
        json_columns=documents,
        merge_schema=True,
        load_id="dlt/" + ".".join(PurePath(file).name.split(".")[:2]),
        unique_by=keys if disposition == "merge" else (),
    )
