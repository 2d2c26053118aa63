"""`Table.update`: values, files, the change feed, and two writers at the same time."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl
from tests.dml.changed import FEED, VECTORS, documents, new_table, text
from variantlake.delta.actions.actions import AddCdcFile
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.log.reconciliation import read_commit
from variantlake.dml.update import update
from variantlake.errors import (
    CommitConflict,
    InvalidQuery,
    InvalidValue,
    PathTypeMismatch,
    UnsupportedFeature,
)
from variantlake.quoting import quote_identifier


def days(table: vl.Table) -> dict[int, Any]:
    found = table.refresh().scan("id, day").to_arrow().to_pylist()
    return {row["id"]: row["day"] for row in found}


@pytest.mark.parametrize("properties", [VECTORS, {}], ids=["vectors", "rewritten"])
def test_values_are_computed_from_the_old_row(tmp_path: Path, properties: Any) -> None:
    table = new_table(tmp_path / "t", rows=20, properties=properties)
    where = "event:n::int between 8 and 11"
    done = table.update(
        {"day": vl.path("event", "$.n").string(), "ID": vl.expr("event:n::bigint")}, where
    )
    assert (done.rows_updated, done.rows_deleted, done.files_touched) == (4, 0, 2)
    assert days(table) == {n: str(n) if 8 <= n <= 11 else f"d{n % 2}" for n in range(20)}
    assert documents(table) == {n: text(n) for n in range(20)}
    table.update({"event": {"a": [1, None]}, "day": None}, "id = 9")
    assert documents(table) == {n: text(n) for n in range(20)} | {9: '{"a":[1,null]}'}
    table.update({"event": vl.expr("event:rest"), "day": "x"}, "id = 2 or id = 9")
    assert (documents(table)[2], documents(table)[9]) == ("[2]", "NULL")
    info = table.refresh().history(1)[0].info
    assert (info["operation"], info["operationMetrics"]["numUpdatedRows"]) == ("UPDATE", "2")
    assert days(table)[9] == "x"


NESTED = (
    "id INT, s STRUCT<n: INT, t: STRING, b: STRUCT<x: DOUBLE, v: VARIANT>>, l ARRAY<INT>, "
    "m MAP<STRING, INT>"
)


def _nested(where: Path, properties: Any) -> vl.Table:
    table = vl.Table.create(where, NESTED, properties=properties)
    whole = {"n": 1, "t": "x", "b": {"x": 0.5, "v": [1]}}
    table.append([{"id": 1, "s": whole, "l": [1], "m": {"k": 1}}, {"id": 2}])
    return table


@pytest.mark.parametrize("properties", [VECTORS, {"delta.columnMapping.mode": "name"}])
def test_a_field_of_a_struct_is_set(tmp_path: Path, properties: Any) -> None:
    """The other fields stay; a struct that is NULL becomes one, as in Delta Spark."""
    table = _nested(tmp_path / "t", properties)
    table.update({"s.n": 5, "S.B.x": vl.expr("id / 2.0D")})
    table.update({"s.b.v": {"k": vl.Variant.of(None)}}, "id = 1")
    structs = {row["id"]: row["s"] for row in table.scan("id, s").to_pylist()}
    assert structs == {
        1: {"n": 5, "t": "x", "b": {"x": 0.5, "v": {"k": None}}},
        2: {"n": 5, "t": None, "b": {"x": 1.0, "v": None}},
    }
    table.update({"s.n": None, "id": vl.expr("s.n")}, "id = 1")
    assert table.scan("s.n", where="id = 5").to_pylist() == [{"n": None}]


@pytest.mark.parametrize("properties", [{}, {"delta.columnMapping.mode": "name"}])
def test_values_of_python_go_into_nested_columns(tmp_path: Path, properties: Any) -> None:
    table = _nested(tmp_path / "t", properties)
    table.update({"s": {"n": 7, "b": {"v": "text"}}, "l": [1, None], "m": {"z": 2}})
    assert table.scan("s, l, m", where="id = 2").to_pylist() == [
        {
            "s": {"n": 7, "t": None, "b": {"x": None, "v": "text"}},
            "l": [1, None],
            "m": [("z", 2)],
        }
    ]


@pytest.mark.parametrize(
    ("new", "error", "said"),
    [
        ({"s.n": 1, "s": None}, InvalidQuery, "as a whole and in its fields"),
        ({"s.n": 1, "S.N": 2}, InvalidQuery, "set twice"),
        ({"s.zz": 1}, InvalidQuery, "no column 's.zz'"),
        ({"s.n": "n + 1"}, InvalidValue, "'n' is INT, and does not take a str"),
        ({"s.n": 1.5}, InvalidValue, "does not take a float"),
        ({"s": {"q": 1}}, InvalidValue, "'q', which is not a field"),
        ({"l": [1.5]}, InvalidValue, "^column 'l' cannot hold .*not a whole number"),
        ({"l": 1}, InvalidValue, "column 'l' cannot hold 1"),
        ({"s.n": vl.expr("upper(s.t)")}, UnsupportedFeature, "does not store STRING"),
    ],
)
def test_a_field_that_cannot_be_set_is_named(
    tmp_path: Path, new: dict[str, Any], error: type[Exception], said: str
) -> None:
    table = _nested(tmp_path / "t", {})
    with pytest.raises(error, match=said):
        table.update(new)
    assert table.refresh().version == 1


@pytest.mark.parametrize(
    ("column", "value", "stored"),
    [
        ("f", "n", 3.0),
        ("f", "m", -1.555),
        ("g", "n", 3.0),
        ("n", "m", -1),
        ("n", "f", 2),
        ("r", "n", Decimal("3.00")),
        ("r", "m", Decimal("-1.56")),
        ("text", "n", "3"),
        ("text", "n > 2", "true"),
        ("text", "day", "2026-01-02"),
        ("g", "1152921573326323713", 1.1529216420458004e18),
        ("g", "-1152921573326323713.5", -1.1529216420458004e18),
        ("n", "f * 1e10", InvalidValue),
        ("r", "n * 1000 * 1000 * 1000", InvalidValue),
        ("n", "text", UnsupportedFeature),
        ("n", "n > 2", UnsupportedFeature),
        ("r", "f", UnsupportedFeature),
    ],
)
def test_values_are_stored_as_spark_stores_them(
    tmp_path: Path, column: str, value: str, stored: Any
) -> None:
    ddl = "n INT, f DOUBLE, g FLOAT, m DECIMAL(9,3), r DECIMAL(9,2), text STRING, day DATE"
    table = vl.Table.create(tmp_path / "t", ddl)
    row = {"n": 3, "f": 2.7, "m": Decimal("-1.555"), "text": "a", "day": dt.date(2026, 1, 2)}
    table.append([row])
    if isinstance(stored, type):
        with pytest.raises(stored):
            table.update({column: vl.expr(value)})
        return
    table.update({column: vl.expr(value)})
    assert table.scan(column).to_pylist() == [{column: stored}]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("day", "give a date, or vl.expr(\"DATE '…'\")"),
        ("at", "give a datetime, or vl.expr(\"TIMESTAMP '…'\")"),
        ("n", "vl.expr('2026-02-01') is SQL"),
    ],
)
def test_text_in_the_place_of_a_value_says_what_to_write(
    tmp_path: Path, name: str, said: str
) -> None:
    table = vl.Table.create(tmp_path / "t", "day DATE, at TIMESTAMP, n INT")
    with pytest.raises(InvalidValue) as refused:
        table.update({name: "2026-02-01"})
    assert refused.value.hint == said


def test_rows_move_to_their_partition(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=10, partition_by="day")
    assert table.update({"day": "d9"}, "day = 'd1'").rows_updated == 5
    assert days(table) == {n: "d9" if n % 2 else "d0" for n in range(10)}


@pytest.mark.parametrize("properties", [{**VECTORS, **FEED}, FEED], ids=["vectors", "rewritten"])
def test_the_change_feed_gets_both_images(tmp_path: Path, properties: Any) -> None:
    table = new_table(tmp_path / "t", rows=12, per_file=6, properties=properties)
    done = table.update({"day": "new"}, "id >= 5")
    actions = read_commit(table.snapshot.store, commit_path(done.version or 0))
    files = [action.path for action in actions if isinstance(action, AddCdcFile)]
    rows = [
        row for path in files for row in vl.parquet.read_table(tmp_path / "t" / path).to_pylist()
    ]
    found = sorted((row["id"], row["_change_type"], row["day"]) for row in rows)
    assert found == sorted(
        image
        for n in range(5, 12)
        for image in ((n, "update_preimage", f"d{n % 2}"), (n, "update_postimage", "new"))
    )


def test_what_is_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=4)
    version = table.version
    with pytest.raises(InvalidQuery, match="no column"):
        table.update({"nope": 1})
    with pytest.raises(UnsupportedFeature, match="does not take"):
        table.update({"id": vl.expr("hash(id)")})
    with pytest.raises(InvalidQuery, match="aggregate"):
        table.update({"id": vl.expr("max(id)")})
    with pytest.raises(InvalidValue, match="'day' is STRING, and does not take an int, 7"):
        table.update({"day": 7})
    with pytest.raises(InvalidValue, match="cast"):
        table.update({"id": vl.expr("event:user::bigint")})
    assert table.update({"id": 1}, "id < 3", dry_run=True).rows_updated == 3
    assert table.refresh().version == version
    assert documents(table) == {n: text(n) for n in range(4)}


def test_two_updates_of_one_row_contradict_each_other(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=20, per_file=20)
    before = table.snapshot
    update(before, {"day": "a"}, "id = 3")
    with pytest.raises(CommitConflict):
        update(before, {"day": "b"}, "id = 3")
    update(before, {"day": "b"}, "id = 4")  # another row of the same file
    assert {n: day for n, day in days(table).items() if day not in ("d0", "d1")} == {3: "a", 4: "b"}
    assert len(list((tmp_path / "t").glob("part-*.parquet"))) == 3


def test_new_values_are_computed_from_the_old_ones(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=4)
    done = table.update(
        {
            "id": vl.expr("id * 10 + length(day)"),
            "day": vl.expr("CASE WHEN id + 1 > 3 THEN upper(day) END"),
        },
        "id % 2 = 1 AND length(day) = 2",
    )
    assert done.rows_updated == 2
    rows = table.refresh().scan("id, day").to_arrow().to_pylist()
    found = {row["id"]: row["day"] for row in rows}
    assert found == {0: "d0", 2: "d0", 12: None, 32: "D1"}


def test_an_error_of_a_computed_value_changes_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=4)
    version = table.version
    with pytest.raises(InvalidValue, match="cast"):
        table.update({"id": vl.expr("10 div id")})
    assert table.refresh().version == version


@pytest.mark.parametrize(
    "values",
    [
        {"id": "x"},
        {"id": vl.expr("event:a::int")},
        {"small": None},
        {"small": 100000},
        {"id": vl.expr("event")},
    ],
)
def test_a_dry_run_refuses_what_the_run_refuses(tmp_path: Path, values: dict[str, Any]) -> None:
    table = vl.Table.create(tmp_path / "t", "id INT, small SMALLINT NOT NULL, event VARIANT")
    rows = {
        "id": pa.array([1], pa.int32()),
        "small": pa.array([1], pa.int16()),
        "event": ['{"a": "x"}'],
    }
    table.append(pa.table(rows), json_columns=["event"])
    table = table.refresh()
    before = sorted(Path(table.uri).iterdir())
    refusals = []
    for dry_run in (True, False):
        with pytest.raises((InvalidValue, InvalidQuery, UnsupportedFeature)) as caught:
            table.update(values, dry_run=dry_run)
        refusals.append((type(caught.value), caught.value.message))
    assert refusals[0] == refusals[1]
    assert sorted(Path(table.uri).iterdir()) == before
    assert table.update({"id": vl.expr("small")}, dry_run=True).rows_updated == 1


def events(table: vl.Table) -> list[Any]:
    found: list[Any] = table.refresh().scan("event").as_json().to_arrow()["event"].to_pylist()
    return sorted(found, key=lambda text: (text is None, text))


@pytest.fixture
def nested(tmp_path: Path) -> vl.Table:
    table = vl.Table.create(tmp_path / "t", "id BIGINT, day STRING, event VARIANT")
    documents = ['{"user":{"name":"x"},"n":1}', '{"n":2}', None]
    rows = pa.table({"id": [1, 2, 3], "day": ["a", None, "c"], "event": documents})
    table.append(rows, json_columns=["event"])
    return table.refresh()


def test_values_are_assigned_to_paths(nested: vl.Table) -> None:
    done = nested.update(
        {"event:user.name": vl.expr("upper(day)"), "EVENT:tags": [1, None], "event:n": None}
    )
    assert done.rows_updated == 3
    assert events(nested) == [
        '{"n":null,"tags":[1,null],"user":{"name":"A"}}',
        '{"n":null,"tags":[1,null],"user":{"name":null}}',  # a NULL is the Variant null there
        None,
    ]


def test_functions_change_variants(nested: vl.Table) -> None:
    text = "variant_set(variant_delete(event, '$.user', '$.nobody'), '$.m', id * 10)"
    nested.update({"event": vl.expr(text)}, "id < 3")
    assert events(nested) == ['{"m":10,"n":1}', '{"m":20,"n":2}', None]
    nested.update({"event": vl.expr("try_variant_insert(event, '$.m', 0)")}, "id = 1")
    nested.update(
        {"event": vl.expr("variant_set(event, '$.k', day, false)")}, "id = 2"
    )  # NULL gives NULL
    assert events(nested) == [None, None, None]


def test_a_merge_assigns_to_paths(nested: vl.Table) -> None:
    nested.merge(
        pa.table({"id": [1, 3], "v": ["p", "q"]}),
        "t.id = s.id",
        "WHEN MATCHED THEN UPDATE SET t.event:user.nick = s.v, day = s.v",
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET event = variant_delete(event, '$.n')",
    )
    assert events(nested) == ['{"n":1,"user":{"name":"x","nick":"p"}}', "{}", None]


@pytest.mark.parametrize(
    ("values", "error", "match"),
    [
        ({"event:n::int": 1}, InvalidQuery, "no path to assign"),
        ({"event:a": 1, "event": vl.expr("event")}, InvalidQuery, "as a whole and at a path"),
        ({"event:n.x": 1}, PathTypeMismatch, "expected an object"),
        (
            {"event": vl.expr("variant_set(event, day, 1)")},
            UnsupportedFeature,
            "path that is no constant",
        ),
        ({"event": vl.expr("variant_set(event)")}, InvalidQuery, "takes a Variant"),
        ({"event": vl.expr("variant_set(event, '$.m', event:user::int)")}, InvalidValue, "cast"),
        ({"day:x": 1}, InvalidQuery, "only a VARIANT has paths"),
    ],
)
def test_what_paths_refuse(
    nested: vl.Table, values: dict[str, Any], error: type[Exception], match: str
) -> None:
    version = nested.version
    with pytest.raises(error, match=match):
        nested.update(values)
    assert nested.refresh().version == version


@pytest.mark.parametrize("name", ["a b", "x.y", "tick`s", "`", "ünï", "é=1"])
def test_names_are_set_with_quotes_and_without(tmp_path: Path, name: str) -> None:
    quoted = quote_identifier(name)
    mapped = {"delta.columnMapping.mode": "name"}
    table = vl.Table.create(tmp_path, f"id INT, {quoted} INT", properties=mapped)
    table.append([{"id": 1, name: 1}, {"id": 2, name: 2}])
    table.update({name: 10}, "id = 1")
    table.update({quoted: vl.expr(f"{quoted} + 10")}, "id = 2")
    table.merge(
        [{"id": 1}],
        "t.id = s.id",
        f"WHEN MATCHED THEN UPDATE SET {quoted} = 5",
    )
    found = table.refresh().to_pylist()
    assert sorted(row[name] for row in found) == [5, 12]
    with pytest.raises(InvalidQuery, match="no column"):
        table.update({"`nope`": 1})


def test_a_column_gets_its_default(tmp_path: Path) -> None:
    properties = {"delta.feature.allowColumnDefaults": "supported"}
    columns = "id BIGINT, n INT DEFAULT 42, s STRING DEFAULT 'x', plain STRING"
    table = vl.Table.create(tmp_path / "t", columns, properties=properties)
    table.append([{"id": n, "n": 1, "s": "a", "plain": "b"} for n in (1, 2)])
    default = vl.expr("DEFAULT")
    table.update({"n": default, "s": vl.expr("default"), "plain": default}, "id = 2")
    assert table.scan(where="id = 2").to_pylist() == [{"id": 2, "n": 42, "s": "x", "plain": None}]
    assert table.scan("n", where="id = 1").to_pylist() == [{"n": 1}]
    with pytest.raises(vl.InvalidQuery, match="no column 'DEFAULT'"):
        table.update({"n": vl.expr("DEFAULT + 1")})


def test_a_null_of_a_struct_with_a_field_that_is_not_null(tmp_path: Path) -> None:
    """Rows may hold one and keep it; a new value is none, as in Delta Spark."""
    table = vl.Table.create(tmp_path / "t", "id INT, s STRUCT<a: INT NOT NULL, b: STRING>")
    table.append([{"id": 1, "s": {"a": 1, "b": "x"}}, {"id": 2, "s": None}])
    table.update({"id": 3}, "id = 2")
    for values in ({"s": None}, {"s": vl.expr("s")}, {"s.b": "q"}):
        with pytest.raises(InvalidValue, match=r"column 's\.a' is NOT NULL"):
            table.update(values, "id = 3")
    table.update({"s.b": "q"}, "id = 1")
    rows = table.scan().to_arrow().sort_by("id").to_pylist()
    assert [row["s"] for row in rows] == [{"a": 1, "b": "q"}, None]
