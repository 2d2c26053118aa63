"""What table properties may say, and which features they bring with them.

Spec: PROTOCOL, "Table Properties", "Table Features for New and Existing Tables".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

from variantlake.delta.actions import Protocol
from variantlake.delta.features import (
    FEATURES,
    VARIANT_SHREDDING,
    VARIANT_TYPE,
    Support,
    reader_features,
    writer_features,
)
from variantlake.delta.schema import PrimitiveType, StructType
from variantlake.errors import InvalidValue, UnsupportedFeature
from variantlake.parquet.write import Compression

SHREDDING_PROPERTY = "delta.enableVariantShredding"
FEATURE_PREFIX = "delta.feature."
CONSTRAINT_PREFIX = "delta.constraints."

_CUSTOMARY = ("appendOnly", "invariants")
# Properties of features that we do not write; whoever sets them would get a table that lies.
_REFUSED = re.compile(
    r"delta\.(enableIcebergCompat.*|enableIcebergWriterCompat.*|universalFormat\..*"
    r"|clusteringColumns|coordinatedCommits\..*)"
)
# Set by writers alone.
_INTERNAL = re.compile(
    r"delta\.(columnMapping\.maxColumnId|rowTracking\..*|inCommitTimestampEnablement.*"
    r"|requireCheckpointProtectionBeforeVersion)"
)
_BOOLEAN = re.compile(r"true|false")
_NATURAL = re.compile(r"[1-9]\d{0,8}")
_DURATION = re.compile(
    r"(interval\s+)?(\d+\s+(week|day|hour|minute|second|millisecond|microsecond)s?\s*)+"
)
_CODECS: dict[str, Compression] = {
    "uncompressed": "none",
    "none": "none",
    "snappy": "snappy",
    "gzip": "gzip",
    "brotli": "brotli",
    # The older framing of LZ4 is deprecated; readers know this one as LZ4_RAW.
    "lz4": "lz4",
    "lz4_raw": "lz4",
    "zstd": "zstd",
}
_VALUES = {
    SHREDDING_PROPERTY: _BOOLEAN,
    "delta.appendOnly": _BOOLEAN,
    "delta.enableChangeDataFeed": _BOOLEAN,
    "delta.enableDeletionVectors": _BOOLEAN,
    "delta.enableExpiredLogCleanup": _BOOLEAN,
    "delta.enableInCommitTimestamps": _BOOLEAN,
    "delta.enableRowTracking": _BOOLEAN,
    "delta.enableTypeWidening": _BOOLEAN,
    "delta.checkpoint.writeStatsAsJson": _BOOLEAN,
    "delta.checkpoint.writeStatsAsStruct": _BOOLEAN,
    "delta.checkpointInterval": _NATURAL,
    "delta.checkpointPolicy": re.compile(r"classic|v2"),
    "delta.columnMapping.mode": re.compile(r"none|name|id"),
    "delta.dataSkippingNumIndexedCols": re.compile(r"-1|\d{1,9}"),
    "delta.deletedFileRetentionDuration": _DURATION,
    "delta.isolationLevel": re.compile(r"serializable|writeserializable|snapshotisolation"),
    "delta.logRetentionDuration": _DURATION,
    "delta.parquet.compression.codec": re.compile("|".join(_CODECS)),
    "delta.parquet.format.version": re.compile(r"1\.0\.0|2\.\d+\.\d+"),
    "delta.setTransactionRetentionDuration": _DURATION,
    "variantlake.stats.maxPaths": re.compile(r"\d{1,9}"),
    "variantlake.stats.maxBytes": re.compile(r"\d{1,9}"),
    "variantlake.stats.stringLength": _NATURAL,
}


def check_properties(properties: Mapping[str, str]) -> None:
    """Refuse what a user may not set.

    Raises InvalidValue for a value that the property cannot have, UnsupportedFeature for a property
    of a feature that we do not write.
    """
    for key, value in properties.items():
        if _REFUSED.fullmatch(key):
            raise UnsupportedFeature(
                f"the property {key} needs a feature that is not written here",
                hint="set it with Delta Spark, which then has to write the table's rows too",
            )
        if _INTERNAL.fullmatch(key):
            raise InvalidValue(f"the property {key} is set by writers alone")
        if key.startswith(FEATURE_PREFIX) and value.lower() not in ("supported", "enabled"):
            raise InvalidValue(f"the property {key} is {value!r}, expected 'supported'")
        pattern = _VALUES.get(key)
        if pattern is not None and not pattern.fullmatch(value.strip().lower()):
            raise InvalidValue(f"the property {key} cannot be {value!r}")


def compression(properties: Mapping[str, str]) -> Compression:
    """The codec of new Parquet files (`delta.parquet.compression.codec`); zstd where none is named.

    Raises UnsupportedFeature for one that cannot be written.
    """
    name = properties.get("delta.parquet.compression.codec", "zstd").strip().lower()
    found = _CODECS.get(name)
    if found is None:
        raise UnsupportedFeature(
            f"Parquet files with the codec {name!r} cannot be written here",
            hint="the property delta.parquet.compression.codec names it",
        )
    return found


def page_version(properties: Mapping[str, str]) -> Literal["1.0", "2.0"]:
    """The version of data pages in new Parquet files (`delta.parquet.format.version`).

    Raises UnsupportedFeature for one that does not exist.
    """
    text = properties.get("delta.parquet.format.version", "1.0.0").strip()
    if not _VALUES["delta.parquet.format.version"].fullmatch(text):
        raise UnsupportedFeature(
            f"there is no Parquet format {text!r}",
            hint="the property delta.parquet.format.version names it",
        )
    return "1.0" if text == "1.0.0" else "2.0"


def constraints(properties: Mapping[str, str]) -> dict[str, str]:
    """The CHECK constraints by name."""
    return {
        key.removeprefix(CONSTRAINT_PREFIX): value
        for key, value in properties.items()
        if key.startswith(CONSTRAINT_PREFIX)
    }


def needed_features(schema: StructType, properties: Mapping[str, str]) -> list[str]:
    """The features that a table with this schema and these properties must list."""
    found = []
    if schema.holds_variant():
        found.append("variantType")
    if any(_is_ntz(item.type) for item in schema.walk()):
        found.append("timestampNtz")
    if any("CURRENT_DEFAULT" in item.metadata for item in schema.walk()):
        found.append("allowColumnDefaults")
    if any(item.generation for item in schema.walk()):
        found.append("generatedColumns")
    if any(key.startswith(CONSTRAINT_PREFIX) for key in properties):
        found.append("checkConstraints")
    found += [
        key.removeprefix(FEATURE_PREFIX) for key in properties if key.startswith(FEATURE_PREFIX)
    ]
    found += [name for name, feature in FEATURES.items() if feature.is_enabled_by(properties)]
    return found


def new_protocol(names: Iterable[str]) -> Protocol:
    """The protocol of a new table with these features and the customary ones.

    Raises UnsupportedFeature for a feature that we do not write.
    """
    return _protocol([*_CUSTOMARY, *names])


def extended_protocol(protocol: Protocol, names: Iterable[str]) -> Protocol:
    """`protocol` with these features too; itself where it has them all.

    A feature that the table has as a preview is not added once more. Raises as `new_protocol`.
    """
    listed = (*reader_features(protocol), *writer_features(protocol))
    has = set(listed)
    for alike in (VARIANT_TYPE, VARIANT_SHREDDING, ("typeWidening", "typeWidening-preview")):
        if not has.isdisjoint(alike):
            has.update(alike)
    new = [name for name in names if name not in has]
    if not new:
        return protocol
    return _protocol([*writer_features(protocol), *reader_features(protocol), *new])


def _protocol(names: Iterable[str]) -> Protocol:
    features = []
    for name in dict.fromkeys(names):
        feature = FEATURES.get(name)
        if feature is None or feature.write is Support.NO:
            raise UnsupportedFeature(
                f"the feature {name} cannot be written here",
                hint="known features: docs/tables.md",
            )
        features.append(feature)
        features += [FEATURES[needed] for needed in feature.needs]
    writer = tuple(dict.fromkeys(feature.name for feature in features))
    reader = tuple(dict.fromkeys(feature.name for feature in features if feature.reader))
    # Without reader features there must be no list of them (PROTOCOL).
    return Protocol(3, 7, reader, writer) if reader else Protocol(1, 7, None, writer)


def _is_ntz(type_: object) -> bool:
    return isinstance(type_, PrimitiveType) and type_.name == "timestamp_ntz"
