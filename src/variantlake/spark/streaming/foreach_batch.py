"""`lake.write_batch`, which a `foreachBatch` function calls to commit each batch exactly once."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from typing import Unpack

from pyspark.sql import DataFrame, SparkSession

from variantlake.autoloading.auto_compact import compact_small_files, is_wanted
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import InvalidValue
from variantlake.ingest.commit_load import LoadResult
from variantlake.spark.load.append import append
from variantlake.spark.load.append_target import NewTable
from variantlake.spark.load.ingest import runner
from variantlake.spark.load.source_writer import QUERY_ID
from variantlake.spark.session.jvm import is_connect
from variantlake.spark.streaming.batch_log import tell
from variantlake.storage.store import location_text
from variantlake.telemetry.prometheus import check_installed
from variantlake.writing.options.load_options import LoadKeywords
from variantlake.writing.stream_batch import StreamBatch
from variantlake.writing.table_write import READER_FEATURES


def write_batch(
    spark: SparkSession,
    frame: DataFrame,
    batch_id: int,
    table: str | os.PathLike[str],
    *,
    query: str | None = None,
    json_columns: Collection[str] = (),
    new: NewTable | None = None,
    merge_schema: bool = False,
    auto_compact: bool | None = None,
    metrics_file: str | os.PathLike[str] | None = None,
    **options: Unpack[LoadKeywords],
) -> LoadResult:
    """Append a batch of a stream in one commit, which carries the query and the batch's number.

    Args:
        spark: The session, classic or Connect.
        frame: The batch, as `foreachBatch` gives it.
        batch_id: Its number, as `foreachBatch` gives it.
        table: The table's location.
        query: The name of the query in the table's log. None takes the id that Spark keeps in the
            query's checkpoint; a new checkpoint has a new id.
        json_columns: As for `append`.
        new: As for `append`.
        merge_schema: As for `append`.
        auto_compact: Whether to compact small files after the commit, if there are many of them.
            None follows the table's property `delta.autoOptimize.autoCompact`.
        metrics_file: Where to write figures in Prometheus's text format after each batch.
        **options: As for `append`.

    Returns:
        The result of the load; `already_loaded` if the table had the batch.

    Raises:
        LostCheckpoint: The table has later batches of the query, or this one of another checkpoint.
        InvalidValue: `query` is None, and Spark gives no id of the query here.
    """
    started = time.perf_counter()
    if metrics_file:
        check_installed()
    stream = _stream(frame)
    if query is None and not stream:
        raise InvalidValue(
            "the query of this batch is unknown here",
            hint="query='orders' names it: a name that stays when the stream starts again",
            cli_hint="",
        )
    batch = StreamBatch(stream if query is None else query, batch_id, stream)
    done = append(
        spark,
        frame,
        table,
        json_columns=json_columns,
        new=new,
        merge_schema=merge_schema,
        batch=batch,
        **options,
    )
    tell(location_text(table), batch, done, time.perf_counter() - started, metrics_file)
    if auto_compact is not False:
        snapshot = Snapshot.read(location_text(table), applies=READER_FEATURES)
        if is_wanted(snapshot.properties, auto_compact):
            compact_small_files(snapshot, runner(spark, table))
    return done


def _stream(frame: DataFrame) -> str:
    """Return the id of the query in this thread; empty if there is none, or on Connect."""
    if is_connect(frame.sparkSession):
        return ""
    return frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID) or ""
