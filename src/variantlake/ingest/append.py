"""Append Arrow data to a table, in this process."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import TYPE_CHECKING

import pyarrow as pa

from variantlake.delta.log.snapshot import Snapshot
from variantlake.ingest.commit_load import (
    LoadResult,
    check_unique,
    commit_load,
    find_committed_load,
    load_attributes,
)
from variantlake.ingest.encode.defaults import defaulted_rows
from variantlake.ingest.encode.numbers import numbered_rows
from variantlake.ingest.encode.rows import TableRows, given_schema
from variantlake.ingest.learning.relearn import relearned
from variantlake.jobs.write_rows import write_rows
from variantlake.telemetry.lineage import reported
from variantlake.telemetry.tracing import traced
from variantlake.writing.files import new_load_id
from variantlake.writing.options.keywords import check_options, names_of
from variantlake.writing.options.load_options import LoadOptions
from variantlake.writing.table_write import TableWrite

if TYPE_CHECKING:
    from variantlake.ingest.overwrite import Overwrite  # parses SQL
    from variantlake.writing.staged_files import Staging

DEFAULTS = LoadOptions()


@reported("append", lambda _, snapshot, **__: snapshot.store.uri)
@traced("load", lambda _, snapshot, **__: {"table": snapshot.store.uri}, load_attributes)
def append_arrow(
    reader: pa.RecordBatchReader,
    snapshot: Snapshot,
    *,
    json_columns: Collection[str] = (),
    merge_schema: bool = False,
    overwrite: Overwrite | Staging | None = None,
    options: LoadOptions = DEFAULTS,
) -> LoadResult:
    """Append rows to the table of `snapshot` in one commit.

    Columns match by name. A column that the data lack gets its default or NULL; `merge_schema` adds
    columns that the table lacks. The first rows decide the shredding schema of a Variant column
    that has none, and the table keeps it. `overwrite` says which rows the new ones replace.
    Without rows and without `overwrite` there is no commit: the version is that of `snapshot`.

    Raises InvalidSchema for data that do not fit the table, InvalidJson, MalformedVariant,
    InvalidValue and LimitExceeded for a bad value, with its row in the data; UnsupportedFeature and
    CommitConflict.
    """
    started = time.perf_counter()
    check_options(merge_schema=merge_schema)
    json_columns = names_of("json_columns", json_columns)
    target = TableWrite.of(snapshot, numbered=True)
    if overwrite is not None:
        target = overwrite.applied(target)
    if (known := find_committed_load(target, options)) is not None:
        return known
    if merge_schema:
        target = target.with_columns(given_schema(reader.schema, json_columns))
    check_unique(target, options)
    reader = numbered_rows(defaulted_rows(reader, target.schema), target.schema)
    target = relearned(target)
    target = target.with_contract(options.contract)
    plan = target.load_plan(new_load_id(), options)
    try:
        with plan.bad_row_log(0) as bad_rows:
            rows = TableRows(
                reader.schema,
                reader,
                plan,
                shreddings=target.shreddings(),
                json_columns=frozenset(json_columns),
                bad_rows=bad_rows,
                inference=options.inference,
                check_texts=True,
            )
            result = write_rows(rows, plan)
    except BaseException:  # before any commit
        target.clean_up(plan.load_id)
        raise
    if not result.adds and not result.bad_rows and overwrite is None:
        return LoadResult(version=snapshot.version)
    return commit_load(target.with_shreddings(rows.shreddings), plan, [result], options, started)
