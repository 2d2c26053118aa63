"""Table properties are refused when they are set, not found out of use later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.errors import InvalidSchema, InvalidValue, UnsupportedFeature, VariantLakeError
from variantlake.ingest.local_run import ingest_here

SCHEMA = "event VARIANT, day DATE"

WRONG: list[tuple[str, object, type[VariantLakeError], str]] = [
    ("variantlake.shredding.event", "kind STRNG", InvalidSchema, "unknown type"),
    ("variantlake.shredding.evnt", "kind STRING", InvalidSchema, "VARIANT columns: event"),
    ("variantlake.shredding.day", "kind STRING", InvalidSchema, "not a VARIANT column"),
    ("variantlake.rowGroupBytes", "12xx", InvalidValue, "a number of bytes"),
    ("variantlake.rowGroupRows", "0", InvalidValue, "from 1 on"),
    ("variantlake.rowGroupByte", "12", InvalidValue, "did you mean variantlake.rowGroupBytes"),
    ("variantlake.stats.maxPaths", "-3", InvalidValue, "from 0 on"),
    ("delta.appendOnly", "yes", InvalidValue, "true or false"),
    ("delta.appendOnly", " true", InvalidValue, "true or false"),
    ("delta.appendOnly", True, InvalidValue, "strings"),
    ("delta.apendOnly", "true", InvalidValue, "did you mean delta.appendOnly"),
    ("delta.nonsense", "1", InvalidValue, "no property 'delta.nonsense' of Delta"),
    ("delta.checkpointInterval", "0", InvalidValue, "from 1 on"),
    ("delta.checkpointPolicy", "V2", InvalidValue, "cannot be"),
    ("delta.dataSkippingNumIndexedCols", "-2", InvalidValue, "cannot be"),
    ("delta.dataSkippingStatsColumns", "evnt", InvalidSchema, "did you mean event"),
    ("delta.logRetentionDuration", "30", InvalidValue, "interval 30 days"),
    ("delta.logRetentionDuration", "interval 1 month", InvalidValue, "without months"),
    ("delta.autoOptimize.autoCompact", "auto", InvalidValue, "true or false"),
    ("delta.minReaderVersion", "4", InvalidValue, "up to 3"),
    ("delta.columnMapping.maxColumnId", "3", InvalidValue, "writers alone"),
    ("delta.feature.apendOnly", "supported", UnsupportedFeature, "did you mean appendOnly"),
    ("delta.universalFormat.enabledFormats", "hudi", UnsupportedFeature, "not written here"),
    ("delta.isolationLevel", "SnapshotIsolation", InvalidValue, "Serializable or Write"),
    ("delta.feature.clustering", "supported", InvalidValue, "columns to cluster by"),
    ("location", "/elsewhere", InvalidValue, "clone it"),
    ("", "x", InvalidValue, "needs a name"),
]


@pytest.mark.parametrize(
    ("name", "value", "error", "says"), WRONG, ids=[f"{each[0]}={each[1]}" for each in WRONG]
)
def test_wrong_ones_are_refused_when_set(
    tmp_path: Path, name: str, value: str, error: type[VariantLakeError], says: str
) -> None:
    with pytest.raises(error, match=says):
        vl.Table.create(tmp_path / "t", SCHEMA, properties={name: value})
    table = vl.Table.create(tmp_path / "u", SCHEMA)
    with pytest.raises(error, match=says):
        table.set_properties({name: value})
    source = tmp_path / "a.ndjson"
    source.write_text("{}\n")
    with pytest.raises(error):
        ingest_here(source, tmp_path / "v", properties={name: value})
    assert not (tmp_path / "v").exists()


def test_names_and_values_are_strings_of_a_mapping(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", SCHEMA)
    wrong: list[Any] = [{1: "x"}, {"a.b": 1}, ["a.b"], "a.b"]
    for properties in wrong:
        with pytest.raises(InvalidValue, match="properties"):
            table.set_properties(properties)
        with pytest.raises(InvalidValue, match="properties"):
            vl.Table.create(tmp_path / "u", SCHEMA, properties=properties)


def test_the_log_lasts_as_long_as_removed_files(tmp_path: Path) -> None:
    log, files = "delta.logRetentionDuration", "delta.deletedFileRetentionDuration"
    short = {log: "interval 1 day"}
    with pytest.raises(InvalidValue, match=r"\(interval 1 day\) is shorter than .* 1 week"):
        vl.Table.create(tmp_path, SCHEMA, properties=short)
    table = vl.Table.create(tmp_path, SCHEMA, properties={**short, files: "interval 1 day"})
    with pytest.raises(InvalidValue, match=r"is shorter than .* \(interval 2 days\)"):
        table.set_properties({files: "interval 2 days"})
    table.set_properties({files: "interval 2 days", log: "interval 48 hours"})
    table.set_properties({"owner": "me"})


def test_versions_of_the_protocol_bring_the_features_that_they_stand_for(tmp_path: Path) -> None:
    """As Delta's documentation switches column mapping on, for a new table and for an old one."""
    wanted = {
        "delta.minReaderVersion": "2",
        "delta.minWriterVersion": "5",
        "delta.columnMapping.mode": "name",
    }
    for table in (
        vl.Table.create(tmp_path / "a", "a INT", properties=wanted),
        vl.Table.create(tmp_path / "b", "a INT"),
    ):
        table.set_properties(wanted)
        table.rename_column("a", "b")
        protocol = table.refresh().protocol
        assert (protocol.min_reader_version, protocol.min_writer_version) == (2, 7)
        assert protocol.reader_features is None
        assert {"columnMapping", "changeDataFeed", "generatedColumns"} <= {
            *(protocol.writer_features or ())
        }
        assert "delta.minReaderVersion" not in table.properties
        before = table.version
        table.set_properties({"delta.minReaderVersion": "3", "delta.minWriterVersion": "7"})
        assert table.refresh().protocol == protocol
        assert table.version == before  # it is so already
        # Versions never go down again.
        table.set_properties({"delta.feature.deletionVectors": "supported"})
        assert table.refresh().protocol.min_reader_version == 3
        table.append(pa.table({"b": pa.array([1], pa.int32())}))
        assert table.scan().count() == 1


def test_names_are_known_in_any_case(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", SCHEMA, properties={"DELTA.APPENDONLY": "TRUE"})
    table.set_properties({"VariantLake.RowGroupRows": "7", "mine": "anything"})
    found = table.refresh().properties
    assert (found["delta.appendOnly"], found["variantlake.rowGroupRows"]) == ("TRUE", "7")
    assert found["mine"] == "anything"
    table.unset_properties("delta.appendonly")
    assert "delta.appendOnly" not in table.refresh().properties
    with pytest.raises(InvalidValue, match=r"did you mean delta\.appendOnly"):
        table.unset_properties("delta.apendOnly")
    with pytest.raises(InvalidValue, match="twice"):
        table.set_properties({"delta.appendOnly": "true", "delta.appendonly": "false"})


def test_a_number_that_another_engine_wrote_wrong_is_refused_by_a_load(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "k INT", properties={"variantlake.rowGroupRows": "12"})
    log = tmp_path / "t/_delta_log" / f"{0:020}.json"
    log.write_text(
        log.read_text().replace(
            '"variantlake.rowGroupRows":"12"', '"variantlake.rowGroupRows":"1x"'
        )
    )
    (tmp_path / "t/_delta_log" / f"{0:020}.crc").unlink(missing_ok=True)
    with pytest.raises(InvalidValue, match="rowGroupRows"):
        vl.Table.open(tmp_path / "t").append(pa.table({"k": pa.array([1], pa.int32())}))
    assert table.version == 0


def test_shredding_follows_a_column_to_its_physical_name(tmp_path: Path) -> None:
    mapped = {"delta.columnMapping.mode": "name"}
    table = vl.Table.create(
        tmp_path / "t", "event VARIANT", properties=mapped, shredding={"event": "kind STRING"}
    )
    physical = table.schema.fields[0].physical_name
    assert table.properties[f"variantlake.shredding.{physical}"] == "kind STRING"
    table.set_properties({"variantlake.shredding.event": "kind STRING, n BIGINT"})
    found = table.refresh().properties
    assert found[f"variantlake.shredding.{physical}"] == "kind STRING, n BIGINT"
    assert "variantlake.shredding.event" not in found


def test_a_load_that_makes_a_mapped_table_writes_what_it_reads(tmp_path: Path) -> None:
    source = tmp_path / "a.ndjson"
    source.write_text('{"kind":"x"}\n')
    ingest_here(source, tmp_path / "t", properties={"delta.columnMapping.mode": "name"})
    found = vl.Table.open(tmp_path / "t").scan("event:kind::string AS kind").to_arrow()
    assert found.to_pylist() == [{"kind": "x"}]
