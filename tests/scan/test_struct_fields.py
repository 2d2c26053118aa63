"""Fields of structs in conditions, results, groups, updates and keys, as columns are."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import variantlake as vl

COLUMNS = (
    "id INT, st STRUCT<a: INT, d: STRUCT<x: STRING, y: DOUBLE>, code: CHAR(3), items: ARRAY<INT>>"
)
OPERATORS = {"<": operator.lt, "<=": operator.le, "=": operator.eq, "<>": operator.ne}


def _row(number: int) -> dict[str, Any]:
    """A row in which each struct and each field is NULL now and then."""
    inner = {"x": "abc"[number % 3], "y": None if number % 7 == 2 else number / 4}
    outer = {
        "a": None if number % 5 == 1 else number,
        "d": None if number % 6 == 3 else inner,
        "code": "k",
        "items": [number],
    }
    return {"id": number, "st": None if number % 4 == 0 else outer}


ROWS = [_row(number) for number in range(48)]


def _field(row: dict[str, Any], path: str) -> Any:
    found: Any = row
    for name in path.split("."):
        found = None if found is None else found[name]
    return found


@pytest.fixture(scope="module", params=["none", "name", "id"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> vl.Table:
    properties = {"delta.columnMapping.mode": request.param}
    folder = tmp_path_factory.mktemp(request.param)
    table = vl.Table.create(folder / "t", COLUMNS, properties=properties)
    for start in range(0, len(ROWS), 12):
        table.append(ROWS[start : start + 12])
    return table


@given(
    path=st.sampled_from(["st.a", "st.d.y"]),
    sign=st.sampled_from(sorted(OPERATORS)),
    value=st.integers(-1, 50),
    letter=st.sampled_from("abcd"),
)
def test_conditions_choose_the_rows(
    table: vl.Table, path: str, sign: str, value: int, letter: str
) -> None:
    compare = OPERATORS[sign]
    where = f"{path} {sign} {value} OR T.ST.D.X = '{letter}' AND st.a IS NULL"
    found = table.sql(f"SELECT id, {path} AS it, st.d.x FROM t WHERE {where}").to_pylist()
    assert found == [
        {"id": row["id"], "it": _field(row, path), "x": _field(row, "st.d.x")}
        for row in ROWS
        if ((it := _field(row, path)) is not None and compare(it, value))
        or (_field(row, "st.d.x") == letter and _field(row, "st.a") is None)
    ]


def test_files_are_skipped_and_the_log_answers(table: vl.Table) -> None:
    assert "1 of 4 read" in str(table.scan("id", "st.a >= 36").explain())
    known = [it for row in ROWS if (it := _field(row, "st.a")) is not None]
    found = table.sql("SELECT min(st.a) AS lo, max(st.a) AS hi, count(st.a) AS n FROM t")
    assert found.to_pylist() == [{"lo": min(known), "hi": max(known), "n": len(known)}]
    groups = table.sql("SELECT st.d.x, count(*) AS n FROM t GROUP BY st.d.x").to_pylist()
    texts = [_field(row, "st.d.x") for row in ROWS]
    assert {row["x"]: row["n"] for row in groups} == {text: texts.count(text) for text in texts}
    assert table.scan("id", "st.code = 'k'").count() == 36  # padded, as Spark compares a CHAR


@pytest.mark.parametrize(
    ("query", "error", "said"),
    [
        ("SELECT st.zz FROM t", vl.InvalidQuery, r"no column 'st\.zz'"),
        ("SELECT x.a FROM t", vl.InvalidQuery, "no column 'x'"),
        ("SELECT st.d FROM t", vl.UnsupportedFeature, "several parts"),
        ("SELECT st.items.a FROM t", vl.UnsupportedFeature, "several parts"),
        ("SELECT st.a.b FROM t", vl.UnsupportedFeature, "several parts"),
    ],
)
def test_what_is_not_such_a_field_is_said(
    table: vl.Table, query: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        table.sql(query)


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_variants_in_structs_have_paths(tmp_path: Path, mode: str) -> None:
    columns = "id INT, st STRUCT<n: INT, in: STRUCT<e: VARIANT>>, e VARIANT"
    table = vl.Table.create(tmp_path / "t", columns, properties={"delta.columnMapping.mode": mode})
    rows: list[dict[str, Any]] = [
        {"id": 1, "st": {"n": 1, "in": {"e": {"a": 1, "b": {"c": "x"}}}}, "e": {"a": 9}},
        {"id": 2, "st": None, "e": {"a": 9}},
        {"id": 3, "st": {"n": 3, "in": None}, "e": None},
        {"id": 4, "st": {"n": 4, "in": {"e": {"a": 4}}}, "e": {"a": 9}},
    ]
    table.append(rows)
    found = table.sql("SELECT id, st.in.e:a::int AS a, st.in.e, e:a::int AS top FROM t")
    assert found.to_pylist() == [
        {"id": 1, "a": 1, "e": rows[0]["st"]["in"]["e"], "top": 9},
        {"id": 2, "a": None, "e": None, "top": 9},
        {"id": 3, "a": None, "e": None, "top": None},
        {"id": 4, "a": 4, "e": {"a": 4}, "top": 9},
    ]
    groups = table.sql("SELECT variant_get(t.st.in.e, '$.b.c', 'string') AS c, count(*) AS n "
                       "FROM t WHERE st.in.e IS NOT NULL GROUP BY c")  # fmt: skip
    assert groups.to_pylist() == [{"c": "x", "n": 1}, {"c": None, "n": 1}]
    assert table.sql("SELECT variant_get(st.in.e, '$.a', 'int') FROM t").to_arrow().column_names \
        == ["variant_get(st.in.e, $.a)"]  # fmt: skip
    with pytest.raises(vl.UnsupportedFeature, match="a Variant in a struct to assign to"):
        table.update({"st.in.e:a": 5}, "id = 1")
    assert table.delete("st.in.e:a::int = 4").rows_deleted == 1
    assert table.update({"e": vl.expr("st.in.e")}, "st.in.e:b.c::string = 'x'").rows_updated == 1
    assert [row["e"] for row in table.scan("e", "id = 1").to_pylist()] == [rows[0]["st"]["in"]["e"]]


def test_changes_of_rows_take_fields(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", COLUMNS)
    table.append(ROWS[:12])
    assert table.delete("st.a = 5").rows_deleted == 1
    assert (
        table.update({"id": vl.expr("st.a + 100")}, "st.d.x = 'b' AND st.a > 1").rows_updated == 2
    )
    assert sorted(row["id"] for row in table.scan("id", "id > 100").to_pylist()) == [107, 110]
    new = [_row(2) | {"id": 200}, _row(99) | {"id": 201}]
    done = table.upsert(new, "st.a")
    assert (done.rows_updated, done.rows_inserted) == (1, 1)
    found = table.scan("id", "st.a IN (2, 99)").to_pylist()
    assert sorted(row["id"] for row in found) == [200, 201]
