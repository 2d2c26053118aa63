"""Kinds of tables and files, each with a few rows and one thing that a reader must know."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import variantlake as vl
from interop.values import canonical, pairs

Rows = list[dict[str, Any]]
Build = Callable[[Path], Rows]

DOCUMENTS: tuple[Any, ...] = (
    {"kind": "buy", "n": 1, "user": {"name": "ann", "age": 30}},
    {"kind": "view", "n": 2.5, "user": {"name": "bo"}, "new": True},
    {"kind": 3, "n": "four", "user": None},
    {},
    "no object",
    None,
)
ARRAYS: tuple[Any, ...] = (
    {"tags": ["a", "b"], "items": [{"id": 1, "price": 2.5}, {"id": 2}]},
    {"tags": [], "items": [{"id": "x", "more": [1, None]}]},
    {"tags": ["a", 1, None, {"k": []}]},
    {"items": "none"},
)
NESTED: tuple[Any, ...] = (
    {"a": {"b": {"c": {"d": [1, [2, [3, {"e": "deep"}]]]}}}},
    {"a": {"b": {"c": "short"}, "x": {}}},
    {"a": [{"b": {"c": {"d": 1}}}]},
)


SHREDDING = "kind STRING, n BIGINT, user STRUCT<name: STRING, age: BIGINT>"
ARRAY_SHREDDING = "tags ARRAY<STRING>, items ARRAY<STRUCT<id: BIGINT, price: DOUBLE>>"
NESTED_SHREDDING = "a STRUCT<b: STRUCT<c: STRUCT<d: ARRAY<BIGINT>>>, x: STRUCT<y: BIGINT>>"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind: `build` makes it at a place and returns its rows in the order of `id`.

    `files_only` has no log: engines read its Parquet files.
    """

    name: str
    about: str
    build: Build
    files_only: bool = False


def _variant_rows(documents: tuple[Any, ...]) -> Rows:
    return [{"id": n, "event": {"variant": document}} for n, document in enumerate(documents)]


def _variants(documents: tuple[Any, ...], shredding: str | None) -> Build:
    def build(place: Path) -> Rows:
        table = vl.Table.create(
            place,
            "id BIGINT, event VARIANT",
            properties=None if shredding else {"delta.enableVariantShredding": "false"},
            shredding={"event": shredding} if shredding else None,
        )
        events = vl.parquet.variant_array(documents)
        table.append(pa.table({"id": pa.array(range(len(documents)), pa.int64()), "event": events}))
        return _variant_rows(documents)

    return build


PRIMITIVES: tuple[tuple[Any, Any], ...] = (
    (None, None),
    (True, True),
    (7, 7),
    (-(2**40), -(2**40)),
    (2.5, 2.5),
    (decimal.Decimal("1.25"), 1.25),
    (decimal.Decimal("12345678901234567890.123"), decimal.Decimal("12345678901234567890.123")),
    (dt.date(2026, 1, 31), "2026-01-31"),
    (
        dt.datetime(2026, 1, 31, 12, 30, 1, 5, tzinfo=dt.UTC),
        "2026-01-31 12:30:01.000005+00:00",
    ),
    (dt.datetime(2026, 1, 31, 12, 30, 1, 5), "2026-01-31 12:30:01.000005"),  # noqa: DTZ001
    (b"\x00\xff", "AP8="),
    ("text", "text"),
)
"""Values of Python, and what Spark's `to_json` makes of them."""
NEW_PRIMITIVES: tuple[tuple[Any, Any], ...] = (
    (uuid.UUID(int=5), str(uuid.UUID(int=5))),
    (dt.time(12, 30, 1, 5), "12:30:01.000005"),
)
"""Those that Spark 4.2 does not know."""


def _primitives(values: tuple[tuple[Any, Any], ...]) -> Build:
    def build(place: Path) -> Rows:
        table = vl.Table.create(place, "id BIGINT, event VARIANT")
        events = vl.parquet.variant_array([{"v": value} for value, _ in values])
        table.append(pa.table({"id": pa.array(range(len(values)), pa.int64()), "event": events}))
        return _variant_rows(tuple({"v": text} for _, text in values))

    return build


def _plain(count: int) -> Rows:
    return [{"id": n, "name": f"name {n}", "price": n / 2} for n in range(count)]


PLAIN_DDL = "id BIGINT, name STRING, price DOUBLE"
_PLAIN_TYPES: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "name": pa.string(),
    "price": pa.float64(),
}
PLAIN_SCHEMA = pa.schema(_PLAIN_TYPES)


def _plain_table(
    properties: dict[str, str] | None = None,
    change: Callable[[vl.Table], object] | None = None,
    expected: Callable[[Rows], Rows] = list,
    *,
    ddl: str = PLAIN_DDL,
    partition_by: str | None = None,
) -> Build:
    def build(place: Path) -> Rows:
        table = vl.Table.create(place, ddl, properties=properties, partition_by=partition_by)
        for start in (0, 5):
            table.append(pa.Table.from_pylist(_plain(10)[start : start + 5], PLAIN_SCHEMA))
        if change is not None:
            change(table)
        return expected(_plain(10))

    return build


def _typed(place: Path) -> Rows:
    noon = dt.datetime(2026, 1, 31, 12, 30, 1, 5)  # noqa: DTZ001
    columns: dict[str, tuple[pa.DataType, Any]] = {
        "flag BOOLEAN": (pa.bool_(), True),
        "tiny TINYINT": (pa.int8(), -8),
        "small SMALLINT": (pa.int16(), -16),
        "plain INT": (pa.int32(), -32),
        "large BIGINT": (pa.int64(), 2**62),
        "single FLOAT": (pa.float32(), 0.5),
        "wide DOUBLE": (pa.float64(), float("inf")),
        "small_decimal DECIMAL(9,2)": (pa.decimal128(9, 2), decimal.Decimal("1.25")),
        "large_decimal DECIMAL(38,3)": (pa.decimal128(38, 3), decimal.Decimal("12345678901234.5")),
        "text STRING": (pa.string(), "ä 🙂"),
        "raw BINARY": (pa.binary(), b"\x00\xff"),
        "day DATE": (pa.date32(), dt.date(1969, 12, 31)),
        "at TIMESTAMP": (pa.timestamp("us", "UTC"), noon.replace(tzinfo=dt.UTC)),
        "wall TIMESTAMP_NTZ": (pa.timestamp("us"), noon),
        "list ARRAY<INT>": (pa.list_(pa.int32()), [1, None]),
        "pairs MAP<STRING, INT>": (pa.map_(pa.string(), pa.int32()), [("k", 1)]),
        "inner STRUCT<a: INT, b: STRING>": (
            pa.struct([("a", pa.int32()), ("b", pa.string())]),
            {"a": 1, "b": None},
        ),
    }
    ddl = ", ".join(["id BIGINT", *columns])
    arrays = {
        text.split()[0]: pa.array([value, None], kind) for text, (kind, value) in columns.items()
    }
    vl.Table.create(place, ddl).append(pa.table({"id": pa.array([0, 1], pa.int64()), **arrays}))
    first = {
        name: pairs(value) if name == "pairs" else canonical(value)
        for name, value in ((text.split()[0], value) for text, (_, value) in columns.items())
    }
    first["large_decimal"] = {"decimal": "12345678901234.500"}
    return [{"id": 0, **first}, {"id": 1, **dict.fromkeys(first)}]


def _partitions(place: Path) -> Rows:
    days = [dt.date(2026, 1, 31), dt.date(2026, 2, 1), None]
    names = ["a b/c%d", "ü=1", ""]
    table = vl.Table.create(place, "id BIGINT, day DATE, name STRING", partition_by=["day", "name"])
    ids = pa.array(range(3), pa.int64())
    table.append(pa.table({"id": ids, "day": pa.array(days, pa.date32()), "name": names}))
    # An empty text is NULL in a partition column.
    told = [name or None for name in names]
    return [
        {"id": n, "day": canonical(day), "name": name}
        for n, (day, name) in enumerate(zip(days, told, strict=True))
    ]


def _partitioned_variants(place: Path) -> Rows:
    table = vl.Table.create(place, "id BIGINT, day STRING, event VARIANT", partition_by="day")
    events = vl.parquet.variant_array(DOCUMENTS)
    days = [f"d{n % 2}" for n in range(len(DOCUMENTS))]
    ids = pa.array(range(len(DOCUMENTS)), pa.int64())
    table.append(pa.table({"id": ids, "day": days, "event": events}))
    rows = _variant_rows(DOCUMENTS)
    return [row | {"day": day} for row, day in zip(rows, days, strict=True)]


def _deleted_variants(place: Path) -> Rows:
    rows = _variants(DOCUMENTS, SHREDDING)(place)
    vl.Table.open(place).delete("id = 1")
    return [row for row in rows if row["id"] != 1]


def _checkpointed(place: Path) -> Rows:
    rows = _variants(DOCUMENTS, SHREDDING)(place)
    vl.Table.open(place).checkpoint()
    return rows


def _rename(table: vl.Table) -> None:
    table.rename_column("name", "title of it", enable_column_mapping=True)
    table.drop_columns("price")


def _renamed(rows: Rows) -> Rows:
    return [{"id": row["id"], "title of it": row["name"]} for row in rows]


def _widen(table: vl.Table) -> None:
    table.change_type("small", "BIGINT")
    table.append(pa.table({"id": pa.array([2], pa.int64()), "small": pa.array([2**40])}))


def _widened(place: Path) -> Rows:
    widening = {"delta.enableTypeWidening": "true"}
    table = vl.Table.create(place, "id BIGINT, small INT", properties=widening)
    small = pa.array([7, None], pa.int32())
    table.append(pa.table({"id": pa.array([0, 1], pa.int64()), "small": small}))
    _widen(table)
    return [{"id": 0, "small": 7}, {"id": 1, "small": None}, {"id": 2, "small": 2**40}]


def _mirror(place: Path) -> Rows:
    source = place.with_name(place.name + ".source")
    _variants(DOCUMENTS, SHREDDING)(source)
    paths = "id, event:kind::string AS kind, event:user.name::string AS name"
    vl.mirror(source, place, paths)
    names = [("buy", "ann"), ("view", "bo"), ("3", None), *[(None, None)] * 3]
    return [{"id": n, "kind": kind, "name": name} for n, (kind, name) in enumerate(names)]


def _clone(place: Path) -> Rows:
    source = place.with_name(place.name + ".source")
    rows = _plain_table()(source)
    vl.Table.open(source).clone(place)
    return rows


def _clustered(place: Path) -> Rows:
    table = vl.Table.create(place, PLAIN_DDL, cluster_by="name")
    table.append(pa.Table.from_pylist(_plain(10), PLAIN_SCHEMA))
    table.cluster()
    return _plain(10)


def _files(documents: tuple[Any, ...], layout: str, shredding: str | None) -> Build:
    def build(place: Path) -> Rows:
        place.mkdir()
        events = vl.parquet.variant_array(documents)
        ids = pa.array(range(len(documents)), pa.int64())
        vl.parquet.write_table(
            pa.table({"id": ids, "event": events}),
            place / "part.parquet",
            shredding=shredding,
            layout="legacy" if layout == "legacy" else "final",
        )
        return _variant_rows(documents)

    return build


KINDS = (
    Kind("plain", "columns of numbers and text, two appends", _plain_table()),
    Kind("types", "one column of each type that is not VARIANT", _typed),
    Kind("unshredded", "VARIANT, whole in the file", _variants(DOCUMENTS, None)),
    Kind("shredded", "VARIANT, paths shredded", _variants(DOCUMENTS, SHREDDING)),
    Kind("arrays", "VARIANT with shredded arrays", _variants(ARRAYS, ARRAY_SHREDDING)),
    Kind(
        "nested", "VARIANT with objects in objects in arrays", _variants(NESTED, NESTED_SHREDDING)
    ),
    Kind("primitives", "a VARIANT of each type that Spark 4.2 has", _primitives(PRIMITIVES)),
    Kind("uuid-time", "a VARIANT of UUID and TIME", _primitives(NEW_PRIMITIVES)),
    Kind("partitions", "partition values with spaces, slashes, `=`, NULL", _partitions),
    Kind("partitioned-variant", "VARIANT in a partitioned table", _partitioned_variants),
    Kind(
        "deletion-vectors",
        "deleted rows in a deletion vector",
        _plain_table(
            {"delta.enableDeletionVectors": "true"},
            lambda table: table.delete("id = 3"),
            lambda rows: [row for row in rows if row["id"] != 3],
        ),
    ),
    Kind("deleted-variant", "a deletion vector over VARIANT", _deleted_variants),
    Kind(
        "mapping",
        "column mapping: a column renamed, another dropped",
        _plain_table(None, _rename, _renamed),
    ),
    Kind("widened", "an INT column widened to BIGINT", _widened),
    Kind(
        "checkpoint",
        "a classic checkpoint",
        _plain_table(None, lambda table: table.checkpoint()),
    ),
    Kind(
        "checkpoint-v2",
        "a V2 checkpoint with sidecars",
        _plain_table({"delta.checkpointPolicy": "v2"}, lambda table: table.checkpoint()),
    ),
    Kind("checkpoint-variant", "a checkpoint with bounds of paths", _checkpointed),
    Kind("row-tracking", "row ids", _plain_table({"delta.enableRowTracking": "true"})),
    Kind(
        "change-feed",
        "a change data feed, after an update",
        _plain_table(
            {"delta.enableChangeDataFeed": "true"},
            lambda table: table.update({"name": "new"}, "id = 4"),
            lambda rows: [row | ({"name": "new"} if row["id"] == 4 else {}) for row in rows],
        ),
    ),
    Kind(
        "commit-timestamps",
        "in-commit timestamps",
        _plain_table({"delta.enableInCommitTimestamps": "true"}),
    ),
    Kind("clustered", "clustered by a column", _clustered),
    Kind("clone", "a shallow clone: absolute paths", _clone),
    Kind("mirror", "a mirror of paths as plain columns", _mirror),
    Kind("file-unshredded", "a file, VARIANT whole", _files(DOCUMENTS, "final", None), True),
    Kind("file-shredded", "a file, VARIANT shredded", _files(DOCUMENTS, "final", SHREDDING), True),
    Kind("file-arrays", "a file, arrays shredded", _files(ARRAYS, "final", ARRAY_SHREDDING), True),
    Kind(
        "file-legacy",
        "a file in Spark's older layout",
        _files(DOCUMENTS, "legacy", SHREDDING),
        True,
    ),
)
