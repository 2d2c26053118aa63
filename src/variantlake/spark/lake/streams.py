"""Writing the batches of streams."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Unpack

from pyspark.sql import DataFrame

from variantlake.spark.lake.loads import LakeLoads
from variantlake.spark.query.table_locations import Location
from variantlake.spark.session.arguments import check_frame

if TYPE_CHECKING:
    from variantlake.ingest.commit_load import LoadResult
    from variantlake.writing.options import LoadKeywords


class LakeStreams(LakeLoads):
    """The part of `Lake` that streams use."""

    def write_batch(
        self,
        frame: DataFrame,
        batch_id: int,
        table: Location,
        *,
        query: str | None = None,
        json_columns: Collection[str] = (),
        partition_by: str | Sequence[str] = (),
        shredding: str | Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        merge_schema: bool = False,
        auto_compact: bool | None = None,
        metrics_file: str | os.PathLike[str] | None = None,
        **options: Unpack[LoadKeywords],
    ) -> LoadResult:
        """Append a batch that `foreachBatch` gives, once however often it comes.

        The commit carries `query` and `batch_id` (a `txn` action). A batch that the table has
        already is not written again: `already_loaded` in the result says so.

        Args:
            frame: The batch.
            batch_id: Its number.
            table: Its name, path or URL, as for `read`.
            query: The name by which the table knows the stream. None takes the id that Spark keeps
                in its checkpoint; Spark Connect does not tell that one.
            json_columns: As for `append`.
            partition_by: As for `append`.
            shredding: As for `append`.
            properties: As for `append`.
            merge_schema: As for `append`.
            auto_compact: Whether small files are joined after the commit, where a partition has
                many of them. None asks the table's property `delta.autoOptimize.autoCompact`.
            metrics_file: A file in which the figures of this stream are kept, in the text form of
                Prometheus; of one query alone.
            **options: As for `append`.

        Raises:
            LostCheckpoint: The table has later batches of this query, or this batch of another
                checkpoint: the checkpoint was lost, or is an old one.
            InvalidValue: No query is named, outside of a stream.
        """
        # Loads the kernels, which queries do without.
        from variantlake.spark.load.append_target import NewTable
        from variantlake.spark.streaming.foreach_batch import write_batch

        check_frame(frame)
        return write_batch(
            self._spark,
            frame,
            batch_id,
            self._written_to(table),
            query=query,
            json_columns=json_columns,
            new=NewTable.of(partition_by, shredding, properties),
            merge_schema=merge_schema,
            auto_compact=auto_compact,
            metrics_file=metrics_file,
            **options,
        )
