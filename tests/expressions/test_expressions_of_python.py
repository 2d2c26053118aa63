"""`vl.col`, `vl.path`, `vl.expr`: they find what Python finds in the rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import variantlake as vl

ROWS: list[dict[str, Any]] = [
    {"n": n, "kind": kind, "event": {"n": n * 2, "user": kind}}
    for n, kind in enumerate(["push", "pull", None, "pu%h", "x'y"])
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> vl.Table:
    found = vl.Table.create(tmp_path_factory.mktemp("t"), "n BIGINT, kind STRING, event VARIANT")
    found.append(ROWS)
    return found


N, KIND = vl.col("n"), vl.col("kind")
PATH = vl.path("event:n")
CASES: list[tuple[vl.Expr, Callable[[dict[str, Any]], object]]] = [
    (N + 1 > 2, lambda r: r["n"] + 1 > 2),
    (1 + N * 2 == 5, lambda r: 1 + r["n"] * 2 == 5),
    (10 - N < 8, lambda r: 10 - r["n"] < 8),
    (-N <= -3, lambda r: -r["n"] <= -3),
    (N % 2 == 1, lambda r: r["n"] % 2 == 1),
    (5 % (N + 1) == 1, lambda r: 5 % (r["n"] + 1) == 1),
    (PATH.bigint() / 2 == N, lambda _: True),
    (PATH.int() >= N + 3, lambda r: r["n"] * 2 >= r["n"] + 3),
    (KIND.like("pu_h"), lambda r: r["kind"] in {"push", "pu%h"}),
    (KIND.startswith("pu"), lambda r: (r["kind"] or "").startswith("pu")),
    (KIND == "x'y", lambda r: r["kind"] == "x'y"),
    (KIND.isin("push", "x'y"), lambda r: r["kind"] in {"push", "x'y"}),
    (KIND.isin(["push"]), lambda r: r["kind"] == "push"),
    (KIND.is_null(), lambda r: r["kind"] is None),
    (vl.path("event:user").is_null(), lambda r: r["kind"] is None),
    (~KIND.is_null() & (N > 3), lambda r: r["kind"] is not None and r["n"] > 3),
    ((N == 1) | (N == 2), lambda r: r["n"] in {1, 2}),
    (N.between(1, 2), lambda r: 1 <= r["n"] <= 2),
    (N.cast("string") == "3", lambda r: r["n"] == 3),
    (PATH.try_cast("int") == 4, lambda r: r["n"] == 2),
    (vl.expr("n + 1") * 2 == 4, lambda r: r["n"] == 1),
    (vl.expr("upper(kind)") == "PUSH", lambda r: r["kind"] == "push"),
]


@pytest.mark.parametrize(("where", "holds"), CASES, ids=[str(each) for each, _ in CASES])
def test_a_condition_finds_the_rows_of_python(
    table: vl.Table, where: vl.Expr, holds: Callable[[dict[str, Any]], object]
) -> None:
    expected = [row["n"] for row in ROWS if holds(row)]
    assert [row["n"] for row in table.scan("n", where).to_pylist()] == expected
    query = table.sql(f"SELECT n FROM t WHERE {where} ORDER BY {N.desc()}")
    assert [row["n"] for row in query] == expected[::-1]


@given(st.integers(-5, 5), st.integers(-5, 5), st.sampled_from("+-*"))
def test_arithmetic_is_that_of_python(table: vl.Table, a: int, b: int, op: str) -> None:
    made = {"+": N + a, "-": N - a, "*": N * a}[op] - b
    expected = [eval(f"({row['n']} {op} {a}) - {b}") for row in ROWS]  # noqa: S307 - our own text
    query = f"SELECT {made.alias('x')} FROM t ORDER BY n"
    assert [row["x"] for row in table.sql(query)] == expected


VALUES = ["new", "it's", "n + 1", 7, None]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_an_update_sets_values_and_expressions(tmp_path: Path, value: Any) -> None:
    t = vl.Table.create(tmp_path / "t", "n BIGINT, kind STRING, event VARIANT, at DATE")
    t.append([{"n": 1, "kind": "a", "event": {"a": 1}}])
    column = "n" if isinstance(value, int) else "kind"
    t.update({column: value, "event:b": value, "at": dt.date(2026, 1, 2)})
    (row,) = t.scan().to_pylist()
    assert (row[column], row["event"], row["at"]) == (
        value, {"a": 1, "b": value}, dt.date(2026, 1, 2)
    )  # fmt: skip
    t.update({"n": vl.col("n") + 1, "kind": vl.expr("upper('x')"), "event": "text"})
    (row,) = t.scan("n, kind, event").to_pylist()
    assert row == {"n": (value if column == "n" else 1) + 1, "kind": "X", "event": "text"}
    t.update({"event": vl.path("event"), "n": Decimal(5)})
    assert t.scan("n, event").to_pylist() == [{"n": 5, "event": "text"}]


def test_a_merge_is_built_by_methods(tmp_path: Path) -> None:
    def merged(name: str, run: Callable[[vl.Table], vl.ChangeResult]) -> list[dict[str, Any]]:
        t = vl.Table.create(tmp_path / name, "id BIGINT, kind STRING")
        t.append([{"id": n, "kind": "a"} for n in range(4)])
        assert run(t).rows_changed == 5
        return sorted(t.scan().to_pylist(), key=lambda row: row["id"])

    source = [{"id": 0, "kind": "gone"}, {"id": 1, "kind": "b"}, {"id": 9, "kind": "c"}]
    built = merged(
        "a",
        lambda t: (
            t.merge_builder(source, "old.id = s.id", target_alias="old")
            .when_matched_delete(vl.expr("s.kind") == "gone")
            .when_matched_update({"kind": vl.expr("upper(s.kind)")})
            .when_not_matched_insert({"id": vl.expr("s.id"), "kind": "new"})
            .when_not_matched_by_source_delete("old.id = 3")
            .when_not_matched_by_source_update({"kind": "left"})
            .execute()
        ),
    )
    text = merged(
        "b",
        lambda t: t.merge(
            source,
            "t.id = s.id",
            "WHEN MATCHED AND s.kind = 'gone' THEN DELETE",
            "WHEN MATCHED THEN UPDATE SET kind = upper(s.kind)",
            "WHEN NOT MATCHED THEN INSERT (id, kind) VALUES (s.id, 'new')",
            "WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN DELETE",
            "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET kind = 'left'",
        ),
    )
    assert built == text == [
        {"id": 1, "kind": "B"}, {"id": 2, "kind": "left"}, {"id": 9, "kind": "new"}
    ]  # fmt: skip


BAD: list[Callable[[], object]] = [
    lambda: vl.col(""), lambda: vl.col(7), lambda: vl.col("event:a"), lambda: vl.expr(" "),  # type: ignore[arg-type]
    lambda: vl.expr(None), lambda: vl.path("event:a::int"), lambda: vl.path(7),  # type: ignore[arg-type]
    lambda: vl.path("event", 7), lambda: vl.path("event", "a.b"), N.isin, lambda: N.isin([]),  # type: ignore[arg-type]
    lambda: N.cast("int) OR (1=1"), lambda: N == [1], lambda: N == PATH, lambda: bool(N == 1),
]  # fmt: skip


@pytest.mark.parametrize("call", BAD)
def test_bad_expressions_are_refused_when_they_are_made(call: Callable[[], object]) -> None:
    with pytest.raises((vl.InvalidValue, vl.InvalidPath)) as caught:
        call()
    assert caught.value.hint
