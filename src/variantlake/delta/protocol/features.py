"""THE table of Delta table features: one record says for each what we support, or why we refuse.

Checks read the records and repeat no rule. Spec: PROTOCOL, "Table Features", "Valid Feature Names
in Table Features", "Reader Version Requirements", "Writer Version Requirements".
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from variantlake.delta.actions.actions import Protocol
from variantlake.delta.schema.table_schema import StructType
from variantlake.errors import MalformedLog, UnsupportedFeature

MAX_READER_VERSION = 3
MAX_WRITER_VERSION = 7

Active = Callable[[dict[str, str], StructType], bool]


class Support(enum.Enum):
    """What we do about a feature that a table lists.

    YES: obeyed. IF_INACTIVE: fine while nothing in the table uses it (`active` tells).
    BY_CALLER: the log module exposes what is needed, and a scan must declare that it obeys.
    EVALUATED: rows must have gone through the table's SQL expressions, and a writer must declare
    that they have. KEPT: while inactive, or if the writer declares that no row is new. NO:
    refused by name.
    """

    YES = "yes"
    IF_INACTIVE = "while inactive"
    BY_CALLER = "by the scan"
    EVALUATED = "by Spark"
    KEPT = "no new rows"
    NO = "no"


def _never(_properties: dict[str, str], _schema: StructType) -> bool:
    return False


def _always(_properties: dict[str, str], _schema: StructType) -> bool:
    return True


def _property(name: str) -> Active:
    return lambda properties, _schema: properties.get(name, "").lower() == "true"


def _property_prefix(prefix: str) -> Active:
    return lambda properties, _schema: any(name.startswith(prefix) for name in properties)


def _field_metadata(prefix: str) -> Active:
    return lambda _properties, schema: any(
        key.startswith(prefix) for field in schema.walk() for key in field.metadata
    )


def _column_mapping(properties: dict[str, str], _schema: StructType) -> bool:
    return properties.get("delta.columnMapping.mode", "none").lower() != "none"


@dataclass(frozen=True, slots=True)
class TableFeature:
    """One feature. `reader` features bind readers too.

    `legacy_reader` and `legacy_writer` are the protocol versions from which a table without
    feature lists has it. `active` tells whether a table that lists it makes use of it.
    `enabled_by` is the property that a table may only set together with the feature.
    """

    name: str
    reader: bool = False
    read: Support = Support.YES
    write: Support = Support.YES
    active: Active = _always
    needs: tuple[str, ...] = ()
    legacy_reader: int | None = None
    legacy_writer: int | None = None
    enabled_by: str | None = None
    hint: str = ""

    def is_enabled_by(self, properties: Mapping[str, str]) -> bool:
        """Whether these properties switch the feature on."""
        value = properties.get(self.enabled_by or "", "").lower()
        return value not in _SWITCHED_OFF


_SWITCHED_OFF = ("", "false", "none", "classic")
_SPARK_EVALUATES = "append a DataFrame through Spark, which evaluates the table's SQL expressions"


def _iceberg_off(version: str) -> str:
    return (
        "write it with Delta Spark, or, if the table is never read as Iceberg, switch it off"
        f" there: ALTER TABLE ... SET TBLPROPERTIES ('delta.enableIcebergCompat{version}' ="
        " 'false')"
    )


FEATURES: dict[str, TableFeature] = {
    feature.name: feature
    for feature in (
        TableFeature("variantType", reader=True),
        TableFeature("variantType-preview", reader=True),
        TableFeature(
            "variantShredding",
            reader=True,
            needs=("variantType",),
            enabled_by="delta.enableVariantShredding",
        ),
        TableFeature("variantShredding-preview", reader=True, needs=("variantType",)),
        TableFeature("timestampNtz", reader=True),
        TableFeature("vacuumProtocolCheck", reader=True),
        TableFeature("v2Checkpoint", reader=True, enabled_by="delta.checkpointPolicy"),
        TableFeature(
            "columnMapping",
            reader=True,
            read=Support.BY_CALLER,
            active=_column_mapping,
            legacy_reader=2,
            legacy_writer=5,
            enabled_by="delta.columnMapping.mode",
            hint="query this table with Delta Spark",
        ),
        TableFeature(
            # Active by what the files say, not by the property: see Snapshot. Appends add files
            # without vectors.
            "deletionVectors",
            reader=True,
            read=Support.BY_CALLER,
            active=_never,
            enabled_by="delta.enableDeletionVectors",
        ),
        TableFeature(
            # New files have the current types; only the old ones must be widened by a scan.
            "typeWidening",
            reader=True,
            read=Support.BY_CALLER,
            active=_field_metadata("delta.typeChanges"),
            enabled_by="delta.enableTypeWidening",
            hint="rewrite the old files (REORG TABLE ... APPLY (UPGRADE UNIFORM) or a copy)",
        ),
        TableFeature(
            "typeWidening-preview",
            reader=True,
            read=Support.BY_CALLER,
            active=_field_metadata("delta.typeChanges"),
            hint="rewrite the old files by copying the table",
        ),
        TableFeature(
            "catalogManaged",
            reader=True,
            read=Support.NO,
            write=Support.NO,
            hint="only the catalog that manages this table knows its newest commits",
        ),
        TableFeature("appendOnly", legacy_writer=2, enabled_by="delta.appendOnly"),
        TableFeature(
            "invariants",
            write=Support.EVALUATED,
            active=_field_metadata("delta.invariants"),
            legacy_writer=2,
            hint=_SPARK_EVALUATES,
        ),
        TableFeature(
            "checkConstraints",
            write=Support.EVALUATED,
            active=_property_prefix("delta.constraints."),
            legacy_writer=3,
            hint=_SPARK_EVALUATES,
        ),
        # Adds and removes of whole files need no change files: readers take them as inserts and
        # deletes.
        TableFeature("changeDataFeed", legacy_writer=4, enabled_by="delta.enableChangeDataFeed"),
        TableFeature(
            "generatedColumns",
            write=Support.EVALUATED,
            active=_field_metadata("delta.generationExpression"),
            legacy_writer=4,
            hint=_SPARK_EVALUATES,
        ),
        TableFeature(
            "identityColumns",
            write=Support.KEPT,
            active=_field_metadata("delta.identity."),
            legacy_writer=6,
            hint="write with Delta Spark, which alone gives out the numbers of an identity column",
        ),
        # Only a column that is left out takes its default: the writers of rows see to that.
        TableFeature("allowColumnDefaults"),
        TableFeature("domainMetadata"),
        TableFeature("inCommitTimestamp", enabled_by="delta.enableInCommitTimestamps"),
        TableFeature("checkpointProtection"),
        TableFeature(
            "rowTracking", needs=("domainMetadata",), enabled_by="delta.enableRowTracking"
        ),
        TableFeature("clustering", needs=("domainMetadata",)),
        TableFeature(
            "icebergCompatV1",
            write=Support.IF_INACTIVE,
            active=_property("delta.enableIcebergCompatV1"),
            hint=_iceberg_off("V1"),
        ),
        TableFeature(
            "icebergCompatV2",
            write=Support.IF_INACTIVE,
            active=_property("delta.enableIcebergCompatV2"),
            hint=_iceberg_off("V2"),
        ),
    )
}
"""By name; the names are the protocol's."""

SCAN_FEATURES = ("columnMapping", "deletionVectors", "typeWidening", "typeWidening-preview")
"""What our scans obey, of the features that are supported by the scan."""

VARIANT_TYPE = ("variantType", "variantType-preview")
VARIANT_SHREDDING = ("variantShredding", "variantShredding-preview")


def reader_features(protocol: Protocol) -> tuple[str, ...]:
    """The features that bind readers, by list or by legacy version."""
    if protocol.min_reader_version >= 3:
        return protocol.reader_features or ()
    since = {feature.name: feature.legacy_reader for feature in FEATURES.values()}
    return tuple(name for name, v in since.items() if v and v <= protocol.min_reader_version)


def writer_features(protocol: Protocol) -> tuple[str, ...]:
    """The features that bind writers, by list or by legacy version."""
    if protocol.min_writer_version >= 7:
        return protocol.writer_features or ()
    since = {feature.name: feature.legacy_writer for feature in FEATURES.values()}
    return tuple(name for name, v in since.items() if v and v <= protocol.min_writer_version)


def check_protocol(protocol: Protocol) -> None:
    """Raise for a protocol that no table with it can be read by, before its schema is looked at.

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
    """Raise unless a table of this protocol can be read.

    `applies` names the features that the caller obeys in its scan (`columnMapping`).
    Raises UnsupportedFeature by name. `check_protocol` comes first.
    """
    for name in reader_features(protocol):
        feature = _feature(name, "read")
        obeyed = feature.read is Support.YES or name in applies
        if not obeyed and feature.active(properties, schema):
            raise _unreadable(feature)


def check_writable(
    protocol: Protocol,
    properties: dict[str, str],
    schema: StructType,
    *,
    evaluated: bool = False,
    kept: bool = False,
) -> None:
    """Raise unless files can be appended to a table of this protocol.

    `evaluated` says that the rows have gone through the table's SQL expressions (constraints,
    generated columns), or that no rows are added; `kept` that their rows are those that the table
    has, or none. Raises UnsupportedFeature by name.
    """
    check_log_writable(protocol)
    for name in writer_features(protocol):
        feature = FEATURES[name]
        fine = feature.write is Support.YES or (
            (evaluated and feature.write is Support.EVALUATED)
            or (kept and feature.write is Support.KEPT)
        )
        if not fine and feature.active(properties, schema):
            raise _unwritable(feature)


def check_log_writable(protocol: Protocol) -> None:
    """Raise unless anything at all may be written to the log of a table of this protocol.

    Also what changes no version of it: checkpoints, checksums, a cleanup of the log. Raises
    UnsupportedFeature by name.
    """
    _check_versions(protocol)
    for name in writer_features(protocol):
        feature = _feature(name, "write")
        if feature.write is Support.NO:
            raise _unwritable(feature)


def check_variants_listed(protocol: Protocol, schema: StructType) -> None:
    """Raise UnsupportedFeature where rows may not hold Variants, though the schema has them.

    Such a table is read, as Delta Spark does: its files leave no doubt. Spec: PROTOCOL, "Variant
    Data Type": the feature must be in both lists.
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
        f"the table uses the feature {feature.name}, which cannot be read here", hint=feature.hint
    )


def _unwritable(feature: TableFeature) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"the table uses the feature {feature.name}, which cannot be written here",
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
