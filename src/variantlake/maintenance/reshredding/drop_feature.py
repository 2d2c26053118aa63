"""Dropping `variantShredding` from a table, for readers that lack it.

No file is shredded any more, then the protocol of the newest version no longer lists the feature.
Older versions do, so readers without it must never have to read them: the version of the change
gets a checkpoint, which the feature `checkpointProtection` keeps from being cleaned away. That is
what Delta Spark's DROP FEATURE does without TRUNCATE HISTORY. Spec: PROTOCOL, "Protocol Evolution";
Delta's RFC "Checkpoint Protection".
"""

from __future__ import annotations

from dataclasses import replace

from variantlake.delta.actions.actions import Protocol
from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.feature_records import FEATURES
from variantlake.delta.protocol.features import VARIANT_SHREDDING, reader_features, writer_features
from variantlake.delta.protocol.needed_features import extended_protocol
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes, whole_table
from variantlake.errors import InvalidValue, UnsupportedFeature, did_you_mean
from variantlake.jobs.tasks import Runner
from variantlake.maintenance.reshredding.reshred import ReshredOptions, ReshredResult, reshred
from variantlake.progress import OnProgress

PROTECTED = "delta.requireCheckpointProtectionBeforeVersion"


def drop_feature(
    snapshot: Snapshot,
    name: str,
    run: Runner,
    *,
    dry_run: bool = False,
    progress: OnProgress | None = None,
) -> ReshredResult:
    """Take a feature out of the table's protocol; gives what unshredding did, and the version.

    Raises as `Table.drop_feature`.
    """
    check_droppable(snapshot, name)
    options = ReshredOptions(unshred=True)
    rewritten = reshred(snapshot, run, options, dry_run=dry_run, progress=progress)
    if dry_run:
        return rewritten
    snapshot = snapshot.refresh()
    write_checkpoint(snapshot.store, snapshot.version)
    version = snapshot.version + 1
    configuration = {
        key: value
        for key, value in snapshot.metadata.configuration.items()
        if key != "delta.enableVariantShredding"
    }
    # A checkpoint that an older drop protects stays protected: only the newest can be younger.
    configuration[PROTECTED] = str(version)
    done = commit(
        snapshot,
        Changes(
            "DROP FEATURE",
            protocol=_without_shredding(snapshot.protocol),
            metadata=replace(snapshot.metadata, configuration=configuration),
            # An append at the same time may bring a shredded file.
            reads=whole_table,
            serializable=True,
            parameters={"featureName": name},
        ),
    )
    newest = snapshot.refresh()
    if done != version:
        configuration[PROTECTED] = str(done)
        metadata = replace(newest.metadata, configuration=configuration)
        commit(newest, Changes("SET TBLPROPERTIES", metadata=metadata))
        newest = newest.refresh()
    write_checkpoint(newest.store, newest.version)
    return replace(rewritten, version=newest.version)


def _without_shredding(protocol: Protocol) -> Protocol:
    reader, writer = (
        tuple(name for name in listed if name not in VARIANT_SHREDDING)
        for listed in (reader_features(protocol), writer_features(protocol))
    )
    left = Protocol(3, 7, reader, writer) if reader else Protocol(1, 7, None, writer)
    return extended_protocol(left, ["checkpointProtection"])


def check_droppable(snapshot: Snapshot, name: str) -> None:
    """Raise for a feature that the table does not have, or that cannot be dropped here."""
    if not isinstance(name, str):
        raise InvalidValue(f"a feature is {name!r}", hint="its name, as in variantShredding")
    listed = dict.fromkeys(
        (*writer_features(snapshot.protocol), *reader_features(snapshot.protocol))
    )
    # The preview is the same feature under another name; both go.
    meant = VARIANT_SHREDDING if name in VARIANT_SHREDDING else (name,)
    if listed.keys().isdisjoint(meant):
        raise InvalidValue(
            f"the table does not have the feature {name!r}",
            file=snapshot.store.uri,
            hint=("" if name in FEATURES else did_you_mean(name, [*listed, *FEATURES]))
            or f"its features: {', '.join(listed)}",
        )
    if name not in VARIANT_SHREDDING:
        raise UnsupportedFeature(
            f"the feature {name} cannot be dropped here, only {' and '.join(VARIANT_SHREDDING)}",
            file=snapshot.store.uri,
            hint=f"ALTER TABLE ... DROP FEATURE {name} in Delta Spark may do it",
        )
