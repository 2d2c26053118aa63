"""Remove column mapping: rewrite all files with the column names of the table.

One commit replaces all files and the schema. Older versions keep their files and their schema.
Delta Spark's `REMOVE COLUMN MAPPING` does the same. Spec: PROTOCOL, "Column Mapping".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from variantlake.delta.actions.actions import DomainMetadata, Metadata
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.clustering import DOMAIN as CLUSTERING
from variantlake.delta.protocol.clustering import clustering_domain, clustering_names
from variantlake.delta.protocol.known_properties import CONTRACT_PREFIX, OF_COLUMNS
from variantlake.delta.protocol.learned_schemas import PREFIX as LEARNED_PREFIX
from variantlake.delta.protocol.new_table import FORBIDDEN_IN_NAMES
from variantlake.delta.schema.column_mapping import MAX_ID, MODE, is_mapped, without_mapping
from variantlake.delta.schema.table_schema import VOID, StructType, types_in
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes, whole_table
from variantlake.delta.transaction.new_actions import removes_of
from variantlake.errors import UnsupportedFeature
from variantlake.jobs.progress import watcher
from variantlake.jobs.tasks import Runner, collect
from variantlake.maintenance.optimize import optimize
from variantlake.maintenance.plan_compaction import (
    CompactionOptions,
    CompactionPlan,
    plan_compaction,
)
from variantlake.maintenance.rewrite.rewrite_group import RewritePlan, RewrittenGroup
from variantlake.maintenance.rewrite.run import RewriteResult, RewriteTask
from variantlake.progress import OnProgress
from variantlake.quoting import identifier
from variantlake.writing.commit_files import NOT_COMMITTED
from variantlake.writing.table_write import TableWrite


def unmap_columns(
    snapshot: Snapshot,
    run: Runner,
    *,
    mode: str | None = None,
    dry_run: bool = False,
    progress: OnProgress | None = None,
) -> RewriteResult:
    """Rewrite all files with the table's column names, and remove the mapping.

    `mode` becomes the value of the mapping mode property; None removes the property.

    Raises UnsupportedFeature for names that only a table with mapping can have, and for one that
    Iceberg's readers read, CommitConflict if another writer changed the table in the meantime; else
    as a rewrite.
    """
    if not is_mapped(snapshot.metadata.configuration):
        return RewriteResult(version=snapshot.version, dry_run=dry_run)
    iceberg = sorted(name for name in snapshot.features if name.startswith("iceberg"))
    if iceberg:
        raise UnsupportedFeature(
            f"the table needs column mapping for {', '.join(iceberg)}",
            file=snapshot.store.uri,
            hint="a copy of the rows in a new table has neither",
        )
    schema = without_mapping(snapshot.schema)
    _check_names(snapshot, schema)
    if dry_run:
        return optimize(snapshot, run, options=_ALL, dry_run=True)
    # With VOID columns, the proof would read old and new files by one schema, but names differ.
    digest = not any(kind == VOID for kind in types_in(schema))
    work = plan_compaction(snapshot, _ALL, digest=digest)
    metadata = replace(
        snapshot.metadata,
        schema_string=schema.to_json(),
        configuration=_configuration(snapshot, mode),
    )
    return _Unmapping(snapshot, schema, metadata, work).do(run, progress)


_ALL = CompactionOptions(every=True, purge=True)


@dataclass(frozen=True, slots=True)
class _Unmapping:
    """One attempt; `schema` and `metadata` are the new ones of the table."""

    snapshot: Snapshot
    schema: StructType
    metadata: Metadata
    work: CompactionPlan

    def do(self, run: Runner, progress: OnProgress | None) -> RewriteResult:
        """Write the files, and commit them."""
        # Cells and tags that order files refer to the old names.
        groups = tuple(
            replace(group, cells=None, tags={}) for group in chain.from_iterable(self.work.steps())
        )
        target = TableWrite.of(self.snapshot, evaluated=True, kept=True)
        task = RewriteTask(self._plan(), groups)
        watch = watcher(task, self.snapshot.store, progress)
        results = collect(task.files, target, lambda: run(task, watch))
        done = [each for each in results if isinstance(each, RewrittenGroup)]
        try:
            version = self._commit(done)
        except NOT_COMMITTED:
            target.clean_up(task.files.load_id)
            raise
        return RewriteResult(
            version=version,
            versions=(version,),
            files_read=sum(len(group.files) for group in groups),
            files_written=sum(len(each.adds) for each in done),
            rows_rewritten=sum(each.rows for each in done),
            bytes_read=sum(each.bytes_read for each in done),
            bytes_written=sum(each.bytes_written for each in done),
        )

    def _plan(self) -> RewritePlan:
        plan = self.work.plan.another()
        files = replace(
            plan.files,
            schema=self.schema,
            properties=self.metadata.configuration,
            # The names of the table are those of the new files.
            clustering=clustering_names(self.snapshot.schema, self.snapshot.domains),
        )
        return replace(plan, files=files)

    @property
    def _clustering(self) -> DomainMetadata | None:
        """The clustering domain with the columns' new names."""
        if CLUSTERING not in self.snapshot.domains:
            return None
        names = clustering_names(self.snapshot.schema, self.snapshot.domains)
        columns = [".".join(map(identifier, path)) for path in names]
        return clustering_domain(self.schema, columns, self.metadata.partition_columns)

    def _commit(self, done: list[RewrittenGroup]) -> int:
        domain = self._clustering
        adds = tuple(add for each in done for add in each.adds)
        changes = Changes(
            "REMOVE COLUMN MAPPING",
            adds=adds,
            removes=removes_of(self.snapshot.add_files(), data_change=False),
            metadata=self.metadata,
            domains=() if domain is None else (domain,),
            # Files of another writer would have the old names.
            reads=whole_table,
            serializable=True,
            evaluated=True,
            kept=True,
            numbered=True,
            file_metrics=False,
            metrics={"numOutputBytes": str(sum(add.size for add in adds))},
        )
        return commit(self.snapshot, changes)


def _check_names(snapshot: Snapshot, schema: StructType) -> None:
    for item in schema.walk():
        if FORBIDDEN_IN_NAMES.search(item.name):
            raise UnsupportedFeature(
                f"column {item.name!r} has a name that only a table with column mapping can have",
                file=snapshot.store.uri,
                hint="rename it first, to a name without spaces and any of ,;{}()=",
            )


def _configuration(snapshot: Snapshot, mode: str | None) -> dict[str, str]:
    """Return the properties without mapping, with column keys by the new names."""
    names = {item.physical_name: item.name for item in snapshot.schema.fields}
    found: dict[str, Any] = {}
    for key, value in snapshot.metadata.configuration.items():
        if key not in (MODE, MAX_ID):
            found[_key_of_column(key, names)] = value
    return found if mode is None else {**found, MODE: mode}


def _key_of_column(key: str, names: Mapping[str, str]) -> str:
    for prefix in (*OF_COLUMNS, LEARNED_PREFIX, CONTRACT_PREFIX):
        column = key.removeprefix(prefix)
        if key.startswith(prefix) and column in names:
            return prefix + names[column]
    return key
