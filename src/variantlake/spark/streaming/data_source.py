"""Extends `format("variantlake")` to writes and streams."""

from __future__ import annotations

import logging
import os
from typing import ClassVar

from pyspark.sql.datasource import (
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from variantlake.delta.log.files.file_paths import set_absolute_paths
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import UnsupportedFeature
from variantlake.spark.scan.data_source import VariantlakeSource, reach
from variantlake.spark.scan.source_options import SourceOptions
from variantlake.spark.streaming.source_options import StreamOptions, is_stream


class TableSource(VariantlakeSource):
    """The part of the source for writes and streams.

    `log_level` is the level in the registering process, whose id is `registered_by`.
    """

    log_level: ClassVar[int] = logging.WARNING
    registered_by: ClassVar[int] = 0

    def schema(self) -> StructType:
        """Return the requested columns, or a stream's if the options include one of streams only.

        Raises as `VariantlakeSource.schema` and `stream_schema`.
        """
        if not is_stream(self.options):
            return super().schema()
        from variantlake.spark.streaming.stream_columns import stream_schema  # loads the parser

        return stream_schema(self._snapshot(), self._stream_options)

    def reader(self, schema: StructType) -> DataSourceReader:
        """As `VariantlakeSource.reader`. Raises InvalidQuery for options of streams."""
        SourceOptions.of(self.options, self.zone)
        return super().reader(schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 # PySpark's name
        """Return a reader of a table by version. Raises as `StreamOptions.of` and `stream_of`."""
        from variantlake.spark.streaming.reader import stream_of

        self._begin()
        return stream_of(self._stream_options, self._snapshot, schema, self.stores)

    @property
    def _stream_options(self) -> StreamOptions:
        return StreamOptions.of(self.options, self.zone)

    def _snapshot(self) -> Snapshot:
        return self._read(self._stream_options.location)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 # PySpark's name
        """Return a writer of the batches of a stream.

        Raises UnsupportedFeature for the output mode "complete"; else as `TableStreamWriter`.
        """
        # Loads the kernels.
        from variantlake.spark.load.sink_options import SinkOptions
        from variantlake.spark.streaming.sink import TableStreamWriter

        if overwrite:
            raise UnsupportedFeature(
                "the output mode complete replaces the table with each batch",
                hint="use the output mode append, or let foreachBatch call lake.overwrite",
                cli_hint="",
            )
        self._begin()
        return TableStreamWriter(SinkOptions.of(self.options), schema, self.stores)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # PySpark's
        """Return a writer of the rows of a DataFrame. Raises as `TableBatchWriter`."""
        # Loads the kernels.
        from variantlake.spark.load.sink_options import SinkOptions
        from variantlake.spark.load.source_writer import TableBatchWriter

        self._begin()
        options = SinkOptions.of_batch(self.options, overwrite=overwrite)
        return TableBatchWriter(options, schema, self.stores)

    def _begin(self) -> None:
        """Set up stores and logging in a Python process that Spark started on the driver."""
        reach(self.stores)
        if self.absolute_paths is not None:
            set_absolute_paths(self.absolute_paths.value)
        if os.getpid() == self.registered_by:
            return  # the user's own process has its own logging
        if not logging.getLogger().handlers:
            logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        logging.getLogger("variantlake").setLevel(self.log_level)
