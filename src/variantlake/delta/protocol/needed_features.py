"""Find the features that a table's schema and properties need, and make protocols that list them.

Spec: PROTOCOL, "Table Features for New and Existing Tables".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from variantlake.delta.actions.actions import Protocol
from variantlake.delta.protocol.feature_records import FEATURES, Support
from variantlake.delta.protocol.features import (
    VARIANT_SHREDDING,
    VARIANT_TYPE,
    reader_features,
    writer_features,
)
from variantlake.delta.protocol.identity_columns import is_identity
from variantlake.delta.protocol.known_properties import (
    CONSTRAINT_PREFIX,
    FEATURE_PREFIX,
    READER_VERSION,
    WRITER_VERSION,
)
from variantlake.delta.schema.table_schema import PrimitiveType, StructType, types_in
from variantlake.errors import UnsupportedFeature

_CUSTOMARY = ("appendOnly", "invariants")


def needed_features(schema: StructType, properties: Mapping[str, str]) -> list[str]:
    """Return the features that a table with this schema and these properties must list."""
    found = []
    if schema.holds_variant():
        found.append("variantType")
    if PrimitiveType("timestamp_ntz") in types_in(schema):
        found.append("timestampNtz")
    if any("CURRENT_DEFAULT" in item.metadata for item in schema.walk()):
        found.append("allowColumnDefaults")
    if any(item.generation for item in schema.walk()):
        found.append("generatedColumns")
    if any(map(is_identity, schema.fields)):
        found.append("identityColumns")
    if any(key.startswith(CONSTRAINT_PREFIX) for key in properties):
        found.append("checkConstraints")
    found += [
        key.removeprefix(FEATURE_PREFIX) for key in properties if key.startswith(FEATURE_PREFIX)
    ]
    found += [name for name, feature in FEATURES.items() if feature.is_enabled_by(properties)]
    return [*found, *_of_versions(properties)]


def _of_versions(properties: Mapping[str, str]) -> list[str]:
    """Return the features that are implied by the protocol versions among the properties."""
    reader, writer = (int(properties.get(each, 1)) for each in (READER_VERSION, WRITER_VERSION))
    return [
        name
        for name, feature in FEATURES.items()
        if (feature.legacy_reader or 9) <= reader < 3 or (feature.legacy_writer or 9) <= writer < 7
    ]


def new_protocol(names: Iterable[str]) -> Protocol:
    """Return the protocol of a new table with these features and the customary ones.

    Raises UnsupportedFeature for a feature that we do not write.
    """
    return _protocol([*_CUSTOMARY, *names])


def extended_protocol(protocol: Protocol, names: Iterable[str]) -> Protocol:
    """Return `protocol` with these features added, or itself if it has them all.

    Does not add a feature that the table has as a preview. Raises as `new_protocol`.
    """
    listed = (*reader_features(protocol), *writer_features(protocol))
    has = set(listed)
    for alike in (VARIANT_TYPE, VARIANT_SHREDDING, ("typeWidening", "typeWidening-preview")):
        if not has.isdisjoint(alike):
            has.update(alike)
    new = [name for name in names if name not in has]
    if not new:
        return protocol
    listed = (*writer_features(protocol), *reader_features(protocol), *new)
    return _protocol(listed, protocol.min_reader_version)


def _protocol(names: Iterable[str], least: int = 1) -> Protocol:
    features = []
    for name in dict.fromkeys(names):
        feature = FEATURES.get(name)
        if feature is None or feature.write is Support.NO:
            raise UnsupportedFeature(
                f"the feature {name} cannot be written here",
                hint="known features: docs/table-features.md",
            )
        features.append(feature)
        features += [FEATURES[needed] for needed in feature.needs]
    writer = tuple(dict.fromkeys(feature.name for feature in features))
    reader = tuple(dict.fromkeys(feature.name for feature in features if feature.reader))
    # Only reader version 3 lists features. Column mapping alone needs just reader version 2, which
    # older readers support; Delta Spark writes such tables in the same way.
    if least < 3 and reader in ((), ("columnMapping",)):
        return Protocol(1 + len(reader), 7, None, writer)
    return Protocol(3, 7, reader, writer)
