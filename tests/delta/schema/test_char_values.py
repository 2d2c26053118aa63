"""CHAR and VARCHAR columns in this process: written, read, compared, skipped."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from variantlake.errors import InvalidValue
from variantlake.table import Table

DDL = (
    "id INT, c CHAR(5), v VARCHAR(3), s STRUCT<a: CHAR(4), b: VARCHAR(2)>, "
    "l ARRAY<CHAR(3)>, m MAP<CHAR(2), CHAR(4)>"
)


def made(folder: Path, ddl: str = DDL, **options: Any) -> Table:
    return Table.create(folder / "t", ddl, **options)


def appended(table: Table, **columns: list[Any]) -> None:
    fields = {
        "s": pa.struct([("a", pa.string()), ("b", pa.string())]),
        "l": pa.list_(pa.string()),
        "m": pa.map_(pa.string(), pa.string()),
        "id": pa.int32(),
    }
    arrays = {k: pa.array(rows, fields.get(k, pa.string())) for k, rows in columns.items()}
    table.append(pa.table(arrays))


def ids(folder: Path, where: str | None = None) -> list[int]:
    return ids_of(Table.open(folder / "t"), where)


def ids_of(table: Table, where: str | None = None) -> list[int]:
    found: Any = table.scan(["id"], where=where).to_arrow()["id"].to_pylist()
    return sorted(found)


def test_a_char_has_its_length_at_every_depth(tmp_path: Path) -> None:
    table = made(tmp_path)
    appended(
        table,
        c=["ab", None, "äöü"],
        v=["x", "yy ", None],
        s=[{"a": "x", "b": "y"}, None, {"a": None, "b": None}],
        l=[["p", None], None, []],
        m=[[("k", "v")], None, []],
    )
    got = Table.open(tmp_path / "t").scan(["c", "v", "s", "l", "m"]).to_arrow().to_pylist()
    assert got == [
        {"c": "ab   ", "v": "x", "s": {"a": "x   ", "b": "y"}, "l": ["p  ", None],
         "m": [("k ", "v   ")]},
        {"c": None, "v": "yy ", "s": None, "l": None, "m": None},
        {"c": "äöü  ", "v": None, "s": {"a": None, "b": None}, "l": [], "m": []},
    ]  # fmt: skip


def test_spaces_beyond_the_length_are_cut(tmp_path: Path) -> None:
    table = made(tmp_path)
    appended(
        table,
        c=["abcde   ", "ab       "],
        v=["abc ", "    "],
        s=[{"a": "xxxx ", "b": "yy   "}, None],
        l=[["ppp   "], None],
        m=[[("kk  ", "vvvv ")], None],
    )
    got = Table.open(tmp_path / "t").scan(["c", "v", "s", "l", "m"]).to_arrow().to_pylist()
    assert got == [
        {"c": "abcde", "v": "abc", "s": {"a": "xxxx", "b": "yy"}, "l": ["ppp"],
         "m": [("kk", "vvvv")]},
        {"c": "ab   ", "v": "   ", "s": None, "l": None, "m": None},
    ]  # fmt: skip


@pytest.mark.rule(29)
@pytest.mark.parametrize(
    ("column", "good", "bad", "where"),
    [
        ("c", "ab", "abcdef", "c"),
        ("c", "ab", "ab   f", "c"),
        ("v", "äöü", "äöüß", "v"),
        ("s", {"a": "x", "b": "y"}, {"a": "xxxxx", "b": "y"}, "s.a"),
        ("s", {"a": "x", "b": "y"}, {"a": "x", "b": "yyy"}, "s.b"),
        ("l", ["p", "q"], ["p", "pppp"], "l.element"),
        ("m", [("k", "v")], [("k", "v"), ("kkk", "v")], "m.key"),
        ("m", [("k", "v")], [("k", "v"), ("kk", "vvvvv")], "m.value"),
    ],
)
def test_what_is_too_long_is_refused_with_its_row(
    tmp_path: Path, column: str, good: Any, bad: Any, where: str
) -> None:
    table = made(tmp_path)
    with pytest.raises(InvalidValue, match=f"column '{where}' holds up to") as caught:
        appended(table, **{"id": [1, 2, 3, 4], column: [good, None, bad, good]})
    assert caught.value.row == 2
    assert Table.open(tmp_path / "t").version == table.version


def test_a_partition_column_is_checked_and_padded(tmp_path: Path) -> None:
    table = made(tmp_path, "id INT, c CHAR(5)", partition_by="c")
    appended(table, id=[1, 2, 3], c=["ab", "abcde  ", None])
    with pytest.raises(InvalidValue, match="column 'c' holds up to 5"):
        appended(table, id=[4], c=["abcdef"])
    scan = Table.open(tmp_path / "t").scan(["id", "c"])
    assert sorted(scan.to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "c": "ab   "},
        {"id": 2, "c": "abcde"},
        {"id": 3, "c": None},
    ]
    chosen = Table.open(tmp_path / "t").scan(["id"], where="c = 'ab'").to_arrow()
    assert chosen.to_pylist() == [{"id": 1}]
    table = Table.open(tmp_path / "t")
    table.overwrite(pa.table({"id": pa.array([5], pa.int32()), "c": ["ab"]}), where="c = 'ab'")
    assert ids(tmp_path) == [2, 3, 5]


@pytest.mark.parametrize("how", [{"where": {"c": "ab   "}}, {"partitions": True}])
def test_padded_and_plain_partitions_are_one(tmp_path: Path, how: dict[str, Any]) -> None:
    table = made(tmp_path, "id INT, c CHAR(5)", partition_by="c")
    appended(table, id=[1, 2, 3], c=["ab", "b", None])
    new = pa.table({"id": pa.array([4], pa.int32()), "c": ["ab   "]})
    Table.open(tmp_path / "t").overwrite(new, **how)
    assert ids(tmp_path) == [2, 3, 4]


CONDITIONS = {
    # As Spark 4.2 answers on the rows of `test_conditions_pad_as_spark_does`.
    "c = 'ab'": [1],
    "c = 'ab        '": [1],
    "c = 'ab        x'": [],
    "'ab' = c": [1],
    "c <=> 'ab'": [1],
    "c <> 'ab'": [2, 3],
    "c < 'ab'": [3],
    "c <= 'ab'": [1, 3],
    "c > 'ab'": [2],
    "c IN ('ab', 'abcde')": [1, 2],
    "c IN ('ab', 'abcde     ')": [1, 2],
    "c IN ('ab', NULL)": [],
    "c NOT IN ('ab')": [2, 3],
    "c BETWEEN 'ab' AND 'ab'": [],
    "c LIKE 'ab %'": [1],
    "c LIKE 'ab'": [],
    "v = 'ab'": [2, 3],
}


@pytest.mark.parametrize("together", [True, False])
def test_conditions_pad_as_spark_does(tmp_path: Path, together: bool) -> None:
    table = made(tmp_path)
    texts, others = ["ab", "abcde", "ab\x01"], ["ab ", "ab", "ab"]
    if together:
        appended(table, id=[1, 2, 3], c=texts, v=others)
    else:
        for at in range(3):
            appended(table, id=[at + 1], c=texts[at : at + 1], v=others[at : at + 1])
            table = Table.open(tmp_path / "t")
    for where, wanted in CONDITIONS.items():
        assert ids(tmp_path, where) == wanted, where


@pytest.mark.rule(29)
def test_skipping_loses_no_padded_row(tmp_path: Path) -> None:
    """Each file against every literal: what its rows say is what the whole table says."""
    chance = random.Random(5)
    alphabet = "a \x01b"
    rows = ["".join(chance.choices(alphabet, k=chance.randint(0, 3))) for _ in range(60)]
    table = made(tmp_path, "id INT, c CHAR(3)")
    for start in range(0, 60, 4):
        numbers = list(range(start, start + 4))
        appended(table, id=numbers, c=rows[start : start + 4])
        table = Table.open(tmp_path / "t")
    padded = [row.ljust(3) for row in rows]
    compare = {"=": str.__eq__, "<": str.__lt__, ">": str.__gt__, ">=": str.__ge__}
    for _ in range(60):
        literal = "".join(chance.choices("ab ", k=chance.randint(0, 4)))
        width = max(3, len(literal))
        for op, holds in compare.items():
            wanted = [
                at
                for at, text in enumerate(padded)
                if holds(text.ljust(width), literal.ljust(width))
            ]
            assert ids_of(table, f"c {op} '{literal}'") == wanted, (op, literal)


def test_files_are_still_skipped(tmp_path: Path) -> None:
    table = made(tmp_path)
    appended(table, id=[1], c=["ab"])
    appended(Table.open(tmp_path / "t"), id=[2], c=["zz"])
    explained = Table.open(tmp_path / "t").scan(["id"], where="c = 'ab'").explain()
    assert explained.read_files == 1
