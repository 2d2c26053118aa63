"""The sink of a stream: commits each batch once, even if Spark repeats it."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from variantlake.delta.actions.commit_properties import committed_with
from variantlake.errors import (
    InvalidValue,
    VariantLakeError,
)
from variantlake.ingest.commit_load import commit_load, find_committed_load
from variantlake.jobs.tasks import delete_strays, sort_results
from variantlake.spark.load.source_writer import (
    SourceWriter,
    WrittenPart,
    check_same,
    compact,
    shreddings_of,
)
from variantlake.spark.streaming.batch_log import tell
from variantlake.writing.stream_batch import StreamBatch

_LOG = logging.getLogger("variantlake.streaming")


class TableStreamWriter(SourceWriter, DataSourceStreamArrowWriter):  # type: ignore[misc] # as PySpark's own
    """Writes the rows of one batch, or commits it."""

    hint = "let foreachBatch call lake.write_batch, which can"

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Commit the batch, unless the table has it.

        Raises the first error of the rows, LostCheckpoint, CommitConflict; then no file of the
        batch stays.
        """
        started = time.perf_counter()
        parts = [each for each in messages if isinstance(each, WrittenPart)]
        target = self._target
        if not parts or target is None:
            return
        plan = parts[0].plan
        try:
            results = sort_results(part.outcome for part in parts)
            batch = StreamBatch(self._query(parts), batchId, parts[0].stream)
            known = find_committed_load(target, self._options.load, batch)
            if known is None:
                check_same(
                    target, parts[0], "a batch of a stream was written", "start the stream again"
                )
        except VariantLakeError:
            target.clean_up(plan.load_id)
            raise
        if known is not None:
            target.clean_up(plan.load_id)
            tell(target.store.uri, batch, known, 0.0, self._options.metrics_file)
            return
        delete_strays(target, plan, results)
        if target.snapshot is not None and not any(each.adds or each.bad_rows for each in results):
            _LOG.info("%s: batch %d of %s is empty", target.store.uri, batchId, batch.query)
            return
        landed = target.with_shreddings(shreddings_of(parts))
        with committed_with(self._options.user_metadata):
            done = commit_load(
                landed, plan, results, self._options.load, started, record=batch.record()
            )
            seconds = time.perf_counter() - started
            tell(target.store.uri, batch, done, seconds, self._options.metrics_file)
            compact(landed, self._options.auto_compact)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Remove the files of a batch after a task failed.

        If all tasks finished, the commit failed: it removed its files, or left them because it
        cannot know whether the log has them. VACUUM removes files that no task reported.
        """
        self.give_up(messages, f"batch {batchId}")

    def _query(self, parts: Sequence[WrittenPart]) -> str:
        query = self._options.query or parts[0].stream
        if not query:
            raise InvalidValue(
                "Spark does not give the id of the query",
                hint="give the stream an option queryId: a name that stays when it starts again",
            )
        return query
