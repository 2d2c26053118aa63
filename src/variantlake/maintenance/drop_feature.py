"""Drop a feature from a table, for readers and writers that lack it.

First the table stops using the feature: files are rewritten, or properties removed. Then a commit
takes the feature out of the protocol. If it is a reader feature, older versions still need it, and
readers without it must never have to read them. So the version of the change gets a checkpoint,
which the feature `checkpointProtection` protects from log cleanup. Delta Spark's DROP FEATURE
without TRUNCATE HISTORY does the same. Spec: PROTOCOL, "Protocol Evolution"; Delta's RFC
"Checkpoint Protection".
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import orjson

from variantlake.delta.actions.actions import DomainMetadata, Protocol, RemoveFile
from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
from variantlake.delta.checkpoint.log_cleanup import PROTECTED
from variantlake.delta.log.deletion_vectors import vector_path
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.log.snapshot_state import read_removes
from variantlake.delta.protocol.feature_records import FEATURES
from variantlake.delta.protocol.features import VARIANT_SHREDDING, reader_features, writer_features
from variantlake.delta.protocol.needed_features import extended_protocol
from variantlake.delta.protocol.properties import VECTORS, constraints
from variantlake.delta.protocol.row_tracking import DOMAIN, ROW_COMMIT_VERSION, ROW_ID, SUSPENDED
from variantlake.delta.protocol.row_tracking import PROPERTY as ROW_TRACKING
from variantlake.delta.schema.type_parts import without_metadata
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes, whole_table
from variantlake.delta.transaction.widen import CHANGES_KEY, PREVIEW
from variantlake.delta.transaction.widen import PROPERTY as TYPE_WIDENING
from variantlake.errors import CommitConflict, InvalidValue, UnsupportedFeature, did_you_mean
from variantlake.jobs.tasks import Runner
from variantlake.maintenance.dropped_columns import NarrowTypes
from variantlake.maintenance.optimize import optimize
from variantlake.maintenance.plan_compaction import CompactionOptions
from variantlake.maintenance.reshredding.reshred import ReshredOptions, ReshredResult, reshred
from variantlake.maintenance.rewrite.run import RewriteResult
from variantlake.maintenance.truncate_history import check_truncatable
from variantlake.maintenance.truncate_history import truncate_history as cut_history
from variantlake.maintenance.unmap_columns import unmap_columns
from variantlake.progress import OnProgress
from variantlake.writing.options.file_sizes import TARGET_FILE_BYTES


@dataclass(frozen=True, slots=True)
class _Drop:
    """The table of one call, and how to rewrite its files."""

    snapshot: Snapshot
    run: Runner
    dry_run: bool
    progress: OnProgress | None


def drop_feature(
    snapshot: Snapshot,
    name: str,
    run: Runner,
    *,
    truncate_history: bool = False,
    dry_run: bool = False,
    progress: OnProgress | None = None,
) -> ReshredResult:
    """Drop a feature of the table. Returns what was rewritten, and the last version committed.

    Raises as `Table.drop_feature`.
    """
    name = check_droppable(snapshot, name, truncate_history=truncate_history)
    names = VARIANT_SHREDDING if name in VARIANT_SHREDDING else (name,)
    drop = _Drop(snapshot, run, dry_run, progress)
    rewritten = _UNUSED[names[0]](drop)
    if dry_run:
        return rewritten
    began, snapshot = snapshot.version, snapshot.refresh()
    if truncate_history:
        if name in _WIDENING:
            snapshot = _without_changed_types(snapshot)
        cut_history(snapshot, names[0], began=began)
        snapshot = snapshot.refresh()
    protected = not truncate_history and any(FEATURES[each].reader for each in names)
    version = _without(snapshot, name, names, protected=protected, truncated=truncate_history)
    return replace(rewritten, version=version)


def _without(
    snapshot: Snapshot, name: str, names: Collection[str], *, protected: bool, truncated: bool
) -> int:
    """Commit the protocol without `names`, and the metadata without their properties.

    Returns the last version committed.
    """
    if protected:
        write_checkpoint(snapshot.store, snapshot.version)
    version = snapshot.version + 1
    configuration = {
        key: value
        for key, value in snapshot.metadata.configuration.items()
        if key not in _PROPERTIES.get(name, ())
    }
    if protected:
        # This also protects the checkpoint of an earlier drop, because its version is lower.
        configuration[PROTECTED] = str(version)
    more = ["checkpointProtection"] if protected else []
    mark = snapshot.domains.get(DOMAIN) if name == "rowTracking" else None
    schema = snapshot.metadata.schema_string
    if name in _WIDENING:
        schema = without_metadata(snapshot.schema, CHANGES_KEY).to_json()
    done = commit(
        snapshot,
        Changes(
            "DROP FEATURE",
            protocol=extended_protocol(_listing(snapshot.protocol, names), more),
            metadata=replace(snapshot.metadata, configuration=configuration, schema_string=schema),
            domains=() if mark is None else (DomainMetadata(DOMAIN, mark.configuration, True),),
            # A concurrent write may use the feature.
            reads=whole_table,
            serializable=True,
            parameters={"featureName": name, "truncateHistory": truncated},
        ),
    )
    if not protected:
        return done
    newest = snapshot.refresh()
    if done != version:
        configuration[PROTECTED] = str(done)
        metadata = replace(newest.metadata, configuration=configuration)
        commit(newest, Changes("SET TBLPROPERTIES", metadata=metadata))
        newest = newest.refresh()
    write_checkpoint(newest.store, newest.version)
    return newest.version


def _listing(protocol: Protocol, without: Collection[str]) -> Protocol:
    reader, writer = (
        tuple(name for name in listed if name not in without)
        for listed in (reader_features(protocol), writer_features(protocol))
    )
    if reader in ((), ("columnMapping",)):  # reader versions 1 and 2 need no list of features
        return Protocol(1 + len(reader), 7, None, writer)
    return Protocol(3, 7, reader, writer)


def _unshredded(drop: _Drop) -> ReshredResult:
    options = ReshredOptions(unshred=True)
    return reshred(drop.snapshot, drop.run, options, dry_run=drop.dry_run, progress=drop.progress)


def _without_vectors(drop: _Drop) -> ReshredResult:
    snapshot = drop.snapshot
    if not drop.dry_run:
        snapshot = _with_properties(snapshot, {VECTORS: None})
    options = CompactionOptions.of(TARGET_FILE_BYTES, 0.0, purge=True)
    done = optimize(
        snapshot, drop.run, options=options, dry_run=drop.dry_run, progress=drop.progress
    )
    if not drop.dry_run and any(
        add.deletion_vector is not None for add in snapshot.refresh().add_files()
    ):
        raise CommitConflict(
            "another writer deleted rows by deletion vectors meanwhile",
            file=snapshot.store.uri,
            hint="nothing is lost: repeat it",
        )
    if not drop.dry_run:
        _remove_vectors(snapshot.refresh())
    return _as_result(done, snapshot)


def _remove_vectors(snapshot: Snapshot) -> None:
    """Commit tombstones for the deletion vector files of removed files, as Delta Spark does.

    Older versions need these files until the retention ends. Without tombstones, a vacuum by a
    program that does not support deletion vectors would delete them at once.
    """
    store, last = snapshot.store, dict[str, int]()
    for removed in read_removes(store, snapshot.version).values():
        vector = removed.deletion_vector
        if vector is not None and vector.storage_type != "i":
            path = vector_path(store, vector)
            last[path] = max(last.get(path, 0), removed.deletion_timestamp or 0)
    removes = tuple(RemoveFile(path, at, data_change=False) for path, at in last.items())
    if removes:
        commit(snapshot, Changes("Deletion Vector Tombstones", removes=removes, file_metrics=False))


def _with_present_types(drop: _Drop) -> ReshredResult:
    """Rewrite the files that still hold values of a type from before a column was widened."""
    snapshot = drop.snapshot
    if not drop.dry_run:
        snapshot = _with_properties(snapshot, {TYPE_WIDENING: None})
    done = optimize(
        snapshot,
        drop.run,
        options=CompactionOptions(max_deleted_share=1.0, purge=True),
        dry_run=drop.dry_run,
        progress=drop.progress,
        dropped=NarrowTypes(),
    )
    return _as_result(done, snapshot)


def _without_changed_types(snapshot: Snapshot) -> Snapshot:
    """Commit the schema without its record of type changes, which need the feature."""
    schema = without_metadata(snapshot.schema, CHANGES_KEY).to_json()
    if schema == snapshot.metadata.schema_string:
        return snapshot
    metadata = replace(snapshot.metadata, schema_string=schema)
    commit(snapshot, Changes("DROP FEATURE", metadata=metadata, reads=whole_table))
    return snapshot.refresh()


def _without_mapping(drop: _Drop) -> ReshredResult:
    done = unmap_columns(drop.snapshot, drop.run, dry_run=drop.dry_run, progress=drop.progress)
    return _as_result(done, drop.snapshot)


def _without_row_ids(drop: _Drop) -> ReshredResult:
    """Stop assigning row ids, then remove those of all files."""
    if drop.dry_run:
        return _untouched(drop)
    snapshot = _with_properties(drop.snapshot, {ROW_TRACKING: "false", SUSPENDED: "true"})
    adds = tuple(
        replace(add, base_row_id=None, default_row_commit_version=None, data_change=False)
        for add in snapshot.add_files()
    )
    if adds:
        commit(
            snapshot,
            Changes(
                "ROW TRACKING UNBACKFILL",
                adds=adds,
                evaluated=True,
                kept=True,
                numbered=True,
                parameters={"batchId": "0"},
            ),
        )
    return _untouched(drop)


def _with_classic_checkpoints(drop: _Drop) -> ReshredResult:
    if not drop.dry_run and "delta.checkpointPolicy" in drop.snapshot.properties:
        _with_properties(drop.snapshot, {"delta.checkpointPolicy": "classic"})
    return _untouched(drop)


def _without_own_times(drop: _Drop) -> ReshredResult:
    if not drop.dry_run:
        of_enablement = dict.fromkeys(_TIME_ENABLEMENT)
        _with_properties(drop.snapshot, {"delta.enableInCommitTimestamps": None, **of_enablement})
    return _untouched(drop)


def _without_constraints(drop: _Drop) -> ReshredResult:
    there = ", ".join(constraints(drop.snapshot.properties))
    if there:
        raise UnsupportedFeature(
            f"the table has CHECK constraints: {there}",
            file=drop.snapshot.store.uri,
            hint="drop them first: Table.drop_constraint(...), ALTER TABLE ... DROP CONSTRAINT",
            cli_hint="drop them first: `variantlake alter TABLE 'DROP CONSTRAINT name'`",
        )
    return _untouched(drop)


def _without_domains(drop: _Drop) -> ReshredResult:
    """Raises UnsupportedFeature while a feature needs domains, or the table has any."""
    listed = (*writer_features(drop.snapshot.protocol), *reader_features(drop.snapshot.protocol))
    needed = [name for name in listed if "domainMetadata" in _needs(name)]
    keeps = needed or list(drop.snapshot.domains)
    if keeps:
        what = "features" if needed else "metadata domains"
        raise UnsupportedFeature(
            f"domainMetadata cannot be dropped: {what} of the table need it: {', '.join(keeps)}",
            file=drop.snapshot.store.uri,
            hint="drop these first" if needed else "a copy of the table has none of them",
        )
    return _untouched(drop)


def _untouched(drop: _Drop) -> ReshredResult:
    """Return the result of a drop that rewrites no file."""
    return ReshredResult(
        version=None if drop.dry_run else drop.snapshot.version,
        dry_run=drop.dry_run,
        files_checked=drop.snapshot.files.num_rows,
    )


def _needs(name: str) -> tuple[str, ...]:
    feature = FEATURES.get(name)
    return () if feature is None else feature.needs


def _as_result(done: RewriteResult, snapshot: Snapshot) -> ReshredResult:
    fields: dict[str, Any] = {
        name: getattr(done, name) for name in RewriteResult.__dataclass_fields__
    }
    return ReshredResult(**fields, files_checked=snapshot.files.num_rows)


def _with_properties(snapshot: Snapshot, properties: dict[str, str | None]) -> Snapshot:
    """Commit these properties (None removes one) without changing the table's features."""
    configuration = dict(snapshot.metadata.configuration)
    for name, value in properties.items():
        if value is None:
            configuration.pop(name, None)
        else:
            configuration[name] = value
    if configuration == snapshot.metadata.configuration:
        return snapshot
    if not any(properties.values()):
        gone = [name for name in properties if name in snapshot.metadata.configuration]
        names = orjson.dumps(gone).decode()
        operation, parameters = "UNSET TBLPROPERTIES", {"properties": names, "ifExists": True}
    else:
        kept = orjson.dumps({k: v for k, v in properties.items() if v is not None}).decode()
        operation, parameters = "SET TBLPROPERTIES", {"properties": kept}
    metadata = replace(snapshot.metadata, configuration=configuration)
    commit(snapshot, Changes(operation, metadata=metadata, parameters=parameters))
    return snapshot.refresh()


_TIME_ENABLEMENT = (
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
)

_WIDENING = ("typeWidening", PREVIEW)

_UNUSED: dict[str, Callable[[_Drop], ReshredResult]] = {
    "checkConstraints": _without_constraints,
    "checkpointProtection": _untouched,
    "columnMapping": _without_mapping,
    "deletionVectors": _without_vectors,
    "domainMetadata": _without_domains,
    "inCommitTimestamp": _without_own_times,
    "materializePartitionColumns": _untouched,
    "rowTracking": _without_row_ids,
    **dict.fromkeys(_WIDENING, _with_present_types),
    "v2Checkpoint": _with_classic_checkpoints,
    "vacuumProtocolCheck": _untouched,
    VARIANT_SHREDDING[0]: _unshredded,
}
"""By feature name, the function that makes the table stop using the feature."""

_PROPERTIES = {
    "checkpointProtection": (PROTECTED,),
    "materializePartitionColumns": ("delta.enableMaterializePartitionColumnsFeature",),
    "rowTracking": (ROW_TRACKING, SUSPENDED, ROW_ID, ROW_COMMIT_VERSION),
    **dict.fromkeys(VARIANT_SHREDDING, ("delta.enableVariantShredding",)),
}
"""By feature name, the properties that are removed with the feature."""


def check_droppable(snapshot: Snapshot, name: str, *, truncate_history: bool = False) -> str:
    """Return the name of a feature, given in any case.

    Raises for one that the table does not have or that Variantlake cannot drop.
    """
    if not isinstance(name, str):
        raise InvalidValue(f"a feature is {name!r}", hint="its name, as in variantShredding")
    listed = dict.fromkeys(
        (*writer_features(snapshot.protocol), *reader_features(snapshot.protocol))
    )
    name = next((each for each in listed if each.lower() == name.lower()), name)
    # The preview is the same feature under another name; both are dropped.
    meant = VARIANT_SHREDDING if name in VARIANT_SHREDDING else (name,)
    if listed.keys().isdisjoint(meant):
        raise InvalidValue(
            f"the table does not have the feature {name!r}",
            file=snapshot.store.uri,
            hint=("" if name in FEATURES else did_you_mean(name, [*listed, *FEATURES]))
            or f"its features: {', '.join(listed)}",
        )
    if truncate_history:
        check_truncatable(meant[0])
    elif name == "checkpointProtection":
        raise UnsupportedFeature(
            "checkpointProtection is dropped with the versions that it protects",
            file=snapshot.store.uri,
            hint="truncate the history: TRUNCATE HISTORY, truncate_history=True",
            cli_hint="truncate the history: --truncate-history",
        )
    if meant[0] in _UNUSED:
        return name
    hint = "no engine drops it: copy the rows into a table that is made without it"
    raise UnsupportedFeature(
        f"the feature {name} cannot be dropped here, only {', '.join(_UNUSED)}",
        file=snapshot.store.uri,
        hint=hint,
    )
