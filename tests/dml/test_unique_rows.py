"""`unique_by` on loads: one row for each key, in the table and within the load."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st

import variantlake as vl
from tests.dml.changed import FEED, VECTORS
from tests.dml.tracked import TRACKED, tracked_rows
from tests.strategies import MORE
from variantlake.errors import (
    CommitConflict,
    InvalidQuery,
    InvalidValue,
    StoreFailed,
    UnsupportedFeature,
    VariantLakeError,
)
from variantlake.ingest.local_run import ingest_here
from variantlake.storage.store import LocalStore

KEY = "event:id::bigint"
Pair = tuple[int | None, int]


def given_rows(pairs: Iterable[Pair]) -> pa.Table:
    """Rows with an id in the document, None for none, and a number of their own."""
    pairs = list(pairs)
    texts = [json.dumps({"n": n} if key is None else {"id": key, "n": n}) for key, n in pairs]
    days = [f"d{0 if key is None else key % 2}" for key, _ in pairs]
    return pa.table({"day": days, "event": texts})


def new_table(folder: Path, properties: Any = VECTORS, **options: Any) -> vl.Table:
    return vl.Table.create(folder, "day STRING, event VARIANT", properties=properties, **options)


def append(table: vl.Table, pairs: Iterable[Pair], **options: Any) -> Any:
    options = {"unique_by": KEY, **options}
    return table.append(given_rows(pairs), json_columns=["event"], **options)


def pairs_of(table: vl.Table) -> list[Pair]:
    found = table.refresh().scan(f"{KEY} AS id, event:n::bigint AS n").to_arrow().to_pylist()
    return sorted(((row["id"], row["n"]) for row in found), key=lambda pair: pair[1])


def expected(before: list[Pair], given: Iterable[Pair], *, skip: bool) -> list[Pair]:
    """What a load leaves, row by row."""
    rows = list(before)
    for key, number in given:
        there = [row for row in rows if key is not None and row[0] == key]
        if there and skip:
            continue
        rows = [row for row in rows if row not in there] + [(key, number)]
    return sorted(rows, key=lambda pair: pair[1])


FORMS = pytest.mark.parametrize(
    "properties",
    [VECTORS, {}, {**VECTORS, **FEED}, FEED],
    ids=["vectors", "rewritten", "feed", "rf"],
)


@FORMS
@pytest.mark.parametrize("mode", ["replace", "skip"])
def test_a_key_stays_once(tmp_path: Path, properties: Any, mode: Any) -> None:
    table = new_table(tmp_path / "t", properties)
    first = [(1, 0), (2, 1), (None, 2), (3, 3), (1, 4), (None, 5)]
    done = append(table, first, on_duplicate=mode)
    assert (done.rows_written, done.rows_replaced, done.rows_left_out) == (5, 0, 1)
    rows = expected([], first, skip=mode == "skip")
    assert pairs_of(table) == rows
    second = [(2, 10), (4, 11), (4, 12), (3, 13), (2, 14)]
    done = append(table, second, on_duplicate=mode)
    assert done.version == table.refresh().version == 2
    assert (done.rows_replaced, done.rows_left_out) == ((2, 2) if mode == "replace" else (0, 4))
    assert pairs_of(table) == expected(rows, second, skip=mode == "skip")
    metrics = table.history(1)[0].info["operationMetrics"]
    assert metrics["numReplacedRows"] == str(done.rows_replaced)


@settings(max_examples=8 * MORE, deadline=None)
@examples(
    st.lists(
        st.tuples(st.lists(st.none() | st.integers(0, 6), min_size=1, max_size=8), st.booleans()),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([VECTORS, {}, {**VECTORS, **FEED}, {**VECTORS, **TRACKED}, TRACKED]),
)
def test_any_loads_leave_what_a_plain_model_says(
    tmp_path_factory: pytest.TempPathFactory, loads: Any, properties: Any
) -> None:
    table = new_table(tmp_path_factory.mktemp("t") / "t", properties)
    rows: list[Pair] = []
    number = 0
    for keys, skip in loads:
        given = [(key, number + at) for at, key in enumerate(keys)]
        number += len(keys)
        mode = "skip" if skip else "replace"
        append(table, given, on_duplicate=mode, max_rows_per_file=3)
        rows = expected(rows, given, skip=skip)
        assert pairs_of(table) == rows
    if "delta.enableChangeDataFeed" in properties:
        assert fed(table) == rows
    if "delta.enableRowTracking" in properties:
        tracked_rows(table, None)  # no id is there twice


def fed(table: vl.Table) -> list[Pair]:
    """The rows by the change feed alone."""
    left: dict[tuple[Any, Any], int] = {}
    for row in table.refresh().changes(0).to_arrow().to_pylist():
        value = vl.Variant(row["event"]["metadata"], row["event"]["value"]).to_python()
        sign = 1 if row["_change_type"] in ("insert", "update_postimage") else -1
        pair = (value.get("id"), value["n"])
        left[pair] = left.get(pair, 0) + sign
    return sorted((pair for pair, count in left.items() if count), key=lambda pair: pair[1])


def test_documents_of_a_new_table(tmp_path: Path) -> None:
    source = tmp_path / "a.ndjson"
    source.write_text("".join(f'{{"id":{n % 4},"n":{n}}}\n' for n in range(10)))
    done = ingest_here(str(source), tmp_path / "t", unique_by="event:id::int")
    assert (done.rows_written, done.rows_left_out, done.version) == (4, 6, 0)
    table = vl.Table.open(tmp_path / "t")
    assert sorted(n for _, n in pairs_of(table)) == [6, 7, 8, 9]
    again = ingest_here(str(source), tmp_path / "t", unique_by="event:id::int", on_duplicate="skip")
    assert (again.rows_written, again.rows_left_out) == (0, 10)


def test_an_autoload_replaces_what_comes_again(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, first in (("a", 0), ("b", 3)):
        lines = (f'{{"id":{n},"n":{n + first}}}\n' for n in range(first, first + 6))
        (tmp_path / "in" / f"{name}.json").write_text("".join(lines))
        vl.autoload(tmp_path / "t", tmp_path / "in", unique_by=KEY, settle=0)
    table = vl.Table.open(tmp_path / "t")
    assert pairs_of(table) == [(0, 0), (1, 1), (2, 2), *((n, n + 3) for n in range(3, 9))]


def test_a_load_that_is_repeated_does_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    append(table, [(1, 0)], load_id="a")
    append(table, [(1, 1)], load_id="b")
    assert append(table, [(1, 0)], load_id="a").already_loaded
    assert pairs_of(table) == [(1, 1)]


def test_a_file_that_cannot_be_deleted_is_no_failure_of_a_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is committed by then, and a repeat would find its own rows."""
    table = new_table(tmp_path / "t")
    append(table, [(1, 0), (2, 1)])

    def fail(_: LocalStore, path: str) -> None:
        raise StoreFailed("the store does not answer", file=path)

    monkeypatch.setattr(LocalStore, "delete", fail)
    done = append(table, [(1, 2), (2, 3)], on_duplicate="skip")
    assert done.version == table.refresh().version == 2
    assert pairs_of(table) == [(1, 0), (2, 1)]


def test_loads_at_the_same_time_leave_one_row(tmp_path: Path) -> None:
    new_table(tmp_path / "t")
    errors: list[BaseException] = []

    def load(number: int) -> None:
        try:
            append(vl.Table.open(tmp_path / "t"), [(7, number), (number, number)])
        except BaseException as error:  # noqa: BLE001 - shown below
            errors.append(error)

    threads = [threading.Thread(target=load, args=(100 + n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    found = pairs_of(vl.Table.open(tmp_path / "t"))
    assert [key for key, _ in found].count(7) == 1
    assert len(found) == 5


def test_partitions_that_contradict_each_other(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", partition_by="day")
    append(table, [(1, 0), (1, 1), (2, 2), (2, 3)])
    assert pairs_of(table) == [(1, 1), (2, 3)]
    rows = pa.table({"day": ["a", "b"], "event": ['{"id":1,"n":5}', '{"id":1,"n":6}']})
    with pytest.raises(InvalidValue, match="different partitions"):
        table.append(rows, json_columns=["event"], unique_by=KEY)
    assert pairs_of(table) == [(1, 1), (2, 3)]
    # A row of the table in another partition is no contradiction.
    table.append(rows.slice(1), json_columns=["event"], unique_by=KEY)
    assert pairs_of(table) == [(2, 3), (1, 6)]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"unique_by": "event:id"}, VariantLakeError, "event:id|variant"),
        ({"unique_by": "nope"}, InvalidQuery, "nope"),
        ({"unique_by": 7}, InvalidValue, "unique_by"),
        ({"unique_by": KEY, "on_duplicate": "last"}, InvalidValue, "replace, skip"),
        ({"unique_by": (), "on_duplicate": "skip"}, InvalidValue, "needs unique_by"),
        ({"unique_by": KEY, "order_by": "day"}, InvalidValue, "order_by"),
    ],
)
def test_what_is_no_key_is_refused(tmp_path: Path, options: Any, error: Any, text: str) -> None:
    table = new_table(tmp_path / "t")
    with pytest.raises(error, match=text):
        append(table, [(1, 0)], **options)
    assert table.refresh().version == 0
    assert not list((tmp_path / "t").glob("*.parquet"))


def test_a_cast_that_fails_leaves_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    rows = pa.table({"event": ['{"id":"x"}']})
    with pytest.raises(InvalidValue, match="cast"):
        table.append(rows, json_columns=["event"], unique_by=KEY)
    assert not list((tmp_path / "t").glob("*.parquet"))


def test_an_append_only_table_takes_new_keys_alone(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", {"delta.appendOnly": "true"})
    append(table, [(1, 0)])
    with pytest.raises(UnsupportedFeature, match="append-only"):
        append(table, [(1, 1)])
    append(table, [(1, 2), (2, 3)], on_duplicate="skip")
    assert pairs_of(table) == [(1, 0), (2, 3)]


@FORMS
@pytest.mark.parametrize("mode", ["replace", "skip"])
def test_an_overwrite_leaves_one_row_for_each_key(
    tmp_path: Path, properties: Any, mode: Any
) -> None:
    table = new_table(tmp_path / "t", properties)
    append(table, [(n, n) for n in range(6)], max_rows_per_file=2)
    given: list[Pair] = [(7, 10), (7, 11), (None, 12), (None, 13), (1, 14)]
    done = table.overwrite(
        given_rows(given), json_columns=["event"], unique_by=KEY, on_duplicate=mode
    )
    assert pairs_of(table) == expected([], given, skip=mode == "skip")
    assert (done.rows_left_out, done.rows_replaced) == (1, 0)
    feed = table.changes(2, 2).to_arrow() if "delta.enableChangeDataFeed" in properties else None
    if feed is not None:
        kinds = feed["_change_type"].to_pylist()
        assert (kinds.count("delete"), kinds.count("insert")) == (6, 4)


@examples(
    st.lists(st.tuples(st.integers(0, 5), st.integers(10, 40)), max_size=8),
    st.sampled_from(["replace", "skip"]),
    st.booleans(),
    st.sampled_from([VECTORS, {}]),
)
@settings(max_examples=8 * MORE, deadline=None)
def test_an_overwrite_of_partitions_heeds_the_others(
    given: list[Pair], mode: Any, by_touch: bool, properties: Any
) -> None:
    """The partitions that stay have keys too: of these a row gives way, or one of the load."""
    with tempfile.TemporaryDirectory() as name:
        table = new_table(Path(name) / "t", properties, partition_by="day")
        before: list[Pair] = [(n, n) for n in range(6)]
        append(table, before, max_rows_per_file=2)
        # All in one partition, also the rows whose key the other one has.
        rows = given_rows(given).set_column(0, "day", pa.array(["d0"] * len(given), pa.string()))
        chosen: Any = {"partitions": True} if by_touch else {"where": {"day": "d0"}}
        options: Any = {"unique_by": KEY, "on_duplicate": mode, "json_columns": ["event"]}
        table.overwrite(rows, **chosen, **options)
        stays = before if by_touch and not given else [pair for pair in before if pair[1] % 2]
        assert pairs_of(table) == expected(stays, given, skip=mode == "skip")


def test_an_overwrite_with_a_key_conflicts_with_any_other_change(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", partition_by="day")
    append(table, [(n, n) for n in range(4)])
    version = table.version
    append(table, [(9, 9)])
    options: Any = {"unique_by": KEY, "json_columns": ["event"], "expected_version": version}
    with pytest.raises(CommitConflict):
        table.overwrite(given_rows([(2, 20)]), where={"day": "d0"}, **options)
    assert len(pairs_of(table)) == 5


def test_a_feed_of_an_overwrite_that_replaces_elsewhere_is_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", {**VECTORS, **FEED}, partition_by="day")
    append(table, [(n, n) for n in range(4)])
    rows = given_rows([(1, 20)]).set_column(0, "day", pa.array(["d0"]))
    with pytest.raises(UnsupportedFeature, match="other partitions"):
        table.overwrite(rows, where={"day": "d0"}, json_columns=["event"], unique_by=KEY)
    assert len(pairs_of(table)) == 4
    assert len(list(Path(table.uri).rglob("*.parquet"))) == 2
