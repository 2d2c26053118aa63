"""Appends of any data: Spark's tasks write DataFrames and files, this process writes other rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql import DataFrame

from variantlake.errors import InvalidValue
from variantlake.ingest.inputs import names_documents
from variantlake.spark.load.append import append
from variantlake.spark.load.append_target import NewTable
from variantlake.spark.load.ingest import ingest
from variantlake.spark.session.arguments import is_frame
from variantlake.storage.options import reach_with
from variantlake.table.table import Table

if TYPE_CHECKING:
    from variantlake.ingest.commit_load import LoadResult
    from variantlake.ingest.encode.document_options import DocumentKeywords
    from variantlake.ingest.inputs import Rows
    from variantlake.ingest.overwrite import Overwrite
    from variantlake.spark.lake.session import LakeSession
    from variantlake.spark.query.table_locations import Location


def load(
    session: LakeSession,
    table: Location,
    data: DataFrame | Rows,
    options: DocumentKeywords,
    *,
    column: str | None,
    json_columns: Collection[str],
    overwrite: Overwrite | None = None,
    shredding: str | Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
) -> LoadResult:
    """Append rows as `Lake.append` does, or replace others with them, in one commit.

    Raises InvalidValue for an option of new tables with rows that cannot create one.
    """
    location = session.written_to(table)
    others = cast("dict[str, Any]", options)
    if is_frame(data):
        return append(
            session.spark,
            data,
            location,
            json_columns=json_columns,
            new=NewTable.of(others.pop("partition_by", ()), shredding, properties),
            merge_schema=others.pop("merge_schema", False),
            overwrite=overwrite,
            **others,  # `append` refuses options of documents
        )
    made = {"shredding": shredding, "properties": properties}
    if names_documents(data, options.get("format")):
        reach_with(data, options.pop("storage_options", None))
        others.update({name: value for name, value in made.items() if value is not None})
        return ingest(session.spark, data, location, column=column, overwrite=overwrite, **others)
    for name, value in made.items():
        if value is not None:
            raise InvalidValue(
                f"{name}= is for a table that is made here, and such rows make none",
                hint="lake.create(table, schema) makes it, or give a DataFrame of Spark",
                cli_hint="",
            )
    others.update(column=column, json_columns=json_columns)
    if overwrite is None:
        return Table.open(location).append(data, **others)
    return Table.open(location).overwrite(data, **asdict(overwrite), **others)
