"""Make a partitioned table of a folder of Parquet files, in place.

The values of the partition columns are in the names of folders, `day=2026-01-31`. No file is
rewritten, since that would leave the old ones in folders of the table.
"""

from __future__ import annotations

import datetime as dt
import time
import urllib.parse
from collections.abc import Callable, Mapping, Sequence

from variantlake.delta.log.log_segment import has_log
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.schema.table_schema import StructField, StructType
from variantlake.delta.stats.partition_values import partition_text
from variantlake.errors import (
    InvalidSchema,
    InvalidValue,
    MissingSource,
    UnsupportedFeature,
    in_file,
)
from variantlake.ingest.commit_load import commit_load
from variantlake.ingest.conversion.plan import (
    Action,
    ConvertedFile,
    Step,
    merged_schema,
    plan_steps,
    read_source,
)
from variantlake.ingest.conversion.request import Request
from variantlake.ingest.conversion.result import ConvertResult
from variantlake.ingest.encode.document_columns import HIVE_NULL, folder_array
from variantlake.ingest.encode.rows import partition_texts
from variantlake.ingest.sources.find_files import PARQUET
from variantlake.ingest.sources.sources import SourceSpec, expand
from variantlake.jobs.tasks import TaskResult
from variantlake.parquet.stats.facts import read_facts
from variantlake.storage.opening import open_store
from variantlake.writing.files import new_load_id
from variantlake.writing.options.load_options import LoadOptions
from variantlake.writing.table_write import TableWrite

Moment = Callable[[str], dt.datetime]
"""Parses a time in the reader's time zone. Raises InvalidQuery for other text."""


_NOT_IN_PLACE = ("json_columns", "variant_columns", "shredding", "rewrite", "truncate_timestamps")
"""Options of conversions that rewrite files."""


def convert_in_place(sources: Sequence[SourceSpec], table: str, request: Request) -> ConvertResult:
    """Make a partitioned table of the folder that holds the files. Raises as `convert_folder`."""
    store = open_store(table)
    if [open_store(each).uri for each in sources] != [store.uri]:
        raise UnsupportedFeature(
            "partition_by makes a table of the folder that holds the files, where it is",
            file=store.uri,
            hint="give this folder as the table and as the only source",
            cli_hint="give this folder as SRC and as TABLE",
        )
    if wrong := [name for name in _NOT_IN_PLACE if getattr(request, name)]:
        raise UnsupportedFeature(
            f"{wrong[0]} is for files that are rewritten, and partition_by rewrites none",
            file=store.uri,
            hint="leave it out, or append the rows to a partitioned table",
            cli_hint="leave it out, or load the rows into a partitioned table",
        )
    if has_log(store):
        raise InvalidValue(
            "this folder is a Delta table already",
            file=store.uri,
            hint="append rows to it",
        )
    return convert_folder(
        table,
        parse_table_ddl(", ".join(request.partition_by)),
        properties=request.properties,
        dry_run=request.dry_run,
    )


def convert_folder(
    location: str,
    partitions: StructType,
    moment: Moment | None = None,
    *,
    properties: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> ConvertResult:
    """Make a table of a folder's files, in one commit; `partitions` are columns of its folders.

    `moment` parses the values of TIMESTAMP columns. `properties` are those of the table. A dry run
    only returns the action for each file.

    Raises InvalidSchema for files in other folders, InvalidValue for a folder without a value of
    its column, UnsupportedFeature for files that a table cannot have as they are, and as `convert`.
    """
    started = time.perf_counter()
    for field in partitions.fields:
        if str(field.type) == "timestamp" and moment is None:
            raise UnsupportedFeature(
                f"folders do not tell the zone of the timestamp {field.name!r}",
                hint="declare the column as TIMESTAMP_NTZ or STRING",
            )
    store = open_store(location)
    found = expand([location], PARQUET)
    files = [read_source(source, (), ()) for source in found if source.size]
    if not files:
        raise MissingSource("the folder has no Parquet files", file=location)
    schema = _with_partitions(files, partitions)
    names = [field.name for field in partitions.fields]
    target = TableWrite.over_files(store, schema, properties or {}, names)
    options = LoadOptions()
    plan = target.file_plan(new_load_id(), options)
    results = []
    steps = plan_steps(files, target, rewrite=False, keeps_old_times=True)
    for step in steps:
        values = _values(step, partitions, moment)
        if step.action is Action.REWRITE:
            raise UnsupportedFeature(
                f"the file cannot be a table's as it is: {step.reason}",
                file=step.path,
                hint="CREATE TABLE delta.`path` USING delta PARTITIONED BY (...) AS SELECT * FROM"
                " parquet.`path` copies the rows",
            )
        if step.action is Action.ADD:
            with in_file(step.path):
                facts = read_facts(step.path)
            results.append(TaskResult((plan.add_at(step.inside, facts, values),), step.rows))
    empty = len(found) - len(files)
    if dry_run:
        rows = sum(step.rows for step in steps)
        return ConvertResult(dry_run=True, rows_written=rows, steps=steps, files_empty=empty)
    done = commit_load(target, plan, results, options, started, empty_sources=empty, takes_id=False)
    return ConvertResult.of(done, steps, {})


def _with_partitions(files: list[ConvertedFile], partitions: StructType) -> StructType:
    """Return the columns of all files, followed by those of the folders."""
    schema = merged_schema(files)
    names = {field.name.lower() for field in partitions.fields}
    for field in schema.fields:
        if field.name.lower() in names:
            raise InvalidSchema(f"the partition column {field.name!r} is a column of the files too")
    return StructType((*schema.fields, *partitions.fields))


def _values(step: Step, partitions: StructType, moment: Moment | None) -> dict[str, str | None]:
    """Return the partition values in a file's path, in the form of the log."""
    folders = [folder.partition("=") for folder in step.inside.split("/")[:-1]]
    names = [urllib.parse.unquote(name).lower() for name, _, _ in folders]
    if names != [field.name.lower() for field in partitions.fields] or not all(
        equals for _, equals, _ in folders
    ):
        wanted = "/".join(f"{field.name}=..." for field in partitions.fields) or "the folder itself"
        raise InvalidSchema(
            f"the file is not in a folder of the partition columns: {wanted}",
            file=step.path,
            hint="PARTITIONED BY in CONVERT TO DELTA, or partition_by, names all, in their order",
            cli_hint="give --partition-by once for each of them, in their order",
        )
    return {
        field.name: _text(field, text, step.path, moment)
        for field, (_, _, text) in zip(partitions.fields, folders, strict=True)
    }


def _text(field: StructField, text: str, file: str, moment: Moment | None) -> str | None:
    if str(field.type) == "timestamp" and moment is not None:
        if text in ("", HIVE_NULL):
            return None
        return partition_text(moment(urllib.parse.unquote(text)), field)
    (value,) = partition_texts(folder_array(field, text, file), field)
    return value
