"""What a new table starts with: its protocol, its properties, and a schema that Delta can hold.

Spec: PROTOCOL, "Table Features for New and Existing Tables", "Schema Serialization Format".
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Mapping, Sequence

from variantlake.delta.actions import Metadata, Protocol
from variantlake.delta.features import FEATURES, Support
from variantlake.delta.schema import PrimitiveType, StructType, VariantType
from variantlake.errors import InvalidSchema, UnsupportedFeature

SHREDDING_PROPERTY = "delta.enableVariantShredding"

_CUSTOMARY = ("appendOnly", "invariants")
# A property that is only valid with its feature.
_ENABLED_BY = {
    SHREDDING_PROPERTY: "variantShredding",
    "delta.appendOnly": "appendOnly",
    "delta.enableChangeDataFeed": "changeDataFeed",
    "delta.enableInCommitTimestamps": "inCommitTimestamp",
    "delta.enableDeletionVectors": "deletionVectors",
}
# Properties of features that we do not write; whoever sets them would get a table that lies.
_REFUSED = re.compile(
    r"delta\.(columnMapping\..*|constraints\..*|enableRowTracking|enableTypeWidening"
    r"|enableIcebergCompat.*|universalFormat\..*|clusteringColumns|coordinatedCommits\..*)"
)
_FEATURE_PROPERTY = "delta.feature."
# Parquet readers of old refuse these, and so does Delta Spark without column mapping.
_FORBIDDEN_IN_NAMES = re.compile(r"[ ,;{}()\n\t=]")


def new_table(
    schema: StructType,
    partition_columns: Sequence[str],
    properties: Mapping[str, str],
    *,
    name: str | None = None,
    description: str | None = None,
) -> tuple[Protocol, Metadata]:
    """The first protocol and metadata of a table.

    A table with a Variant column gets `variantShredding` too, enabled unless the properties say
    otherwise, and statistics as columns in its checkpoints.

    Raises InvalidSchema for a schema or partitioning that a Delta table cannot have,
    UnsupportedFeature for a property of a feature that we do not write.
    """
    check_schema(schema, partition_columns)
    configuration = {"delta.checkpoint.writeStatsAsStruct": "true"}
    features = list(_CUSTOMARY)
    if schema.holds_variant():
        configuration[SHREDDING_PROPERTY] = "true"
        features += ["variantType", "variantShredding"]
    if any(_is_ntz(item.type) for item in schema.walk()):
        features.append("timestampNtz")
    for key, value in properties.items():
        if key.startswith(_FEATURE_PROPERTY):
            features.append(key.removeprefix(_FEATURE_PROPERTY))
            continue
        if _REFUSED.fullmatch(key):
            raise UnsupportedFeature(f"the property {key} needs a feature that is not written here")
        configuration[key] = value
        if key in _ENABLED_BY and value.lower() == "true":
            features.append(_ENABLED_BY[key])
    return _protocol(features), Metadata(
        id=str(uuid.uuid4()),
        schema_string=schema.to_json(),
        partition_columns=tuple(partition_columns),
        configuration=configuration,
        name=name,
        description=description,
        created_time=time.time_ns() // 1_000_000,
    )


def _protocol(names: Sequence[str]) -> Protocol:
    features = []
    for name in dict.fromkeys(names):
        feature = FEATURES.get(name)
        if feature is None or feature.write in (Support.NO, Support.BY_CALLER):
            raise UnsupportedFeature(f"the feature {name} cannot be written here")
        features.append(feature)
        features += [FEATURES[needed] for needed in feature.needs]
    writer = tuple(dict.fromkeys(feature.name for feature in features))
    reader = tuple(dict.fromkeys(feature.name for feature in features if feature.reader))
    # Without reader features there must be no list of them (PROTOCOL).
    return Protocol(3, 7, reader, writer) if reader else Protocol(1, 7, None, writer)


def check_schema(schema: StructType, partition_columns: Sequence[str]) -> None:
    """Refuse a schema or partitioning that a Delta table cannot have.

    Raises InvalidSchema naming the column.
    """
    if not schema.fields:
        raise InvalidSchema("a table needs at least one column")
    _check_names(schema, "")
    for column in partition_columns:
        field = schema.get(column)
        if field is None:
            known = ", ".join(item.name for item in schema.fields)
            raise InvalidSchema(
                f"partition column {column!r} is not in the schema", hint=f"columns: {known}"
            )
        if isinstance(field.type, VariantType):
            raise InvalidSchema(
                f"column {column!r} is a Variant, which cannot partition a table",
                hint="partition by an ordinary column; paths of a Variant skip files by statistics",
            )
        if not isinstance(field.type, PrimitiveType):
            raise InvalidSchema(f"column {column!r} is nested, and cannot partition a table")
    if len(set(partition_columns)) != len(partition_columns):
        raise InvalidSchema("a partition column stands twice")
    if len(partition_columns) == len(schema.fields):
        raise InvalidSchema("a table needs a column that it is not partitioned by")


def _check_names(schema: StructType, where: str) -> None:
    seen: dict[str, str] = {}
    for item in schema.fields:
        name = f"{where}{item.name}"
        if not item.name or _FORBIDDEN_IN_NAMES.search(item.name):
            raise InvalidSchema(
                f"column name {name!r} is empty or holds one of ' ,;{{}}()\\n\\t='",
                hint="Delta tables without column mapping cannot have it",
            )
        if (twin := seen.get(item.name.lower())) is not None:
            raise InvalidSchema(f"columns {twin!r} and {item.name!r} differ by case at most")
        seen[item.name.lower()] = item.name
        if isinstance(item.type, StructType):
            _check_names(item.type, f"{name}.")


def _is_ntz(type_: object) -> bool:
    return isinstance(type_, PrimitiveType) and type_.name == "timestamp_ntz"
