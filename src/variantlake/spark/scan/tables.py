"""The tables that a Lake has opened: snapshots, Spark schemas, and facts of each file."""

from __future__ import annotations

import contextlib
import functools
import json
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql.types import DataType, StructField, StructType, VariantType

from variantlake.delta.log.files.parted_files import is_unread
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.log.snapshot_state import check_checkpoint
from variantlake.delta.log.time_travel import version_at
from variantlake.delta.protocol.features import SCAN_FEATURES
from variantlake.delta.schema.char_types import char_length_at
from variantlake.delta.schema.column_mapping import MODE
from variantlake.errors import MissingDependency, UnsupportedFeature
from variantlake.expressions.tree import Predicate, Ref, refs
from variantlake.paths import Path
from variantlake.planning.kept_files import Run, without_skipped
from variantlake.planning.late_materialization import plan_late_materialization
from variantlake.planning.log_files import LogFiles
from variantlake.planning.plan import ScanPlan, plan_scan
from variantlake.planning.stats.first_rows import FirstRows
from variantlake.scan.footers import Footers
from variantlake.spark.scan.stored_types import is_beyond_spark
from variantlake.spark.session.schemas import spark_schema, stored_schema

JOB_FILES = 5_000_000
"""From this many files on, a Spark job finds the files of a query; the job takes half a second."""

_REMEMBERED_TABLES = 64
"""The most tables whose newest snapshot is kept."""


@dataclass(frozen=True, slots=True)
class TableVersion:
    """One version of a table, ready to be planned.

    `chosen` says that the caller chose it by number or time. `files` have the facts that the log
    holds. `schema` is the table's, for Spark; `stored` is the same with the names (and in id mode
    the ids) in files. `variants` names the top-level Variant columns. `partition_types` maps
    partition columns, by stored names, to Spark types. `row_place` is the column that gets a row's
    place in its file, empty for none. `required` names the columns that are NOT NULL; it is empty
    if the rows may violate this.
    """

    location: str
    snapshot: Snapshot
    schema: StructType
    stored: StructType
    variants: frozenset[str]
    partition_types: Mapping[str, str]
    files: LogFiles
    chosen: bool = False
    row_place: str = ""
    required: frozenset[str] = frozenset()

    @property
    def declared(self) -> StructType:
        """The columns as queries see them: not nullable if they are `required`."""
        fields = self.schema.fields
        return StructType(
            [
                StructField(f.name, f.dataType, f.name not in self.required, f.metadata)
                for f in fields
            ]
        )

    @property
    def stored_variants(self) -> list[tuple[str, ...]]:
        """The top-level Variant columns, by the names in files."""
        return [(stored,) for name, stored in self.stored_names.items() if name in self.variants]

    @property
    def stored_names(self) -> dict[str, str]:
        """The names of columns in files, by their names in the table."""
        return dict(zip(self.schema.names, self.stored.names, strict=True))

    @property
    def is_by_id(self) -> bool:
        """Whether readers find columns in files by their ids (column mapping in id mode)."""
        return any(item.metadata for item in self.stored.fields)

    def stored_ref(self, ref: Ref) -> Ref:
        """Convert a Ref from the table's names to those in files, and add the length of a CHAR.

        Names may differ in case from the table's, as in a query.
        """
        stored: list[str] = []
        table: DataType = self.schema
        files: DataType = self.stored
        for name in ref.column:
            if not isinstance(table, StructType) or not isinstance(files, StructType):
                raise TypeError(f"{ref} goes through a column that is not a struct")
            at = _index(table.names, name)
            stored.append(files[at].name)
            table, files = table[at].dataType, files[at].dataType
        if ref.path is None:
            length = char_length_at(self.snapshot.schema, stored)
            ref = replace(ref, char_length=max(length, ref.char_length))
        if tuple(stored) == ref.column:
            return ref
        return replace(ref, column=tuple(stored), shown=ref.column)

    def columns_beyond_spark(self, columns: Collection[str]) -> list[str]:
        """Return the table's names of those `columns` (stored names) that Spark must not read."""
        return [
            field.name
            for field in self.snapshot.schema.fields
            if field.physical_name in columns and is_beyond_spark(field.type, field.metadata)
        ]

    def whole_variants(self, columns: Collection[str]) -> list[Ref]:
        """Refs to the whole Variants in `columns` (by stored names), at any depth."""
        return [
            Ref(column, Path(), "variant")
            for column in self.snapshot.schema.variant_columns(physical=True)
            if column[0] in columns
        ]


class Tables:
    """Loads tables, and caches their newest versions and the footers of foreign files."""

    def __init__(self, run: Run | None = None) -> None:
        """`run` runs the job that finds files of a very large table."""
        self._run = run
        self._newest: dict[str, TableVersion] = {}
        self._versions: dict[str, TableVersion] = {}
        self._sound: dict[str, tuple[str, int]] = {}
        self._footers = Footers()

    def open(
        self, location: str, version: int | None = None, *, before: int | None = None
    ) -> TableVersion:
        """Open the table at `location`: at its newest version, at `version`, or as of a time.

        `before` is that time in milliseconds since the epoch: the last version up to then.

        Raises as `Snapshot.read`; InvalidQuery if no version is that old.
        """
        given = self._versions.get(location)
        if given is not None:
            return given
        if before is not None:
            newest = self.open(location).snapshot
            version = version_at(newest.store, newest.metadata, before)
        if version is not None:
            snapshot = Snapshot.read(location, version, applies=SCAN_FEATURES)
            return replace(table_version(location, snapshot), chosen=True)
        known = self._newest.get(location)
        if known is None:
            table = table_version(location, Snapshot.read(location, applies=SCAN_FEATURES))
        else:
            snapshot = known.snapshot.refresh()
            if snapshot is known.snapshot:
                return known
            same = snapshot.metadata.id == known.snapshot.metadata.id
            table = table_version(location, snapshot, known.files if same else None)
        self._newest.pop(location, None)
        while len(self._newest) >= _REMEMBERED_TABLES:
            self._newest.pop(next(iter(self._newest)))
        self._newest[location] = table
        return table

    def check_checkpoint(self, table: TableVersion, version: int) -> None:
        """Check the checkpoint of `version`, unless the table was read from it or a newer one.

        Reads a sound one once. Raises MalformedLog if it is damaged or missing.
        """
        location, snapshot = table.location, table.snapshot
        sound = (snapshot.metadata.id, version)
        if snapshot.checkpoint >= version or self._sound.get(location) == sound:
            return
        check_checkpoint(snapshot.store, version)
        while len(self._sound) >= _REMEMBERED_TABLES:
            self._sound.pop(next(iter(self._sound)))
        self._sound[location] = sound

    @contextlib.contextmanager
    def giving(self, snapshots: Sequence[Snapshot]) -> Iterator[list[str]]:
        """Locations at which `open` finds these snapshots while the block runs."""
        keys = [f"{each.store.uri}#{uuid.uuid4()}" for each in snapshots]
        for key, snapshot in zip(keys, snapshots, strict=True):
            # The change feed may have rows from before a column became NOT NULL.
            table = replace(table_version(key, snapshot), required=frozenset())
            self._versions[key] = replace(table, chosen=True)
        try:
            yield keys
        finally:
            for key in keys:
                del self._versions[key]

    def plan(
        self,
        table: TableVersion,
        paths: Sequence[Ref],
        whole: Collection[str],
        predicate: Predicate | None,
        first: FirstRows | None = None,
        *,
        has_kernels: Callable[[], bool],
    ) -> ScanPlan:
        """Plan a query's scan of a table, all by stored names.

        The scan reads `paths` of Variants, and the columns `whole` as they are. `first` is a LIMIT
        on the rows that meet the predicate, which must then be their only condition. `has_kernels`
        says whether Spark's tasks can run our kernels; it is called only if that matters.

        Raises UnsupportedFeature without kernels for a column among `whole` that only they can
        read.
        """
        table = self._of_kept(table, predicate)
        whole_variants = table.whole_variants(whole)
        # Whole Variants need facts too: Spark's reader fails on some files (EXACTNESS, rule 10).
        requested = [*paths, *refs(predicate), *whole_variants]
        order = None if first is None else first.order
        if order is not None:
            requested.append(order.ref)
        if (predicate is not None or order is not None) and table.is_by_id:
            # These show that the files have the schema's names, so that Spark can push conditions.
            requested += [Ref(column, Path(), "variant") for column in table.stored_variants]
        planned = functools.partial(
            plan_scan,
            self.with_facts(table, requested),
            [*paths, *whole_variants],
            predicate,
            partition_types=table.partition_types,
            first=first,
        )
        plan = planned(has_kernels=True)
        if any(group.kernels for group in plan.groups) and not has_kernels():
            plan = planned()
        found = plan_late_materialization(plan, table.partition_types)
        prefilters = any(group.prefilter for group in found.groups)
        plan = found if prefilters and has_kernels() else plan
        beyond = table.columns_beyond_spark(whole)
        if not beyond or not plan.groups:
            return plan
        if not has_kernels():
            raise _cannot_widen(table, beyond)
        return replace(plan, groups=tuple(replace(each, kernels=True) for each in plan.groups))

    def _of_kept(self, table: TableVersion, predicate: Predicate | None) -> TableVersion:
        """Return the table; if its files are not in memory, only with files the predicate keeps."""
        files = table.snapshot.files
        # With `row_place`, the numbers of rows count all files of the table.
        if predicate is None or table.row_place or not is_unread(files):
            return table
        run = self._run if files.most_rows >= JOB_FILES else None
        find = functools.partial(without_skipped, table.files, predicate, table.partition_types)
        try:
            kept = find(run)
        except MissingDependency:  # on the executors
            kept = find()
        return replace(table, snapshot=kept.snapshot, files=kept)

    def plan_everything(self, table: TableVersion, *, has_kernels: Callable[[], bool]) -> ScanPlan:
        """Plan a scan of all rows and columns of a table."""
        return self.plan(table, (), table.stored.names, None, has_kernels=has_kernels)

    def with_facts(self, table: TableVersion, paths: Iterable[Ref]) -> LogFiles:
        """Return the table's files with facts, from footers where the log has no layout."""
        files = self._footers.with_facts(table.snapshot, table.files, paths)
        if files is not table.files and self._newest.get(table.location) is table:
            self._newest[table.location] = replace(table, files=files)
        return files


def table_version(location: str, snapshot: Snapshot, older: LogFiles | None = None) -> TableVersion:
    """Make a snapshot for Spark; `older` are files of an earlier version, whose facts it reuses."""
    columns = StructType.fromJson(json.loads(snapshot.metadata.schema_string))
    by_id = snapshot.properties.get(MODE, "").lower() == "id"
    schema, stored = spark_schema(columns), stored_schema(columns, ids=by_id)
    return TableVersion(
        location,
        snapshot,
        schema,
        stored,
        frozenset(item.name for item in schema.fields if isinstance(item.dataType, VariantType)),
        {
            stored[schema.names.index(name)].name: schema[name].dataType.simpleString()
            for name in snapshot.metadata.partition_columns
        },
        LogFiles(snapshot, older),
        required=frozenset(item.name for item in columns.fields if not item.nullable),
    )


def _index(names: Sequence[str], name: str) -> int:
    if name in names:
        return names.index(name)
    return [known.lower() for known in names].index(name.lower())


def _cannot_widen(table: TableVersion, columns: Sequence[str]) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"column {columns[0]!r} was widened from an integer type to a decimal that Spark's reader "
        "does not read from the old files",
        file=table.location,
        hint="install this version of variantlake for Spark's Python workers, which can read it;"
        " or read the table without Spark, or leave the column out",
    )
