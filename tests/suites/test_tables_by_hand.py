"""Tables of the protocol's corners that no suite has, with the rows that Delta Spark gives.

But for an empty partition value, which the protocol says is NULL.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl
from tests.suites.by_hand import (
    V2,
    VECTORS,
    Action,
    HandMade,
    field,
    group,
    inline,
    numbers,
    remove,
    structure,
)


def _values(root: Path) -> list[Any]:
    table = vl.Table.open(root)
    found: list[Any] = table.scan().to_arrow()["a"].to_pylist()
    assert table.scan().count() == len(found)
    return sorted(found)


# --- The log --------------------------------------------------------------------------------------


def _three(root: Path, **words: Any) -> tuple[HandMade, list[Action]]:
    """Versions that add 0, add 1, and put 2 in the place of 0."""
    made = HandMade(root, **words)
    adds = [made.add(numbers(n), f"{n}.parquet") for n in range(3)]
    made.commit(*made.head, adds[0])
    made.commit(adds[1])
    made.commit(remove("0.parquet"), adds[2])
    return made, [remove("0.parquet"), *adds[1:]]


def _last(made: HandMade, text: str) -> None:
    (made.log / "_last_checkpoint").write_text(text)


def _in_parts(root: Path) -> None:
    made, state = _three(root)
    for number, actions in enumerate(([*made.head], state[:2], state[2:]), 1):
        made.checkpoint(2, f"{number:010d}.{3:010d}.parquet", actions)
    _last(made, '{"version": 2, "size": 5, "parts": 3}')
    made.forget(0, 1)


def _without_a_part(root: Path) -> None:
    made, state = _three(root)
    made.checkpoint(2, f"{1:010d}.{2:010d}.parquet", [*made.head, *state])
    _last(made, '{"version": 2, "size": 5, "parts": 2}')


def _alone(root: Path) -> None:
    made, state = _three(root)
    made.checkpoint(2, "parquet", [*made.head, *state])
    made.forget(0, 1, 2)


def _last_is_cut(root: Path) -> None:
    made, state = _three(root)
    made.checkpoint(2, "parquet", [*made.head, *state])
    _last(made, "{")
    made.forget(0, 1)


def _last_points_nowhere(root: Path) -> None:
    made, _ = _three(root)
    _last(made, '{"version": 7, "size": 3}')


def _empty_checkpoint(root: Path) -> None:
    made, _ = _three(root)
    (made.log / f"{1:020d}.checkpoint.parquet").write_bytes(b"")


def _v2(kind: str, *, sidecars: bool) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        made, state = _three(root, protocol=V2)
        about: Action = {"checkpointMetadata": {"version": 2, "tags": {"k": "v"}}}
        progress: Action = {"txn": {"appId": "x", "version": 3}}
        if sidecars:
            state = [made.sidecar(*state[:2]), made.sidecar(state[2])]
        name = f"80a083e8-7026-4e79-81be-64bd76c43a11.{kind}"
        made.checkpoint(2, name, [about, *made.head, progress, *state])
        made.forget(0, 1)

    return make


def _compacted(first: int, last: int) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        made, state = _three(root)
        lines = [(made.log / f"{v:020d}.json").read_text() for v in range(first, min(last, 2) + 1)]
        text = "".join(lines) if last < 9 else json.dumps(state[0])
        (made.log / f"{first:020d}.{last:020d}.compacted.json").write_text(text)

    return make


def _strays(root: Path) -> None:
    made, state = _three(root)
    for name, text in (
        (f".{2:020d}.json.crc", "x"),
        (f"{2:020d}.crc", "not json"),
        (f"{3:020d}.json.tmp", "{"),
        (f"{3:020d}.uuid.json", ""),
        (f"_staged_commits/{3:020d}.uuid.json", json.dumps(state[0])),
    ):
        (made.log / name).parent.mkdir(exist_ok=True)
        (made.log / name).write_text(text)


LOGS: dict[str, Callable[[Path], None]] = {
    "a checkpoint in parts": _in_parts,
    "a part is missing": _without_a_part,
    "a checkpoint without commits": _alone,
    "_last_checkpoint is cut": _last_is_cut,
    "_last_checkpoint points nowhere": _last_points_nowhere,
    "an empty checkpoint": _empty_checkpoint,
    **{
        f"V2, {kind}{', sidecars' if sidecars else ''}": _v2(kind, sidecars=sidecars)
        for kind in ("json", "parquet")
        for sidecars in (False, True)
    },
    "a compaction": _compacted(0, 1),
    "a compaction with a remove": _compacted(1, 2),
    "a compaction beyond the end": _compacted(0, 9),
    "stray files": _strays,
}


@pytest.mark.parametrize("make", LOGS.values(), ids=LOGS)
def test_all_ways_to_write_a_log_give_its_files(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path)
    assert _values(tmp_path) == [1, 2]


def test_lines_that_others_write(tmp_path: Path) -> None:
    """Blank lines, a carriage return, actions and fields that nobody knows."""
    made = HandMade(tmp_path)
    add = made.add(numbers(1), "a.parquet", tags=None, extra={"q": [1]})
    actions = [*made.head, {"somethingNew": {"x": 1}}, add, {"commitInfo": {"operation": "X"}}]
    made.commit(text="\r\n".join(map(json.dumps, actions)) + "\r\n\r\n\n")
    assert _values(tmp_path) == [1]


def test_a_file_that_is_removed_and_added_again(tmp_path: Path) -> None:
    made, _ = _three(tmp_path)
    add: Action = {"add": {**made.add(numbers(0), "0.parquet")["add"]}}
    made.commit(add)
    made.commit(remove("0.parquet"))
    made.commit(add, made.add(numbers(1), "1.parquet"))
    assert _values(tmp_path) == [0, 1, 2]
    assert [len(_values_at(tmp_path, version)) for version in range(6)] == [1, 2, 2, 3, 2, 3]


def _values_at(root: Path, version: int) -> list[Any]:
    return list(vl.Table.open(root, version).scan().to_arrow()["a"].to_pylist())


# --- Files ----------------------------------------------------------------------------------------

PATHS = [
    ("a b.parquet", "a%20b.parquet"),
    ("c%20d.parquet", "c%2520d.parquet"),
    ("é=1/x+y#z?.parquet", "%C3%A9=1/x+y%23z%3F.parquet"),
    ("sub/q.parquet", "file://{root}/sub/q.parquet"),
    ("g h.parquet", "{root}/g%20h.parquet"),
]


def test_paths_of_files(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    named = [(name, path.format(root=tmp_path)) for name, path in PATHS]
    made.commit(*made.head, *(made.add(numbers(n), *names) for n, names in enumerate(named)))
    assert _values(tmp_path) == list(range(len(PATHS)))
    made.commit(*(remove(path) for _, path in named[1:]))
    assert _values(tmp_path) == [0]


@pytest.mark.parametrize(
    "stats",
    [
        "",
        "{}",
        None,
        '{"numRecords": 2, "minValues": {"zz": 1}, "maxValues": {"zz": 1}, "nullCount": {"zz": 0}}',
        '{"minValues": {"a": 1}, "maxValues": {"a": 2}}',
        '{"numRecords": 2, "tightBounds": false, "minValues": {"a": 0}, "maxValues": {"a": 9}}',
        '{"numRecords": 2, "minValues": {"a": 1.0}, "maxValues": {"a": 2.0}}',
    ],
)
def test_statistics_of_others(tmp_path: Path, stats: str | None) -> None:
    made = HandMade(tmp_path)
    made.commit(*made.head, made.add(numbers(1, 2), "a.parquet", stats=stats))
    assert _values(tmp_path) == [1, 2]
    assert vl.Table.open(tmp_path).scan(where="a = 2").count() == 1
    assert vl.Table.open(tmp_path).scan(where="a > 2").count() == 0


def test_deletion_vectors_in_each_place(tmp_path: Path) -> None:
    properties = {"delta.enableDeletionVectors": "true"}
    made = HandMade(tmp_path, protocol=VECTORS, properties=properties)
    absolute = made.vector(1, 2)
    (file,) = tmp_path.glob("*.bin")
    file.rename(tmp_path / "some dv.bin")
    absolute |= {"storageType": "p", "pathOrInlineDv": f"file://{tmp_path}/some%20dv.bin"}
    vectors = [inline(0, 3), made.vector(1, prefix="ab"), made.vector(2, pad=b"0000"), absolute]
    rows = [numbers(*range(10 * n, 10 * n + 4)) for n in range(len(vectors))]
    made.commit(
        *made.head,
        *(
            made.add(each, f"{n}.parquet", deletionVector=vector)
            for n, (each, vector) in enumerate(zip(rows, vectors, strict=True))
        ),
    )
    assert _values(tmp_path) == [1, 2, 10, 12, 13, 20, 21, 23, 30, 33]


# --- Columns --------------------------------------------------------------------------------------

PARTITIONS: list[tuple[str, list[str | None], list[Any]]] = [
    ("date", ["2021-09-08", "9999-12-31", ""], [dt.date(2021, 9, 8), dt.date.max, None]),
    ("boolean", ["true", "false", None], [True, False, None]),
    ("double", ["1.0E10", "-Infinity", "1"], [1e10, float("-inf"), 1.0]),
    ("decimal(10,2)", ["1", "-8.90", "1E2"], [Decimal(1), Decimal("-8.9"), Decimal(100)]),
    ("byte", ["-128", "+1", None], [-128, 1, None]),
    ("string", ["a b", "a%20b", "=", "x\ny", "", " "], ["a b", "a%20b", "=", "x\ny", None, " "]),
    ("binary", ["abc", "\u0001", None], [b"abc", b"\x01", None]),
    (
        "timestamp",
        ["2021-09-08 11:11:11", "2021-09-08 11:11:11.5", "2021-09-08T11:11:11.000000Z"],
        [dt.datetime(2021, 9, 8, 11, 11, 11, part, dt.UTC) for part in (0, 500_000, 0)],
    ),
]


@pytest.mark.parametrize(("kind", "texts", "values"), PARTITIONS, ids=[p[0] for p in PARTITIONS])
def test_partition_values(
    tmp_path: Path, kind: str, texts: list[str | None], values: list[Any]
) -> None:
    made = HandMade(tmp_path, field("a", "integer"), field("p", kind), partitions=["p"])
    made.commit(
        *made.head,
        *(
            made.add(numbers(n), f"{n}.parquet", partitionValues={"p": text})
            for n, text in enumerate(texts)
        ),
    )
    rows = vl.Table.open(tmp_path).scan().to_arrow().sort_by("a")
    assert rows["p"].to_pylist() == values


def test_names_that_differ_by_case_in_files(tmp_path: Path) -> None:
    """Spark finds columns of files without case, at all depths; not by us as NULL."""
    inner = structure(field("X", "integer"))
    made = HandMade(tmp_path, field("Abc", "integer"), field("s", inner), field("v", "variant"))
    rows = pa.table(
        {"aBC": pa.array([1, 2], pa.int32()), "S": [{"x": 1}, None], "V": _variants('{"k": 7}')}
    )
    rows = rows.set_column(1, "S", rows["S"].cast(group({"x": pa.int32()})))
    variant = ["variantType"]
    made.head[0]["protocol"] = {**V2, "readerFeatures": variant, "writerFeatures": variant}
    made.commit(*made.head, made.add(rows, "a.parquet"))
    table = vl.Table.open(tmp_path)
    found = table.scan(["Abc", "s", "v:k::int AS k"]).to_arrow().to_pylist()
    assert found == [{"Abc": 1, "s": {"X": 1}, "k": 7}, {"Abc": 2, "s": None, "k": None}]
    assert table.scan(where="Abc = 2 AND v IS NULL").count() == 1
    assert table.scan(where="v:k::int = 7 AND Abc = 1").count() == 1
    table.append(pa.table({"Abc": pa.array([3], pa.int32())}))
    digest = table.digest()
    table.optimize()
    assert table.snapshot.files.num_rows == 1
    assert table.digest() == digest
    assert set(table.scan(["Abc"]).to_arrow()["Abc"].to_pylist()) == {1, 2, 3}


def _variants(text: str) -> pa.Array[Any]:
    value = vl.parse_json(text)
    pair = {"metadata": value.metadata, "value": value.value}
    kind = group({"metadata": pa.binary(), "value": pa.binary()})
    found: pa.Array[Any] = pa.array([pair, None], kind)
    return found


def test_a_name_in_its_own_case_goes_first(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    rows = pa.table({"A": pa.array([7], pa.int32()), "a": pa.array([1], pa.int32())})
    made.commit(*made.head, made.add(rows, "a.parquet"))
    assert _values(tmp_path) == [1]


def test_fields_that_files_lack(tmp_path: Path) -> None:
    pair = structure(field("q", "integer"), field("r", "integer"))
    made = HandMade(
        tmp_path,
        field("a", "integer"),
        field("n", "void"),
        field("s", structure(field("x", "integer"), field("v", "void"))),
        field("l", {"type": "array", "elementType": pair, "containsNull": True}),
        field("p", "string"),
        partitions=["p"],
    )
    rows = pa.table(
        {
            "l": pa.array([[{"q": 1}, None], None], pa.list_(group({"q": pa.int32()}))),
            "s": pa.array([{"x": 1}, None], group({"x": pa.int32()})),
            "p": ["not this", "nor this"],
            "a": pa.array([1, 2], pa.int32()),
        }
    )
    made.commit(*made.head, made.add(rows, "a.parquet", partitionValues={"p": "right"}))
    first, second = vl.Table.open(tmp_path).scan().to_arrow().to_pylist()
    lists = [{"q": 1, "r": None}, None]
    assert first == {"a": 1, "n": None, "s": {"x": 1, "v": None}, "l": lists, "p": "right"}
    assert second == {"a": 2, "n": None, "s": None, "l": None, "p": "right"}


def _mapped(number: int, name: str, type_: Any) -> dict[str, Any]:
    ids = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"p{name}"}
    return field(name, type_, **ids)


def _stored(number: int, name: str, type_: Any) -> Any:
    return pa.field(name, type_, metadata={"PARQUET:field_id": str(number)})


def test_mapping_by_id_goes_by_no_name_at_any_depth(tmp_path: Path) -> None:
    made = HandMade(
        tmp_path,
        _mapped(1, "a", "integer"),
        _mapped(2, "s", structure(_mapped(3, "x", "integer"), _mapped(4, "y", "integer"))),
        _mapped(5, "part", "string"),
        partitions=["part"],
        protocol={"minReaderVersion": 2, "minWriterVersion": 5},
        properties={"delta.columnMapping.mode": "id", "delta.columnMapping.maxColumnId": "5"},
    )
    inner = pa.struct([_stored(4, "px", pa.int32()), _stored(3, "other", pa.int32())])
    schema: Any = pa.schema([_stored(2, "pa", inner), _stored(1, "ps", pa.int32())])
    rows = pa.table(
        [pa.array([{"px": 40, "other": 30}, None], inner), pa.array([1, 2], pa.int32())],
        schema=schema,
    )
    stats: Action = {"numRecords": 2, "minValues": {"pa": 1}, "maxValues": {"pa": 2}}
    words: Action = {"partitionValues": {"ppart": "v"}, "stats": json.dumps(stats)}
    made.commit(*made.head, made.add(rows, "a.parquet", **words))
    table = vl.Table.open(tmp_path)
    assert table.scan().to_arrow().to_pylist() == [
        {"a": 1, "s": {"x": 30, "y": 40}, "part": "v"},
        {"a": 2, "s": None, "part": "v"},
    ]
    assert table.scan(where="a = 1").count() == 1
    assert table.update({"a": 5}, "a = 1").rows_updated == 1
    assert sorted(map(str, table.scan(["a"]).to_arrow()["a"].to_pylist())) == ["2", "5"]


CHANGES = "delta.typeChanges"


def test_columns_that_were_widened_by_others(tmp_path: Path) -> None:
    names = ["typeWidening", "timestampNtz"]
    steps = [{"fromType": "byte", "toType": "integer"}, {"fromType": "integer", "toType": "long"}]
    float_list = {"type": "array", "elementType": "double", "containsNull": True}
    one = [{"fromType": "float", "toType": "double", "fieldPath": "element"}]
    made = HandMade(
        tmp_path,
        field("a", "long", **{CHANGES: steps}),
        field("p", "double", **{CHANGES: [{"fromType": "integer", "toType": "double"}]}),
        field("d", "timestamp_ntz", **{CHANGES: [{"fromType": "date", "toType": "timestamp_ntz"}]}),
        field("l", float_list, **{CHANGES: one}),
        partitions=["p"],
        protocol={**V2, "readerFeatures": names, "writerFeatures": names},
    )
    old = pa.table(
        {
            "a": pa.array([1, -2], pa.int8()),
            "d": [dt.date(2020, 1, 1), None],
            "l": pa.array([[1.5, None], None], pa.list_(pa.float32())),
        }
    )
    stats: Action = {"numRecords": 2, "minValues": {"a": -2, "d": "2020-01-01"}}
    stats |= {"maxValues": {"a": 1, "d": "2020-01-01"}, "nullCount": {"a": 0, "d": 1}}
    words: Action = {"partitionValues": {"p": "7"}, "stats": json.dumps(stats)}
    made.commit(*made.head, made.add(old, "a.parquet", **words))
    table = vl.Table.open(tmp_path)
    assert table.scan().to_arrow().sort_by("a").to_pylist() == [
        {"a": -2, "p": 7.0, "d": None, "l": None},
        {"a": 1, "p": 7.0, "d": dt.datetime(2020, 1, 1), "l": [1.5, None]},  # noqa: DTZ001
    ]
    assert table.scan(where="d >= TIMESTAMP_NTZ'2020-01-01 00:00:00' AND p = 7").count() == 1
    assert table.scan(where="a > 300").count() == 0
