"""The façade's changes of a table: overwrite, new columns, properties."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl
from tests.table.test_table import rows
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import (
    CommitConflict,
    InvalidJson,
    InvalidQuery,
    InvalidSchema,
    InvalidValue,
    MissingSource,
    UnsupportedFeature,
)
from variantlake.ingest.local_run import ingest_here
from variantlake.ingest.overwrite import Overwrite

DAYS = [dt.date(2026, 1, 1), dt.date(2026, 1, 2)]


def _data(*pairs: tuple[int, int]) -> pa.Table:
    """Rows of a number and the index of a day; the Variant says the number too."""
    return pa.table(
        {
            "event": pa.array([json.dumps({"a": n}) for n, _ in pairs], pa.string()),
            "n": pa.array([n for n, _ in pairs], pa.int32()),
            "day": pa.array([DAYS[i] for _, i in pairs], pa.date32()),
        }
    )


@pytest.fixture
def table(tmp_path: Path) -> vl.Table:
    table = vl.Table.create(tmp_path, "event VARIANT, n INT, day DATE", partition_by=["day"])
    table.append(_data((1, 0), (2, 1)), json_columns=["event"])
    return table.refresh()


def _numbers(table: vl.Table) -> list[int]:
    return sorted(row["n"] for row in rows(Path(table.uri)))


def test_an_overwrite_replaces_all_rows_and_keeps_the_old_version(table: vl.Table) -> None:
    assert table.overwrite(_data((7, 0)), json_columns=["event"]).version == 2
    assert _numbers(table) == [7]
    assert vl.Table.open(table.uri, version=1).files().num_rows == 2
    info = table.refresh().history(1)[0].info
    assert info["operationParameters"]["mode"] == "Overwrite"
    assert info["operationMetrics"]["numRemovedFiles"] == "2"
    assert not info["isBlindAppend"]


def test_an_overwrite_of_an_expected_version_keeps_what_came_later(table: vl.Table) -> None:
    version = table.refresh().version
    known = _numbers(table.refresh())
    partition = {"day": dt.date(2026, 1, 1)}
    table.append(_data((7, 0)), json_columns=["event"])
    for where in (None, partition):
        with pytest.raises(CommitConflict, match=r"added file .*, which was not read"):
            table.overwrite(
                _data((8, 0)), where=where, expected_version=version, json_columns=["event"]
            )
    assert _numbers(table.refresh()) == sorted([*known, 7])
    other = {"day": dt.date(2026, 1, 2)}
    table.overwrite(_data((9, 1)), where=other, expected_version=version, json_columns=["event"])
    assert {7, 9} <= set(_numbers(table.refresh()))
    with pytest.raises(MissingSource, match="version 99 does not exist"):
        table.overwrite(_data((8, 0)), expected_version=99, json_columns=["event"])
    wrong: Any = "1"
    with pytest.raises(InvalidValue, match="expected_version is '1'"):
        table.overwrite(_data((8, 0)), expected_version=wrong, json_columns=["event"])
    newest = table.refresh().version
    table.overwrite(_data((8, 0)), expected_version=newest, json_columns=["event"])
    assert _numbers(table.refresh()) == [8]


def test_a_version_of_no_table_cannot_be_expected(tmp_path: Path) -> None:
    (tmp_path / "d.ndjson").write_text('{"a": 1}\n')
    with pytest.raises(MissingSource, match="no table, and its version 0 was expected"):
        ingest_here(tmp_path / "d.ndjson", tmp_path / "t", overwrite=Overwrite(expected_version=0))
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("level", ["Serializable", "WriteSerializable"])
def test_an_expected_version_holds_at_every_isolation_level(tmp_path: Path, level: str) -> None:
    isolation = {"delta.isolationLevel": level}
    made = vl.Table.create(tmp_path / "t", "n INT", properties=isolation)
    rows = pa.table({"n": pa.array([1], pa.int32())})
    made.append(rows)
    with pytest.raises(CommitConflict):
        made.overwrite(rows, expected_version=0)
    (tmp_path / "d.ndjson").write_text('{"a": 1}\n')
    events = vl.Table.create(tmp_path / "e", "event VARIANT", properties=isolation)
    events.append(vl.ndjson(tmp_path / "d.ndjson"))
    with pytest.raises(CommitConflict):
        events.overwrite(vl.ndjson(tmp_path / "d.ndjson"), expected_version=0)
    assert events.overwrite(vl.ndjson(tmp_path / "d.ndjson"), expected_version=1).version == 2
    assert made.refresh().scan().count() == 1


def test_an_overwrite_without_rows_empties_the_table(table: vl.Table) -> None:
    assert table.overwrite(_data(), json_columns=["event"]).version == 2
    assert table.refresh().files().num_rows == 0


def test_an_overwrite_of_one_partition_leaves_the_others(table: vl.Table) -> None:
    where = {"day": DAYS[0]}
    table.overwrite(_data((8, 0), (9, 0)), where=where, json_columns=["event"])
    assert _numbers(table) == [2, 8, 9]
    with pytest.raises(InvalidValue, match="outside the overwritten partitions"):
        table.overwrite(_data((3, 1)), where=where, json_columns=["event"])
    with pytest.raises(InvalidSchema, match="'n' is not a partition column"):
        table.overwrite(_data((3, 1)), where={"n": 1}, json_columns=["event"])
    assert _numbers(table) == [2, 8, 9]


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("day = '2026-01-01'", [2, 8]),
        ("day = DATE'2026-01-01'", [2, 8]),
        ("day < '2026-01-02' OR day IS NULL", [2, 8]),
        ("day BETWEEN '2026-01-01' AND '2026-01-02'", [8]),
        ("day <> '2026-01-02'", [2, 8]),
    ],
    ids=str,
)
def test_an_overwrite_of_what_a_condition_holds_for(
    table: vl.Table, where: Any, left: list[int]
) -> None:
    table.overwrite(_data((8, 0)), where=where, json_columns=["event"])
    assert _numbers(table) == left


def test_a_condition_of_an_overwrite_is_about_partitions(table: vl.Table) -> None:
    with pytest.raises(InvalidSchema, match="'n' is not a partition column"):
        table.overwrite(_data((3, 1)), where="n = 1", json_columns=["event"])
    with pytest.raises(InvalidSchema, match="'event' is not a partition column"):
        table.overwrite(_data((3, 1)), where="event:a::int = 1", json_columns=["event"])
    with pytest.raises(InvalidQuery):
        table.overwrite(_data((3, 1)), where="day =", json_columns=["event"])
    with pytest.raises(InvalidValue, match="outside the overwritten partitions"):
        table.overwrite(_data((3, 1)), where="day < '2026-01-02'", json_columns=["event"])
    assert _numbers(table) == [1, 2]


def test_a_null_partition_is_overwritten_by_its_own_condition(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, "n INT, p STRING", partition_by=["p"])
    data = pa.table({"n": pa.array([1, 2], pa.int32()), "p": ["x", None]})
    table.append(data)
    table.overwrite(data.slice(1), where="p <> 'y' OR p IS NULL")
    assert [row["n"] for row in rows(tmp_path)] == [2]
    table.overwrite(data.slice(0, 0), where="p <> 'x'")  # of NULL it is not true
    assert [row["n"] for row in rows(tmp_path)] == [2]


def test_documents_take_the_place_of_a_tables_rows(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"a": 1}\n{"a": 2}\nx\n')
    table = vl.Table.create(tmp_path / "t", "event VARIANT")
    table.append(vl.ndjson(tmp_path / "a.ndjson"), mode="quarantine")
    source = vl.ndjson(tmp_path / "a.ndjson")
    assert table.overwrite(source, mode="quarantine", load_id="x").version == 2
    assert table.overwrite(source, mode="quarantine", load_id="x").version == 2
    assert rows(tmp_path / "t") == [{"event": {"a": 1}}, {"event": {"a": 2}}]
    with pytest.raises(InvalidJson):
        table.overwrite(source)
    assert table.refresh().version == 2
    with pytest.raises(InvalidSchema, match="no partitions"):
        table.overwrite(source, partitions=True)


def test_an_overwrite_of_the_partitions_that_the_rows_are_in(table: vl.Table) -> None:
    table.overwrite(_data((5, 1)), partitions=True, json_columns=["event"])
    assert _numbers(table) == [1, 5]
    with pytest.raises(InvalidValue, match="not both"):
        table.overwrite(_data((5, 1)), partitions=True, where={"day": DAYS[0]})


def test_a_table_without_partitions_is_not_overwritten_by_them(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, "event VARIANT")
    with pytest.raises(InvalidSchema, match="no partitions"):
        table.overwrite(pa.table({"event": ["1"]}), partitions=True, json_columns=["event"])


def test_partition_values_are_compared_by_value(tmp_path: Path) -> None:
    """Another writer may have written the same moment in another form."""
    table = vl.Table.create(tmp_path, "n INT, at TIMESTAMP", partition_by=["at"])
    at = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    table.append(pa.table({"n": pa.array([1], pa.int32()), "at": [at]}))
    (log,) = (tmp_path / "_delta_log").glob("*1.json")
    log.write_text(log.read_text().replace("2026-01-02T03:04:05.000000Z", "2026-01-02T04:04:05+01"))
    table.overwrite(pa.table({"n": pa.array([2], pa.int32()), "at": [at]}), where={"at": at})
    assert table.refresh().files().num_rows == 1


COMMENT = "ALTER COLUMN {} COMMENT 'what it is'"


@pytest.mark.parametrize("column", ["n", "s.a"])
def test_a_comment_of_another_writer_does_not_stop_a_load(tmp_path: Path, column: str) -> None:
    """Seed 467 of the simulation. Another column still stops it."""
    vl.Table.create(tmp_path, "n INT, s STRUCT<a: INT>")
    rows_of = pa.schema([("n", pa.int32()), ("s", pa.struct([("a", pa.int32())]))])

    def load_while(change: str) -> vl.Table:
        writer = vl.Table.open(tmp_path)

        def batches() -> Iterator[pa.RecordBatch]:
            vl.Table.open(tmp_path).alter(change)
            yield pa.RecordBatch.from_pylist([{"n": 1, "s": {"a": 2}}], rows_of)

        writer.append(pa.RecordBatchReader.from_batches(rows_of, batches()))
        return writer

    table = load_while(COMMENT.format(column))
    assert table.to_pylist() == [{"n": 1, "s": {"a": 2}}]
    assert "what it is" in table.snapshot.metadata.schema_string
    with pytest.raises(CommitConflict, match="changed the schema"):
        load_while("ADD COLUMN more INT")


def test_a_comment_of_another_writer_does_not_stop_a_compaction(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, "n INT")
    for _ in range(2):
        table.append(pa.table({"n": pa.array([1], pa.int32())}))
    table.optimize(
        progress=lambda p: (
            vl.Table.open(tmp_path).alter(COMMENT.format("n")) if p.done == p.total else None
        )
    )
    assert table.refresh().files().num_rows == 1


def test_an_append_only_table_is_not_overwritten(table: vl.Table) -> None:
    table.set_properties({"delta.appendOnly": "true"})
    with pytest.raises(UnsupportedFeature, match="append-only"):
        table.overwrite(_data((7, 0)), json_columns=["event"])
    assert len(list(Path(table.uri).rglob("part-*"))) == 2  # what was written is gone again
    assert table.append(_data((3, 0)), json_columns=["event"]).version == 3


def test_overlapping_overwrites_conflict_and_others_do_not(table: vl.Table) -> None:
    def overwrite(n: int, day: int, **how: Any) -> int:
        stale = _Stale(table)
        return stale.overwrite(_data((n, day)), json_columns=["event"], **how)

    assert overwrite(5, 0, where={"day": DAYS[0]}) == 2
    assert overwrite(6, 1, where={"day": DAYS[1]}) == 3
    with pytest.raises(CommitConflict, match=r"version 2 first and removed file .*which this one"):
        overwrite(7, 0, where={"day": DAYS[0]})
    with pytest.raises(CommitConflict, match="version 2 first"):
        overwrite(7, 0)
    assert _numbers(table) == [5, 6]


def test_an_overwrite_conflicts_with_rows_it_has_not_seen(table: vl.Table) -> None:
    stale = _Stale(table)
    table.append(_data((3, 1)), json_columns=["event"])
    stale.overwrite(_data((4, 0)), where={"day": DAYS[0]}, json_columns=["event"])
    with pytest.raises(CommitConflict, match="which was not read"):
        stale.overwrite(_data((4, 1)), where={"day": DAYS[1]}, json_columns=["event"])
    assert _numbers(table) == [2, 3, 4]
    table.set_properties({"delta.isolationLevel": "WriteSerializable"})
    stale = _Stale(table.refresh())
    table.append(_data((5, 1)), json_columns=["event"])
    stale.overwrite(_data((6, 1)), where={"day": DAYS[1]}, json_columns=["event"])
    assert _numbers(table) == [4, 5, 6]


class _Stale:
    """A table that does not look for newer versions before it writes."""

    def __init__(self, table: vl.Table) -> None:
        self._table = vl.Table(table.snapshot)

    def overwrite(self, data: pa.Table, **how: Any) -> int:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Snapshot, "refresh", lambda snapshot: snapshot)
            return self._table.overwrite(data, **how).version


def test_columns_are_added(table: vl.Table) -> None:
    assert table.add_column("note STRING, extra VARIANT").version == 2
    assert table.refresh().schema.get("note") is not None
    table.append(
        pa.table({"n": pa.array([3], pa.int32()), "note": ["x"], "extra": ['{"b": 1}']}),
        json_columns=["extra"],
    )
    found = sorted(rows(Path(table.uri)), key=lambda row: row["n"])
    assert [row["note"] for row in found] == [None, None, "x"]
    assert [row["extra"] for row in found] == [None, None, {"b": 1}]
    for ddl, message in [
        ("note INT", "is string in the table and integer"),
        ("Note STRING", "already"),
        ("k INT NOT NULL", "NOT NULL"),
    ]:
        with pytest.raises(InvalidSchema, match=message):
            table.add_column(ddl)


def test_a_first_variant_column_brings_its_features(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, "n INT")
    assert table.protocol.min_reader_version == 1
    table.add_column("event VARIANT, at TIMESTAMP_NTZ")
    newest = table.refresh()
    features = {"variantType", "variantShredding", "timestampNtz"}
    assert set(newest.protocol.reader_features or ()) == features
    assert newest.snapshot.shredding_enabled
    table.append(pa.table({"event": ['{"a": 1}']}), json_columns=["event"])
    assert "variantlake.shredding.event" in table.refresh().properties


def test_an_append_merges_new_columns(table: vl.Table) -> None:
    data = _data((3, 0)).append_column("who", pa.array([{"id": 7, "name": "x"}]))
    with pytest.raises(InvalidSchema, match="no column 'who'"):
        table.append(data, json_columns=["event"])
    assert table.append(data, json_columns=["event"], merge_schema=True).version == 2
    found = sorted(rows(Path(table.uri)), key=lambda row: row["n"])
    assert [row["who"] for row in found] == [None, None, {"id": 7, "name": "x"}]
    # The same columns once more change nothing, and more fields of a struct are new ones.
    table.append(data, json_columns=["event"], merge_schema=True)
    assert table.refresh().snapshot.metadata == vl.Table.open(table.uri, 2).snapshot.metadata
    deeper = _data((4, 0)).append_column("who", pa.array([{"id": 8, "mail": "y"}]))
    table.append(deeper, json_columns=["event"], merge_schema=True)
    who = str(table.refresh().schema.get("who"))
    assert "mail" in who
    assert "name" in who


def test_shredding_is_enabled_and_forbidden_on_an_existing_table(tmp_path: Path) -> None:
    off = {"delta.enableVariantShredding": "false"}
    table = vl.Table.create(tmp_path, "event VARIANT", properties=off)
    assert table.protocol.reader_features == ("variantType",)
    data = pa.table({"event": ['{"a": 1}']})
    table.append(data, json_columns=["event"])
    table.set_properties({"delta.enableVariantShredding": "true"})
    assert table.refresh().protocol.reader_features == ("variantType", "variantShredding")
    table.append(data, json_columns=["event"])
    table.set_properties(off)
    table.append(data, json_columns=["event"])
    texts: list[Any] = table.refresh().files()["stats"].to_pylist()
    stats = [json.loads(text) for text in texts]
    assert [bool(text["minValues"]) for text in stats] == [False, True, False]
    assert [text["nullCount"] for text in stats] == [{"event": 0}] * 3
    assert rows(tmp_path) == [{"event": {"a": 1}}] * 3


def test_properties_are_set_and_taken_away(table: vl.Table) -> None:
    table.set_properties({"a": "b", "delta.logRetentionDuration": "interval 20 days"})
    assert table.refresh().properties["a"] == "b"
    table.unset_properties("a", "missing")
    assert "a" not in table.refresh().properties
    table.unset_properties("delta.columnMapping.mode")  # which the table does not have
    mapped = vl.Table.create(
        Path(table.uri).with_name("mapped"),
        "n INT",
        properties={"delta.columnMapping.mode": "name"},
    )
    for name in ("delta.columnMapping.mode", "delta.columnMapping.maxColumnId"):
        with pytest.raises(InvalidValue, match="cannot be removed"):
            mapped.unset_properties(name)
    for properties, error in [
        ({"delta.checkpointInterval": "soon"}, InvalidValue),
        ({"delta.constraints.positive": "n > 0"}, UnsupportedFeature),
        ({"delta.columnMapping.mode": "id"}, UnsupportedFeature),
        ({"delta.enableIcebergCompatV2": "true"}, UnsupportedFeature),
    ]:
        with pytest.raises(error):
            table.set_properties(properties)


def test_row_tracking_gives_ids_to_the_files_that_are_there(table: vl.Table) -> None:
    assert table.set_properties({"delta.enableRowTracking": "true"}).version == 4
    operations = [entry.operation for entry in table.refresh().history(3)]
    assert operations == ["SET TBLPROPERTIES", "ROW TRACKING BACKFILL", "UPGRADE PROTOCOL"]
    found = list(table.refresh().snapshot.add_files())
    assert sorted(add.base_row_id or 0 for add in found) == [0, 1]
    assert {add.default_row_commit_version for add in found} == {3}
    backfill = (Path(table.uri) / commit_path(3)).read_text().splitlines()
    actions = [json.loads(line) for line in backfill]
    assert [a["add"]["dataChange"] for a in actions if "add" in a] == [False, False]
    table.append(_data((3, 0)), json_columns=["event"])
    ids = [add.base_row_id for add in table.refresh().snapshot.add_files()]
    assert sorted(each for each in ids if each is not None) == [0, 1, 2]
    assert _numbers(table) == [1, 2, 3]
    assert table.set_properties({"delta.enableRowTracking": "true"}).version == 5  # as it was


def test_row_tracking_goes_on_where_it_was_stopped(table: vl.Table) -> None:
    table.set_properties({"delta.feature.rowTracking": "supported"})
    table.append(_data((3, 0)), json_columns=["event"])
    table.set_properties({"delta.enableRowTracking": "true"})
    ids = [add.base_row_id for add in table.refresh().snapshot.add_files()]
    assert sorted(each for each in ids if each is not None) == [0, 1, 2]


def test_a_constraint_is_dropped(tmp_path: Path) -> None:
    properties = {"delta.constraints.positive": "n > 0"}
    table = vl.Table.create(tmp_path, "n INT", properties=properties)
    with pytest.raises(UnsupportedFeature, match="checkConstraints"):
        table.append(pa.table({"n": pa.array([0], pa.int32())}))
    with pytest.raises(InvalidValue, match="is a constraint"):
        table.unset_properties("delta.constraints.positive")
    with pytest.raises(InvalidValue, match="no constraint 'other'"):
        table.drop_constraint("other")
    assert table.drop_constraint("Positive").version == 1
    table.append(pa.table({"n": pa.array([0], pa.int32())}))
    assert rows(tmp_path) == [{"n": 0}]


def test_a_column_may_hold_null_again(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, "n INT NOT NULL, m INT")
    nothing = pa.table({"n": pa.nulls(1, pa.int32())})
    with pytest.raises(InvalidValue):
        table.append(nothing)
    with pytest.raises(InvalidSchema, match="no column 'x'"):
        table.drop_not_null("x")
    table.drop_not_null("n")
    table.append(nothing)
    assert rows(tmp_path) == [{"n": None, "m": None}]


def test_column_mapping_is_enabled_on_an_existing_table(table: vl.Table) -> None:
    table.set_properties({"delta.columnMapping.mode": "name"})
    newest = table.refresh()
    assert [field.physical_name for field in newest.schema.fields] == ["event", "n", "day"]
    assert newest.properties["delta.columnMapping.maxColumnId"] == "3"
    table.add_column("`a b` INT")
    added = table.refresh().schema.fields[-1]
    assert added.metadata["delta.columnMapping.id"] == 4
    assert added.physical_name.startswith("col-")


@pytest.mark.parametrize(
    "versions",
    [
        {"minReaderVersion": 1, "minWriterVersion": 2},
        {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": []},
    ],
    ids=["legacy", "empty-lists"],
)
def test_variants_are_appended_only_where_the_protocol_lists_them(
    tmp_path: Path, versions: dict[str, Any]
) -> None:
    vl.Table.create(tmp_path / "t", "event VARIANT")
    rows = pa.table({"event": ["{}"]})
    vl.Table.open(tmp_path / "t").append(rows, json_columns=["event"])
    first = tmp_path / "t" / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    listed = [{"protocol": versions} if "protocol" in action else action for action in actions]
    first.write_text("\n".join(map(json.dumps, listed)))
    for checksum in first.parent.glob("*.crc"):
        checksum.unlink()

    table = vl.Table.open(tmp_path / "t")
    assert table.scan().count() == 1
    with pytest.raises(UnsupportedFeature, match="variantType") as caught:
        table.append(rows, json_columns=["event"])
    assert "delta.enableVariantShredding" in (caught.value.hint or "")
    table.set_properties({"delta.enableVariantShredding": "false"})
    assert vl.Table.open(tmp_path / "t").append(rows, json_columns=["event"]).version == 3


UNCHANGED: dict[str, Any] = {
    "set_properties": lambda t: t.set_properties({"owner": "me"}),
    "set_properties to nothing": lambda t: t.set_properties({}),
    "unset_properties": lambda t: t.unset_properties("nope"),
    "set_comment": lambda t: t.set_comment("what people did"),
    "set_comment of a column": lambda t: t.set_comment("a number", "n"),
    "set_clustering": lambda t: t.set_clustering("n"),
    "drop_not_null": lambda t: t.drop_not_null("event"),
    "set_not_null": lambda t: t.set_not_null("n"),
    "set_default": lambda t: t.set_default("event", None),
    "move_column": lambda t: t.move_column("event"),
    "alter": lambda t: t.alter("SET TBLPROPERTIES ('owner' = 'me')"),
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_what_is_so_already_needs_no_commit(tmp_path: Path, name: str) -> None:
    t = vl.Table.create(tmp_path / "t", "event VARIANT, n INT", properties={"owner": "me"})
    t.set_comment("what people did")
    t.set_comment("a number", "n")
    t.set_clustering("n")
    t.set_not_null("n")
    before = t.version
    assert UNCHANGED[name](t).version == before == t.refresh().version
    assert t.set_properties({"owner": "you"}).version == before + 1
