"""The source of a stream: the files that versions of a table appended, some at a time.

Spark keeps one reader in a Python process on the driver, which decides where a batch ends and what
its tasks read. Tasks read files by our kernels.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from variantlake.delta.log.files.logical_files import files_of
from variantlake.delta.log.identity import check_same_table
from variantlake.delta.log.log_segment import all_commits
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import MissingSource, UnsupportedFeature
from variantlake.expressions.tree import Predicate
from variantlake.feed.commits import check_schema, first_since, metadata_at
from variantlake.feed.snapshots import once_each, snapshots_of
from variantlake.parquet.variant.key_orders import in_spark_order
from variantlake.planning.files import ScanFile
from variantlake.scan.scan_task import split_files
from variantlake.scan.table_scan import Scan
from variantlake.spark.scan.data_source import TableReader, reach
from variantlake.spark.scan.tables import table_version
from variantlake.spark.session.versions import arrow_schema
from variantlake.spark.streaming.offsets import NONE_READ, Offset
from variantlake.spark.streaming.source_options import StreamOptions
from variantlake.spark.streaming.stream_columns import selection
from variantlake.spark.streaming.stream_files import Unit, units_of
from variantlake.sql.select import Item

_LOG = logging.getLogger("variantlake.streaming")
_TASKS = 32
_REMEMBERED = 10_000
"""The most files of a batch that are kept from its limit to its plan; a larger batch reads the log
twice."""


@dataclass(frozen=True, slots=True)
class SelectTask:
    """The files, selection and condition of one task; pickles."""

    snapshot: Snapshot
    items: tuple[Item, ...]
    where: Predicate | None
    files: tuple[ScanFile, ...]
    wanted: pa.Schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows. Raises as `Scan.to_batches`."""
        from variantlake.scan.files.column_reads import as_type  # loads the kernels

        scan = Scan(self.snapshot, self.items, self.where)
        for batch in scan.batches_of(self.files):
            columns = [
                in_spark_order(as_type(column, item.type))
                for column, item in zip(batch.columns, self.wanted, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self.wanted)


class TableStream(DataSourceStreamReader):
    """Reads a table version by version, with its schema at the start of the stream."""

    def __init__(
        self,
        options: StreamOptions,
        opened: Callable[[], Snapshot],
        schema: StructType,
        stores: Mapping[str, str],
    ) -> None:
        """Make a stream of the columns `schema`; `opened` returns the table's newest version."""
        self.options = options
        self._opened = opened
        self._schema = schema
        self._stores = dict(stores)
        self._newest_seen: Snapshot | None = None
        self._last: int | None = None
        self._planned: tuple[Offset, Offset, list[Unit]] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - PySpark's name
        """Return the offset at which a new stream begins.

        Raises MissingSource for a starting version that does not exist, InvalidQuery for a time
        after the newest version.
        """
        options, read = self.options, self._read
        if options.latest:
            return self._offset(read.version + 1).to_json()
        first = options.first
        if options.since is not None:
            # Versions after `read` belong to the next batch.
            first = min(first_since(read, options.since), read.version)
        if first is None:
            return Offset(read.metadata.id, read.version, is_starting=True).to_json()
        if first > read.version:
            raise MissingSource(
                f"version {first} does not exist, the newest is {read.version}",
                file=read.store.uri,
                hint="startingVersion latest begins with the next version",
                cli_hint="",
            )
        first = self._first_there(first)
        check_schema(read, metadata_at(read, first), first, read)
        return self._offset(first).to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the partitions that the tasks of a batch read; none for an empty batch."""
        begin, until = self._offset_of(start), self._offset_of(end)
        if begin == until:
            return []
        planned = self._planned
        if planned is not None and planned[:2] == (begin, until):
            units = planned[2]
        else:
            last = until.version if until.index > NONE_READ else until.version - 1
            units = [unit for unit in self._units(begin, last) if unit.after.place <= until.place]
        found = [part for snapshot in self._snapshots(units) for part in self._parts(snapshot)]
        _LOG.info(
            "%s: versions %d to %d: files %d, tasks %d",
            self._read.store.uri,
            begin.version,
            until.version,
            len(units),
            len(found),
        )
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition's files. Raises as `ScanTask` and `Scan`."""
        reach(self._stores)
        if isinstance(partition.value, SelectTask):
            yield from partition.value.batches()
        else:
            yield from TableReader.rows(partition)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802 - PySpark's name
        """Return the offset after the newest version seen so far, for the query's progress."""
        return self._offset(self._newest.version + 1).to_json()

    def __getstate__(self) -> dict[str, Any]:
        """Pickle only the stores' options, all that tasks need."""
        return {"_stores": self._stores}

    # --- How far a batch goes ---

    @cached_property
    def _read(self) -> Snapshot:
        """The table when the stream started; its schema is the stream's."""
        return self._opened()

    @property
    def _newest(self) -> Snapshot:
        return self._newest_seen or self._read

    def next_offset(self, start: dict[str, Any], *, limited: bool) -> dict[str, Any]:
        """Return the end of a batch that begins at `start`; `start` itself if no file is new."""
        begin = self._offset_of(start)
        self._refresh()
        if begin.version > self._newest.version + 1:
            raise MissingSource(
                f"the stream has read version {begin.version - 1}, and the newest is "
                f"{self._newest.version}: the log was restored from a copy",
                file=self._read.store.uri,
                hint="give the stream a new checkpoint",
            )
        last = self._newest.version if self._last is None else self._last
        max_files = self.options.max_files if limited else None
        max_bytes = self.options.max_bytes if limited else None
        units: list[Unit] = []
        end, count, size = begin, 0, 0
        for unit in self._units(begin, last):
            count += 1
            size += unit.file.size
            over = (max_files is not None and count > max_files) or (
                max_bytes is not None and size > max_bytes and count > 1
            )
            # The changes of a version stay together, so that a row's changes are in one batch.
            if over and (unit.change is None or unit.begins):
                break
            end = unit.after
            if count <= _REMEMBERED:
                units.append(unit)
        self._planned = (begin, end, units) if count <= _REMEMBERED else None
        return end.to_json()

    def newest_offset(self) -> dict[str, Any]:
        """Return the offset after the newest version."""
        self._refresh()
        return self._offset(self._newest.version + 1).to_json()

    def stop_at_newest(self) -> None:
        """Read no version after the one that is newest now."""
        self._refresh()
        self._last = self._newest.version

    def _refresh(self) -> None:
        newest = self._newest.refresh()
        check_same_table(self._read, newest)
        self._newest_seen = newest

    def _offset_of(self, given: dict[str, Any]) -> Offset:
        """Return an offset of this table.

        Raises MalformedFile, and UnsupportedFeature for an offset of another table.
        """
        offset = Offset.of(given)
        if offset.table != self._read.metadata.id:
            raise UnsupportedFeature(
                f"the checkpoint belongs to another table ({offset.table}), not to this one"
                f" ({self._read.metadata.id})",
                file=self._read.store.uri,
                hint="give the stream a new checkpoint",
            )
        return offset

    def _offset(self, version: int) -> Offset:
        return Offset(self._read.metadata.id, version)

    def _first_there(self, version: int) -> int:
        """Return the version, or without failOnDataLoss the first from it on that the log has."""
        if self.options.fail_on_data_loss:
            return version
        return max(version, min(all_commits(self._read.store), default=version))

    def _units(self, begin: Offset, last: int) -> Iterator[Unit]:
        """Return the files after an offset, up to those of version `last`."""
        return units_of(self._read, begin, last, self.options, self._first_there)

    # --- What tasks read ---

    def _snapshots(self, units: list[Unit]) -> list[Snapshot]:
        if self.options.change_feed:
            changes = [unit.change for unit in units if unit.change is not None]
            return snapshots_of(self._read, changes) if changes else []
        return [
            replace(self._read, files=files_of(files))
            for files in once_each(unit.file for unit in units)
        ]

    def _parts(self, snapshot: Snapshot) -> list[InputPartition]:
        if not self.options.selects:
            table = table_version(snapshot.store.uri, snapshot)
            stored = table.stored_names
            names = {name.lower(): name for name in stored}
            by_name = {each: stored[names[each.lower()]] for each in self._schema.names}
            reader = TableReader(table, self._schema, by_name, self._stores)
            return [part for part in reader.partitions() if part.value is not None]
        items, where = selection(snapshot, self.options)
        choice = Scan(snapshot, items, where).choice
        bare = snapshot.without_files()
        wanted = arrow_schema(self._schema)
        groups = (
            tuple(part.file for part in group if part.number == 0)
            for group in split_files(list(choice.files), _TASKS)
        )
        return [
            InputPartition(SelectTask(bare, items, where, files, wanted))
            for files in groups
            if files
        ]
