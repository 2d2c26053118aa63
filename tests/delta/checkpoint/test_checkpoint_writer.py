"""Checkpoints that we write: the same state again, in the columns of the protocol."""

from __future__ import annotations

import datetime as dt
import importlib.util
import json
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import corpora
from tests.delta.tables import (
    PROTOCOL,
    SCHEMA,
    add,
    append,
    bounds,
    create_table,
    facts,
    first_commit,
    known_facts,
    metadata,
    number,
    remove,
    write_log,
)
from variantlake.delta.actions.actions import AddFile, RemoveFile
from variantlake.delta.checkpoint import checkpoint_schema
from variantlake.delta.checkpoint.checkpoint_writer import (
    checkpoint_due,
    write_checkpoint,
    write_state,
)
from variantlake.delta.log.last_checkpoint import read_last_checkpoint
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.log.snapshot_state import read_state
from variantlake.delta.log.version_checksum import write_checksum
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes
from variantlake.delta.transaction.new_actions import new_add
from variantlake.encoding.tree import decode
from variantlake.erase.purge import check_may_purge
from variantlake.errors import StoreFailed, UnsupportedFeature
from variantlake.parquet.metadata.footer import read_footer
from variantlake.storage.opening import open_store

KNOWN = facts(
    paths={"$['a']": bounds(1, 9), "$['s']": bounds("x", "y")}, columns=(number("n", 3, 4),)
)
VECTOR = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}


def new(path: str) -> AddFile:
    return AddFile(path, 1, 1)


def _rows(root: Path, version: int) -> list[dict[str, Any]]:
    path = root / "_delta_log" / f"{version:020d}.checkpoint.parquet"
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist(maps_as_pydicts="strict")
    return rows


def _without_commits(root: Path, version: int) -> Snapshot:
    for old in range(version + 1):
        (root / commit_path(old)).unlink()
    return Snapshot.read(root, applies={"deletionVectors"})


def test_the_state_comes_back(tmp_path: Path) -> None:
    now = time.time_ns() // 1_000_000
    table = write_log(
        tmp_path,
        first_commit(
            add("a%20b", tags={"k": "v"}, stats='{"numRecords":1}'),
            add("b", deletionVector=VECTOR, baseRowId=5, defaultRowCommitVersion=1),
            {"txn": {"appId": "a", "version": 3, "lastUpdated": 4}},
            {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
            **{"delta.appendOnly": "false"},
        ),
        [remove("c", deletionTimestamp=now, deletionVector=VECTOR), remove("old")],
    )
    before = Snapshot.read(table, applies={"deletionVectors"})
    _, state = read_state(open_store(table), None, tombstones=True)
    assert write_checkpoint(open_store(table)) == 1
    after = _without_commits(tmp_path, 1)
    assert after.version == 1
    assert after.files.whole().sort_by("path") == before.files.whole().sort_by("path")
    assert (after.protocol, after.metadata) == (before.protocol, before.metadata)
    assert (after.transactions, after.domains) == (before.transactions, before.domains)
    # Tombstones of a week ago are gone, the others stay.
    _, again = read_state(open_store(table), None, tombstones=True)
    assert state.removes is not None
    assert again.removes is not None
    assert {key[0] for key in state.removes} == {"c", "old"}
    assert {key: tombstone.path for key, tombstone in again.removes.items()} == {
        ("c", "ix"): "c",
    }


def _log_files(root: Path) -> set[str]:
    return {path.name for path in (root / "_delta_log").iterdir()}


def test_the_log_of_a_table_with_unknown_writer_features_is_left_alone(tmp_path: Path) -> None:
    features = ["variantType", "variantShredding", "fromTheFuture"]
    protocol = {**PROTOCOL, "writerFeatures": features}
    table = write_log(tmp_path, [{"protocol": protocol}, {"metaData": metadata()}])
    state = Snapshot.read(table).state()
    before = _log_files(tmp_path)
    for write in (
        lambda: write_checkpoint(open_store(table)),
        lambda: write_state(open_store(table), 0, state),
        lambda: write_checksum(open_store(table), 0, state),
    ):
        with pytest.raises(UnsupportedFeature, match="fromTheFuture"):
            write()
    assert _log_files(tmp_path) == before


def test_a_checkpoint_that_would_lose_unknown_actions_is_not_written(tmp_path: Path) -> None:
    table = write_log(tmp_path, first_commit(add("a")), [{"fromTheFuture": {"x": 1}}], [add("b")])
    for snapshot in (Snapshot.read(table), Snapshot.read(table, 0).refresh()):
        assert snapshot.unknown_actions == {"fromTheFuture"}
    with pytest.raises(UnsupportedFeature, match="fromTheFuture"):
        write_checkpoint(open_store(table))
    # Commits go on, and say why they write no checkpoint.
    for version in range(3, 10):
        append(Snapshot.read(table), [new(f"{version}")])
    with pytest.warns(UserWarning, match=r"no checkpoint after version 10: (?s:.*)fromTheFuture"):
        append(Snapshot.read(table), [new("10")])
    assert not any("checkpoint" in name for name in _log_files(tmp_path))
    # Before that action the log can be shortened as ever.
    assert write_checkpoint(open_store(table), 0) == 0
    with pytest.raises(UnsupportedFeature, match="fromTheFuture"):
        check_may_purge(Snapshot.read(table))


@pytest.mark.parametrize("sidecars", [False, True])
def test_an_unknown_action_of_a_checkpoint_is_not_lost_either(
    tmp_path: Path, sidecars: bool
) -> None:
    policy = {"delta.checkpointPolicy": "v2" if sidecars else "classic"}
    create_table(open_store(tmp_path), SCHEMA, properties=policy, adds=[new("a")])
    write_checkpoint(open_store(tmp_path))
    log = tmp_path / "_delta_log"
    (path,) = (log / "_sidecars").iterdir() if sidecars else log.glob("*.checkpoint.parquet")
    table = pq.read_table(path)
    for value, unknown in ((None, frozenset()), ({"x": 1}, {"fromTheFuture"})):
        column = pa.array([None] * (len(table) - 1) + [value], pa.struct([("x", pa.int64())]))
        pq.write_table(table.append_column("fromTheFuture", column), path)
        assert Snapshot.read(tmp_path).unknown_actions == unknown


def test_statistics_stand_in_struct_form_as_well(tmp_path: Path) -> None:
    file = new_add("f", KNOWN, schema=SCHEMA, properties={})
    create_table(open_store(tmp_path), SCHEMA, adds=[file])
    write_checkpoint(open_store(tmp_path))
    (found,) = [row["add"] for row in _rows(tmp_path, 0) if row["add"]]
    parsed = found["stats_parsed"]
    assert parsed["numRecords"] == 5
    assert parsed["nullCount"] == {"event": 0, "n": 0}
    assert (parsed["minValues"]["n"], parsed["maxValues"]["n"]) == (3, 4)
    lows = decode(parsed["minValues"]["event"]["metadata"], parsed["minValues"]["event"]["value"])
    assert isinstance(lows, dict)
    assert set(lows) == {"$['a']", "$['s']"}
    assert found["stats"] == file.stats
    assert found["tags"] == file.tags
    assert found["dataChange"] is False


def test_the_bounds_of_a_variant_are_a_variant_column(tmp_path: Path) -> None:
    schema = parse_table_ddl("s STRUCT<v: VARIANT>, event VARIANT")
    create_table(open_store(tmp_path), schema)
    write_checkpoint(open_store(tmp_path))
    footer = read_footer(tmp_path / "_delta_log" / f"{0:020d}.checkpoint.parquet")
    node = footer.schema
    for name in ("add", "stats_parsed", "minValues", "event"):
        node = next(child for child in node.children if child.name == name)
    assert node.logical is not None
    assert node.logical.kind == "VARIANT"
    assert [child.repetition for child in node.children] == ["required", "required"]


def test_text_statistics_may_be_left_out(tmp_path: Path) -> None:
    properties = {"delta.checkpoint.writeStatsAsJson": "false"}
    file = new_add("f", KNOWN, schema=SCHEMA, properties=properties)
    create_table(open_store(tmp_path), SCHEMA, properties=properties, adds=[file])
    write_checkpoint(open_store(tmp_path))
    assert (
        "stats"
        not in pq.read_schema(tmp_path / "_delta_log" / f"{0:020d}.checkpoint.parquet")
        .field("add")
        .type.names
    )
    snapshot = _without_commits(tmp_path, 0)
    (found,) = snapshot.add_files()
    assert found.stats is not None
    assert json.loads(found.stats) == json.loads(file.stats or "")
    assert known_facts(found, snapshot.schema) == known_facts(file, snapshot.schema)


def test_struct_statistics_are_left_out_where_the_table_asks(tmp_path: Path) -> None:
    for properties in ({}, {"delta.checkpoint.writeStatsAsStruct": "false"}):
        table = tmp_path / str(len(properties))
        write_log(table, first_commit(add("a", stats='{"numRecords":1}'), **properties))
        write_checkpoint(open_store(table))
        (found,) = [row["add"] for row in _rows(table, 0) if row["add"]]
        assert ("stats_parsed" in found) == (not properties)


ORDINARY = (
    "i INT, l BIGINT, d DOUBLE, c DECIMAL(5,2), e DATE, t TIMESTAMP, z TIMESTAMP_NTZ, s STRING"
)


def test_ordinary_statistics_by_type(tmp_path: Path) -> None:
    low = {
        "i": 1,
        "l": 2**60,
        "d": 0.5,
        "c": 1.5,
        "e": "2026-01-02",
        "t": "2026-01-02T03:04:05.678Z",
        "z": "2026-01-02T03:04:05.678",
        "s": "x",
    }
    wrong = {"i": 2**40, "l": "x", "d": "NaN", "c": 1.555, "e": 5, "t": low["z"], "z": 1, "s": 1}
    create_table(
        open_store(tmp_path),
        parse_table_ddl(ORDINARY),
        adds=[
            AddFile("a", 1, 1, stats=json.dumps({"numRecords": 1, "minValues": low})),
            AddFile("b", 1, 1, stats=json.dumps({"numRecords": "1", "minValues": wrong})),
            AddFile("c", 1, 1, stats="{"),
            AddFile("d", 1, 1),
        ],
    )
    write_checkpoint(open_store(tmp_path))
    found = {
        row["add"]["path"]: row["add"]["stats_parsed"] for row in _rows(tmp_path, 0) if row["add"]
    }
    assert found["a"]["minValues"] == {
        "i": 1,
        "l": 2**60,
        "d": 0.5,
        "c": Decimal("1.50"),
        "e": dt.date(2026, 1, 2),
        "t": dt.datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=dt.UTC),
        "z": dt.datetime(2026, 1, 2, 3, 4, 5, 678_000),  # noqa: DTZ001  # a type without a zone
        "s": "x",
    }
    assert found["b"]["numRecords"] is None
    assert set(found["b"]["minValues"].values()) == {None}
    assert (found["c"], found["d"]) == (None, None)


def test_partition_values_by_type(tmp_path: Path) -> None:
    schema = parse_table_ddl("p_i INT, p_s STRING, p_d DATE, p_t TIMESTAMP, p_b BOOLEAN, x INT")
    columns = ["p_i", "p_s", "p_d", "p_t", "p_b"]
    good = ("7", "x y", "2026-01-02", "2026-01-02T03:04:05.000006Z", "true")
    bad = ("99999999999", "", "x", "2026-01-32 03:04:05", "yes")
    create_table(
        open_store(tmp_path),
        schema,
        partition_columns=columns,
        adds=[
            AddFile("a", 1, 1, partition_values=dict(zip(columns, good, strict=True))),
            AddFile("b", 1, 1, partition_values=dict(zip(columns, bad, strict=True))),
            AddFile("c", 1, 1, partition_values=dict.fromkeys(columns)),
        ],
    )
    write_checkpoint(open_store(tmp_path))
    first, second, third = [
        row["add"]["partitionValues_parsed"] for row in _rows(tmp_path, 0) if row["add"]
    ]
    assert list(first.values()) == [
        7,
        "x y",
        dt.date(2026, 1, 2),
        dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
        True,
    ]
    assert set(second.values()) == set(third.values()) == {None}


@pytest.mark.parametrize(
    ("version", "interval", "due"),
    [
        (0, None, False),
        (10, None, True),
        (11, None, False),
        (3, "3", True),
        (4, "3", False),
        (5, "0", False),
        (10, "often", True),
    ],
)
def test_the_interval_of_the_table(version: int, interval: str | None, due: bool) -> None:
    properties = {} if interval is None else {"delta.checkpointInterval": interval}
    assert checkpoint_due(version, properties) is due


def test_commits_write_checkpoints_at_the_interval(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    create_table(store, SCHEMA, properties={"delta.checkpointInterval": "2"})
    snapshot = Snapshot.read(tmp_path)
    for i in range(4):
        append(snapshot, [AddFile(f"f{i}", 1, 1)])
    assert read_last_checkpoint(store) == 4
    assert sorted(path.name[18:20] for path in (tmp_path / "_delta_log").glob("*.checkpoint*")) == [
        "02",
        "04",
    ]


@pytest.mark.parametrize(
    ("files", "interval", "versions"),
    [
        (10, None, [10, 20, 30, 40, 50, 60]),
        (2_000, None, [10, 50]),
        (2_000, "10", [10, 20, 30, 40, 50, 60]),
    ],
)
def test_in_a_table_of_many_files_few_bytes_of_commits_make_no_checkpoint(
    tmp_path: Path, files: int, interval: str | None, versions: list[int]
) -> None:
    """Each names all files: at a fixed interval, commits would cost more in larger tables."""
    store = open_store(tmp_path)
    properties = {} if interval is None else {"delta.checkpointInterval": interval}
    create_table(store, SCHEMA, properties=properties)
    append(Snapshot.read(tmp_path), [AddFile(f"f{i}", 1, 1) for i in range(files)])
    for version in range(2, 62):
        append(Snapshot.read(tmp_path), [AddFile(f"g{version}", 1, 1)])
    names = sorted(path.name for path in (tmp_path / "_delta_log").glob("*.checkpoint*"))
    assert [int(name[:20]) for name in names] == versions
    assert Snapshot.read(tmp_path).files.num_rows == files + 60


def test_a_large_commit_makes_a_checkpoint_in_a_table_of_many_files(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    create_table(store, SCHEMA)
    append(Snapshot.read(tmp_path), [AddFile(f"f{i}", 1, 1) for i in range(2_000)])
    for version in range(2, 25):
        adds = [AddFile(f"g{version}-{i}", 1, 1) for i in range(500 if version == 15 else 1)]
        append(Snapshot.read(tmp_path), adds)
    assert read_last_checkpoint(store) == 20


@pytest.mark.parametrize("error", [StoreFailed("disk full"), pa.ArrowInvalid("offset overflow")])
def test_a_checkpoint_that_fails_does_not_fail_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_arguments: object) -> None:
        raise error

    create_table(open_store(tmp_path), SCHEMA, properties={"delta.checkpointInterval": "1"})
    monkeypatch.setattr("variantlake.delta.transaction.post_commit.write_state", fail)
    with pytest.warns(UserWarning, match="no checkpoint after version 1"):
        append(Snapshot.read(tmp_path), [AddFile("f", 1, 1)])
    assert Snapshot.read(tmp_path).version == 1


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_checkpoints_after_commits_say_what_the_log_says(tmp_path: Path, policy: str) -> None:
    """The commit's own state is written; only what was removed is read from the log."""
    store = open_store(tmp_path)
    now = time.time_ns() // 1_000_000
    properties = {"delta.checkpointInterval": "2", "delta.checkpointPolicy": policy}
    create_table(store, SCHEMA, properties=properties, adds=[new(name) for name in "abcd"])
    for name in "abc":
        removed = RemoveFile(name, deletion_timestamp=now)
        snapshot = Snapshot.read(tmp_path)
        stale = replace(removed, path="nowhere")
        commit(snapshot, Changes("DELETE", removes=(removed, stale), adds=(new(f"{name}{name}"),)))
    commit(Snapshot.read(tmp_path), Changes("RESTORE", adds=(new("b"),)))
    segment, state = read_state(store, 4, tombstones=True)
    assert segment.checkpoint is not None
    assert not segment.commits
    (tmp_path / "_delta_log" / "_last_checkpoint").unlink()
    for path in (tmp_path / "_delta_log").glob("*.checkpoint*"):
        path.unlink()
    segment, by_commits = read_state(store, 4, tombstones=True)
    assert segment.checkpoint is None
    assert set(by_commits.files["path"].to_pylist()) == {"aa", "b", "bb", "cc", "d"}
    assert by_commits.removes is not None
    assert by_commits.removes.keys() == {("a", None), ("c", None), ("nowhere", None)}
    assert state.removes == by_commits.removes
    assert state.files.whole().sort_by("path").equals(by_commits.files.whole().sort_by("path"))
    assert (state.protocol, state.metadata) == (by_commits.protocol, by_commits.metadata)


def test_a_damaged_checkpoint_does_not_take_tombstones_away(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    now = time.time_ns() // 1_000_000
    properties = {"delta.checkpointInterval": "1"}
    create_table(store, SCHEMA, properties=properties, adds=[new("a"), new("b")])
    removed = RemoveFile("a", deletion_timestamp=now)
    commit(Snapshot.read(tmp_path), Changes("DELETE", removes=(removed,)))
    snapshot = Snapshot.read(tmp_path)
    (tmp_path / "_delta_log" / f"{1:020d}.checkpoint.parquet").write_bytes(b"PAR1")
    append(snapshot, [new("c")])
    rows = _rows(tmp_path, 2)
    assert [row["remove"]["path"] for row in rows if row["remove"]] == ["a"]
    assert [row["add"]["path"] for row in rows if row["add"]] == ["b", "c"]


def test_a_checkpoint_after_a_commit_reads_no_file_of_the_table_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_table(open_store(tmp_path), SCHEMA, properties={"delta.checkpointInterval": "1"})
    append(Snapshot.read(tmp_path), [new("a")])
    snapshot = Snapshot.read(tmp_path)

    def fail(*_arguments: object, **_named: object) -> None:
        raise AssertionError("the state is read again")

    monkeypatch.setattr("variantlake.delta.log.snapshot_state.read_checkpoint", fail)
    append(snapshot, [new("b")])
    monkeypatch.undo()
    assert read_last_checkpoint(open_store(tmp_path)) == 2
    assert set(Snapshot.read(tmp_path).files["path"].to_pylist()) == {"a", "b"}


@pytest.mark.parametrize(
    ("duration", "kept"),
    [
        ("interval 1 hour", {"new"}),
        ("interval 30 days", {"new", "day"}),
        ("interval 1 day 12 hours", {"new", "day"}),
        ("as long as you like", {"new", "day", "old"}),
    ],
)
def test_tombstones_stay_as_long_as_the_table_says(
    tmp_path: Path, duration: str, kept: set[str]
) -> None:
    now = time.time_ns() // 1_000_000
    day = now - 86_400_000
    table = write_log(
        tmp_path,
        first_commit(**{"delta.deletedFileRetentionDuration": duration}),
        [remove("new", deletionTimestamp=now), remove("day", deletionTimestamp=day), remove("old")],
    )
    write_checkpoint(open_store(table))
    found = {row["remove"]["path"] for row in _rows(tmp_path, 1) if row["remove"]}
    assert found == kept


@pytest.mark.parametrize(
    ("duration", "kept"),
    [
        (None, {"new", "old", "unknown"}),
        ("interval 12 hours", {"new", "unknown"}),
        ("interval 30 days", {"new", "old", "unknown"}),
        ("as long as you like", {"new", "old", "unknown"}),
    ],
)
@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_transactions_are_remembered_as_long_as_the_table_says(
    tmp_path: Path, duration: str | None, kept: set[str], policy: str
) -> None:
    now = time.time_ns() // 1_000_000
    properties = {"delta.checkpointPolicy": policy}
    if duration is not None:
        properties["delta.setTransactionRetentionDuration"] = duration
    ages = {"new": now, "old": now - 86_400_000, "unknown": None}
    actions = [
        {"txn": {"appId": name, "version": 1, "lastUpdated": moment}}
        for name, moment in ages.items()
    ]
    names = ["variantType", "variantShredding", "v2Checkpoint"]
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": names,
        "writerFeatures": names,
    }
    table = write_log(
        tmp_path, [{"protocol": protocol}, {"metaData": metadata(**properties)}, *actions]
    )
    assert Snapshot.read(table).transactions.keys() == ages.keys()
    write_checkpoint(open_store(table))
    assert Snapshot.read(table).transactions.keys() == kept


def test_an_old_protocol_has_no_feature_lists(tmp_path: Path) -> None:
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    table = write_log(tmp_path, [{"protocol": protocol}, {"metaData": metadata()}])
    write_checkpoint(open_store(table))
    (found,) = [row["protocol"] for row in _rows(tmp_path, 0) if row["protocol"]]
    assert (found["readerFeatures"], found["writerFeatures"]) == (None, None)
    assert _without_commits(tmp_path, 0).protocol.min_writer_version == 2


def test_deltalake_reads_our_checkpoint(tmp_path: Path) -> None:
    if importlib.util.find_spec("deltalake") is None:
        corpora.missing("deltalake")
    import deltalake

    schema = parse_table_ddl("event VARIANT, n INT, day DATE")
    file = new_add(
        "f",
        KNOWN,
        schema=schema,
        properties={},
        partition_columns=["day"],
        partition_values={"day": "2026-01-02"},
    )
    create_table(open_store(tmp_path), schema, partition_columns=["day"], adds=[file])
    append(Snapshot.read(tmp_path), [replace(file, path="g", partition_values={"day": None})])
    write_checkpoint(open_store(tmp_path))
    for version in range(2):
        (tmp_path / commit_path(version)).unlink()
    table = deltalake.DeltaTable(str(tmp_path))
    found = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    assert sorted((row["path"], row["num_records"]) for row in found) == [("f", 5), ("g", 5)]
    assert Snapshot.read(tmp_path).features >= {"variantType", "variantShredding"}


V2 = {"delta.checkpointPolicy": "v2"}


def _top_level(root: Path) -> Path:
    (found,) = (root / "_delta_log").glob("*.checkpoint.*.parquet")
    return found


def test_a_v2_checkpoint_has_its_files_in_sidecars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("variantlake.delta.checkpoint.checkpoint_writer.SIDECAR_FILES", 2)
    store = open_store(tmp_path)
    create_table(store, SCHEMA, properties=V2)
    snapshot = Snapshot.read(tmp_path)
    assert "v2Checkpoint" in snapshot.features
    append(snapshot, [AddFile(f"{i}.parquet", 10, 1, stats='{"numRecords":1}') for i in range(5)])
    gone = RemoveFile("4.parquet", deletion_timestamp=1 << 50)
    commit(snapshot.refresh(), Changes("DELETE", removes=(gone,)))
    before = Snapshot.read(tmp_path)
    assert write_checkpoint(store) == 2
    top = pq.read_table(_top_level(tmp_path))
    assert top["add"].null_count == top["remove"].null_count == top.num_rows
    sidecars = [row["path"] for row in top["sidecar"].to_pylist() if row]
    assert sorted(sidecars) == sorted(
        path.name for path in (tmp_path / "_delta_log" / "_sidecars").iterdir()
    )
    assert len(sidecars) == 3  # one with the tombstone
    for version in range(2):
        (tmp_path / commit_path(version)).unlink()
    after = Snapshot.read(tmp_path)
    assert after.files.whole().sort_by("path") == before.files.whole().sort_by("path")
    assert after.metadata == before.metadata
    # The tombstone is there too: the next checkpoint needs it.
    _, state = read_state(store, None, tombstones=True)
    assert [key[0] for key in state.removes or {}] == ["4.parquet"]


def test_a_v2_checkpoint_of_an_empty_table_can_be_read(tmp_path: Path) -> None:
    create_table(open_store(tmp_path), SCHEMA, properties=V2)
    write_checkpoint(open_store(tmp_path))
    (tmp_path / commit_path(0)).unlink()
    assert Snapshot.read(tmp_path).files.num_rows == 0


def test_without_the_feature_the_policy_is_not_followed(tmp_path: Path) -> None:
    """The property alone does not make readers of V2 checkpoints."""
    write_log(tmp_path, first_commit(**V2))
    write_checkpoint(open_store(tmp_path))
    assert (tmp_path / "_delta_log" / f"{0:020d}.checkpoint.parquet").exists()


@pytest.mark.parametrize(
    ("codec", "written"),
    [("uncompressed", "UNCOMPRESSED"), ("snappy", "SNAPPY"), ("gzip", "GZIP"), ("LZ4", "LZ4")],
)
def test_the_codec_of_the_table_is_that_of_its_checkpoints(
    tmp_path: Path, codec: str, written: str
) -> None:
    properties = {"delta.parquet.compression.codec": codec}
    create_table(open_store(tmp_path), SCHEMA, properties=properties)
    write_checkpoint(open_store(tmp_path))
    path = tmp_path / "_delta_log" / f"{0:020d}.checkpoint.parquet"
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == written
    (tmp_path / commit_path(0)).unlink()
    assert Snapshot.read(tmp_path).version == 0


def test_a_table_of_many_bytes_is_written_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = new_add("f", KNOWN, schema=SCHEMA, properties={})
    properties = {"delta.checkpoint.writeStatsAsStruct": "true"}
    names = ("a", "b", "c", "d", "e")
    adds = [replace(file, path=name, base_row_id=n) for n, name in enumerate(names)]
    create_table(open_store(tmp_path), SCHEMA, properties=properties, adds=adds)
    write_checkpoint(open_store(tmp_path))
    whole = _rows(tmp_path, 0)
    for size in (0, 1500):
        monkeypatch.setattr(checkpoint_schema, "_PIECE", size)
        write_checkpoint(open_store(tmp_path))
        assert _rows(tmp_path, 0) == whole


def test_statistics_with_half_a_character_are_left_out(tmp_path: Path) -> None:
    schema = parse_table_ddl("s STRING, x DECIMAL(10, 2)")
    half = '{"numRecords":1,"minValues":{"s":"\\ud800","x":1.5}}'
    create_table(open_store(tmp_path), schema, adds=[AddFile("a", 1, 1, stats=half)])
    write_checkpoint(open_store(tmp_path))
    (row,) = [row["add"] for row in _rows(tmp_path, 0) if row["add"]]
    assert (row["stats"], row["stats_parsed"]) == (half, None)
