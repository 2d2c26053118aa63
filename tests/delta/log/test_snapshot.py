"""Snapshots: reconciliation by the protocol, listing, holes, and the tables of other writers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from obstore.store import MemoryStore

import variantlake as vl
from tests import corpora
from tests.delta.tables import (
    PROTOCOL,
    SCHEMA,
    add,
    first_commit,
    metadata,
    read_stats,
    remove,
    write_log,
)
from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
from variantlake.delta.log import snapshot_state
from variantlake.delta.log.files.file_paths import AbsolutePaths
from variantlake.delta.log.log_segment import all_commits, commit_path
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.table_schema import VariantType
from variantlake.errors import (
    InvalidQuery,
    InvalidValue,
    LimitExceeded,
    MalformedLog,
    MissingSource,
    NotADeltaTable,
    UnsupportedFeature,
    VariantLakeError,
)
from variantlake.storage.objects import ObjectStore
from variantlake.storage.opening import open_store
from variantlake.storage.store import LocalStore
from variantlake.table import Table

TABLES = corpora.DELTA_TABLES
# Table: version, rows of its files by their statistics, properties that matter.
CONFORMANCE = {
    "spark-variant-checkpoint": (2, 102, False),
    "spark-shredded-variant-preview-delta": (2, 102, True),
    "variant-stats-no-checkpoint": (1, 10, True),
    "variant-stats-state-reconstruction": (0, 1, True),
}


def _paths(snapshot: Snapshot) -> set[str]:
    return {file.path for file in snapshot.add_files()}


@pytest.mark.corpus(corpora.DELTA_TABLES)
@pytest.mark.parametrize("name", CONFORMANCE)
def test_tables_of_other_writers(name: str) -> None:
    version, rows, shredding = CONFORMANCE[name]
    snapshot = Snapshot.read(TABLES / name)
    assert snapshot.version == version
    assert snapshot.shredding_enabled is shredding
    found = [read_stats(file.stats, snapshot.schema) for file in snapshot.add_files()]
    assert sum(stats.num_records for stats in found) == rows
    for file in snapshot.add_files():
        location = Path(snapshot.location(file.path))
        assert location.stat().st_size == file.size
    snapshot.check_writable()


@pytest.mark.corpus(corpora.DELTA_TABLES)
def test_no_conformance_table_is_missed() -> None:
    assert {path.name for path in TABLES.iterdir()} == set(CONFORMANCE)


@pytest.mark.corpus(corpora.DELTA_TABLES)
@pytest.mark.parametrize(
    "name", ["spark-variant-checkpoint", "spark-shredded-variant-preview-delta"]
)
def test_a_checkpoint_and_the_commits_say_the_same(name: str, tmp_path: Path) -> None:
    log = TABLES / name / "_delta_log"
    (tmp_path / "_delta_log").mkdir()
    for commit in log.glob("*.json"):
        (tmp_path / "_delta_log" / commit.name).write_bytes(commit.read_bytes())
    by_commits, by_checkpoint = Snapshot.read(tmp_path), Snapshot.read(TABLES / name)
    key = "path"
    assert by_commits.files.whole().sort_by(key).select([key, "size", "stats"]) == (
        by_checkpoint.files.whole().sort_by(key).select([key, "size", "stats"])
    )
    assert by_commits.metadata == by_checkpoint.metadata
    assert by_commits.protocol == by_checkpoint.protocol


def test_older_versions_are_read(tmp_path: Path) -> None:
    table = write_log(
        tmp_path, first_commit(add("a")), [add("b")], [remove("a"), add("c")], [remove("c")]
    )
    assert [_paths(Snapshot.read(table, version)) for version in range(4)] == [
        {"a"},
        {"a", "b"},
        {"b", "c"},
        {"b"},
    ]


def test_a_file_that_is_added_again_has_its_newest_fields(tmp_path: Path) -> None:
    table = write_log(
        tmp_path, first_commit(add("a", tags={"k": "1"})), [add("a", tags={"k": "2"})]
    )
    (found,) = Snapshot.read(table).add_files()
    assert found.tags == {"k": "2"}


def test_two_spellings_of_a_path_are_one_file(tmp_path: Path) -> None:
    table = write_log(tmp_path, first_commit(add("a%2Db"), add("c d")), [remove("a-b")])
    assert _paths(Snapshot.read(table)) == {"c d"}


VECTOR = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}


def test_a_new_deletion_vector_replaces_the_file(tmp_path: Path) -> None:
    second = {**VECTOR, "pathOrInlineDv": "y"}
    table = write_log(
        tmp_path,
        first_commit(add("a")),
        [remove("a"), add("a", deletionVector=VECTOR)],
        [remove("a", deletionVector=VECTOR), add("a", deletionVector=second)],
    )
    snapshot = Snapshot.read(table, applies={"deletionVectors"})
    (found,) = snapshot.add_files()
    assert found.deletion_vector is not None
    assert found.deletion_vector.path_or_inline_dv == "y"
    with pytest.raises(UnsupportedFeature, match="deletionVectors"):
        Snapshot.read(table)
    assert _paths(Snapshot.read(table, 0)) == {"a"}


def test_the_newest_of_all_other_actions_wins(tmp_path: Path) -> None:
    def domain(name: str, text: str, removed: bool = False) -> dict[str, Any]:
        return {"domainMetadata": {"domain": name, "configuration": text, "removed": removed}}

    table = write_log(
        tmp_path,
        first_commit({"txn": {"appId": "a", "version": 7}}, domain("d", "1"), domain("e", "1")),
        [{"txn": {"appId": "a", "version": 6}}, domain("d", "2"), domain("e", "", removed=True)],
        [{"metaData": metadata(**{"delta.appendOnly": "true"})}, {"commitInfo": {"txnId": "x"}}],
        [{"protocol": {**PROTOCOL, "readerFeatures": [], "writerFeatures": []}}],
    )
    snapshot = Snapshot.read(table)
    assert snapshot.transactions["a"].version == 6
    assert {name: found.configuration for name, found in snapshot.domains.items()} == {"d": "2"}
    assert snapshot.properties == {"delta.appendOnly": "true"}
    assert snapshot.features == frozenset()
    assert snapshot.commit_info is None
    assert Snapshot.read(table, 2).commit_info is not None


def test_a_refresh_reads_what_is_new_and_changes_nothing_old(tmp_path: Path) -> None:
    table = write_log(tmp_path, first_commit(add("a")))
    old = Snapshot.read(table)
    assert old.refresh() is old
    write_log(tmp_path, [add("b")], [remove("a")], start=1)
    new = old.refresh()
    assert (new.version, _paths(new)) == (2, {"b"})
    assert (old.version, _paths(old)) == (0, {"a"})


def test_history_is_newest_first(tmp_path: Path) -> None:
    info = {"commitInfo": {"timestamp": 5, "operation": "WRITE", "operationMetrics": {"n": "1"}}}
    table = write_log(tmp_path, first_commit(), [info], [add("x")])
    newest, middle, oldest = Snapshot.read(table).history()
    assert (newest.version, newest.operation) == (2, None)
    assert (middle.version, middle.operation) == (1, "WRITE")
    assert middle.info["operationMetrics"] == {"n": "1"}
    assert oldest.version == 0
    assert [entry.version for entry in Snapshot.read(table, 1).history(1)] == [1]


def test_history_ends_where_a_cleanup_has_come_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = write_log(tmp_path, first_commit(), [add("x")], [add("y")])
    snapshot = Snapshot.read(table)

    def cleaned_up_since(store: Any, last: int | None = None) -> Any:
        found = all_commits(store, last)
        for version in gone:
            store.delete(commit_path(version))
        return found

    monkeypatch.setattr("variantlake.delta.log.snapshot.all_commits", cleaned_up_since)
    gone = [0]
    assert [entry.version for entry in snapshot.history()] == [2, 1]
    gone = [1, 2]
    with pytest.raises(MissingSource, match="no such"):
        snapshot.history()


def test_a_table_in_an_object_store(tmp_path: Path) -> None:
    table = write_log(tmp_path, first_commit(add("a%20b")), [add("c")])
    backend = MemoryStore()
    for commit in (Path(table) / "_delta_log").iterdir():
        backend.put(f"_delta_log/{commit.name}", commit.read_bytes())
    store = ObjectStore("s3://bucket/table", backend)
    snapshot = Snapshot.read("", store=store)
    assert _paths(snapshot) == {"a%20b", "c"}
    assert snapshot.location("a%20b") == "s3://bucket/table/a b"


def test_the_schema_is_parsed(tmp_path: Path) -> None:
    snapshot = Snapshot.read(write_log(tmp_path, first_commit()))
    assert snapshot.schema == SCHEMA
    assert isinstance(snapshot.schema.fields[0].type, VariantType)
    assert snapshot.files.num_rows == 0


def test_shredding_needs_the_property_and_the_feature(tmp_path: Path) -> None:
    # deltalake sets the property at create without adding the feature.
    enabled = {"delta.enableVariantShredding": "true"}
    plain = {**PROTOCOL, "readerFeatures": ["variantType"], "writerFeatures": ["variantType"]}
    table = write_log(tmp_path, [{"protocol": plain}, {"metaData": metadata(**enabled)}])
    assert not Snapshot.read(table).shredding_enabled
    write_log(tmp_path, first_commit(**enabled))
    assert Snapshot.read(table).shredding_enabled
    write_log(tmp_path, first_commit())
    assert not Snapshot.read(table).shredding_enabled


# What is not a table, or a version that is not there


def test_a_location_without_a_log_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "log" / "_delta_log").mkdir(parents=True)
    (tmp_path / "file").write_text("x")
    for name in ("empty", "log", "nowhere", "file"):
        with pytest.raises(NotADeltaTable, match=name) as caught:
            Snapshot.read(tmp_path / name)
        assert caught.value.hint


def test_a_version_that_does_not_exist_is_named(tmp_path: Path) -> None:
    table = write_log(tmp_path, first_commit(), [add("a")])
    for version in (2, -1, 10**18):
        with pytest.raises(MissingSource, match=f"version {version} does not exist"):
            Snapshot.read(table, version)


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_hole_is_named(tmp_path: Path, gone: int) -> None:
    table = write_log(tmp_path, first_commit(), [add("a")], [add("b")], [add("c")])
    missing = tmp_path / "_delta_log" / f"{gone:020d}.json"
    missing.unlink()
    with pytest.raises(MalformedLog, match="hole") as caught:
        Snapshot.read(table)
    assert caught.value.file == str(missing)


def test_an_older_version_does_not_care_for_a_later_hole(tmp_path: Path) -> None:
    table = write_log(tmp_path, first_commit(), [add("a")], [add("b")], [add("c")])
    (tmp_path / "_delta_log" / f"{2:020d}.json").unlink()
    assert _paths(Snapshot.read(table, 1)) == {"a"}


# Hostile logs: commits line by line, and by columns


@pytest.fixture(params=["lines", "columns"])
def _each_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "columns":
        monkeypatch.setattr(snapshot_state, "LARGE_COMMIT", -1)


each_way = pytest.mark.usefixtures("_each_way")


def _write_raw(root: Path, version: int, data: bytes) -> str:
    write_log(root, first_commit(add("a")))
    (root / "_delta_log" / f"{version:020d}.json").write_bytes(data)
    return str(root)


@each_way
@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b'{"add":{"path":"x","size":1', 1),
        (json.dumps(add("x")).encode() + b'\n{"add":{"pa', 2),
        (json.dumps(add("x", size="1")).encode() + b"\n", 1),
        (b"\x00" * 100, 1),
        (b"\xff\xfe", 1),
        (b"[1]\n", 1),
        (b"[" * 100_000, 1),
        (b'{"add":' * 5000, 1),
    ],
    ids=["cut", "cut-second", "type", "zeros", "utf8", "list", "deep", "deep-add"],
)
def test_a_damaged_commit_is_named(tmp_path: Path, data: bytes, line: int | None) -> None:
    table = _write_raw(tmp_path, 1, data)
    with pytest.raises(MalformedLog) as caught:
        Snapshot.read(table)
    assert caught.value.file.endswith(f"{1:020d}.json")
    assert caught.value.line == line
    assert _paths(Snapshot.read(table, 0)) == {"a"}


@each_way
@pytest.mark.parametrize("data", [b"", b"\n", b" \n\n"])
@pytest.mark.parametrize("version", [1, 2])
def test_a_commit_without_actions_changes_nothing(
    tmp_path: Path, version: int, data: bytes
) -> None:
    table = write_log(tmp_path, first_commit(add("a")), [add("b")], [add("c")])
    (tmp_path / commit_path(version)).write_bytes(data)
    found = Snapshot.read(table)
    assert (found.version, _paths(found)) == (2, {"a", "b", "c"} - {"bc"[version - 1]})
    assert [entry.operation for entry in found.history()] == [None] * 3
    older = Snapshot.read(table, 0)
    assert _paths(older.refresh()) == _paths(found)


@each_way
def test_a_first_commit_without_actions_leaves_no_table(tmp_path: Path) -> None:
    table = write_log(tmp_path, first_commit(), [add("b")])
    (tmp_path / commit_path(0)).write_bytes(b"")
    with pytest.raises(MalformedLog, match="no commit up to version 1 has a protocol action"):
        Snapshot.read(table)


@each_way
def test_an_empty_commit_that_a_checksum_contradicts_is_refused(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "n INT")
    for number in range(3):
        table.append(pa.table({"n": pa.array([number], pa.int32())}))
    (tmp_path / commit_path(2)).write_bytes(b"")
    with pytest.raises(MalformedLog, match="disagree about the number of files: 3 and 2"):
        Snapshot.read(tmp_path)


@each_way
@pytest.mark.parametrize(
    "actions",
    [
        [add("x"), remove("x")],
        [add("x", size=1), add("x", size=2)],
        [{"metaData": metadata()}, {"metaData": metadata()}],
        [{"protocol": PROTOCOL}, {"protocol": PROTOCOL}],
        [{"txn": {"appId": "a", "version": 1}}, {"txn": {"appId": "a", "version": 2}}],
    ],
    ids=["add-remove", "add-add", "metadata", "protocol", "txn"],
)
def test_actions_that_contradict_each_other_are_refused(
    tmp_path: Path, actions: list[dict[str, Any]]
) -> None:
    table = write_log(tmp_path, first_commit(add("a")), actions)
    with pytest.raises(MalformedLog) as caught:
        Snapshot.read(table)
    assert caught.value.file.endswith(f"{1:020d}.json")


@each_way
def test_a_file_with_two_deletion_vectors_is_refused(tmp_path: Path) -> None:
    table = write_log(tmp_path, first_commit(add("a")), [add("a", deletionVector=VECTOR)])
    with pytest.raises(MalformedLog, match="'a' is in the table twice"):
        Snapshot.read(table, applies={"deletionVectors"})


LEAVING = ["../x", "a/../../x", "%2e%2e/x", "%2E%2E%2Fx", "..%2fx", "a/%2e./../x", "", ".", "%ff"]


@pytest.mark.rule(27)
@each_way
@pytest.mark.parametrize("path", LEAVING)
def test_a_path_that_leaves_the_table_is_refused(tmp_path: Path, path: str) -> None:
    table = write_log(tmp_path, first_commit(add("fine"), add(path)))
    with pytest.raises(MalformedLog, match=re.escape(repr(path))) as caught:
        Snapshot.read(table)
    assert caught.value.file.startswith(table)


@each_way
@pytest.mark.parametrize("path", LEAVING[:4])
def test_a_snapshot_never_locates_what_leaves_the_table(tmp_path: Path, path: str) -> None:
    with pytest.raises(MalformedLog, match="leaves"):
        Snapshot.read(write_log(tmp_path, first_commit(add("fine")))).location(path)


@each_way
def test_absolute_paths_follow_the_policy(tmp_path: Path) -> None:
    # What SHALLOW CLONE writes.
    table = write_log(tmp_path, first_commit(add("file:///source/a%20b.parquet")))
    snapshot = Snapshot.read(table)
    assert [snapshot.location(path) for path in _paths(snapshot)] == ["/source/a b.parquet"]
    with pytest.raises(UnsupportedFeature, match="absolute path: file:///source/a%20b") as caught:
        Snapshot.read(table, absolute_paths=AbsolutePaths.REFUSE)
    assert caught.value.file == table


def test_one_setting_refuses_absolute_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vector = {
        "storageType": "p",
        "pathOrInlineDv": "file:///etc/passwd",
        "offset": 1,
        "sizeInBytes": 4,
        "cardinality": 1,
    }
    tables = [
        write_log(tmp_path / "data", first_commit(add("/etc/passwd"))),
        write_log(tmp_path / "vector", first_commit(add("fine", deletionVector=vector))),
    ]
    monkeypatch.delenv("VARIANTLAKE_ABSOLUTE_PATHS", raising=False)
    for table in tables:
        Snapshot.read(table, applies={"deletionVectors"})
    monkeypatch.setenv("VARIANTLAKE_ABSOLUTE_PATHS", "")  # put back what the call below sets
    vl.set_absolute_paths("refuse")
    for table in tables:
        with pytest.raises(UnsupportedFeature, match=r"absolute path: .*passwd"):
            Snapshot.read(table, applies={"deletionVectors"})
        with pytest.raises(UnsupportedFeature, match="absolute path"):
            vl.Table.open(table)
    monkeypatch.setenv("VARIANTLAKE_ABSOLUTE_PATHS", "sometimes")
    with pytest.raises(InvalidValue, match="VARIANTLAKE_ABSOLUTE_PATHS is 'sometimes'"):
        Snapshot.read(tables[0])


@pytest.mark.parametrize("what", ["protocol", "metaData"])
def test_a_table_without_protocol_or_metadata_is_refused(tmp_path: Path, what: str) -> None:
    actions = [action for action in first_commit(add("a")) if what not in action]
    with pytest.raises(MalformedLog, match=what):
        Snapshot.read(write_log(tmp_path, actions))


def test_an_unknown_reader_feature_is_refused_before_the_schema_is_parsed(tmp_path: Path) -> None:
    protocol = {**PROTOCOL, "readerFeatures": ["newType"], "writerFeatures": ["newType"]}
    fields = [{"name": "x", "type": "newtype", "nullable": True, "metadata": {}}]
    text = json.dumps({"type": "struct", "fields": fields})
    table = write_log(
        tmp_path, [{"protocol": protocol}, {"metaData": {**metadata(), "schemaString": text}}]
    )
    with pytest.raises(UnsupportedFeature, match="newType") as caught:
        Snapshot.read(table)
    assert caught.value.file == table


TWICE = '{"type":"struct","fields":[{"name":"n","type":"long"},{"name":"n","type":"string"}]}'


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schemaString": TWICE}, "the column 'n' twice"),
        ({"schemaString": SCHEMA.to_json().replace('"variant"', TWICE)}, "the column 'n' twice"),
        ({"partitionColumns": ["nope"]}, "'nope' is not in the schema"),
        ({"partitionColumns": ["event"]}, "'event' is variant"),
        ({"configuration": {"delta.columnMapping.mode": "sideways"}}, "cannot be 'sideways'"),
    ],
)
def test_metadata_that_contradict_themselves_are_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    table = write_log(tmp_path, [{"protocol": PROTOCOL}, {"metaData": {**metadata(), **changes}}])
    with pytest.raises(MalformedLog, match=message) as caught:
        Snapshot.read(table)
    assert caught.value.file == table


def test_a_schema_that_does_not_parse_names_the_table(tmp_path: Path) -> None:
    table = write_log(
        tmp_path, [{"protocol": PROTOCOL}, {"metaData": {**metadata(), "schemaString": "{"}}]
    )
    with pytest.raises(MalformedLog, match="schemaString") as caught:
        Snapshot.read(table)
    assert caught.value.file == table


def test_metadata_without_a_schema_have_no_columns_until_they_are_set(tmp_path: Path) -> None:
    unset = {name: value for name, value in metadata().items() if name != "schemaString"}
    table = write_log(tmp_path, [{"protocol": PROTOCOL}, {"metaData": unset}], first_commit()[1:])
    assert Snapshot.read(table).schema == SCHEMA
    before = Snapshot.read(table, 0)
    assert before.schema.fields == ()
    assert [entry.version for entry in before.history()] == [0]
    assert before.refresh().schema == SCHEMA
    with pytest.raises(InvalidQuery, match="no column 'n'") as caught:
        vl.Table.open(table, 0).scan(["n"]).to_arrow()
    assert caught.value.hint == "it has no column: none was set yet"
    write_checkpoint(open_store(table), 0)
    assert Snapshot.read(table, 0).schema.fields == ()


@each_way
def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("variantlake.delta.actions.actions.MAX_LINE_BYTES", 10_000)
    table = _write_raw(tmp_path, 1, b'{"add":"' + b"x" * (20 << 20))
    with pytest.raises(LimitExceeded) as caught:
        Snapshot.read(table)
    assert caught.value.file.endswith(f"{1:020d}.json")


@each_way
def test_of_a_line_of_a_gigabyte_no_more_than_the_limit_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _write_raw(tmp_path, 1, json.dumps(add("x")).encode() + b"\n")
    with (tmp_path / "_delta_log" / f"{1:020d}.json").open("ab") as file:
        file.truncate(1 << 30)  # sparse: zeros without an end of line
    read = 0
    stream = LocalStore.stream

    def counted(self: LocalStore, path: str) -> Iterator[bytes]:
        nonlocal read
        for piece in stream(self, path):
            read += len(piece)
            yield piece

    monkeypatch.setattr(LocalStore, "stream", counted)
    with pytest.raises(LimitExceeded, match="longer than 67108864 bytes") as caught:
        Snapshot.read(table)
    assert caught.value.file.endswith(f"{1:020d}.json")
    assert caught.value.line == 2
    assert read < 120 << 20


WRONG: list[tuple[dict[str, Any], str]] = [
    (add("x", partitionValues={"a": 1}), "a value in partitionValues is int"),
    (add("x", partitionValues=[]), "partitionValues is list"),
    (add("x", size=-1), "size -1 is negative"),
    (add("x", size=2**63), "size is int"),
    (add("x", size=1.5), "size is float"),
    (add("x", dataChange="true"), "dataChange is str"),
    (add("x", tags={"a": []}), "a value in tags is list"),
    (add("x", stats={}), "stats is dict"),
    (add("x", deletionVector={**VECTOR, "storageType": "z"}), "storage type 'z'"),
    (add("x", deletionVector={}), "storageType is missing"),
    (add("x", deletionVector={**VECTOR, "sizeInBytes": 2**31}), "an integer of 32 bits"),
    (add("x", deletionVector={**VECTOR, "offset": 2**40}), "an integer of 32 bits"),
    ({"add": []}, "add is not an object"),
    ({"remove": {"path": 1, "dataChange": True}}, "path is int"),
    ({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7}}, "no readerFeatures"),
    ({"metaData": {**metadata(), "format": "parquet"}}, "format is str, expected an object"),
    ({"metaData": {**metadata(), "partitionColumns": "a"}}, "partitionColumns is str"),
    ({"txn": {"appId": "a", "version": "1"}}, "version is str"),
    ({"domainMetadata": {"domain": "d", "configuration": {}}}, "configuration is dict"),
    ({**add("x"), **remove("y")}, "two actions on one line"),
]


@each_way
@pytest.mark.parametrize(("action", "message"), WRONG)
def test_a_field_of_a_wrong_type_is_named(
    tmp_path: Path, action: dict[str, Any], message: str
) -> None:
    table = write_log(tmp_path, first_commit(add("a")), [add("b"), action])
    with pytest.raises(MalformedLog, match=message) as caught:
        Snapshot.read(table)
    assert caught.value.file.endswith(f"{1:020d}.json")
    assert caught.value.line == 2


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version":"x"}', '{"version":-1}', '{"version":99}', '{"version":1}']
)
def test_a_pointer_that_makes_no_sense_is_passed_over(tmp_path: Path, text: str) -> None:
    table = write_log(tmp_path, first_commit(add("a")), [add("b")])
    (tmp_path / "_delta_log" / "_last_checkpoint").write_text(text)
    assert _paths(Snapshot.read(table)) == {"a", "b"}


def test_other_files_in_the_log_are_passed_over(tmp_path: Path) -> None:
    table = write_log(tmp_path, first_commit(add("a")))
    log = tmp_path / "_delta_log"
    for name in ("1.json", f"{1:020d}.crc", f".{1:020d}.json.tmp", f"{1:019d}.json", "x.json"):
        (log / name).write_text("{")
    (log / f"{0:020d}.{3:020d}.compacted.json").write_text("{")
    (log / "_staged_commits").mkdir()
    (log / f"{7:020d}.json").mkdir()
    assert Snapshot.read(table).version == 0


@each_way
def test_errors_are_all_ours(tmp_path: Path) -> None:
    for fields in ({"path": None}, {"path": "x", "partitionValues": {"a": {}}}):
        table = write_log(tmp_path, first_commit(), [{"add": fields}])
        with pytest.raises(VariantLakeError):
            Snapshot.read(table)


def test_a_log_of_very_many_commits_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    location = write_log(tmp_path, first_commit(add("a")), [add("b")], [add("c")])
    monkeypatch.setattr("variantlake.delta.log.snapshot_state.MANY_COMMITS", 3)
    monkeypatch.setattr("variantlake.delta.log.snapshot_state.PROGRESS_SECONDS", 0.0)
    assert Snapshot.read(location).files.num_rows == 3
    assert "3 commits after its newest checkpoint" in caplog.messages[0]
    assert "Table.checkpoint()" in caplog.messages[0]
    assert [line.rpartition(": ")[2] for line in caplog.messages[1:]] == [
        f"read {number} of 3 commits" for number in range(3)
    ]
    caplog.clear()
    write_checkpoint(open_store(tmp_path))
    caplog.clear()
    assert Snapshot.read(location).files.num_rows == 3
    assert not caplog.messages
