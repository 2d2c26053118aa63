"""Wider types: what the log says, and that old and new files read and skip alike."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.delta.schema.ddl import parse_type_ddl
from variantlake.delta.transaction.widen import is_wider
from variantlake.errors import InvalidSchema, UnsupportedFeature

WIDENING = {"delta.enableTypeWidening": "true"}

LATER = dt.datetime(2024, 1, 1, 5)  # noqa: DTZ001 - a time without a zone

# Old type, new type, values of old files and of new ones, a condition that only new ones fulfil.
CHANGES: list[tuple[str, str, list[Any], list[Any], str]] = [
    ("TINYINT", "SMALLINT", [-128, 127], [-129, 300], "c > 127"),
    ("TINYINT", "BIGINT", [-128, 127], [1 << 40], "c > 127"),
    ("SMALLINT", "INT", [5, -5], [70_000], "c = 70000"),
    ("INT", "BIGINT", [2**31 - 1, -(2**31)], [2**31], "c >= 2147483648"),
    ("INT", "DOUBLE", [2**31 - 1, -3], [2.5e9, 0.5], "c = 2.5e9"),
    ("FLOAT", "DOUBLE", [0.1, 2.0**60, None], [0.1, 1e300], "c = 1e300"),
    ("DATE", "TIMESTAMP_NTZ", [dt.date(2024, 1, 1)], [LATER],
     "c > TIMESTAMP_NTZ'2024-01-01 01:00:00'"),
    ("INT", "DECIMAL(12,2)", [7, -7], [Decimal("1234567890.25")], "c > 1000000000"),
    ("BIGINT", "DECIMAL(20,0)", [2**63 - 1], [Decimal(10**19)], "c > 9223372036854775807"),
    ("DECIMAL(5,2)", "DECIMAL(8,3)", [Decimal("1.25")], [Decimal("99999.125")], "c > 1000"),
]  # fmt: skip


def _rows(table: vl.Table, values: list[Any]) -> pa.Table:
    return pa.Table.from_pylist([{"c": value} for value in values], table.schema.to_arrow())


@pytest.mark.parametrize("checkpoints", ["none", "before", "after"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{change[0]}-{change[1]}")
def test_old_and_new_files_are_read_as_the_wide_type(
    tmp_path: Path, change: tuple[str, str, list[Any], list[Any], str], checkpoints: str
) -> None:
    old, new, before, after, condition = change
    properties = {**WIDENING, "delta.checkpoint.writeStatsAsJson": "false"}
    table = vl.Table.create(tmp_path, f"c {old}", properties=properties)
    table.append(_rows(table, before))
    if checkpoints == "before":
        table.checkpoint()
    table.change_type("c", new)
    table = vl.Table.open(tmp_path)
    assert str(table.schema.fields[0].type) == str(parse_type_ddl(new))
    table.append(_rows(table, after))
    if checkpoints == "after":
        table.checkpoint()
    table = vl.Table.open(tmp_path)
    wanted = pa.concat_tables([_widened(before, table), _rows(table, after)])
    found = table.scan().to_arrow()
    assert found.schema.field("c").type == table.schema.to_arrow().field("c").type
    assert _sorted(found) == _sorted(wanted)
    scan = table.scan("c", condition)
    assert scan.count() == sum(1 for _ in scan.to_arrow().to_pylist()) == 1
    assert scan.read_bytes < table.scan().read_bytes  # the old file is skipped by its bounds
    # The bounds of old files answer for the wide type.
    answer = table.sql("SELECT min(c) AS low, max(c) AS high FROM t").to_arrow().to_pylist()
    values = [value for value in found["c"].to_pylist() if value is not None]
    assert answer == [{"low": min(values), "high": max(values)}]


def _widened(values: list[Any], table: vl.Table) -> pa.Table:
    kind: Any = table.schema.to_arrow().field("c").type
    if pa.types.is_timestamp(kind):
        values = [dt.datetime.combine(value, dt.time()) for value in values]
    elif pa.types.is_decimal(kind):
        values = [Decimal(value) for value in values]
    elif any(isinstance(value, float) for value in values):
        values = pa.array(values, pa.float32()).cast(kind).to_pylist()
    return pa.table({"c": pa.array(values, kind)})


def _sorted(table: pa.Table) -> list[str]:
    return sorted(map(str, table.column("c").to_pylist()))


def test_parts_of_arrays_and_maps(tmp_path: Path) -> None:
    table = vl.Table.create(
        tmp_path, "a ARRAY<INT>, m MAP<INT, ARRAY<FLOAT>>, s STRUCT<l: ARRAY<STRUCT<q: INT>>>"
    )
    data = [{"a": [1, None], "m": [(1, [0.5])], "s": {"l": [{"q": 3}]}}]
    table.append(pa.Table.from_pylist(data, table.schema.to_arrow()))
    table.change_type("a.element", "BIGINT", enable_type_widening=True)
    table.change_type("m.key", "BIGINT")
    table.change_type("m.value.element", "DOUBLE")
    table.change_type("s.l.element.q", "BIGINT")
    table.change_type("s.l.element.q", "DECIMAL(20,0)")
    table = vl.Table.open(tmp_path)
    a, m, s = table.schema.fields
    assert a.metadata["delta.typeChanges"] == [
        {"fromType": "integer", "toType": "long", "fieldPath": "element"}
    ]
    assert [each["fieldPath"] for each in m.metadata["delta.typeChanges"]] == [
        "key",
        "value.element",
    ]
    assert "delta.typeChanges" not in s.metadata
    new = [{"a": [2**40], "m": [(2**40, [0.1])], "s": {"l": [{"q": Decimal(10**19)}]}}]
    table.append(pa.Table.from_pylist(new, table.schema.to_arrow()))
    found = table.scan().to_arrow().to_pylist()
    data[0]["s"] = {"l": [{"q": Decimal(3)}]}
    assert sorted(map(str, found)) == sorted(map(str, [*data, *new]))
    assert "typeWidening" in (table.refresh().protocol.reader_features or ())


@pytest.mark.parametrize(
    ("old", "new", "permitted"),
    [
        ("INT", "INT", False),
        ("INT", "FLOAT", False),
        ("BIGINT", "DOUBLE", False),
        ("BIGINT", "DECIMAL(20,1)", False),
        ("BIGINT", "DECIMAL(21,1)", True),
        ("TINYINT", "DECIMAL(9,0)", False),
        ("TINYINT", "DECIMAL(10,0)", True),
        ("DECIMAL(10,2)", "DECIMAL(11,3)", True),
        ("DECIMAL(10,2)", "DECIMAL(10,3)", False),
        ("DECIMAL(10,2)", "DECIMAL(12,1)", False),
        ("DATE", "TIMESTAMP", False),
        ("FLOAT", "DECIMAL(38,10)", False),
        ("STRING", "VARIANT", False),
        ("VARIANT", "STRING", False),
        ("ARRAY<INT>", "ARRAY<BIGINT>", False),
    ],
)
def test_what_the_protocol_permits(old: str, new: str, permitted: bool) -> None:
    assert is_wider(parse_type_ddl(old), parse_type_ddl(new)) is permitted


def test_a_partition_column_gets_wider(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, "n INT, p INT", partition_by=["p"], properties=WIDENING)
    table.append(pa.table({"n": pa.array([1], pa.int32()), "p": pa.array([5], pa.int32())}))
    table.change_type("p", "BIGINT")
    more = pa.table({"n": pa.array([2], pa.int32()), "p": pa.array([2**40], pa.int64())})
    table.append(more)
    found = vl.Table.open(tmp_path).scan("n", "p > 6").to_arrow().to_pylist()
    assert found == [{"n": 2}]
    assert vl.Table.open(tmp_path).scan("n", "p = 5").count() == 1


def test_a_void_column_gets_any_type(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, "n INT, a VOID, s STRUCT<x: INT, y: VOID>")
    table.append([{"n": 1, "s": {"x": 2}}])
    table.change_type("a", "TIMESTAMP_NTZ")
    table.change_type("s.y", "VARIANT")
    assert {"timestampNtz", "variantType"} <= set(table.snapshot.protocol.writer_features or ())
    assert "typeWidening" not in (table.snapshot.protocol.writer_features or ())
    table.append(
        [{"n": 2, "a": dt.datetime.fromisoformat("2026-01-01"), "s": {"x": 3, "y": {"z": 1}}}]
    )
    rows = sorted(table.scan(["n", "a", "s.x"]).to_arrow().to_pylist(), key=lambda row: row["n"])
    assert [list(row.values()) for row in rows] == [
        [1, None, 2],
        [2, dt.datetime.fromisoformat("2026-01-01"), 3],
    ]
    other = vl.Table.create(tmp_path / "other", "n INT, a VOID")
    with pytest.raises(InvalidSchema, match="does not widen"):
        other.change_type("a", "STRUCT<x: INT>")


def test_types_that_do_not_widen(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, "n INT, c VARCHAR(3), l ARRAY<INT>, v VARIANT")
    with pytest.raises(UnsupportedFeature, match="needs type widening") as caught:
        table.change_type("n", "BIGINT")
    assert "enable_type_widening=True" in (caught.value.hint or "")
    for column, type_, hint in [
        ("n", "STRING", "BIGINT, DOUBLE, DECIMAL"),
        ("l", "ARRAY<BIGINT>", "add a column"),
        ("v", "STRING", "add a column"),
        ("c", "VARCHAR(2)", "VARCHAR of 3 characters"),
    ]:
        with pytest.raises(InvalidSchema, match="does not widen") as refused:
            table.change_type(column, type_)
        assert re.search(hint, refused.value.hint or "")
    with pytest.raises(InvalidSchema, match="unknown type"):
        table.change_type("n", "BIG")
    assert table.change_type("n", "INT").version == 0
    table.change_type("c", "VARCHAR(5)")
    table.change_type("c", "STRING")
    assert "typeWidening" not in (table.refresh().protocol.reader_features or ())
    assert not table.refresh().schema.fields[1].metadata
