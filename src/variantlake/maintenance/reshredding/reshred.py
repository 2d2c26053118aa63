"""Shred a table anew: set its new schema, and rewrite the files that gain by it.

A first commit sets the table's properties, so that concurrent loads write the new layout. Then the
run rewrites the files one by one; rows keep their order.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import orjson
import pyarrow.compute as pc

from variantlake.arrays import map_values
from variantlake.batches import packed
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.cluster_paths import PROPERTY as CLUSTER_BY
from variantlake.delta.protocol.cluster_paths import cluster_paths
from variantlake.delta.protocol.known_properties import SCHEMA_PREFIX, SHREDDING_PROPERTY
from variantlake.delta.protocol.learned_schemas import PREFIX as LEARNED_PREFIX
from variantlake.delta.protocol.properties import (
    check_clustering,
    shredding_schemas,
    with_given_schema,
    with_schema,
)
from variantlake.delta.schema.table_schema import StructField, StructType, VariantType
from variantlake.delta.stats.tags import PREFIX
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes
from variantlake.errors import InvalidSchema, InvalidValue, UnsupportedFeature
from variantlake.ingest.learning.learn import learned_schema
from variantlake.ingest.learning.sample import SAMPLE_FILES, sample_column, spread
from variantlake.jobs.tasks import Runner
from variantlake.maintenance.reshredding.drift import variant_columns
from variantlake.maintenance.reshredding.gains import that_gain
from variantlake.maintenance.rewrite.commit_rewrite import Operation, predicate
from variantlake.maintenance.rewrite.file_groups import file_group
from variantlake.maintenance.rewrite.groups import FileGroup
from variantlake.maintenance.rewrite.layouts import layouts_of
from variantlake.maintenance.rewrite.rewrite_group import RewritePlan
from variantlake.maintenance.rewrite.run import RewriteResult, RewriteTotals, run_rewrite
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.planning.log_files import LogFiles
from variantlake.progress import OnProgress
from variantlake.scan.table_names import files_matching
from variantlake.shredding.ddl import format_ddl, parse_ddl
from variantlake.shredding.layout import check_writable
from variantlake.shredding.schema import ShreddingSchema
from variantlake.writing.table_write import UNSHREDDED

MAX_COMMIT_BYTES = 64 << 30
MAX_COMMIT_FILES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReshredResult(RewriteResult):
    """What a run did, or would do.

    `versions` are the commits; the one of the table's properties comes first. `shredding` is the
    DDL of each VARIANT column from now on, and `changed` whether the properties changed. Of
    `files_checked` files, the run rewrote the `files_read` that gain. In a dry run `bytes_written`
    is an estimate. `conflicts` counts files that another writer changed first.
    """

    shredding: Mapping[str, str] = field(default_factory=dict)
    changed: bool = False
    files_checked: int = 0


@dataclass(frozen=True, slots=True)
class ReshredOptions:
    """Options of a run, see `Table.reshred`. `unshred` removes all shredded columns.

    Raises InvalidValue.
    """

    shredding: str | Mapping[str, str] | None = None
    where: str | None = None
    unshred: bool = False
    digest: bool = True

    def __post_init__(self) -> None:
        given = self.shredding
        if given is not None and not isinstance(given, str | Mapping):
            raise InvalidValue(f"shredding is {given!r}", hint="DDL, or DDL by VARIANT column")
        if self.unshred and given is not None:
            raise InvalidValue("shredding and unshred contradict each other")


@dataclass(frozen=True)
class ReshredPlan:
    """The files to rewrite in one version; `rows` are rows of the snapshot's table of files."""

    snapshot: Snapshot
    plan: RewritePlan
    log: LogFiles
    layouts: Mapping[str, ShreddingSchema]
    looked_at: int
    rows: Int64s

    @cached_property
    def bytes(self) -> int:
        """Bytes of all input files."""
        return int(self.log.sizes[self.rows].sum())

    def steps(self) -> Iterator[list[FileGroup]]:
        """Yield the groups of each commit, one file each."""
        size_of = lambda numbered: int(self.log.sizes[numbered[1]])
        rows = enumerate(self.rows.tolist())
        for step in packed(rows, size_of, MAX_COMMIT_BYTES, MAX_COMMIT_FILES):
            yield [
                file_group(self.snapshot, self.log, number, np.array([row]), self.layouts)
                for number, row in step
            ]


def plan_reshredding(
    snapshot: Snapshot,
    layouts: Mapping[str, ShreddingSchema],
    chosen: Int64s | None = None,
    *,
    digest: bool = True,
) -> ReshredPlan:
    """Find the files that gain by these layouts (by physical name); `chosen` limits them.

    If no column is to be shredded, every file that may be shredded is rewritten.
    """
    log = LogFiles(snapshot)
    largest = int(log.sizes.max(initial=1))
    plan = RewritePlan.of(snapshot, target_file_size=4 * largest, digest=digest)
    rows = np.arange(log.rows) if chosen is None else chosen
    if all(schema == UNSHREDDED for schema in layouts.values()):
        gains = _shredded(snapshot, log, rows)
    else:
        gains = np.zeros(len(rows), np.bool_)
        for physical, schema in layouts.items():
            gains |= that_gain(log, rows, (physical,), schema)
        gains[gains] = _differ(snapshot, log, rows[gains], layouts)
    return ReshredPlan(snapshot, plan, log, layouts, len(rows), rows[gains])


def _shredded(snapshot: Snapshot, log: LogFiles, rows: Int64s) -> Any:
    """Return a mask of the files that may be shredded in any place."""
    names = variant_columns(snapshot).values()
    found = _differ(snapshot, log, rows, dict.fromkeys(names, UNSHREDDED))
    if any(_holds_variants(item) for item in snapshot.schema.fields):
        # Our files shred no Variant inside another column; the footers of others are not read.
        tags: Any = snapshot.files.take(rows)["tags"]
        found |= pc.is_null(map_values(tags, f"{PREFIX}version")).to_numpy()
    return found


def _holds_variants(item: StructField) -> bool:
    """Whether a column is no VARIANT but contains one."""
    return not isinstance(item.type, VariantType) and StructType((item,)).holds_variant()


def _differ(
    snapshot: Snapshot, log: LogFiles, rows: Int64s, layouts: Mapping[str, ShreddingSchema]
) -> Any:
    """Return a mask of the files whose top-level Variant columns have another layout.

    Reads the footers of files whose layout is not in the log.
    """
    names = list(variant_columns(snapshot).values())
    wanted = tuple(layouts[name] for name in names)
    layouts_found = layouts_of(snapshot, log, rows)
    found = [tuple(each.schema for each in layout) != wanted for layout in layouts_found]
    return np.array(found, np.bool_)


# --- The schema -----------------------------------------------------------------------------------


def wanted_layouts(snapshot: Snapshot, options: ReshredOptions) -> dict[str, ShreddingSchema]:
    """Return the schemas that the options ask for, by physical name of top-level VARIANT columns.

    Raises InvalidSchema for DDL that does not parse or must not be written, and for a name that is
    no VARIANT column; UnsupportedFeature if the table forbids shredding.
    """
    columns = variant_columns(snapshot)
    if not columns:
        raise InvalidSchema("the table has no VARIANT column", file=snapshot.store.uri)
    if options.unshred:
        return dict.fromkeys(columns.values(), UNSHREDDED)
    if not snapshot.shredding_enabled:
        raise UnsupportedFeature(
            "the table forbids shredding (delta.enableVariantShredding)",
            file=snapshot.store.uri,
            hint="Table.set_properties({'delta.enableVariantShredding': 'true'}) allows it",
            cli_hint="delta.enableVariantShredding = true allows it",
        )
    # A VARIANT column that the options do not name keeps its schema.
    known = shredding_schemas(snapshot.properties, snapshot.schema)
    given = options.shredding
    if given is None:
        return {
            physical: _learned(snapshot, physical, known.get(physical))
            for physical in columns.values()
        }
    if isinstance(given, str):
        if len(columns) > 1:
            raise InvalidSchema(
                f"the table has {len(columns)} VARIANT columns",
                hint=f"give the DDL by column: {', '.join(columns)}",
                cli_hint="name the column before its DDL, with an equals sign between them",
            )
        given = dict.fromkeys(columns, given)
    found = {physical: known.get(physical, UNSHREDDED) for physical in columns.values()}
    for name, text in given.items():
        if not isinstance(text, str):
            raise InvalidValue(f"the shredding of {name!r} is {text!r}", hint="DDL: text")
        (physical,) = variant_columns(snapshot, name).values()
        found[physical] = parse_ddl(text)
        check_writable(found[physical])
    return found


def _learned(snapshot: Snapshot, physical: str, known: ShreddingSchema | None) -> ShreddingSchema:
    """Learn a schema from a sample of the whole table; returns `known` if there are no rows."""
    paths: list[Any] = spread(snapshot.files["path"].to_pylist(), SAMPLE_FILES)
    sample = sample_column(snapshot, paths, physical)
    if not sample.table.num_rows:
        return known or UNSHREDDED
    return learned_schema(snapshot, sample, known)


def property_changes(
    snapshot: Snapshot,
    layouts: Mapping[str, ShreddingSchema],
    *,
    unshred: bool,
    learned: bool = False,
) -> Changes | None:
    """Return the change of the table's properties, None if they have these layouts already.

    Loads may learn `learned` schemas again; other schemas stay.

    Raises InvalidSchema for a given layout that lacks a clustering path of the table.
    """
    configuration = dict(snapshot.metadata.configuration)
    if unshred:
        own = (SCHEMA_PREFIX, LEARNED_PREFIX)
        configuration = {k: v for k, v in configuration.items() if not k.startswith(own)}
        configuration[SHREDDING_PROPERTY] = "false"
        text = configuration.get(CLUSTER_BY)
        if text is not None and any(
            each.path is not None
            for each in cluster_paths(text, snapshot.schema, snapshot.partition_columns)
        ):
            del configuration[CLUSTER_BY]
    else:
        for name, schema in layouts.items():
            if configuration.get(SCHEMA_PREFIX + name) == format_ddl(schema):
                continue
            if learned and not snapshot.files.num_rows:
                continue  # there is nothing to learn from; the first load learns
            if learned:
                configuration = with_schema(configuration, name, schema, snapshot.version + 1)
            else:
                configuration = with_given_schema(configuration, name, schema)
    if not learned:  # a learned schema need not have a path that no row has, as in loads
        check_clustering(configuration, snapshot.schema, snapshot.partition_columns)
    if configuration == snapshot.metadata.configuration:
        return None
    shown = {
        key: configuration.get(key, "")
        for key in {*configuration, *snapshot.metadata.configuration}
        if configuration.get(key) != snapshot.metadata.configuration.get(key)
    }
    return Changes(
        "SET TBLPROPERTIES",
        metadata=replace(snapshot.metadata, configuration=configuration),
        parameters={"properties": orjson.dumps(shown, option=orjson.OPT_SORT_KEYS).decode()},
    )


# --- The run --------------------------------------------------------------------------------------


def reshred(
    snapshot: Snapshot,
    run: Runner,
    options: ReshredOptions,
    *,
    dry_run: bool = False,
    progress: OnProgress | None = None,
) -> ReshredResult:
    """Set the table's new schema, and rewrite the files that gain by it.

    Raises as `Table.reshred`.
    """
    started = time.perf_counter()
    where = options.where
    chosen = files_matching(snapshot, where)
    snapshot.check_writable(evaluated=True, kept=True)
    layouts = wanted_layouts(snapshot, options)
    changes = property_changes(
        snapshot, layouts, unshred=options.unshred, learned=options.shredding is None
    )

    # Called again on each newer version, because other writers may change which files gain.
    def prepare(newest: Snapshot) -> ReshredPlan:
        return plan_reshredding(newest, layouts, chosen(newest), digest=options.digest)

    names = {physical: name for name, physical in variant_columns(snapshot).items()}
    first = prepare(snapshot)
    result = ReshredResult(
        version=None if dry_run else snapshot.version,
        dry_run=dry_run,
        shredding={names[physical]: format_ddl(schema) for physical, schema in layouts.items()},
        changed=changes is not None,
        files_checked=first.looked_at,
        files_read=len(first.rows),
        files_written=len(first.rows),
        rows_rewritten=_rows(first),
        bytes_read=first.bytes,
        bytes_written=first.bytes,
        seconds=time.perf_counter() - started,
    )
    if dry_run:
        return result
    totals = RewriteTotals()
    # The schema first, so that files which other writers add meanwhile have it.
    if changes is not None:
        totals = RewriteTotals((commit(snapshot, changes),))
        snapshot = snapshot.refresh()
    operation = Operation(
        "REORG",
        {
            "predicate": predicate(where),
            "shredding": orjson.dumps(dict(result.shredding)).decode(),
        },
    )
    totals += run_rewrite(snapshot, prepare, run, operation, progress=progress)
    return replace(result, **totals.result_fields(), seconds=time.perf_counter() - started)


def _rows(plan: ReshredPlan) -> int:
    counts = plan.log.of_log.num_records[plan.rows]
    return int(np.maximum(counts, 0).sum())
