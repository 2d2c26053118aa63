"""Protocol versions and table features: what is read, what is written, what is refused by name."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests import corpora
from tests.delta.tables import SCHEMA
from variantlake.delta.actions.actions import Protocol
from variantlake.delta.protocol.feature_records import FEATURES, Support
from variantlake.delta.protocol.features import (
    check_protocol,
    check_readable,
    check_writable,
    reader_features,
    writer_features,
)
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.schema.table_schema import StructField, StructType
from variantlake.errors import MalformedLog, UnsupportedFeature


def _protocol(*names: str) -> Protocol:
    reader = tuple(name for name in names if name not in FEATURES or FEATURES[name].reader)
    return Protocol(3, 7, reader, names)


def _with_metadata(**metadata: Any) -> StructType:
    (first, *others) = SCHEMA.fields
    return StructType((StructField(first.name, first.type, metadata=metadata), *others))


@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_that_is_listed_but_not_used_does_not_block_reading(name: str) -> None:
    protocol = _protocol(name)
    if FEATURES[name].read is Support.NO:
        with pytest.raises(UnsupportedFeature, match=name):
            check_protocol(protocol)
        return
    check_protocol(protocol)
    check_readable(protocol, {}, SCHEMA)


def test_an_unknown_reader_feature_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeature, match="quantumTables"):
        check_protocol(Protocol(3, 7, ("quantumTables",), ("quantumTables",)))


def test_an_unknown_writer_feature_blocks_writing_alone() -> None:
    protocol = Protocol(3, 7, (), ("quantumTables",))
    check_protocol(protocol)
    check_readable(protocol, {}, SCHEMA)
    with pytest.raises(UnsupportedFeature, match="quantumTables"):
        check_writable(protocol, {}, SCHEMA)


@pytest.mark.parametrize(("reader", "writer"), [(4, 7), (3, 8), (10**9, 10**9)])
def test_later_versions_are_refused(reader: int, writer: int) -> None:
    with pytest.raises(UnsupportedFeature, match=f"reader version {reader}"):
        check_protocol(Protocol(reader, writer, (), ()))


@pytest.mark.parametrize(("reader", "writer"), [(3, 6), (0, 2), (1, 0), (-1, -1)])
def test_versions_that_cannot_be_are_refused(reader: int, writer: int) -> None:
    with pytest.raises(MalformedLog):
        check_protocol(Protocol(reader, writer, ()))


def test_a_feature_for_readers_alone_is_refused() -> None:
    with pytest.raises(MalformedLog, match="only in readerFeatures: variantType"):
        check_protocol(Protocol(3, 7, ("variantType",), ()))


def test_legacy_versions_imply_features() -> None:
    assert reader_features(Protocol(1, 2)) == ()
    assert set(writer_features(Protocol(1, 2))) == {"appendOnly", "invariants"}
    assert reader_features(Protocol(2, 5)) == ("columnMapping",)
    assert set(writer_features(Protocol(2, 6))) == {
        "appendOnly",
        "invariants",
        "checkConstraints",
        "changeDataFeed",
        "generatedColumns",
        "columnMapping",
        "identityColumns",
    }
    assert reader_features(Protocol(2, 7, None, ("appendOnly",))) == ("columnMapping",)


MAPPED = {"delta.columnMapping.mode": "name"}


def test_column_mapping_is_read_where_the_scan_obeys_it() -> None:
    for protocol in (Protocol(2, 5), _protocol("columnMapping")):
        check_readable(protocol, {"delta.columnMapping.mode": "none"}, SCHEMA)
        check_readable(protocol, MAPPED, SCHEMA, applies={"columnMapping"})
        with pytest.raises(UnsupportedFeature, match="columnMapping") as caught:
            check_readable(protocol, MAPPED, SCHEMA)
        assert "query" in caught.value.hint


def test_type_changes_are_refused() -> None:
    changed = _with_metadata(**{"delta.typeChanges": []})
    check_readable(_protocol("typeWidening"), {}, SCHEMA)
    with pytest.raises(UnsupportedFeature, match="typeWidening"):
        check_readable(_protocol("typeWidening"), {}, changed)


WRITING = [
    ("checkConstraints", {"delta.constraints.positive": "n > 0"}, {}),
    ("invariants", {}, {"delta.invariants": "{}"}),
    ("generatedColumns", {}, {"delta.generationExpression": "1"}),
    ("identityColumns", {}, {"delta.identity.start": 1}),
    ("icebergCompatV2", {"delta.enableIcebergCompatV2": "true"}, {}),
]


@pytest.mark.parametrize(("name", "properties", "metadata"), WRITING)
def test_a_feature_that_needs_evaluation_blocks_writing_once_it_is_used(
    name: str, properties: dict[str, str], metadata: dict[str, Any]
) -> None:
    protocol = _protocol(name)
    check_writable(protocol, {}, SCHEMA)
    with pytest.raises(UnsupportedFeature, match=name) as caught:
        check_writable(protocol, properties, _with_metadata(**metadata))
    assert "Spark" in caught.value.hint


def test_metadata_of_nested_fields_counts_too() -> None:
    schema = parse_table_ddl("a ARRAY<STRUCT<x: INT>>, m MAP<STRING, STRUCT<y: INT>>")
    text = schema.to_json().replace(
        '"name":"y","type":"integer","nullable":true,"metadata":{}',
        '"name":"y","type":"integer","nullable":true,"metadata":{"delta.invariants":"{}"}',
    )
    with pytest.raises(UnsupportedFeature, match="invariants"):
        check_writable(Protocol(1, 2), {}, StructType.from_json(text))


@pytest.mark.parametrize(("name", "properties", "metadata"), WRITING[:3])
def test_rows_that_spark_evaluated_may_be_written(
    name: str, properties: dict[str, str], metadata: dict[str, Any]
) -> None:
    schema = _with_metadata(**metadata)
    check_writable(_protocol(name), properties, schema, evaluated=True)
    with pytest.raises(UnsupportedFeature) as caught:
        check_writable(_protocol(name), properties, schema)
    assert "write through Spark (lake.append" in caught.value.hint


@pytest.mark.parametrize("name", ["catalogManaged", "quantumTables"])
def test_features_that_are_never_written(name: str) -> None:
    with pytest.raises(UnsupportedFeature, match=name):
        check_writable(_protocol(name), {}, SCHEMA, evaluated=True)


def test_every_feature_that_another_needs_is_known() -> None:
    for feature in FEATURES.values():
        assert set(feature.needs) <= set(FEATURES)


def test_the_table_knows_the_names_of_the_protocol() -> None:
    # PROTOCOL, "Valid Feature Names in Table Features", and the sections that add to it.
    assert set(FEATURES) >= {
        "appendOnly",
        "invariants",
        "checkConstraints",
        "generatedColumns",
        "allowColumnDefaults",
        "changeDataFeed",
        "columnMapping",
        "identityColumns",
        "deletionVectors",
        "rowTracking",
        "timestampNtz",
        "domainMetadata",
        "v2Checkpoint",
        "catalogManaged",
        "icebergCompatV1",
        "icebergCompatV2",
        "icebergCompatV3",
        "clustering",
        "checkpointProtection",
        "materializePartitionColumns",
        "collations",
        "geospatial",
        "adaptiveMetadata-preview",
        "coordinatedCommits-preview",
        "redirectReaderWriter-preview",
        "redirectWriterOnly-preview",
        "timestampNanos",
        "vacuumProtocolCheck",
        "inCommitTimestamp",
        "typeWidening",
        "variantType",
        "variantShredding",
    }
    assert all(re.fullmatch(r"[A-Za-z0-9-]+", name) for name in FEATURES)


def test_the_table_of_features_in_the_docs_is_that_of_the_records() -> None:
    text = (corpora.REPOSITORY / "docs/table-features.md").read_text(encoding="utf-8")
    for feature in FEATURES.values():
        row = (
            f"| `{feature.name}` | {feature.read.value} | {feature.write.value} | {feature.what} | "
        )
        row += f"{feature.writers} | {feature.hint} |\n"
        assert row.replace("|  |", "| |") in text, f"docs/table-features.md says otherwise: {row}"
        is_refused = {feature.read, feature.write} - {Support.YES, Support.BY_CALLER}
        assert feature.hint or not is_refused, f"nothing says what to do about {feature.name}"
