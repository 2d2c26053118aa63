"""`Table.merge` and `Table.upsert`: a plain model of MERGE, files, the feed, and two writers."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import variantlake as vl
from tests.dml.changed import FEED, VECTORS, documents, new_table, text
from tests.strategies import MORE
from variantlake.dml.merge.run import merge, upsert
from variantlake.dml.result import ChangeResult
from variantlake.errors import (
    CommitConflict,
    InvalidQuery,
    InvalidValue,
    UnsupportedFeature,
    VariantLakeError,
)
from variantlake.storage.opening import open_file

COUNTER = itertools.count()
Record = dict[str, Any]


# --- A model: MERGE as the standard tells it, row by row ---------------------------------------


class Refused(Exception):
    """The model gives no answer, as MERGE does."""


Condition = Callable[[Record, Record], bool | None]
Clause = tuple[str, str, str, Condition, Record]
"""When, then, the condition as text and as a function, and what is set: functions by column."""


def modelled(
    table: list[Record], source: list[Record], on: Condition, clauses: list[Clause]
) -> list[Record]:
    """The rows after it."""
    found, matched_source = list[Record](), set[int]()
    others = [each for each in clauses if each[0] != "not matched"]
    lone_delete = [each[:2] for each in others if each[0] == "matched"] == [("matched", "delete")]
    lone_delete = lone_delete and all(each[2] == "" for each in others if each[0] == "matched")
    for row in table:
        matches = [at for at, other in enumerate(source) if on(row, other)]
        matched_source.update(matches)
        if others and not lone_delete and len(matches) > 1 and counts(row, clauses):
            raise Refused
        when = "matched" if matches else "not matched by source"
        other = source[matches[0]] if matches else {}
        then, values = taken(when, row, other, clauses)
        if then == "delete":
            continue
        found.append(row | {name: value(row, other) for name, value in values.items()})
    for at, other in enumerate(source):
        if at not in matched_source:
            then, values = taken("not matched", {}, other, clauses)
            if then:
                empty = dict.fromkeys(("id", "n", "day"))
                found.append(empty | {name: value({}, other) for name, value in values.items()})
    return found


def counts(row: Record, clauses: list[Clause]) -> bool:
    """Whether several matches of a row are refused; see Delta's `counted`."""
    if any(each[0] != "matched" for each in clauses):
        return True
    return any(not each[2].startswith("t.") or each[3](row, {}) is True for each in clauses)


def taken(when: str, row: Record, other: Record, clauses: list[Clause]) -> tuple[str, Record]:
    for kind, then, _, condition, values in clauses:
        if kind == when and condition(row, other) is True:
            return then, values
    return "", {}


# --- Random merges --------------------------------------------------------------------------------

NUMBERS = st.none() | st.integers(0, 4)
RECORDS = st.lists(
    st.fixed_dictionaries({"id": NUMBERS, "n": NUMBERS, "day": st.sampled_from(["a", "b", None])}),
    max_size=7,
)


def equal(a: Any, b: Any) -> bool | None:
    return None if a is None or b is None else a == b


def both(*parts: bool | None) -> bool | None:
    return False if False in parts else None if None in parts else True


ONS: list[tuple[str, Condition]] = [
    ("t.id = s.id", lambda t, s: equal(t["id"], s["id"])),
    ("t.event:id::int = s.id", lambda t, s: equal(t["id"], s["id"])),
    ("s.event:id::bigint = t.event:id::bigint", lambda t, s: equal(t["id"], s["id"])),
    ("t.id <=> s.id", lambda t, s: t["id"] == s["id"]),
    (
        "s.n = t.n AND t.day <=> s.day",
        lambda t, s: both(equal(t["n"], s["n"]), t["day"] == s["day"]),
    ),
    (
        "t.id = s.id AND t.n > 1",
        lambda t, s: both(equal(t["id"], s["id"]), None if t["n"] is None else t["n"] > 1),
    ),
    (
        "t.id = s.id AND t.n < s.n",
        lambda t, s: both(
            equal(t["id"], s["id"]),
            None if t["n"] is None or s["n"] is None else t["n"] < s["n"],
        ),
    ),
    ("t.id > s.id + 2", lambda t, s: None if None in (t["id"], s["id"]) else t["id"] > s["id"] + 2),
    ("false", lambda _t, _s: False),
]
YES: Condition = lambda _t, _s: True
MATCHED: list[Clause] = [
    ("matched", "delete", "t.n = 1", lambda t, _: equal(t["n"], 1), {}),
    ("matched", "delete", "s.n = 2", lambda _, s: equal(s["n"], 2), {}),
    ("matched", "delete", "", YES, {}),
    ("matched", "update", "", YES, {"n": lambda _, s: s["n"], "day": lambda t, _: t["day"]}),
    ("matched", "update", "t.n IS NULL", lambda t, _: t["n"] is None, {"n": lambda _t, _s: 9}),
]
INSERTS: list[Clause] = [
    (
        "not matched",
        "insert",
        "s.n > 2",
        lambda _, s: None if s["n"] is None else s["n"] > 2,
        {"id": lambda _, s: s["n"]},
    ),
    ("not matched", "insert", "", YES, {c: lambda _, s, c=c: s[c] for c in ("id", "n", "day")}),
]
BY_SOURCE: list[Clause] = [
    ("not matched by source", "delete", "t.n = 3", lambda t, _: equal(t["n"], 3), {}),
    ("not matched by source", "update", "", YES, {"day": lambda _t, _s: "gone"}),
]
VALUES = {
    ("matched", "", "n"): "s.n",
    ("matched", "", "day"): "t.day",
    ("matched", "t.n IS NULL", "n"): "9",
    ("not matched", "s.n > 2", "id"): "s.n",
    ("not matched by source", "", "day"): "'gone'",
}


def sql(clause: Clause) -> str:
    when, then, condition, _, values = clause
    pairs = [(name, VALUES.get((when, condition, name), f"s.{name}")) for name in values]
    if then == "update":
        then = f"UPDATE SET {', '.join(f'{name} = {value}' for name, value in pairs)}"
    elif then == "insert":
        names, texts = zip(*pairs, strict=True)
        then = f"INSERT ({', '.join(names)}) VALUES ({', '.join(texts)})"
    return f"WHEN {when}{f' AND {condition}' if condition else ''} THEN {then}"


def some(clauses: list[Clause]) -> st.SearchStrategy[list[Clause]]:
    """Some of them in an order that MERGE takes: only the last one has no condition."""
    conditional = st.lists(st.sampled_from([c for c in clauses if c[2]]), max_size=2, unique_by=id)
    last = st.lists(st.sampled_from([c for c in clauses if not c[2]]), max_size=1)
    return st.builds(lambda a, b: a + b, conditional, last)


CLAUSES = st.builds(lambda a, b, c: a + b + c, some(MATCHED), some(INSERTS), some(BY_SOURCE))


def arrow(records: list[Record]) -> pa.Table:
    events = [None if r["id"] is None else f'{{"id":{r["id"]}}}' for r in records]
    return pa.table(
        {
            "id": pa.array([r["id"] for r in records], pa.int64()),
            "n": pa.array([r["n"] for r in records], pa.int32()),
            "day": pa.array([r["day"] for r in records], pa.string()),
            "event": pa.array(events, pa.string()),
        }
    )


@settings(max_examples=30 * MORE, deadline=None)
@given(RECORDS, RECORDS, st.sampled_from(ONS), CLAUSES.filter(bool), st.booleans())
def test_a_merge_gives_what_the_model_gives(  # noqa: PLR0917 - a strategy each
    tmp_path_factory: pytest.TempPathFactory,
    table: list[Record],
    source: list[Record],
    on: tuple[str, Condition],
    clauses: list[Clause],
    vectors: bool,
) -> None:
    folder = tmp_path_factory.getbasetemp() / f"merge{next(COUNTER)}"
    made = vl.Table.create(
        folder,
        "id BIGINT, n INT, day STRING, event VARIANT",
        properties=VECTORS if vectors else {},
        shredding={"event": "id INT"},
    )
    made.append(arrow(table), json_columns=["event"], max_rows_per_file=2)
    texts = [sql(each) for each in clauses]

    def run() -> ChangeResult:
        return made.merge(arrow(source), on[0], *texts, json_columns=["event"])

    try:
        expected = modelled(table, source, on[1], clauses)
    except Refused:
        with pytest.raises(InvalidQuery, match="MULTIPLE_SOURCE_ROW"):
            run()
        return
    done = run()
    found = made.refresh().scan("id, n, day").to_arrow().to_pylist()
    assert shown(found) == shown(expected), texts
    assert len(found) == len(table) + done.rows_inserted - done.rows_deleted


def shown(records: list[Record]) -> list[str]:
    return sorted(str((each["id"], each["n"], each["day"])) for each in records)


# --- Files, the feed, evolution, conflicts --------------------------------------------------------


def source_of(*ids: int, **columns: Any) -> pa.Table:
    rows = {
        "id": pa.array(ids, pa.int64()),
        "day": [f"new{each}" for each in ids],
        "event": [text(each) for each in ids],
    }
    return pa.table(rows | columns)


def test_an_upsert_touches_only_files_with_its_keys(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=40, per_file=10)
    rows = source_of(12, 14, 99)
    planned = table.upsert(rows, "event:n::bigint", json_columns=["event"], dry_run=True)
    assert (planned.rows_updated, planned.rows_inserted, planned.dry_run) == (2, 1, True)
    opened: list[str] = []

    def counted(path: str) -> Any:
        opened.append(path)
        return open_file(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("variantlake.scan.files.file_rows.open_file", counted)
        done = table.upsert(rows, ["event:n::bigint"], json_columns=["event"])
    assert len(set(opened)) == 1
    assert (done.rows_updated, done.rows_inserted, done.files_touched) == (2, 1, 1)
    assert documents(table) == {n: text(n) for n in [*range(40), 99]}
    info = table.refresh().history(1)[0].info
    assert info["operation"] == "MERGE"
    days = {r["id"]: r["day"] for r in table.refresh().scan("id, day").to_arrow().to_pylist()}
    assert days == {n: f"d{n % 2}" for n in range(40)} | {n: f"new{n}" for n in (12, 14, 99)}


def test_many_keys_are_asked_as_ranges(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=600, per_file=100)
    source = source_of(*range(300), *range(590, 620))
    done = table.upsert(source, "id", json_columns=["event"])
    assert (done.rows_updated, done.rows_inserted) == (310, 20)
    assert table.refresh().scan(where="day LIKE 'new%'").count() == 330


@pytest.mark.parametrize(
    ("kind", "value", "on"),
    [
        ("DOUBLE", 1.5, "CAST(t.c AS INT) = s.k"),
        ("DECIMAL(9,2)", Decimal("1.50"), "CAST(t.c AS INT) = s.k"),
        ("TIMESTAMP", dt.datetime(1970, 1, 2, 5, tzinfo=dt.UTC), "CAST(t.c AS DATE) = s.day"),
        ("BOOLEAN", True, "CAST(t.c AS INT) = s.k"),
        ("INT", 1, "CAST(t.c AS BIGINT) = s.k"),
    ],
)
def test_a_key_that_a_cast_changes_matches(tmp_path: Path, kind: str, value: Any, on: str) -> None:
    table = vl.Table.create(tmp_path / "t", f"c {kind}, n INT")
    table.append([{"c": value, "n": 0}])
    source = pa.table({"k": [1], "day": [dt.date(1970, 1, 2)]})
    table.merge(source, on, "WHEN MATCHED THEN UPDATE SET n = 7")
    assert table.scan(["n"]).to_pylist() == [{"n": 7}]


@pytest.mark.parametrize(
    "values", [['{"a": 1}', "[1]", None], [{"a": 1, "b": None}, None], [[1, 2]], [7, 8], [True]]
)
def test_an_upsert_makes_the_variants_that_an_append_makes(
    tmp_path: Path, values: list[Any]
) -> None:
    rows = pa.table({"id": list(range(len(values))), "event": values})
    one, other = (
        vl.Table.create(tmp_path / name, "id BIGINT, event VARIANT") for name in ("one", "other")
    )
    one.append(rows)
    assert other.upsert(rows, "id").rows_inserted == len(values)
    assert other.upsert(rows, "id").rows_updated == len(values)
    assert one.to_pylist() == sorted(other.to_pylist(), key=lambda row: row["id"])
    with pytest.raises(vl.InvalidJson, match="row 1"):
        other.upsert(pa.table({"id": [1, 2], "event": ["{}", "{"]}), "id")


def test_duplicates_and_nulls_of_an_upsert(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=4)
    with pytest.raises(InvalidQuery, match="same key"):
        table.upsert(source_of(9, 9), "id", json_columns=["event"])
    nulls = source_of(7, 14)  # the user of both is null
    done = table.upsert(nulls, "event:user::string", json_columns=["event"])
    assert (done.rows_updated, done.rows_inserted) == (0, 2)
    with pytest.raises(InvalidQuery, match="do not have the column 'day'"):
        table.upsert(nulls.select(["id", "event"]), "id", json_columns=["event"])


def test_the_feed_of_a_merge(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=10, per_file=5, properties={**VECTORS, **FEED})
    done = table.merge(
        source_of(3, 8, 20),
        "t.id = s.id",
        "WHEN MATCHED AND s.id = 8 THEN DELETE",
        "WHEN MATCHED THEN UPDATE SET day = s.day",
        "WHEN NOT MATCHED THEN INSERT (id, day) VALUES (s.id, 'x')",
        json_columns=["event"],
    )
    changes = table.refresh().changes(done.version, select="_change_type, id, day").to_arrow()
    assert sorted(map(str, (tuple(row.values()) for row in changes.to_pylist()))) == sorted(
        map(
            str,
            [
                ("update_preimage", 3, "d1"),
                ("update_postimage", 3, "new3"),
                ("delete", 8, "d0"),
                ("insert", 20, "x"),
            ],
        )
    )


def test_schema_evolution(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=4)
    rows = source_of(3, 9, score=[1.5, 2.5])
    assert table.upsert(rows, "id", json_columns=["event"]).rows_updated == 1  # as Delta: not added
    assert "score" not in [field.name for field in table.refresh().schema.fields]
    rows = rows.drop_columns(["day"])
    done = table.upsert(rows, "id", json_columns=["event"], merge_schema=True)
    assert (done.rows_updated, done.rows_inserted) == (2, 0)
    found = table.refresh().scan("id, day, score").to_arrow().to_pylist()
    assert {row["id"]: (row["day"], row["score"]) for row in found} == {
        0: ("d0", None),
        1: ("d1", None),
        2: ("d0", None),
        3: ("new3", 1.5),
        9: ("new9", 2.5),
    }


def test_the_source_may_be_a_scan_of_the_table(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=6)
    done = table.merge(
        table.scan("id"),
        "t.id = s.id AND s.id > 3",
        "WHEN MATCHED THEN DELETE",
    )
    assert done.rows_deleted == 2
    assert sorted(documents(table)) == [0, 1, 2, 3]


def test_the_source_may_be_rows_of_python(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "id BIGINT, event VARIANT, day STRING")
    table.append([{"id": 1, "event": {"n": 1}, "day": "a"}])
    table.upsert(
        [{"id": 1, "event": {"n": 2}, "day": "b"}, {"id": 2, "event": [True], "day": "c"}], "id"
    )
    table.merge(
        ({"key": n, "v": f"new{n}"} for n in range(2, 4)),
        "t.id = s.key",
        "WHEN MATCHED THEN UPDATE SET day = s.v",
        "WHEN NOT MATCHED THEN INSERT (id, day) VALUES (s.key, s.v)",
    )
    assert sorted(table.scan().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "event": {"n": 2}, "day": "b"},
        {"id": 2, "event": [True], "day": "new2"},
        {"id": 3, "event": None, "day": "new3"},
    ]


class Reading(NamedTuple):
    id: int
    n: int


def test_columns_that_no_row_of_python_has_are_not_written(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "id BIGINT, n INT, day STRING")
    table.append([{"id": 1, "n": 1, "day": "a"}])
    table.upsert([Reading(1, 2), Reading(2, 3)], "id", merge_schema=True)
    rows = table.scan().to_pylist()
    assert sorted(rows, key=lambda row: row["id"]) == [
        {"id": 1, "n": 2, "day": "a"},
        {"id": 2, "n": 3, "day": None},
    ]


def test_documents_of_python_replace_those_of_their_key(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT")
    table.upsert([{"id": "a", "n": 1}], "event:id::string")
    done = table.upsert([{"id": "a", "n": 2}, {"id": "b"}], "event:id::string")
    assert (done.rows_updated, done.rows_inserted) == (1, 1)
    found = [row["event"] for row in table.scan().to_pylist()]
    assert sorted(found, key=str) == [{"id": "a", "n": 2}, {"id": "b"}]


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        (5, "an int is neither a row"),
        ([{"id": "x"}], "'id' cannot hold 'x'"),
        (b'{"id": 1}', "files of JSON documents"),
    ],
)
def test_a_source_that_is_none(tmp_path: Path, rows: Any, match: str) -> None:
    table = new_table(tmp_path / "t", rows=4)
    with pytest.raises(InvalidValue, match=match):
        table.upsert(rows, "id")


@pytest.mark.parametrize(
    ("on", "clauses", "error", "match"),
    [
        ("t.id = s.id", ["WHEN THEN"], InvalidQuery, "not a clause"),
        ("id = s.id", [], InvalidQuery, "both sides"),
        ("t.nope = s.id", [], InvalidQuery, "no column 'nope'"),
        (
            "t.id = s.id",
            ["WHEN MATCHED THEN UPDATE SET id = hash(s.id)"],
            UnsupportedFeature,
            "hash",
        ),
        (
            "t.id = s.id",
            ["WHEN MATCHED THEN UPDATE SET id = s.day"],
            UnsupportedFeature,
            "does not store",
        ),
        ("t.id = s.id", ["WHEN NOT MATCHED THEN INSERT (id) VALUES (t.id)"], VariantLakeError, "t"),
        ("t.event:user::int = s.id", [], InvalidValue, "cast"),
        (
            "t.id = s.id",
            ["WHEN MATCHED THEN DELETE", "WHEN MATCHED THEN UPDATE SET *"],
            InvalidQuery,
            "only the last",
        ),
    ],
)
def test_what_is_refused(
    tmp_path: Path, on: str, clauses: list[str], error: type[Exception], match: str
) -> None:
    table = new_table(tmp_path / "t", rows=4)
    version = table.version
    with pytest.raises(error, match=match):
        table.merge(source_of(2, 3), on, *clauses, json_columns=["event"])
    assert table.refresh().version == version


def test_two_merges_at_once(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=20, per_file=20)
    before = table.snapshot
    rows = source_of(3, 30)
    upsert(before, rows, "id", json_columns=["event"])
    with pytest.raises(CommitConflict):
        upsert(before, rows, "id", json_columns=["event"])  # would insert 30 again
    upsert(before, source_of(4), "id", json_columns=["event"])
    only = ["WHEN MATCHED THEN DELETE"]
    with pytest.raises(CommitConflict):
        merge(before, source_of(3), "t.id = s.id", only, json_columns=["event"])
    assert sorted(documents(table)) == [*range(20), 30]


def test_columns_are_added_even_if_no_row_matches(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "id BIGINT")
    table.append([{"id": 1}])
    rows, update = [{"id": 2, "new": "x"}], "WHEN MATCHED THEN UPDATE SET *"
    assert table.merge(rows, "t.id = s.id", update).version == 1  # nothing to do
    assert table.merge(rows, "t.id = s.id", update, merge_schema=True).version == 2
    assert table.refresh().scan().to_pylist() == [{"id": 1, "new": None}]


def test_the_timestamps_of_a_source_are_not_cut(tmp_path: Path) -> None:
    """pandas has nanoseconds: those of whole microseconds are taken, others are refused."""
    table = vl.Table.create(tmp_path / "t", "id BIGINT, at TIMESTAMP_NTZ, all ARRAY<TIMESTAMP_NTZ>")
    nanos = pa.timestamp("ns")

    def source(count: int, inner: int) -> pa.Table:
        lists = pa.array([[inner]], pa.list_(nanos))
        return pa.table({"id": [1], "at": pa.array([count], nanos), "all": lists})

    assert table.upsert(source(5000, 7000), "id").rows_inserted == 1
    assert table.to_arrow()["at"].cast(pa.int64()).to_pylist() == [5]
    for each in (source(5001, 7000), source(5000, 7001)):
        with pytest.raises(InvalidValue, match="below microseconds"):
            table.upsert(each, "id")
        with pytest.raises(InvalidValue, match="below microseconds"):
            table.merge(each, "t.id = s.id")


@pytest.mark.parametrize(
    ("rows", "key", "said"),
    [
        ([{"id": 1, "event": 2}], "event", "event cannot be a key: it is a Variant"),
        ([{"id": 1, "event": 2}], "id, event:k", "event:k cannot be a key"),
        ([{"id": 1}], "id", "do not have the column 'event', and an upsert replaces"),
    ],
)
def test_what_an_upsert_needs(tmp_path: Path, rows: Any, key: str, said: str) -> None:
    table = vl.Table.create(tmp_path / "t", "id BIGINT, event VARIANT")
    with pytest.raises(InvalidQuery, match=said) as caught:
        table.upsert(rows, key)
    assert "::string" in caught.value.hint or "merge_schema=True" in caught.value.hint


def test_fields_of_structs_and_paths_are_set(tmp_path: Path) -> None:
    """As `Table.update` sets them: the rest of the column stays."""
    table = vl.Table.create(
        tmp_path / "t", "id INT, s STRUCT<n: INT, b: STRUCT<x: INT, y: INT>>, event VARIANT"
    )
    one = {"n": 1, "b": {"x": 1, "y": 2}}
    table.append([{"id": 1, "s": one, "event": {"a": 1}}, {"id": 2}, {"id": 3, "s": one}])
    table.merge(
        [{"id": 1, "n": 10}, {"id": 2, "n": 20}],
        "t.id = q.id",
        "WHEN MATCHED THEN UPDATE SET s.n = q.n, T.S.B.x = t.s.b.y, event:b = q.n",
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET s.b.y = NULL",
        source_alias="q",
    )
    assert sorted(table.scan().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "s": {"n": 10, "b": {"x": 2, "y": 2}}, "event": {"a": 1, "b": 10}},
        {"id": 2, "s": {"n": 20, "b": {"x": None, "y": None}}, "event": None},
        {"id": 3, "s": {"n": 1, "b": {"x": 1, "y": None}}, "event": None},
    ]
    builder = table.merge_builder([{"id": 1}], "t.id = s.id")
    builder.when_matched_update({"s.b.x": 5, "event:c": "x"}).execute()
    (row,) = table.scan(where="id = 1").to_pylist()
    assert (row["s"]["b"], row["event"]) == ({"x": 5, "y": 2}, {"a": 1, "b": 10, "c": "x"})
    for assigned, said in (
        ("s.n = 1, s = NULL", "as a whole and in its fields"),
        ("s.b.x = 1, S.B.X = 2", "set twice"),
        ("s.z = 1", "no column 's.z'"),
    ):
        with pytest.raises(VariantLakeError, match=said):
            table.merge(
                [{"id": 1}], "t.id = q.id", f"WHEN MATCHED THEN UPDATE SET {assigned}",
                source_alias="q",
            )  # fmt: skip
