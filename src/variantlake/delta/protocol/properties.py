"""What table properties may say, and which features they bring with them.

Spec: PROTOCOL, "Table Properties", "Table Features for New and Existing Tables".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from variantlake.delta.actions.log_lines import Protocol
from variantlake.delta.protocol import cluster_paths, learned_schemas
from variantlake.delta.protocol.features import (
    FEATURES,
    VARIANT_SHREDDING,
    VARIANT_TYPE,
    Support,
    reader_features,
    writer_features,
)
from variantlake.delta.schema.table_schema import PrimitiveType, StructType, VariantType
from variantlake.errors import InvalidSchema, InvalidValue, UnsupportedFeature, did_you_mean
from variantlake.parquet.write.file_writer import Compression
from variantlake.shredding.ddl import format_ddl, parse_ddl
from variantlake.shredding.inference.hints import Hint, parse_hints
from variantlake.shredding.schema import ShreddingSchema

SHREDDING_PROPERTY = "delta.enableVariantShredding"
FEATURE_PREFIX = "delta.feature."
CONSTRAINT_PREFIX = "delta.constraints."
SCHEMA_PREFIX = "variantlake.shredding."
"""Property with the shredding DDL of a column; the column's physical name follows."""
HINTS_PREFIX = "variantlake.hints."
"""Property with the hints for a column's schema; the column's physical name follows."""
RESIDUAL_SHARE = "variantlake.maxResidualShare"
"""Property with the share of residuals from which a schema is learned again."""

DEFAULT_RESIDUAL_SHARE = 0.3

_CUSTOMARY = ("appendOnly", "invariants")
# Properties of features that we do not write: setting them would make the table inconsistent.
_REFUSED = re.compile(
    r"delta\.(enableIcebergCompat.*|enableIcebergWriterCompat.*|universalFormat\..*"
    r"|clusteringColumns|coordinatedCommits\..*|redirect(ReaderWriter|WriterOnly)-preview"
    r"|compatibility\.symlinkFormatManifest\.enabled|writePartitionColumnsToParquet"
    r"|enableMaterializePartitionColumnsFeature|castIcebergTimeType|ignoreIcebergBucketPartition)"
)
# Set by writers alone.
_INTERNAL = re.compile(
    r"delta\.(columnMapping\.maxColumnId|rowTracking\..*|inCommitTimestampEnablement.*"
    r"|requireCheckpointProtectionBeforeVersion)|variantlake\.learned\..*"
)
# What Delta Spark takes in the place of a property.
_INSTEAD = {
    "delta.minReaderVersion": "name the features: delta.feature.<name> = supported",
    "delta.minWriterVersion": "name the features: delta.feature.<name> = supported",
    "delta.ignoreProtocolDefaults": "new tables have the features that they need, and no others",
    "delta.enableChangeDataCapture": "its name is delta.enableChangeDataFeed",
}
_ANY = re.compile(r".*", re.DOTALL)
_BOOLEAN = re.compile(r"true|false")
_NATURAL = re.compile(r"[1-9]\d{0,8}")
_BYTES = re.compile(r"[1-9]\d{0,11}")
_COUNT = re.compile(r"\d{1,9}")
_SHARE = re.compile(r"0(\.\d{1,9})?|1(\.0{1,9})?")
_DURATION = re.compile(
    r"(interval\s+)?\d+\s+{0}(\s+\d+\s+{0})*".format(
        "(week|day|hour|minute|second|millisecond|microsecond)s?"
    )
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
    "delta.columnMapping.mode": re.compile(r"none|name|id", re.IGNORECASE),
    "delta.dataSkippingNumIndexedCols": re.compile(r"-1|\d{1,9}"),
    "delta.dataSkippingStatsColumns": _ANY,
    "delta.dataSkippingStringPrefixLength": _COUNT,
    "delta.deletedFileRetentionDuration": _DURATION,
    "delta.dropFeatureTruncateHistory.retentionDuration": _DURATION,
    "delta.enableChangeDataFeed": _BOOLEAN,
    "delta.enableDeletionVectors": _BOOLEAN,
    "delta.enableExpiredLogCleanup": _BOOLEAN,
    "delta.enableFullRetentionRollback": _BOOLEAN,
    "delta.enableInCommitTimestamps": _BOOLEAN,
    "delta.enableRowTracking": _BOOLEAN,
    "delta.enableTypeWidening": _BOOLEAN,
    "delta.isolationLevel": re.compile(
        r"serializable|writeserializable|snapshotisolation", re.IGNORECASE
    ),
    "delta.logRetentionDuration": _DURATION,
    "delta.parquet.compression.codec": re.compile("|".join(_CODECS), re.IGNORECASE),
    "delta.parquet.format.version": re.compile(r"1\.0\.0|2\.\d+\.\d+"),
    "delta.randomPrefixLength": _NATURAL,
    "delta.randomizeFilePrefixes": _BOOLEAN,
    "delta.rowTrackingSuspended": _BOOLEAN,
    "delta.sampleRetentionDuration": _DURATION,
    "delta.setTransactionRetentionDuration": _DURATION,
    RESIDUAL_SHARE: _SHARE,
    "variantlake.rowGroupBytes": _BYTES,
    "variantlake.rowGroupRows": _NATURAL,
    "variantlake.stats.maxPaths": _COUNT,
    "variantlake.stats.maxBytes": _COUNT,
    "variantlake.stats.stringLength": _NATURAL,
}
"""Every property of Delta's and ours that a user may set, and what it may say."""

_EXAMPLES = {
    _BOOLEAN: "true or false",
    _NATURAL: "a number from 1 on",
    _BYTES: "a number of bytes, without a unit",
    _COUNT: "a number from 0 on",
    _SHARE: "a share between 0 and 1, as 0.3; with 1 nothing is learned again",
    _DURATION: "a duration such as 'interval 30 days', without months and years",
}
_CANONICAL = {key.lower(): key for key in (*_VALUES, *_INSTEAD)}
_OF_COLUMNS = (SCHEMA_PREFIX, HINTS_PREFIX)
_OPEN_PREFIXES = (FEATURE_PREFIX, CONSTRAINT_PREFIX, *_OF_COLUMNS)


def check_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """What a user sets, by the names that Delta and we know, which are found in any case.

    Names that begin with neither `delta.` nor `variantlake.` are the user's own.

    Raises InvalidValue for a name that nobody knows and for a value that the property cannot have,
    InvalidSchema for a shredding schema that does not parse, UnsupportedFeature for a property of a
    feature that we do not write.
    """
    return {name: _checked(name, value) for name, value in _named(properties).items()}


def property_name(name: str) -> str:
    """A property's name as Delta and we write it. Raises InvalidValue for one nobody knows."""
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
    if _REFUSED.fullmatch(name) or _INTERNAL.fullmatch(name):
        return name
    whose = "Delta" if name.lower().startswith("delta.") else "Variantlake"
    raise InvalidValue(
        f"there is no property {name!r} of {whose}",
        hint=did_you_mean(name, _VALUES)
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


def _checked(key: str, value: str) -> str:
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
    if _INTERNAL.fullmatch(key):
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
    pattern = _VALUES.get(key)
    if pattern is None:
        return value
    # Delta reads durations in any case and between blanks, booleans only in any case.
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
    if name not in FEATURES:
        raise UnsupportedFeature(
            f"the feature {name} cannot be written here",
            hint=did_you_mean(name, FEATURES) or "known features: docs/tables.md",
        )


def _check_schema(key: str, value: str, parse: Callable[[str], object], example: str) -> None:
    try:
        parse(value)
    except InvalidSchema as error:
        error.message = f"the property {key}: {error.message}"
        error.args = (error.message,)
        error.hint = error.hint or example
        raise


def of_table(properties: Mapping[str, str], schema: StructType) -> dict[str, str]:
    """Properties as a table with these columns keeps them: schemas and hints by physical names.

    A user may name the column as the table does. Raises InvalidSchema for what is no VARIANT
    column, and for statistics of columns that the table does not have.
    """
    _check_stats_columns(properties.get("delta.dataSkippingStatsColumns", ""), schema)
    found = {}
    for key, value in properties.items():
        prefix = next((each for each in _OF_COLUMNS if key.startswith(each)), None)
        if prefix is None:
            found[key] = value
            continue
        name = key.removeprefix(prefix)
        variants = [field for field in schema.fields if isinstance(field.type, VariantType)]
        column = next((f for f in variants if name in (f.name, f.physical_name)), None)
        if column is None:
            known = ", ".join(field.name for field in variants) or "none"
            raise InvalidSchema(
                f"the property {key}: {name!r} is not a VARIANT column of the table",
                hint=f"VARIANT columns: {known}",
            )
        found[prefix + column.physical_name] = value
    return found


def shredding_schemas(
    properties: Mapping[str, str], schema: StructType
) -> dict[str, ShreddingSchema]:
    """The shredding schemas that a table has, by the physical names of its VARIANT columns.

    That of a column is unshredded where the table forbids shredding, and not there while no data
    has come that it could be inferred from. Raises InvalidSchema for one that does not parse.
    """
    enabled = properties.get(SHREDDING_PROPERTY, "").lower() == "true"
    names = [f.physical_name for f in schema.fields if isinstance(f.type, VariantType)]
    if not enabled:
        return {name: ShreddingSchema() for name in names}
    texts = ((name, properties.get(SCHEMA_PREFIX + name)) for name in names)
    return {name: parse_ddl(text) for name, text in texts if text is not None}


def with_schema(
    configuration: Mapping[str, str], column: str, schema: ShreddingSchema, version: int
) -> dict[str, str]:
    """The properties with a schema that was learned for this version of the table.

    `column` is a physical name.
    """
    found = {**configuration, SCHEMA_PREFIX + column: format_ddl(schema)}
    before = learned_schemas.learned_schemas(configuration, column)
    if before is None:
        before = learned_schemas.LearnedSchemas()
        text = configuration.get(SCHEMA_PREFIX + column)
        if text is not None and parse_ddl(text) != schema:  # it was given: ours is the second
            before = before.next(parse_ddl(text), 0)
    elif found == configuration:
        return found
    return found | {learned_schemas.PREFIX + column: before.next(schema, version).text()}


def with_given_schema(
    configuration: Mapping[str, str], column: str, schema: ShreddingSchema
) -> dict[str, str]:
    """The properties with a schema that somebody has given, which stays until another is."""
    found = {**configuration, SCHEMA_PREFIX + column: format_ddl(schema)}
    found.pop(learned_schemas.PREFIX + column, None)
    return found


def hints(properties: Mapping[str, str], column: str) -> tuple[Hint, ...]:
    """The hints for a column's schema (physical name).

    Raises InvalidSchema for those of another writer that cannot be understood.
    """
    return parse_hints(properties.get(HINTS_PREFIX + column, ""))


def max_residual_share(properties: Mapping[str, str]) -> float:
    """The share of residuals from which a schema is learned again; of 1 on, none is.

    Raises InvalidValue for what another engine has set to no share.
    """
    text = properties.get(RESIDUAL_SHARE)
    return DEFAULT_RESIDUAL_SHARE if text is None else float(_checked(RESIDUAL_SHARE, text))


def check_clustering(
    properties: Mapping[str, str], schema: StructType, partition_columns: Sequence[str]
) -> None:
    """Refuse properties whose `variantlake.clusterBy` names what rows cannot be ordered by.

    Raises InvalidSchema, InvalidPath and InvalidValue.
    """
    text = properties.get(cluster_paths.PROPERTY)
    if text is not None:
        known = shredding_schemas(properties, schema)
        cluster_paths.cluster_paths(text, schema, partition_columns, known)


def _check_stats_columns(text: str, schema: StructType) -> None:
    known = {
        ".".join(path[: depth + 1]).lower()
        for path, _ in schema.leaves()
        for depth in range(len(path))
    }
    for name in filter(None, (part.strip() for part in text.split(","))):
        if name.replace("`", "").lower() not in known:
            raise InvalidSchema(
                f"the property delta.dataSkippingStatsColumns: the table has no column {name!r}",
                hint=did_you_mean(name, known),
            )


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
