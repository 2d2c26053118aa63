"""Remove the old versions that use a feature, so that dropping it leaves no trace.

Readers of older versions have `delta.dropFeatureTruncateHistory.retentionDuration` to finish.
The first call ends the use of the feature and writes a checkpoint. A call after that time cuts the
log back to it. Delta Spark does the same in `DROP FEATURE ... TRUNCATE HISTORY`.
"""

from __future__ import annotations

import datetime as dt
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from variantlake.delta.actions.actions import AddFile, Metadata
from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
from variantlake.delta.checkpoint.log_cleanup import PROTECTED, clean_log
from variantlake.delta.log.log_segment import LOG, all_checkpoints, commit_path, commit_version
from variantlake.delta.log.reconciliation import read_commit
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.feature_records import FEATURES
from variantlake.delta.protocol.features import SCAN_FEATURES
from variantlake.delta.protocol.intervals import property_millis
from variantlake.delta.protocol.known_properties import SHREDDING_PROPERTY
from variantlake.delta.protocol.named_versions import named_versions
from variantlake.delta.protocol.properties import VECTORS
from variantlake.delta.schema.column_mapping import is_mapped
from variantlake.delta.schema.table_schema import StructType
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes
from variantlake.delta.transaction.widen import CHANGES_KEY
from variantlake.errors import CommitConflict, InvalidValue

RETENTION = "delta.dropFeatureTruncateHistory.retentionDuration"
DEFAULT_RETENTION = "interval 24 hours"

_V2_CHECKPOINT = re.compile(r".*\.checkpoint\.[0-9a-f-]{36}\.(json|parquet)")


def check_truncatable(name: str) -> None:
    """Raise InvalidValue for a feature that older versions may go on to use."""
    feature = FEATURES.get(name)
    if name != "checkpointProtection" and (feature is None or not feature.reader):
        raise InvalidValue(
            f"the feature {name} binds no reader, so no version has to go for it",
            hint="drop it without truncating the history",
        )


def truncate_history(newest: Snapshot, name: str, *, began: int) -> None:
    """Cut the log before the first version from which on nothing uses the feature.

    `began` is the newest version before the caller ended the use of the feature.

    Raises CommitConflict, which says when to call again, while versions that use it must stay.
    """
    retention = property_millis(newest.properties, RETENTION, DEFAULT_RETENTION)
    if newest.version > began:
        # The commit of a checkpoint's version stays, and the one that ended the use removes what
        # used it: for Delta Spark that is a use, so the checkpoint is of a version after it.
        write_checkpoint(newest.store, commit(newest, Changes("Empty Commit")))
        if retention:
            raise _too_early(newest, name, f"versions up to {newest.version}", retention)
    before = time.time_ns() // 1_000_000 - retention
    named = [each.version for each in named_versions(newest.domains.values())]
    clean_log(newest.store, newest.properties, named=named, before=before)
    first = next(_uses(newest, name), None)
    if first is not None:
        raise _too_early(newest, name, f"version {first}", retention)


def _too_early(newest: Snapshot, name: str, versions: str, retention: int) -> CommitConflict:
    then = dt.datetime.now(dt.UTC) + dt.timedelta(milliseconds=min(retention, 1 << 45))
    return CommitConflict(
        f"the newest version no longer uses {name}, but {versions} of its history may",
        file=newest.store.uri,
        hint=f"drop it again with the history truncated, after {then:%Y-%m-%d %H:%M} UTC at the"
        f" latest ({RETENTION}); without that, older versions stay",
    )


@dataclass(frozen=True, slots=True)
class _Use:
    """Tests of the metadata and of each file for the use of a feature."""

    metadata: Callable[[Metadata], bool] = lambda _: False
    file: Callable[[AddFile], bool] = lambda _: False


def _switched_on(name: str) -> Callable[[Metadata], bool]:
    return lambda metadata: metadata.configuration.get(name, "").lower() == "true"


def _has_changed_types(metadata: Metadata) -> bool:
    schema = StructType.from_json(metadata.schema_string)
    return any(field.metadata.get(CHANGES_KEY) for field in schema.walk())


_USES: Mapping[str, _Use] = {
    "columnMapping": _Use(lambda metadata: is_mapped(metadata.configuration)),
    "deletionVectors": _Use(_switched_on(VECTORS), lambda add: add.deletion_vector is not None),
    # Switched on without a change of type, it is in no file.
    "typeWidening": _Use(_has_changed_types),
    "v2Checkpoint": _Use(
        lambda metadata: metadata.configuration.get("delta.checkpointPolicy", "") == "v2"
    ),
    "variantShredding": _Use(_switched_on(SHREDDING_PROPERTY)),
}


def _uses(newest: Snapshot, name: str) -> Iterator[int]:
    """Yield the versions in the current log that use the feature."""
    use = _USES.get(name.removesuffix("-preview"), _Use())
    store = newest.store
    entries = list(store.list_from(LOG))
    commits = sorted(v for e in entries if (v := commit_version(e.path)) is not None)
    checkpoints = all_checkpoints(entries)
    first = min([*commits, *(each.version for each in checkpoints)])
    if name == "checkpointProtection":
        if first < int(newest.properties.get(PROTECTED, "0")):
            yield first
        return
    oldest = Snapshot.read(store.uri, first, store=store, applies=SCAN_FEATURES)
    if use.metadata(oldest.metadata) or any(map(use.file, oldest.add_files())):
        yield first
    for version in commits:
        for action in read_commit(store, commit_path(version)) if version > first else ():
            is_metadata = isinstance(action, Metadata) and use.metadata(action)
            if is_metadata or (isinstance(action, AddFile) and use.file(action)):
                yield version
    if name == "v2Checkpoint":
        for each in checkpoints:
            if any(_V2_CHECKPOINT.fullmatch(file.path) for file in each.files):
                yield each.version
