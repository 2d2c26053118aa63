"""Compute what a restore commits: the difference of two versions.

As in Delta Spark, the protocol never loses a feature, metadata and clustering columns are those of
the old version, and application progress (`txn`) and other domains stay. Properties that describe
existing files or versions stay, too, and so do the high water marks of identity columns. Spec:
PROTOCOL, "Identity Columns".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import orjson
import pyarrow.compute as pc

from variantlake.delta.actions.actions import DomainMetadata, Metadata, Protocol, natural
from variantlake.delta.log.files.file_keys import keys_of
from variantlake.delta.log.files.logical_files import LogicalFiles, one_chunk
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.log.time_travel import SINCE_TIME, SINCE_VERSION, is_stamped
from variantlake.delta.protocol.clustering import DOMAIN, clustering_columns
from variantlake.delta.protocol.features import (
    check_writable,
    reader_features,
    writer_features,
)
from variantlake.delta.protocol.identity_columns import identity_columns, with_marks
from variantlake.delta.protocol.needed_features import extended_protocol
from variantlake.delta.schema.column_mapping import MAX_ID
from variantlake.delta.schema.table_schema import StructType

_STAYING = (
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
    "delta.requireCheckpointProtectionBeforeVersion",
)
"""Properties that name columns in data files or protect old versions."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The changes from the newest version to an old one; None for what stays the same.

    `back` holds the files (rows as `Snapshot.files`) that only the old version has, `gone` those
    that only the newest has.
    """

    back: LogicalFiles
    gone: LogicalFiles
    metadata: Metadata | None
    protocol: Protocol | None
    domains: tuple[DomainMetadata, ...]


def difference(newest: Snapshot, old: Snapshot) -> Difference:
    """Compute what a restore of `old` commits.

    Raises UnsupportedFeature if the old version needs a feature that we do not write, MalformedLog
    for an identity column that cannot be understood.
    """
    newest.check_writable(evaluated=True, kept=True)
    protocol = _merged(newest.protocol, old.protocol)
    schema = with_given_out(old.schema, newest.schema)
    metadata = replace(
        old.metadata,
        schema_string=old.metadata.schema_string if schema == old.schema else schema.to_json(),
        configuration=_configuration(newest.metadata.configuration, old.metadata.configuration),
    )
    check_writable(protocol, dict(metadata.configuration), old.schema, evaluated=True, kept=True)
    return Difference(
        back=files_only_in(old, newest),
        gone=files_only_in(newest, old),
        metadata=None if metadata == newest.metadata else metadata,
        protocol=None if protocol == newest.protocol else protocol,
        domains=_clustering(newest, old),
    )


def files_only_in(one: Snapshot, other: Snapshot) -> LogicalFiles:
    """Return the live files of `one` that are not live in `other`."""
    are_shared = pc.is_in(keys_of(one.files), value_set=one_chunk(keys_of(other.files)))
    return one.files.filter(pc.invert(are_shared))


def with_given_out(old: StructType, newest: StructType) -> StructType:
    """Return the old schema with the newest high water marks, so that no identity value repeats."""
    given = {each.physical_name: each.mark for each in identity_columns(newest)}
    return with_marks(old, {name: mark for name, mark in given.items() if mark is not None})


def _merged(newest: Protocol, old: Protocol) -> Protocol:
    """Return a protocol with the features of both."""
    reader = max(newest.min_reader_version, old.min_reader_version)
    writer = max(newest.min_writer_version, old.min_writer_version)
    if writer < 7:
        return replace(newest, min_reader_version=reader, min_writer_version=writer)
    return extended_protocol(newest, [*writer_features(old), *reader_features(old)])


def _configuration(newest: Mapping[str, str], old: Mapping[str, str]) -> dict[str, str]:
    """Return the old version's properties, except those that a restore must not take back."""
    found = {**{name: newest[name] for name in _STAYING if name in newest}, **old}
    protected = "delta.requireCheckpointProtectionBeforeVersion"
    if protected in newest:
        found[protected] = newest[protected]
    if is_stamped(newest) and is_stamped(old):
        # In-commit timestamps may have been off in between: keep when they were last enabled.
        for name in (SINCE_VERSION, SINCE_TIME):
            found.pop(name, None)
            if name in newest:
                found[name] = newest[name]
    ids = [n for p in (newest, old) if (n := natural(p.get(MAX_ID, ""))) is not None]
    if MAX_ID in old and ids:
        # Never reuse a column's id for another column.
        found[MAX_ID] = str(max(ids))
    return found


def _clustering(newest: Snapshot, old: Snapshot) -> tuple[DomainMetadata, ...]:
    if clustering_columns(newest.domains) == (columns := clustering_columns(old.domains)):
        return ()
    document = {"clusteringColumns": [list(path) for path in columns], "domainName": DOMAIN}
    return (DomainMetadata(DOMAIN, orjson.dumps(document).decode()),)
