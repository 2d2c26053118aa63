"""Check whether a table's protocol lets us read and write it, by `feature_records`.

Spec: PROTOCOL, "Table Features", "Reader Version Requirements", "Writer Version Requirements".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from variantlake.delta.actions.actions import Protocol
from variantlake.delta.protocol.feature_records import FEATURES, Support, TableFeature
from variantlake.delta.schema.table_schema import StructType
from variantlake.errors import InvalidSchema, MalformedLog, UnsupportedFeature

MAX_READER_VERSION = 3
MAX_WRITER_VERSION = 7

SCAN_FEATURES = ("columnMapping", "deletionVectors", "typeWidening", "typeWidening-preview")
"""The features with support BY_CALLER that our scans obey."""

MATERIALIZED = "materializePartitionColumns"
VARIANT_TYPE = ("variantType", "variantType-preview")
VARIANT_SHREDDING = ("variantShredding", "variantShredding-preview")


def reader_features(protocol: Protocol) -> tuple[str, ...]:
    """Return the reader features, from the protocol's list or implied by its legacy version."""
    if protocol.min_reader_version >= 3:
        return protocol.reader_features or ()
    since = {feature.name: feature.legacy_reader for feature in FEATURES.values()}
    return tuple(name for name, v in since.items() if v and v <= protocol.min_reader_version)


def writer_features(protocol: Protocol) -> tuple[str, ...]:
    """Return the writer features, from the protocol's list or implied by its legacy version."""
    if protocol.min_writer_version >= 7:
        return protocol.writer_features or ()
    since = {feature.name: feature.legacy_writer for feature in FEATURES.values()}
    return tuple(name for name, v in since.items() if v and v <= protocol.min_writer_version)


def check_protocol(protocol: Protocol) -> None:
    """Raise if no table with this protocol can be read, whatever its schema and properties.

    Raises UnsupportedFeature by name, MalformedLog for a protocol that contradicts itself.
    """
    _check_versions(protocol)
    for name in reader_features(protocol):
        feature = _feature(name, "read")
        if feature.read is Support.NO:
            raise _unreadable(feature)


def check_readable(
    protocol: Protocol,
    properties: dict[str, str],
    schema: StructType,
    *,
    applies: Collection[str] = (),
) -> None:
    """Raise unless a table of this protocol can be read. Call `check_protocol` first.

    `applies` names the features that the caller obeys in its scan (`columnMapping`).
    Raises UnsupportedFeature by name.
    """
    for name in reader_features(protocol):
        feature = _feature(name, "read")
        obeyed = feature.read is Support.YES or name in applies
        if not obeyed and feature.active(properties, schema):
            raise _unreadable(feature)


def check_writable(
    protocol: Protocol,
    properties: Mapping[str, str],
    schema: StructType,
    *,
    evaluated: bool = False,
    kept: bool = False,
    numbered: bool = False,
) -> None:
    """Raise unless files can be appended to a table of this protocol.

    `evaluated` declares that the table's SQL expressions (constraints, generated columns) were
    evaluated for all new rows, `kept` that there are no new rows, and `numbered` that new rows have
    the numbers of identity columns. Raises UnsupportedFeature by name.
    """
    check_log_writable(protocol)
    for name in writer_features(protocol):
        feature = FEATURES[name]
        fine = feature.write is Support.YES or (
            (evaluated and feature.write is Support.EVALUATED)
            or ((kept or numbered) and feature.write is Support.NUMBERED)
        )
        if not fine and feature.active(properties, schema):
            raise _unwritable(feature)


def check_log_writable(protocol: Protocol) -> None:
    """Raise unless we may write to the log of a table of this protocol.

    That includes checkpoints, checksums and log cleanup, which make no new version. Raises
    UnsupportedFeature by name.
    """
    _check_versions(protocol)
    for name in writer_features(protocol):
        feature = _feature(name, "write")
        if feature.write is Support.NO:
            raise _unwritable(feature)


def check_defaults_listed(features: Collection[str], statement: str) -> None:
    """Raise InvalidSchema unless the table has the feature of column defaults.

    As in Delta Spark, users must enable it explicitly, because it locks out older writers.
    """
    if "allowColumnDefaults" not in features:
        asks = "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
        raise InvalidSchema(
            "[WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED] a column has a DEFAULT, and the"
            " table has not the feature allowColumnDefaults",
            hint=f"ALTER TABLE ... SET {asks} enables it"
            if statement == "ALTER TABLE"
            else f"{statement} ... {asks} enables it",
        )


def check_variants_listed(protocol: Protocol, schema: StructType) -> None:
    """Raise UnsupportedFeature if the schema has Variants, but the protocol lacks the feature.

    Such a table is readable, as in Delta Spark, because its files are unambiguous. Spec: PROTOCOL,
    "Variant Data Type": the feature must be in both lists.
    """
    if schema.holds_variant() and set(VARIANT_TYPE).isdisjoint(writer_features(protocol)):
        raise UnsupportedFeature(
            "the table has VARIANT columns, and its protocol does not list the feature variantType",
            hint="Table.set_properties({'delta.enableVariantShredding': 'true'}) lists it, with "
            "'false' without variantShredding",
            cli_hint="ALTER TABLE ... SET TBLPROPERTIES ('delta.enableVariantShredding' = 'true') "
            "in Delta Spark lists it",
        )


def _check_versions(protocol: Protocol) -> None:
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    if reader > MAX_READER_VERSION or writer > MAX_WRITER_VERSION:
        raise UnsupportedFeature(
            f"the table needs reader version {reader} and writer version {writer}, beyond "
            f"{MAX_READER_VERSION} and {MAX_WRITER_VERSION}",
            hint="a newer version of this package may know them",
        )
    if reader < 1 or writer < 1 or (reader >= 3 and writer < 7):
        raise MalformedLog(f"protocol versions {reader} and {writer} do not go together")
    missing = set(protocol.reader_features or ()) - set(protocol.writer_features or ())
    if missing:
        raise MalformedLog(f"features only in readerFeatures: {', '.join(sorted(missing))}")


def _unreadable(feature: TableFeature) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"the table uses the feature {feature.name}, which cannot be read here ({feature.what})",
        hint=feature.hint,
    )


def _unwritable(feature: TableFeature) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"the table uses the feature {feature.name}, which cannot be written here ({feature.what})",
        hint=feature.hint,
    )


def _feature(name: str, verb: str) -> TableFeature:
    feature = FEATURES.get(name)
    if feature is None:
        raise UnsupportedFeature(
            f"the table uses the feature {name}, which this version does not know",
            hint=f"a newer version of this package may {verb} it",
        )
    return feature
