"""The table properties of Delta and of Variantlake, and the values that each may have.

Spec: PROTOCOL, "Table Properties".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from variantlake.delta.protocol import cluster_paths
from variantlake.delta.protocol.feature_records import FEATURES
from variantlake.errors import InvalidSchema, InvalidValue, UnsupportedFeature, did_you_mean
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.inference.hints import parse_hints

if TYPE_CHECKING:  # writing loads modules that reading does not need
    from variantlake.parquet.write.file_writer import Compression

SHREDDING_PROPERTY = "delta.enableVariantShredding"
FEATURE_PREFIX = "delta.feature."
CONSTRAINT_PREFIX = "delta.constraints."
SCHEMA_PREFIX = "variantlake.shredding."
"""Property with the shredding DDL of a column; the column's physical name follows."""
HINTS_PREFIX = "variantlake.hints."
"""Property with the hints for a column's schema; the column's physical name follows."""
CONTRACT_PREFIX = "variantlake.contract."
"""Property with the contract of a column; the column's physical name follows."""
STATS_COLUMNS = "delta.dataSkippingStatsColumns"
"""Property with the columns that have statistics, by their logical names."""
RESIDUAL_SHARE = "variantlake.maxResidualShare"
"""Property with the share of residuals from which a schema is learned again."""
# Properties of features that we do not write: setting them would make the table inconsistent.
_REFUSED = re.compile(
    r"delta\.(enableIcebergCompat.*|enableIcebergWriterCompat.*|universalFormat\..*"
    r"|clusteringColumns|coordinatedCommits\..*|redirect(ReaderWriter|WriterOnly)-preview"
    r"|castIcebergTimeType|ignoreIcebergBucketPartition)"
)
SET_BY_WRITERS = re.compile(
    r"delta\.(columnMapping\.maxColumnId|rowTracking\..*|inCommitTimestampEnablement.*"
    r"|requireCheckpointProtectionBeforeVersion)|variantlake\.(learned|contract)\..*"
    r"|variantlake\.mirror"
)
"""Properties that only writers set, because they depend on them."""
# Names that Delta Spark accepts but that are not properties of a table, with hints.
_INSTEAD = {
    "delta.ignoreProtocolDefaults": "new tables have the features that they need, and no others",
    "delta.enableChangeDataCapture": "its name is delta.enableChangeDataFeed",
    # Spark's own, which its parser refuses.
    "location": "a table is where its path says; clone it to have it in another place",
    "provider": "a table of Delta is one; the data can be written again as another format",
    "external": "a catalog that drops the table leaves its files where they are",
}
READER_VERSION = "delta.minReaderVersion"
WRITER_VERSION = "delta.minWriterVersion"
_VERSIONS = {READER_VERSION: re.compile("[123]"), WRITER_VERSION: re.compile("[1-7]")}
_ANY = re.compile(r".*", re.DOTALL)
_BOOLEAN = re.compile(r"true|false")
_NATURAL = re.compile(r"[1-9]\d{0,8}")
_BYTES = re.compile(r"[1-9]\d{0,11}")
_COUNT = re.compile(r"\d{1,9}")
_ISOLATION = re.compile(r"serializable|writeserializable", re.IGNORECASE)
_SHARE = re.compile(r"0(\.\d{1,9})?|1(\.0{1,9})?")
_DURATION = re.compile(
    r"(interval\s+)?\d+\s+{0}(\s+\d+\s+{0})*".format(
        "(week|day|hour|minute|second|millisecond|microsecond)s?"
    )
)
CODECS: dict[str, Compression] = {
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
VALUES = {
    SHREDDING_PROPERTY: _BOOLEAN,
    cluster_paths.PROPERTY: _ANY,
    "delta.appendOnly": _BOOLEAN,
    "delta.autoOptimize": _BOOLEAN,
    "delta.autoOptimize.autoCompact": _BOOLEAN,
    "delta.autoOptimize.optimizeWrite": _BOOLEAN,
    "delta.checkpoint.writeStatsAsJson": _BOOLEAN,
    "delta.checkpoint.writeStatsAsStruct": _BOOLEAN,
    "delta.checkpointInterval": _NATURAL,
    "delta.checkpointPolicy": re.compile(r"classic|v2"),
    "delta.checkpointRetentionDuration": _DURATION,
    "delta.compatibility.symlinkFormatManifest.enabled": _BOOLEAN,
    "delta.columnMapping.mode": re.compile(r"none|name|id", re.IGNORECASE),
    "delta.dataSkippingNumIndexedCols": re.compile(r"-1|\d{1,9}"),
    STATS_COLUMNS: _ANY,
    "delta.dataSkippingStringPrefixLength": _COUNT,
    "delta.deletedFileRetentionDuration": _DURATION,
    "delta.dropFeatureTruncateHistory.retentionDuration": _DURATION,
    "delta.enableChangeDataFeed": _BOOLEAN,
    "delta.enableDeletionVectors": _BOOLEAN,
    "delta.enableExpiredLogCleanup": _BOOLEAN,
    "delta.enableFullRetentionRollback": _BOOLEAN,
    "delta.enableInCommitTimestamps": _BOOLEAN,
    "delta.enableMaterializePartitionColumnsFeature": _BOOLEAN,
    "delta.enableRowTracking": _BOOLEAN,
    "delta.enableTypeWidening": _BOOLEAN,
    "delta.isolationLevel": _ISOLATION,
    "delta.logRetentionDuration": _DURATION,
    "delta.parquet.compression.codec": re.compile("|".join(CODECS), re.IGNORECASE),
    "delta.parquet.format.version": re.compile(r"1\.0\.0|2\.\d+\.\d+"),
    "delta.randomPrefixLength": _NATURAL,
    "delta.randomizeFilePrefixes": _BOOLEAN,
    "delta.rowTrackingSuspended": _BOOLEAN,
    "delta.sampleRetentionDuration": _DURATION,
    "delta.setTransactionRetentionDuration": _DURATION,
    "delta.writePartitionColumnsToParquet": _BOOLEAN,
    RESIDUAL_SHARE: _SHARE,
    "variantlake.rowGroupBytes": _BYTES,
    "variantlake.rowGroupRows": _NATURAL,
    "variantlake.stats.maxPaths": _COUNT,
    "variantlake.stats.maxBytes": _COUNT,
    "variantlake.stats.stringLength": _NATURAL,
}
"""Every property of Delta's and ours that a user may set, with the pattern of its values."""

_EXAMPLES = {
    _BOOLEAN: "true or false",
    **dict.fromkeys(_VERSIONS.values(), "versions go up to 3 for readers and 7 for writers"),
    _NATURAL: "a number from 1 on",
    _BYTES: "a number of bytes, without a unit",
    _COUNT: "a number from 0 on",
    _ISOLATION: "Serializable or WriteSerializable",
    _SHARE: "a share between 0 and 1, as 0.3; with 1 nothing is learned again",
    _DURATION: "a duration such as 'interval 30 days', without months and years",
}
_CANONICAL = {key.lower(): key for key in (*VALUES, *_VERSIONS, *_INSTEAD)}
OF_COLUMNS = (SCHEMA_PREFIX, HINTS_PREFIX)
_OPEN_PREFIXES = (FEATURE_PREFIX, CONSTRAINT_PREFIX, *OF_COLUMNS)


def is_of_protocol(name: str) -> bool:
    """Whether a property changes the protocol; such a property is not stored in the metadata."""
    return name in _VERSIONS or name.startswith(FEATURE_PREFIX)


def check_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Check properties that a user sets; returns them under their exact names.

    Names may be in any case. Those that start with neither `delta.` nor `variantlake.` are the
    user's own.

    Raises InvalidValue for an unknown name and for a value that the property cannot have,
    InvalidSchema for a shredding schema that does not parse, UnsupportedFeature for a property of a
    feature that we do not write.
    """
    return {name: checked(name, value) for name, value in _named(properties).items()}


def property_name(name: str) -> str:
    """Return a property's exact name, whatever the case. Raises InvalidValue for an unknown one."""
    if not isinstance(name, str):
        raise InvalidValue(f"names of properties are strings, not {name!r}")
    if not name:
        raise InvalidValue("a property needs a name")
    known = _CANONICAL.get(name.lower())
    if known is not None:
        return known
    for prefix in _OPEN_PREFIXES:
        if name.lower().startswith(prefix.lower()) and len(name) > len(prefix):
            return prefix + name[len(prefix) :]
    if not name.lower().startswith(("delta.", "variantlake.")):
        return name
    if _REFUSED.fullmatch(name) or SET_BY_WRITERS.fullmatch(name):
        return name
    whose = "Delta" if name.lower().startswith("delta.") else "Variantlake"
    raise InvalidValue(
        f"there is no property {name!r} of {whose}",
        hint=did_you_mean(name, VALUES)
        or "properties of your own have names that begin with neither delta. nor variantlake.",
    )


def _named(properties: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(properties, Mapping):
        raise InvalidValue(f"properties are a mapping of names to values, not {properties!r}")
    named: dict[str, str] = {}
    for given, value in properties.items():
        name = property_name(given)
        if name in named:
            raise InvalidValue(f"the property {name} is given twice")
        named[name] = value
    return named


def checked(key: str, value: str) -> str:
    """Check a property's value; returns the value to store. Raises as `check_properties`."""
    if not isinstance(value, str):
        raise InvalidValue(
            f"the property {key} is {value!r}: values of properties are strings",
            hint=f"give {str(value).lower()!r}",
        )
    if _REFUSED.fullmatch(key):
        raise UnsupportedFeature(
            f"the property {key} needs a feature that is not written here",
            hint="set it with Delta Spark, which then has to write the table's rows too",
        )
    if key in _INSTEAD:
        raise InvalidValue(f"the property {key} cannot be set here", hint=_INSTEAD[key])
    if SET_BY_WRITERS.fullmatch(key):
        raise InvalidValue(f"the property {key} is set by writers alone")
    if key.startswith(FEATURE_PREFIX):
        _check_feature(key, value)
    if key.startswith(SCHEMA_PREFIX):
        _check_schema(key, value, parse_ddl, "a shredding schema, as in 'kind STRING, at BIGINT'")
    if key.startswith(HINTS_PREFIX):
        _check_schema(key, value, parse_hints, "paths, as in 'user.id BIGINT, output.* DOUBLE'")
    if key == cluster_paths.PROPERTY:
        cluster_paths.check_text(value)
        return ", ".join(cluster_paths.split_paths(value))
    pattern = VALUES.get(key) or _VERSIONS.get(key)
    if pattern is None:
        return value
    # Delta ignores case in durations and booleans, and blanks around durations only.
    text = value.strip().lower() if pattern is _DURATION else value
    text = text.lower() if pattern is _BOOLEAN else text
    if not pattern.fullmatch(text):
        raise InvalidValue(
            f"the property {key} cannot be {value!r}", hint=_EXAMPLES.get(pattern, "")
        )
    return value


def _check_feature(key: str, value: str) -> None:
    if value.lower() not in ("supported", "enabled"):
        raise InvalidValue(f"the property {key} is {value!r}, expected 'supported'")
    name = key.removeprefix(FEATURE_PREFIX)
    if name == "clustering":  # its readers expect clustering columns, and no partitions
        raise InvalidValue(
            "the feature clustering comes with the columns to cluster by",
            hint="ALTER TABLE ... CLUSTER BY (a), or Table.create(..., cluster_by='a')",
            cli_hint="`variantlake alter TABLE 'CLUSTER BY (a)'`",
        )
    if name not in FEATURES:
        raise UnsupportedFeature(
            f"the feature {name} cannot be written here",
            hint=did_you_mean(name, FEATURES) or "known features: docs/table-features.md",
        )


def _check_schema(key: str, value: str, parse: Callable[[str], object], example: str) -> None:
    try:
        parse(value)
    except InvalidSchema as error:
        error.say_first(f"the property {key}")
        error.hint = error.hint or example
        raise
