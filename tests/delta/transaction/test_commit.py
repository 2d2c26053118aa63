"""Commits: what a new table starts with, who wins, and what is told to those who do not."""

from __future__ import annotations

import importlib.util
import json
import pickle
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from obstore.store import MemoryStore

import variantlake as vl
from tests import corpora
from tests.delta.tables import (
    SCHEMA,
    add,
    add_for,
    append,
    create_table,
    facts,
    first_commit,
    remove,
    write_log,
)
from variantlake.delta.actions.actions import (
    AddFile,
    DomainMetadata,
    RemoveFile,
    Transaction,
    parse_log,
    serialise,
)
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.schema.table_schema import StructType
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes, check_conflicts, whole_table
from variantlake.delta.transaction.new_actions import new_add
from variantlake.errors import (
    CommitConflict,
    CommitLost,
    CommitUnknown,
    InvalidSchema,
    InvalidValue,
    NotADeltaTable,
    StoreFailed,
    UnsupportedFeature,
)
from variantlake.storage.objects import ObjectStore
from variantlake.storage.opening import open_store
from variantlake.storage.store import Store

FILE = AddFile("f.parquet", 10, 1, stats='{"numRecords":1}')


def _paths(snapshot: Snapshot) -> set[str]:
    return {file.path for file in snapshot.add_files()}


def _lines(root: Path, version: int) -> list[dict[str, Any]]:
    text = (root / commit_path(version)).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_a_table_and_its_first_files_are_one_commit(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    done = create_table(store, SCHEMA, adds=[FILE], metrics={"numOutputRows": "1"})
    assert done == 0
    info, protocol, metadata, file = _lines(tmp_path, 0)
    assert info["commitInfo"]["operation"] == "CREATE TABLE AS SELECT"
    assert uuid.UUID(info["commitInfo"]["txnId"])
    assert info["commitInfo"]["engineInfo"].startswith("variantlake/")
    assert info["commitInfo"]["operationMetrics"] == {
        "numFiles": "1",
        "numOutputBytes": "10",
        "numOutputRows": "1",
    }
    assert protocol["protocol"] == {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["variantType", "variantShredding"],
        "writerFeatures": ["appendOnly", "invariants", "variantType", "variantShredding"],
    }
    assert metadata["metaData"]["configuration"] == {"delta.enableVariantShredding": "true"}
    assert file["add"]["path"] == "f.parquet"
    names = [path.name for path in sorted((tmp_path / "_delta_log").iterdir())]
    assert names == [f"{0:020d}.crc", f"{0:020d}.json"]


def test_rows_replaced_by_none_have_the_metrics_of_a_write(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, "id INT")
    table.append([{"id": 1}])
    (file,) = table.refresh().files().to_pylist()
    table.overwrite(pa.table({"id": pa.array([], pa.int32())}))
    metrics = table.history(1)[0].info["operationMetrics"]
    assert {name: metrics[name] for name in metrics if name != "numOutputRows"} == {
        "numFiles": "0",
        "numOutputBytes": "0",
        "numRemovedFiles": "1",
        "numRemovedBytes": str(file["size"]),
    }


@pytest.mark.parametrize(
    ("ddl", "properties", "reader", "writer"),
    [
        ("n INT", {}, None, {"appendOnly", "invariants"}),
        ("t TIMESTAMP_NTZ", {}, ["timestampNtz"], {"appendOnly", "invariants", "timestampNtz"}),
        (
            "t MAP<STRING, ARRAY<TIMESTAMP_NTZ>>",
            {},
            ["timestampNtz"],
            {"appendOnly", "invariants", "timestampNtz"},
        ),
        (
            "n INT",
            {"delta.enableChangeDataFeed": "true", "delta.feature.domainMetadata": "supported"},
            None,
            {"appendOnly", "invariants", "changeDataFeed", "domainMetadata"},
        ),
        (
            "a ARRAY<VARIANT>",
            {"delta.enableDeletionVectors": "true"},
            ["variantType", "variantShredding", "deletionVectors"],
            {"appendOnly", "invariants", "variantType", "variantShredding", "deletionVectors"},
        ),
    ],
)
def test_a_protocol_lists_what_the_table_uses(
    tmp_path: Path,
    ddl: str,
    properties: dict[str, str],
    reader: list[str] | None,
    writer: set[str],
) -> None:
    create_table(open_store(tmp_path), parse_table_ddl(ddl), properties=properties)
    protocol = _lines(tmp_path, 0)[1]["protocol"]
    assert protocol.get("readerFeatures") == reader
    assert set(protocol["writerFeatures"]) == writer
    assert Snapshot.read(tmp_path).schema == parse_table_ddl(ddl)


def test_properties_of_the_user_win(tmp_path: Path) -> None:
    properties = {"delta.enableVariantShredding": "false", "variantlake.rowGroupRows": "7"}
    create_table(open_store(tmp_path), SCHEMA, properties=properties)
    snapshot = Snapshot.read(tmp_path)
    assert snapshot.properties == properties
    assert not snapshot.shredding_enabled


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("delta.enableIcebergCompatV2", "true", UnsupportedFeature),
        ("delta.universalFormat.enabledFormats", "iceberg", UnsupportedFeature),
        ("delta.feature.quantumTables", "supported", UnsupportedFeature),
        ("delta.feature.catalogManaged", "supported", UnsupportedFeature),
        ("delta.feature.rowTracking", "yes", InvalidValue),
        ("delta.columnMapping.maxColumnId", "3", InvalidValue),
        ("delta.columnMapping.mode", "nmae", InvalidValue),
        ("delta.checkpointInterval", "0", InvalidValue),
        ("delta.appendOnly", "1", InvalidValue),
        ("delta.logRetentionDuration", "30", InvalidValue),
        ("delta.parquet.compression.codec", "lzma", InvalidValue),
    ],
)
def test_a_property_that_a_table_cannot_have_is_refused(
    tmp_path: Path, name: str, value: str, error: type[Exception]
) -> None:
    with pytest.raises(error, match=name.rpartition(".")[2]):
        create_table(open_store(tmp_path), SCHEMA, properties={name: value})
    assert not (tmp_path / "_delta_log").exists()


@pytest.mark.parametrize(
    ("ddl", "partitions", "message"),
    [
        ("event VARIANT, n INT", ["event"], "'event' is a Variant"),
        ("event VARIANT, n INT", ["day"], "'day' is not in the schema"),
        ("s STRUCT<a: INT>, n INT", ["s"], "nested"),
        ("n INT", ["n"], "not partitioned by"),
        ("n INT, m INT", ["n", "n"], "twice"),
        ("a INT, A STRING", [], "differ by case"),
        ("s STRUCT<b: INT, B: INT>", [], "differ by case"),
        ("s ARRAY<STRUCT<b: INT, B: INT>>", [], "differ by case"),
        ("s MAP<STRING, STRUCT<`a,b`: INT>>", [], "'s.value.a,b'"),
        ("`a b` INT", [], "'a b'"),
        ("s STRUCT<`a,b`: INT>", [], "'s.a,b'"),
    ],
)
def test_a_table_that_cannot_be_is_refused(
    tmp_path: Path, ddl: str, partitions: list[str], message: str
) -> None:
    with pytest.raises(InvalidSchema, match=message):
        create_table(open_store(tmp_path), parse_table_ddl(ddl), partition_columns=partitions)
    assert not (tmp_path / "_delta_log").exists()


def test_a_table_without_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSchema, match="at least one column"):
        create_table(open_store(tmp_path), StructType(()))


def test_a_table_is_not_created_over_another(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    create_table(store, SCHEMA)
    with pytest.raises(CommitConflict, match="there is a table already"):
        create_table(store, SCHEMA)
    # Nor where its first commits were cleaned up.
    (tmp_path / commit_path(0)).rename(tmp_path / commit_path(7))
    with pytest.raises(CommitConflict, match="there is a table already"):
        create_table(store, SCHEMA)


def test_an_append_rebases_on_other_appends(tmp_path: Path) -> None:
    create_table(open_store(tmp_path), SCHEMA)
    old = Snapshot.read(tmp_path)
    for number in range(3):
        append(Snapshot.read(tmp_path), [replace(FILE, path=f"other{number}")])
    done = append(old, [FILE])
    assert done == 4
    assert len(_paths(old.refresh())) == 4
    info = _lines(tmp_path, 4)[0]["commitInfo"]
    assert (info["operation"], info["readVersion"], info["isBlindAppend"]) == ("WRITE", 0, True)


def test_an_append_meets_a_change_of_the_schema(tmp_path: Path) -> None:
    create_table(open_store(tmp_path), SCHEMA)
    old = Snapshot.read(tmp_path)
    metadata = replace(old.metadata, configuration={"a": "b"})
    changes = Changes("SET TBLPROPERTIES", metadata=metadata)
    assert commit(old, changes) == 1
    assert old.refresh().properties["a"] == "b"
    with pytest.raises(CommitConflict, match="version 1 first and changed the schema") as caught:
        append(old, [FILE])
    assert "nothing was committed" in caught.value.hint
    assert Snapshot.read(tmp_path).version == 1


METADATA = json.dumps(first_commit()[1]).encode()
PROTOCOL = json.dumps(first_commit()[0]).encode()
DATA = json.dumps(add("a")).encode()
MOVED = json.dumps(add("a", dataChange=False)).encode()
REMOVED = json.dumps(remove("a")).encode()
TXN = b'{"txn":{"appId":"a","version":1}}'
DOMAIN = b'{"domainMetadata":{"domain":"d","configuration":"","removed":false}}'

BLIND = Changes("WRITE", adds=(FILE,))
READING = replace(BLIND, reads=whole_table)
REMOVING = Changes("DELETE", removes=(RemoveFile("a"),))
WITH_TXN = replace(BLIND, transactions=(Transaction("a", 2),))
WITH_DOMAIN = replace(BLIND, domains=(DomainMetadata("d", ""),))


@pytest.mark.parametrize(
    ("changes", "winner", "message"),
    [
        (BLIND, DATA, None),
        (BLIND, REMOVED, None),
        (BLIND, TXN, None),
        (BLIND, DOMAIN, None),
        (BLIND, METADATA, "schema or the properties"),
        (BLIND, PROTOCOL, "protocol"),
        (READING, DATA, "added file 'a', which was not read"),
        (READING, MOVED, None),
        (READING, REMOVED, "removed file 'a', which was read"),
        (REMOVING, REMOVED, "which this one touches"),
        (REMOVING, json.dumps(remove("%61")).encode(), "which this one touches"),
        (REMOVING, DATA, None),
        (WITH_TXN, TXN, "application 'a'"),
        (WITH_TXN, DATA, None),
        (WITH_DOMAIN, DOMAIN, "domain 'd'"),
        (WITH_DOMAIN, TXN, None),
    ],
)
def test_conflicts(changes: Changes, winner: bytes, message: str | None) -> None:
    actions = list(parse_log([winner], "f"))
    if message is None:
        check_conflicts(changes, actions, 3)
    else:
        with pytest.raises(CommitConflict, match=f"version 3 first and .*{message}"):
            check_conflicts(changes, actions, 3)


def test_removes_are_refused_in_an_append_only_table(tmp_path: Path) -> None:
    create_table(open_store(tmp_path), SCHEMA, properties={"delta.appendOnly": "true"})
    snapshot = Snapshot.read(tmp_path)
    with pytest.raises(UnsupportedFeature, match="append-only"):
        commit(snapshot, REMOVING)
    moved = replace(REMOVING, removes=(RemoveFile("a", data_change=False),))
    assert commit(snapshot, moved) == 1


def test_a_table_that_we_cannot_write_is_refused_by_name(tmp_path: Path) -> None:
    table = write_log(tmp_path, first_commit(**{"delta.constraints.c": "n > 0"}))
    text = (tmp_path / commit_path(0)).read_text()
    features = text.replace('"appendOnly"', '"checkConstraints"')
    (tmp_path / commit_path(0)).write_text(features)
    snapshot = Snapshot.read(table)
    with pytest.raises(UnsupportedFeature, match="checkConstraints"):
        append(snapshot, [FILE])
    assert snapshot.refresh() is snapshot


def test_every_file_needs_every_partition_value(tmp_path: Path) -> None:
    schema = parse_table_ddl("event VARIANT, day DATE")
    store = open_store(tmp_path)
    with pytest.raises(InvalidValue, match="partition columns"):
        create_table(store, schema, partition_columns=["day"], adds=[FILE])
    file = replace(FILE, partition_values={"day": None})
    create_table(store, schema, partition_columns=["day"], adds=[file])
    with pytest.raises(InvalidValue, match="partition columns"):
        append(Snapshot.read(tmp_path), [replace(FILE, partition_values={"Day": "x"})])


def test_in_commit_timestamps_rise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path)
    create_table(store, SCHEMA, properties={"delta.enableInCommitTimestamps": "true"})
    first = _lines(tmp_path, 0)[0]["commitInfo"]
    assert next(iter(first)) == "inCommitTimestamp"
    monkeypatch.setattr("time.time_ns", lambda: 5_000_000)
    old = Snapshot.read(tmp_path)
    append(old, [FILE])
    append(old, [replace(FILE, path="g")])
    stamps = [_lines(tmp_path, n)[0]["commitInfo"]["inCommitTimestamp"] for n in range(3)]
    assert stamps == [stamps[0], stamps[0] + 1, stamps[0] + 2]
    assert Snapshot.read(tmp_path).history()[0].timestamp == stamps[2]


class Interfering:
    """A store that does something at the moment of a commit."""

    def __init__(self, store: Store, act: Callable[[str, bytes], bool | None]) -> None:
        self._store, self._act = store, act

    def put_if_absent(self, path: str, data: bytes) -> bool:
        told = self._act(path, data)
        return self._store.put_if_absent(path, data) if told is None else told

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.mark.rule(26)
def test_a_commit_that_is_overwritten_is_lost(tmp_path: Path) -> None:
    plain = open_store(tmp_path)
    create_table(plain, SCHEMA)

    def overwrite(path: str, data: bytes) -> bool:
        # What Delta Spark's local log store can do: exists? no. Then rename over ours.
        plain.put_if_absent(path, data)
        plain.put(path, DATA)
        return True

    store: Any = Interfering(plain, overwrite)
    with pytest.raises(CommitLost, match="version 1"):
        append(replace(Snapshot.read(tmp_path), store=store), [FILE])


@pytest.mark.rule(26)
def test_a_commit_that_is_overwritten_later_is_said_to_be_lost_once(tmp_path: Path) -> None:
    plain = open_store(tmp_path)
    create_table(plain, SCHEMA)
    before = Snapshot.read(tmp_path)
    append(before, [FILE])
    plain.put(commit_path(1), DATA)
    with pytest.raises(CommitLost, match="version 1"):
        before.refresh()
    assert Snapshot.read(tmp_path).version == 1
    append(before, [FILE])
    plain.put(commit_path(2), DATA)
    with pytest.raises(CommitLost, match="version 2"):
        Snapshot.read(tmp_path)
    assert before.refresh().version == 2


def test_a_commit_is_not_looked_at_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_table(open_store(tmp_path), SCHEMA)
    shutil.rmtree(tmp_path / "_delta_log")
    with pytest.raises(NotADeltaTable):
        Snapshot.read(tmp_path)
    create_table(open_store(tmp_path), SCHEMA)
    monkeypatch.setattr("variantlake.delta.log.lost_commit_check.SECONDS", 0)
    Snapshot.read(tmp_path)
    log = tmp_path / commit_path(0)
    log.write_bytes(b'{"commitInfo":{"engineInfo":"another table"}}\n' + log.read_bytes())
    assert Snapshot.read(tmp_path).version == 0


def test_a_commit_whose_answer_was_lost_is_known_again(tmp_path: Path) -> None:
    plain = open_store(tmp_path)

    def lose_the_answer(path: str, data: bytes) -> bool:
        plain.put_if_absent(path, data)
        return False

    store: Any = Interfering(plain, lose_the_answer)
    assert create_table(store, SCHEMA) == 0
    assert append(replace(Snapshot.read(tmp_path), store=store), [FILE]) == 1
    assert Snapshot.read(tmp_path).version == 1


def test_a_put_that_failed_counts_by_what_is_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plain = open_store(tmp_path)
    fails = StoreFailed("no answer")

    def lose_the_answer(path: str, data: bytes) -> bool:
        plain.put_if_absent(path, data)
        raise fails

    def do_nothing(_path: str, _data: bytes) -> bool:
        raise fails

    def lose_to_another(path: str, _data: bytes) -> bool:
        if path == commit_path(2):
            plain.put_if_absent(path, DATA)
        raise fails

    def over(act: Callable[[str, bytes], bool | None]) -> Any:
        is_commit = re.compile(r"_delta_log/\d+\.json").fullmatch
        return Interfering(plain, lambda path, data: act(path, data) if is_commit(path) else None)

    assert create_table(over(lose_the_answer), SCHEMA) == 0
    before = Snapshot.read(tmp_path)
    assert append(replace(before, store=over(lose_the_answer)), [FILE]) == 1
    assert "version 1 is committed all the same" in caplog.text
    with pytest.raises(StoreFailed, match="nothing was committed: no answer"):
        append(replace(before, store=over(do_nothing)), [FILE])
    assert Snapshot.read(tmp_path).version == 1
    # The version of another writer is not a version of ours: the next one is tried, and fails too.
    with pytest.raises(StoreFailed, match="nothing was committed"):
        append(replace(Snapshot.read(tmp_path), store=over(lose_to_another)), [FILE])
    assert Snapshot.read(tmp_path).version == 2


@pytest.mark.parametrize("answered", [True, False])
def test_a_commit_that_cannot_be_read_back_is_unknown(tmp_path: Path, answered: bool) -> None:
    plain = open_store(tmp_path)
    create_table(plain, SCHEMA)

    class Failing(Interfering):
        def stream(self, _path: str) -> Iterator[bytes]:
            raise StoreFailed("no answer")

        def read_range(self, _path: str, _start: int, _length: int) -> bytes:
            raise StoreFailed("no answer")

    def put(path: str, data: bytes) -> bool:
        plain.put_if_absent(path, data)
        if answered:
            return True
        raise StoreFailed("no answer")

    store: Any = Failing(plain, put)
    with pytest.raises(CommitUnknown, match="whether version 1 was committed: no answer") as caught:
        append(replace(Snapshot.read(tmp_path), store=store), [FILE])
    error = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own bytes
    assert error.txn_id in Path(error.file).read_text()
    assert error.txn_id in error.hint


def test_another_table_that_comes_first_wins(tmp_path: Path) -> None:
    plain = open_store(tmp_path)

    def come_first(path: str, _data: bytes) -> None:
        plain.put_if_absent(path, b"\n".join([PROTOCOL, METADATA]))

    store: Any = Interfering(plain, come_first)
    with pytest.raises(CommitConflict, match="already"):
        create_table(store, SCHEMA)


def test_commits_in_an_object_store() -> None:
    store = ObjectStore("s3://bucket/t", MemoryStore())
    create_table(store, SCHEMA, adds=[FILE])
    old = Snapshot.read("", store=store)
    append(old, [replace(FILE, path="g")])
    append(old, [replace(FILE, path="h")])
    assert _paths(old.refresh()) == {"f.parquet", "g", "h"}


def test_an_add_has_statistics_by_the_table_properties(tmp_path: Path) -> None:
    properties = {"variantlake.stats.stringLength": "2", "delta.enableVariantShredding": "true"}
    create_table(open_store(tmp_path), SCHEMA, properties=properties)
    known = facts(paths={"$['s']": {"minimum": "abc", "maximum": "abd"}})
    file = add_for(Snapshot.read(tmp_path), "a b%.parquet", known)
    assert file.path == "a%20b%25.parquet"
    assert json.loads(file.stats or "")["minValues"]["event"]
    assert (file.tags or {})["variantlake.file"] == "100:5"
    plain = new_add("f", known, schema=SCHEMA, properties={}, variant_bounds=False)
    assert json.loads(plain.stats or "")["minValues"] == {}


def test_deltalake_reads_rows_only_without_shredding(tmp_path: Path) -> None:
    # docs/readers.md says so: mend it there when this changes.
    if importlib.util.find_spec("deltalake") is None:
        corpora.missing("deltalake")
    import deltalake

    source = tmp_path / "s.ndjson"
    source.write_text('{"a": 1}\n')
    vl.Table.create(tmp_path / "shredded", "event VARIANT").append(vl.ndjson(source))
    with pytest.raises(deltalake.exceptions.DeltaProtocolError, match="variantShredding"):
        deltalake.DeltaTable(tmp_path / "shredded").to_pyarrow_table()
    plain = {"delta.enableVariantShredding": "false"}
    vl.Table.create(tmp_path / "plain", "event VARIANT", properties=plain).append(vl.ndjson(source))
    rows: list[Any] = (
        deltalake.DeltaTable(tmp_path / "plain").to_pyarrow_table()["event"].to_pylist()
    )
    assert [vl.Variant(row["metadata"], row["value"]).to_python() for row in rows] == [{"a": 1}]


def test_deltalake_opens_what_we_wrote(tmp_path: Path) -> None:
    if importlib.util.find_spec("deltalake") is None:
        corpora.missing("deltalake")
    import deltalake

    schema = parse_table_ddl("event VARIANT, n INT, day DATE, t TIMESTAMP")
    known = facts(
        paths={"$['a']": {"minimum": 1, "maximum": 9}},
        columns=(),
    )
    file = new_add(
        "day=2026-01-02/a b.parquet",
        known,
        schema=schema,
        properties={},
        partition_columns=["day"],
        partition_values={"day": "2026-01-02"},
    )
    create_table(open_store(tmp_path), schema, partition_columns=["day"], adds=[file])
    append(
        Snapshot.read(tmp_path), [replace(file, path="g.parquet", partition_values={"day": None})]
    )
    table = deltalake.DeltaTable(str(tmp_path))
    assert table.version() == 1
    assert {Path(uri).name for uri in table.file_uris()} == {"a b.parquet", "g.parquet"}
    found = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    assert {row["num_records"] for row in found} == {5}
    assert len(table.history()) == 2


def test_what_is_serialised_is_one_line_an_action() -> None:
    data = serialise([replace(FILE, tags={"a": "line\nbreak\u2028"})])
    assert data.count(b"\n") == 1
    assert data.endswith(b"\n")
