"""`format("variantlake")` for streams too, and how a session gets to know it."""

from __future__ import annotations

import logging
import os
from typing import ClassVar

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, DataSourceStreamWriter
from pyspark.sql.types import StructType

from variantlake.delta.log.file_paths import AbsolutePaths, set_absolute_paths
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.features import SCAN_FEATURES
from variantlake.errors import UnsupportedFeature
from variantlake.spark.scan.data_source import FilteringSource, VariantlakeSource, reach
from variantlake.spark.scan.source_options import SourceOptions
from variantlake.spark.session.jobs import is_connect, own_python
from variantlake.spark.session.stores import follow_spark
from variantlake.spark.session.versions import check_version
from variantlake.spark.streaming.source_options import StreamOptions, is_stream
from variantlake.storage.options import storage_options

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Make `format("variantlake")` known to a session, classic or Connect.

    `spark.read` and `spark.readStream` read a table with it, `df.writeStream` writes one. Where the
    session lets filters be pushed to data sources in Python
    (`spark.sql.python.filterPushdown.enabled`), conditions on ordinary columns skip files and rows.
    The workers need the package. Raises UnsupportedFeature for a Spark before 4.1.
    """
    check_version(spark)
    pushes = str(spark.conf.get(PUSHDOWN, "false")).lower() == "true"
    follow_spark(spark)
    sensitive = str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
    time_zone = str(spark.conf.get("spark.sql.session.timeZone", "UTC"))
    source = FilteringSource if pushes else VariantlakeSource
    reaching = _reaching(source, time_zone, case_sensitive_names=sensitive)
    if is_connect(spark):
        spark.dataSource.register(reaching)
        return
    with own_python(spark.sparkContext):
        spark.dataSource.register(reaching)


def _reaching(
    source: type[VariantlakeSource], time_zone: str, *, case_sensitive_names: bool
) -> type[VariantlakeSource]:
    """The source for Spark's Python processes, which know the settings of this one."""

    class Reaching(TableSource, source):  # type: ignore[misc, valid-type]  # pickled whole, with its settings
        stores = storage_options()
        absolute_paths = AbsolutePaths.setting()
        case_sensitive = case_sensitive_names
        zone = time_zone
        log_level = logging.getLogger("variantlake").getEffectiveLevel()
        registered_by = os.getpid()

    return Reaching


class TableSource(VariantlakeSource):
    """The part of the source that streams use.

    `log_level` is that of the registering process, whose id is `registered_by`.
    """

    log_level: ClassVar[int] = logging.WARNING
    registered_by: ClassVar[int] = 0

    def schema(self) -> StructType:
        """The columns asked for; those of a stream where there are options that streams alone have.

        Raises as `VariantlakeSource.schema` and `stream_schema`.
        """
        if not is_stream(self.options):
            return super().schema()
        from variantlake.spark.streaming.selection import stream_schema  # loads the parser

        return stream_schema(self._snapshot(), self._stream_options)

    def reader(self, schema: StructType) -> DataSourceReader:
        """As `VariantlakeSource.reader`. Raises InvalidQuery for options of streams."""
        SourceOptions.of(self.options, self.zone)
        return super().reader(schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 # PySpark's name
        """Reads a table version by version. Raises as `StreamOptions.of` and `stream_of`."""
        from variantlake.spark.streaming.reader import stream_of

        self._begin()
        return stream_of(self._stream_options, self._snapshot, schema, self.stores)

    @property
    def _stream_options(self) -> StreamOptions:
        return StreamOptions.of(self.options, self.zone)

    def _snapshot(self) -> Snapshot:
        reach(self.stores)
        return Snapshot.read(
            self._stream_options.location,
            absolute_paths=self.absolute_paths,
            applies=SCAN_FEATURES,
        )

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 # PySpark's name
        """Writes the batches of a stream.

        Raises UnsupportedFeature for the output mode "complete"; else as `TableStreamWriter`.
        """
        # Loads the kernels.
        from variantlake.spark.streaming.sink import TableStreamWriter
        from variantlake.spark.streaming.sink_options import SinkOptions

        if overwrite:
            raise UnsupportedFeature(
                "the output mode complete replaces the table with each batch",
                hint="use the output mode append, or let foreachBatch call lake.overwrite",
                cli_hint="",
            )
        self._begin()
        return TableStreamWriter(SinkOptions.of(self.options), schema, self.stores)

    def _begin(self) -> None:
        """In a Python process of Spark's on the driver: reach stores, and say what is logged."""
        reach(self.stores)
        if self.absolute_paths is not None:
            set_absolute_paths(self.absolute_paths.value)
        if os.getpid() == self.registered_by:
            return  # the user's own process has its own logging
        if not logging.getLogger().handlers:
            logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        logging.getLogger("variantlake").setLevel(self.log_level)
