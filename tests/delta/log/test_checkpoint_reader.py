"""Checkpoints of every kind, and what to do with damaged ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.delta.tables import (
    PROTOCOL,
    SCHEMA,
    add,
    create_table,
    first_commit,
    metadata,
    read_stats,
    remove,
    write_log,
)
from variantlake.delta.actions.actions import AddFile
from variantlake.delta.checkpoint import checkpoint_writer
from variantlake.delta.log import checkpoint_reader, snapshot_state
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import MalformedLog, MissingSource
from variantlake.parquet.metadata.footer import read_footer
from variantlake.storage.opening import open_store
from variantlake.storage.store import Entry, LocalStore

STRINGS = pa.map_(pa.string(), pa.string())
UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"
ADD: dict[str, pa.DataType] = {
    "path": pa.string(),
    "partitionValues": STRINGS,
    "size": pa.int64(),
    "modificationTime": pa.int64(),
    "dataChange": pa.bool_(),
    "stats": pa.string(),
    "tags": STRINGS,
}
OTHERS: dict[str, pa.DataType] = {
    "remove": pa.struct(
        [("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())]
    ),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", STRINGS)])),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", STRINGS),
            ("createdTime", pa.int64()),
        ]
    ),
    "protocol": pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", pa.list_(pa.string())),
            ("writerFeatures", pa.list_(pa.string())),
        ]
    ),
    "txn": pa.struct([("appId", pa.string()), ("version", pa.int64())]),
    "sidecar": pa.struct(
        [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())]
    ),
}
STATE = [{"protocol": PROTOCOL}, {"metaData": metadata()}, {"txn": {"appId": "a", "version": 3}}]


def write_checkpoint(
    root: Path,
    name: str,
    actions: list[dict[str, Any]],
    add_fields: dict[str, pa.DataType] | None = None,
    without: tuple[str, ...] = (),
) -> Path:
    """A checkpoint file of these actions, with columns only for the kinds given."""
    types = {"add": pa.struct(list((add_fields or ADD).items())), **OTHERS}
    columns = {kind: type_ for kind, type_ in types.items() if kind not in without}
    path = root / "_delta_log" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(
        {
            kind: pa.array([action.get(kind) for action in actions], type_)
            for kind, type_ in columns.items()
        }
    )
    pq.write_table(table, path)
    return path


def _paths(snapshot: Snapshot) -> set[str]:
    return {file.path for file in snapshot.add_files()}


def _classic(version: int) -> str:
    return f"{version:020d}.checkpoint.parquet"


def _table(root: Path) -> str:
    """Commits 0 to 3, of which 0 and 1 are cleaned up."""
    return write_log(root, [add("c")], [remove("a"), add("d")], start=2)


FILES = [add("a", stats="{}", tags={"k": "v"}), add("b"), remove("z")]


def test_a_classic_checkpoint_stands_for_the_commits_before(tmp_path: Path) -> None:
    table = _table(tmp_path)
    write_checkpoint(tmp_path, _classic(1), [*STATE, *FILES])
    snapshot = Snapshot.read(table)
    assert (snapshot.version, _paths(snapshot)) == (3, {"b", "c", "d"})
    assert snapshot.transactions["a"].version == 3
    old = Snapshot.read(table, 1)
    first = next(file for file in old.add_files() if file.path == "a")
    assert (first.tags, first.stats) == ({"k": "v"}, "{}")
    assert snapshot.metadata.id == metadata()["id"]


def test_a_version_before_the_checkpoint_was_cleaned_up(tmp_path: Path) -> None:
    table = _table(tmp_path)
    write_checkpoint(tmp_path, _classic(1), [*STATE, *FILES])
    with pytest.raises(MissingSource, match="cleaned up") as caught:
        Snapshot.read(table, 0)
    assert "1" in caught.value.hint


def test_a_cleanup_beside_a_reader_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes the checkpoint that the reader has listed, and the commits behind it."""
    table = _table(tmp_path)
    write_checkpoint(tmp_path, _classic(3), [*STATE, *FILES])
    first = write_checkpoint(tmp_path, _classic(1), [*STATE, *FILES])

    def read(*args: Any, **options: Any) -> Any:
        first.unlink(missing_ok=True)
        (first.parent / f"{2:020d}.json").unlink(missing_ok=True)
        return checkpoint_reader.read_checkpoint(*args, **options)

    monkeypatch.setattr(snapshot_state, "read_checkpoint", read)
    with pytest.raises(MissingSource, match="cleaned up"):
        Snapshot.read(table, 2)
    assert Snapshot.read(table).version == 3


def test_a_listing_beside_a_cleanup_is_no_hole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first page names a checkpoint; the commits behind it are gone at the second page."""
    table = _table(tmp_path)
    write_checkpoint(tmp_path, _classic(3), [*STATE, *FILES])
    first = write_checkpoint(tmp_path, _classic(1), [*STATE, *FILES])
    listed = LocalStore.list_from

    def torn(store: LocalStore, *args: Any) -> Iterator[Entry]:
        entries = list(listed(store, *args))
        (first.parent / f"{2:020d}.json").unlink(missing_ok=True)
        first.unlink(missing_ok=True)
        return (entry for entry in entries if not entry.path.endswith(f"{2:020d}.json"))

    monkeypatch.setattr(LocalStore, "list_from", torn)
    with pytest.raises(MissingSource, match="cleaned up"):
        Snapshot.read(table, 2)
    assert Snapshot.read(table).version == 3


def test_a_checkpoint_alone_is_a_table(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, _classic(5), [*STATE, *FILES])
    snapshot = Snapshot.read(tmp_path)
    assert (snapshot.version, _paths(snapshot)) == (5, {"a", "b"})


def test_the_pointer_saves_nothing_but_the_listing(tmp_path: Path) -> None:
    table = _table(tmp_path)
    write_checkpoint(tmp_path, _classic(1), [*STATE, *FILES])
    pointer = tmp_path / "_delta_log" / "_last_checkpoint"
    for version in (1, 2, 7):  # right, without a checkpoint, beyond the log
        pointer.write_text(json.dumps({"version": version, "size": 5}))
        assert _paths(Snapshot.read(table)) == {"b", "c", "d"}
    write_checkpoint(tmp_path, _classic(2), [*STATE, add("only")])
    pointer.write_text('{"version":1,"size":5}')  # stale
    assert _paths(Snapshot.read(table)) == {"only", "d"}
    assert _paths(Snapshot.read(table, 1)) == {"a", "b"}


def test_a_pointer_beyond_the_asked_version_is_passed_over(tmp_path: Path) -> None:
    table = write_log(tmp_path, first_commit(add("a")), [add("b")], [add("c")])
    write_checkpoint(tmp_path, _classic(2), [*STATE, add("a"), add("b"), add("c")])
    (tmp_path / "_delta_log" / "_last_checkpoint").write_text('{"version":2,"size":5}')
    assert _paths(Snapshot.read(table, 1)) == {"a", "b"}


def test_a_checkpoint_in_parts_needs_all_of_them(tmp_path: Path) -> None:
    table = write_log(tmp_path, first_commit(add("a")), [add("b")], [add("c")])
    parts = [f"{1:020d}.checkpoint.{part:010d}.{3:010d}.parquet" for part in (1, 2, 3)]
    write_checkpoint(tmp_path, parts[0], [*STATE, add("p1")])
    write_checkpoint(tmp_path, parts[1], [add("p2")], without=("protocol", "metaData"))
    assert _paths(Snapshot.read(table)) == {"a", "b", "c"}
    write_checkpoint(tmp_path, parts[2], [add("p3")])
    assert _paths(Snapshot.read(table)) == {"p1", "p2", "p3", "c"}


@pytest.mark.parametrize("form", ["json", "parquet", "classic"])
def test_a_v2_checkpoint_with_sidecars(tmp_path: Path, form: str) -> None:
    table = _table(tmp_path)
    write_checkpoint(tmp_path, "_sidecars/one.parquet", [add("a"), remove("z")])
    write_checkpoint(tmp_path, "_sidecars/t%20wo.parquet", [add("b")], without=tuple(OTHERS))
    actions: list[dict[str, Any]] = [
        *STATE,
        {"sidecar": {"path": "one.parquet", "sizeInBytes": 1, "modificationTime": 1}},
        {
            "sidecar": {
                "path": "/elsewhere/_sidecars/t%2520wo.parquet",
                "sizeInBytes": 1,
                "modificationTime": 1,
            }
        },
    ]
    if form == "json":
        lines = [{"checkpointMetadata": {"version": 1}}, *actions]
        path = tmp_path / "_delta_log" / f"{1:020d}.checkpoint.{UUID}.json"
        path.write_text("\n".join(map(json.dumps, lines)))
    else:
        name = f"{1:020d}.checkpoint.{UUID}.parquet" if form == "parquet" else _classic(1)
        write_checkpoint(tmp_path, name, actions, without=("add", "remove"))
    assert _paths(Snapshot.read(table)) == {"b", "c", "d"}


def test_a_v2_checkpoint_without_sidecars(tmp_path: Path) -> None:
    table = _table(tmp_path)
    lines = [{"checkpointMetadata": {"version": 1}}, *STATE, *FILES]
    name = tmp_path / "_delta_log" / f"{1:020d}.checkpoint.{UUID}.json"
    name.write_text("\n".join(map(json.dumps, lines)))
    assert _paths(Snapshot.read(table)) == {"b", "c", "d"}


def test_statistics_in_struct_form_become_text(tmp_path: Path) -> None:
    variant = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    side = pa.struct([("n", pa.int32()), ("event", variant)])
    parsed = pa.struct([("numRecords", pa.int64()), ("minValues", side), ("maxValues", side)])
    fields = {name: type_ for name, type_ in ADD.items() if name != "stats"}
    # 01 version, one key $; an object of {$: int8 7}, its dictionary in the protocol's order
    bound = {"metadata": b"\x01\x01\x00\x01$", "value": b"\x02\x01\x00\x00\x02\x0c\x07"}
    stats = {
        "numRecords": 3,
        "minValues": {"n": 1, "event": bound},
        "maxValues": {"n": None, "event": bound},
    }
    write_checkpoint(
        tmp_path,
        _classic(0),
        [*STATE, add("a", stats_parsed=stats), add("b")],
        {**fields, "stats_parsed": parsed},
    )
    snapshot = Snapshot.read(tmp_path)
    first, second = (read_stats(file.stats, snapshot.schema) for file in snapshot.add_files())
    assert (
        first.num_records,
        first.columns[0].bounds.minimum,
        first.columns[0].bounds.maximum,
    ) == (3, 1, None)
    (found,) = first.minimums[("event",)].values()
    assert found.value == 7
    assert second.num_records == -1


def test_columns_of_other_widths_are_taken(tmp_path: Path) -> None:
    fields = {**ADD, "size": pa.int32(), "path": pa.large_string()}
    write_checkpoint(tmp_path, _classic(0), [*STATE, *FILES], fields)
    assert _paths(Snapshot.read(tmp_path)) == {"a", "b"}


def test_columns_that_nobody_needs_may_be_missing(tmp_path: Path) -> None:
    fields = {name: ADD[name] for name in ("path", "partitionValues", "size", "modificationTime")}
    write_checkpoint(tmp_path, _classic(0), [*STATE, *FILES], fields, without=("txn", "remove"))
    assert _paths(Snapshot.read(tmp_path)) == {"a", "b"}


# Damaged checkpoints


def _without(name: str) -> dict[str, pa.DataType]:
    return {field: type_ for field, type_ in ADD.items() if field != name}


@pytest.mark.parametrize(
    ("fields", "without", "message"),
    [
        (_without("path"), (), "no column add.path"),
        (_without("size"), (), "no column add.size"),
        (_without("partitionValues"), (), "no column add.partitionValues"),
        ({**ADD, "size": pa.string()}, (), "column add.size is string"),
        ({**ADD, "path": pa.list_(pa.string())}, (), "column add.path is list"),
        ({**ADD, "tags": pa.string()}, (), "column add.tags is string"),
        (None, ("add",), "no `add` column"),
        (None, ("protocol",), "no protocol action"),
        (None, ("metaData",), "no metaData action"),
    ],
)
def test_a_checkpoint_without_what_it_must_hold_is_named(
    tmp_path: Path,
    fields: dict[str, pa.DataType] | None,
    without: tuple[str, ...],
    message: str,
) -> None:
    known = fields or ADD
    row = {name: value for name, value in add("a")["add"].items() if name in known}
    for name, value in row.items():
        if known[name] == pa.string() and not isinstance(value, str):
            row[name] = str(value)
        elif known[name] == pa.list_(pa.string()):
            row[name] = [value]
    path = write_checkpoint(tmp_path, _classic(0), [*STATE, {"add": row}], fields, without)
    with pytest.raises(MalformedLog, match=message) as caught:
        Snapshot.read(tmp_path)
    assert caught.value.file == str(path)


@pytest.mark.parametrize("lacking", ["protocol", "metaData"])
def test_a_whole_checkpoint_without_them_does_not_give_way(tmp_path: Path, lacking: str) -> None:
    write_log(tmp_path, first_commit(add("a")), [add("b")])
    write_checkpoint(tmp_path, _classic(1), [*STATE, add("a"), add("b")], without=(lacking,))
    with pytest.raises(MalformedLog, match=f"the checkpoint has no {lacking} action"):
        Snapshot.read(tmp_path)
    assert _paths(Snapshot.read(tmp_path, 0)) == {"a"}


def test_two_protocols_are_refused(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, _classic(0), [*STATE, {"protocol": PROTOCOL}])
    with pytest.raises(MalformedLog, match="2 protocol"):
        Snapshot.read(tmp_path)


def test_a_row_without_a_path_is_refused(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, _classic(0), [*STATE, {"add": {"size": 1}}])
    with pytest.raises(MalformedLog, match=r"add\.path is null"):
        Snapshot.read(tmp_path)


def test_a_file_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path, _classic(0), [*STATE, add("a"), add("a")])
    with pytest.raises(MalformedLog, match="twice") as caught:
        Snapshot.read(tmp_path)
    assert caught.value.file == str(path)


@pytest.mark.parametrize("damage", ["empty", "cut", "text", "footer"])
def test_a_damaged_checkpoint_gives_way_to_the_commits(tmp_path: Path, damage: str) -> None:
    table = write_log(tmp_path, first_commit(add("a")), [add("b")])
    path = write_checkpoint(tmp_path, _classic(1), [*STATE, add("a"), add("b")])
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    path.write_bytes(
        {
            "empty": b"",
            "cut": data[: len(data) // 2],
            "text": b"not parquet",
            "footer": data[:footer] + bytes(40) + data[footer + 40 :],
        }[damage]
    )
    assert _paths(Snapshot.read(table)) == {"a", "b"}
    # Where the commits are gone, it is the checkpoint that the error names.
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    with pytest.raises(MalformedLog) as caught:
        Snapshot.read(table)
    assert caught.value.file == str(path)


@pytest.mark.parametrize("damage", ["size", "values"])
def test_a_page_header_that_lies_is_found_before_the_page_is_read(
    tmp_path: Path, damage: str
) -> None:
    path = write_checkpoint(tmp_path, _classic(0), [*STATE, add("a")])
    with path.open("rb") as file:
        footer = read_footer(file)
    data = bytearray(path.read_bytes())
    node = footer.schema.named("add")
    leaf = node and node.named("path")
    assert leaf is not None
    assert leaf.leaf is not None
    start = footer.row_groups[0].columns[leaf.leaf].first_page
    # The header's first fields: its type (15 00), then the size of the page unpacked (15 ..), then
    # that in the file.
    header = re.match(rb"\x15.\x15([\x80-\xff]*.)\x15([\x80-\xff]*.)", data[start:], re.DOTALL)
    assert header is not None
    at = start + (header.start(2) if damage == "size" else header.end(2) + 2)
    data[at] = 0x7E
    path.write_bytes(data)
    with pytest.raises(MalformedLog, match="page") as caught:
        Snapshot.read(tmp_path)
    assert caught.value.file == str(path)


def test_a_flipped_bit_in_a_page_of_ours_is_found(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    name = "a-file-with-a-name.parquet"
    properties = {"delta.parquet.compression.codec": "uncompressed"}
    create_table(store, SCHEMA, adds=[AddFile(name, 1, 1)], properties=properties)
    checkpoint_writer.write_checkpoint(store)
    path = tmp_path / "_delta_log" / _classic(0)
    data = path.read_bytes()
    assert name.encode() in data
    path.write_bytes(data.replace(name.encode(), name.replace("name", "nome").encode(), 1))
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    with pytest.raises(MalformedLog) as caught:
        Snapshot.read(tmp_path)
    assert caught.value.file == str(path)


def test_a_missing_sidecar_gives_way_to_the_commits_or_is_named(tmp_path: Path) -> None:
    side = {"sidecar": {"path": "gone.parquet", "sizeInBytes": 1, "modificationTime": 1}}
    table = write_log(tmp_path, first_commit(add("a")))
    write_checkpoint(tmp_path, _classic(0), [*STATE, side], without=("add", "remove"))
    assert _paths(Snapshot.read(table)) == {"a"}
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    with pytest.raises(MalformedLog) as caught:
        Snapshot.read(table)
    assert caught.value.file == str(tmp_path / "_delta_log" / "_sidecars" / "gone.parquet")


@pytest.mark.parametrize("path", ["..", "%2e%2e", "x/..", "/"])
def test_a_sidecar_never_leads_away(tmp_path: Path, path: str) -> None:
    side = {"sidecar": {"path": path, "sizeInBytes": 1, "modificationTime": 1}}
    checkpoint = write_checkpoint(tmp_path, _classic(0), [*STATE, side], without=("add", "remove"))
    with pytest.raises(MalformedLog, match="names no file") as caught:
        Snapshot.read(tmp_path)
    assert caught.value.file == str(checkpoint)


def test_a_v2_checkpoint_of_a_table_without_files(tmp_path: Path) -> None:
    side = {"sidecar": {"path": "one.parquet", "sizeInBytes": 1, "modificationTime": 1}}
    write_checkpoint(tmp_path, _classic(0), [*STATE, side], without=("add", "remove"))
    write_checkpoint(tmp_path, "_sidecars/one.parquet", [remove("z")], without=("add",))
    assert _paths(Snapshot.read(tmp_path)) == set()


@pytest.mark.parametrize("without", [("add",), ("add", "remove")])
def test_a_sidecar_with_rows_of_nothing_is_damaged(
    tmp_path: Path, without: tuple[str, ...]
) -> None:
    """Its adds were lost with their column; without the commits, nothing else tells of them."""
    side = {"sidecar": {"path": "one.parquet", "sizeInBytes": 1, "modificationTime": 1}}
    table = write_log(tmp_path, first_commit(add("a")))
    write_checkpoint(tmp_path, _classic(0), [*STATE, side], without=("add", "remove"))
    found = write_checkpoint(
        tmp_path, "_sidecars/one.parquet", [remove("z"), add("a")], without=without
    )
    assert _paths(Snapshot.read(table)) == {"a"}
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    with pytest.raises(MalformedLog, match="neither add nor remove") as caught:
        Snapshot.read(table)
    assert caught.value.file == str(found)


def test_an_empty_checkpoint_gives_way_to_the_commits_in_json_too(tmp_path: Path) -> None:
    table = write_log(tmp_path, first_commit(add("a")), [add("b")])
    path = tmp_path / "_delta_log" / f"{1:020d}.checkpoint.{UUID}.json"
    path.touch()
    assert _paths(Snapshot.read(table)) == {"a", "b"}


def test_damaged_checkpoints_do_not_hide_the_commits_before_the_hint(tmp_path: Path) -> None:
    table = write_log(tmp_path, first_commit(add("a")), [add("b")], [add("c")])
    write_checkpoint(tmp_path, _classic(2), [*STATE, add("only")]).write_bytes(b"cut")
    # It names a checkpoint that is not there any more, and the one behind it cannot be read.
    (tmp_path / "_delta_log" / "_last_checkpoint").write_text('{"version":1,"size":5}')
    assert _paths(Snapshot.read(table)) == {"a", "b", "c"}


VECTOR = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}


@pytest.mark.parametrize("lacking", ["storageType", "pathOrInlineDv", "cardinality"])
def test_a_deletion_vector_that_lacks_a_field_is_named(tmp_path: Path, lacking: str) -> None:
    types = {name: pa.string() if isinstance(VECTOR[name], str) else pa.int64() for name in VECTOR}
    fields = {**ADD, "deletionVector": pa.struct(list(types.items()))}
    file = add("a", deletionVector={**VECTOR, lacking: None})
    checkpoint = write_checkpoint(tmp_path, _classic(0), [*STATE, file], fields)
    with pytest.raises(MalformedLog, match=f"add.deletionVector.{lacking} is null") as caught:
        Snapshot.read(tmp_path)
    assert caught.value.file == str(checkpoint)


def test_strings_that_are_not_utf8_are_said(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path, _classic(0), [*STATE, add("a", stats="wxyz")])
    data = pq.read_table(checkpoint)
    adds: Any = data["add"].combine_chunks()
    fields = dict(zip((field.name for field in adds.type), adds.flatten(), strict=True))
    texts = pa.array([text and b"\xff" for text in fields["stats"].to_pylist()], pa.binary())
    fields["stats"] = pa.Array.from_buffers(pa.string(), len(texts), texts.buffers())
    broken = pa.StructArray.from_arrays(
        list(fields.values()), names=list(fields), mask=adds.is_null()
    )
    place = data.schema.get_field_index("add")
    pq.write_table(data.set_column(place, "add", broken), checkpoint)
    with pytest.raises(MalformedLog, match="UTF8") as caught:
        Snapshot.read(tmp_path)
    assert caught.value.file == str(checkpoint)


def test_a_map_with_a_key_twice_is_said(tmp_path: Path) -> None:
    file = add("a")
    file["add"]["tags"] = [("k", "v"), ("k", "w")]
    write_checkpoint(tmp_path, _classic(0), [*STATE, file])
    with pytest.raises(MalformedLog, match="a key twice"):
        list(Snapshot.read(tmp_path).add_files())
