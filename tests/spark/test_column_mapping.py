"""Tables with column mapping: every verb leaves what a table without it would have.

A twin without mapping gets the same verbs, and the local engine reads the same from both. Delta
Spark, which costs more, is asked after those verbs that write files of a kind of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import variantlake as vl
from tests.spark.layouts import rows
from tests.strategies import MORE
from variantlake.delta.schema.table_schema import VariantType
from variantlake.spark.lake import Lake, connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

COLUMNS = (
    "id BIGINT, n INT, s STRUCT<x: INT, y: STRING>, l ARRAY<STRUCT<q: INT, r: STRING>>,"
    " m MAP<STRING, STRUCT<k: INT>>, e VARIANT, p STRING"
)
PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.enableTypeWidening": "true",
    "variantlake.clusterBy": "e:a::bigint",
}
NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("n", pa.int32()),
        ("s", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("l", pa.list_(pa.struct([("q", pa.int32()), ("r", pa.string())]))),
        ("m", pa.map_(pa.string(), pa.struct([("k", pa.int32())]))),
        ("e", pa.string()),
        ("p", pa.string()),
    ]
)

WIDE = pa.array([{"w": 1}, None], pa.struct([("w", pa.int32())]))


def _data(start: int, count: int = 6) -> pa.Table:
    found = [
        {
            "id": each,
            "n": None if each % 5 == 4 else each * 10,
            "s": None if each % 4 == 3 else {"x": each, "y": f"y{each}"},
            "l": [{"q": each, "r": "a"}, None, {"q": None, "r": "b"}][: each % 4],
            "m": [("a", {"k": each}), ("b", None)][: each % 3],
            "e": f'{{"a": {each}, "b": {{"c": "t{each}"}}, "z": [{each}]}}',
            "p": "xy"[each % 2],
        }
        for each in range(start, start + count)
    ]
    return pa.Table.from_pylist(found, NESTED)


Verb = Callable[[vl.Table], object]
VERBS: dict[str, Verb] = {
    "append": lambda t: t.append(_data(0), json_columns=["e"]),
    "append again": lambda t: t.append(_data(6), json_columns=["e"]),
    "checkpoint": lambda t: t.checkpoint(),
    "update": lambda t: t.update({"n": 7, "p": "z"}, "e:a::int = 3"),
    "update a path": lambda t: t.update({"e:b.c": "new"}, "id IN (1, 7)"),
    "delete": lambda t: t.delete("e:a::int = 2 OR n = 80"),
    "merge": lambda t: t.merge(
        _data(4, 10), "t.id = s.id", "WHEN MATCHED AND s.n IS NULL THEN DELETE",
        "WHEN MATCHED THEN UPDATE SET t.n = s.n + 1, t.e = s.e", "WHEN NOT MATCHED THEN INSERT *",
        json_columns=["e"],
    ),
    "upsert": lambda t: t.upsert(_data(12, 4), "id", json_columns=["e"]),
    "optimize": lambda t: t.optimize(max_deleted_share=0),
    "more": lambda t: t.append(_data(20), json_columns=["e"]),
    "cluster": lambda t: t.cluster(),
    "reshred": lambda t: t.reshred("a BIGINT, b STRUCT<c: STRING>"),
    "v2": lambda t: t.set_properties({"delta.checkpointPolicy": "v2"}),
    "v2 checkpoint": lambda t: t.checkpoint(),
    "new column": lambda t: t.append(
        _data(30, 2).append_column("more", WIDE),
        json_columns=["e"], merge_schema=True,
    ),
    "add a field": lambda t: t.alter("ADD COLUMN s.z INT AFTER x"),
    "overwrite": lambda t: t.overwrite(
        _data(40, 7).filter(pc.field("p") == "x"), where={"p": "x"}, json_columns=["e"]
    )
    if t.snapshot.partition_columns
    else t.overwrite(_data(40, 9), json_columns=["e"]),
    "restore": lambda t: t.restore(t.version - 1),
    "unshred": lambda t: t.unshred(),
    "widen": lambda t: t.alter("ALTER COLUMN n TYPE BIGINT"),
    "update widened": lambda t: t.update({"n": 5_000_000_000}, "id = 20"),
    "analyze": lambda t: t.analyze(),
    "erase": lambda t: t.erase("e:a::int = 21"),
    "vacuum": lambda t: t.vacuum(timedelta(0), force=True),
    "compact": lambda t: t.optimize(max_deleted_share=0),
}  # fmt: skip
MAPPED: dict[str, Verb] = {
    "an order again, which unshred took away": lambda t: (
        t.set_properties({"delta.enableVariantShredding": "true"}),
        t.reshred("a BIGINT"),
        t.set_clustering("e:a::bigint"),
    ),
    "rename": lambda t: t.alter("RENAME COLUMN e TO n2"),
    "rename a field": lambda t: t.alter("RENAME COLUMN s.x TO y2"),
    "drop": lambda t: t.alter("DROP COLUMNS (n, l.element.q)"),
    "take its name": lambda t: t.alter("RENAME COLUMN n2 TO n"),
    "add one of the same name": lambda t: t.alter("ADD COLUMN e STRING"),
    "update": lambda t: t.update({"e": "set"}, "n:a::int > 20"),
    "update a path": lambda t: t.update({"n:a": 1}, "id = 22"),
    "delete": lambda t: t.delete("n:a::int = 1"),
    "optimize": lambda t: t.optimize(max_deleted_share=0),
    "cluster": lambda t: t.cluster(),
    "restore": lambda t: t.restore(t.version - 4),
    "erase": lambda t: t.erase("n:a::int = 24"),
    "checkpoint": lambda t: t.checkpoint(),
}

JUDGED = ("update a path", "upsert", "v2 checkpoint", "overwrite", "erase", "take its name")
"""Verbs after which `make test-long` asks Delta Spark, too, which takes seconds each time."""

MADE = (("id", True, True), ("name", False, False))
"""The mode, whether we make the table, and whether it has partitions."""


@pytest.fixture(scope="module")
def lake(delta_spark: SparkSession) -> Lake:
    return connect(delta_spark)


def _made(spark: SparkSession, place: Path, mode: str, *, ours: bool, split: bool) -> vl.Table:
    properties = {**PROPERTIES, "delta.columnMapping.mode": mode}
    if ours:
        partition = "p" if split else ()
        return vl.Table.create(place, COLUMNS, partition_by=partition, properties=properties)
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    clause = "PARTITIONED BY (p)" if split else ""
    spark.sql(f"CREATE TABLE delta.`{place}` ({COLUMNS}) USING delta {clause}"
              f" TBLPROPERTIES ({listed}, 'delta.enableVariantShredding' = 'true')")  # fmt: skip
    return vl.Table.open(place)


def _local(table: vl.Table) -> Counter[str]:
    return Counter(map(str, table.refresh().scan().to_pylist()))


def _read(spark: SparkSession, lake: Lake, place: Path) -> Counter[str]:
    """The rows, if all readers agree."""
    theirs = spark.read.format("delta").load(str(place))
    found = rows(theirs)
    assert rows(lake.read(place)) == found
    local = vl.Table.open(place).scan().to_arrow()
    assert local.column_names == theirs.columns
    plain = [name for name, kind in theirs.dtypes if kind != "variant"]
    wanted = theirs.select(*plain).toArrow().to_pylist()
    assert Counter(map(str, wanted)) == Counter(map(str, local.select(plain).to_pylist()))
    return found


@pytest.mark.parametrize("made", MADE[: 1 * MORE])
def test_every_verb(
    delta_spark: SparkSession, lake: Lake, tmp_path: Path, made: tuple[str, bool, bool]
) -> None:
    mode, ours, split = made
    mapped = _made(delta_spark, tmp_path / "mapped", mode, ours=ours, split=split)
    plain = _made(delta_spark, tmp_path / "plain", "none", ours=ours, split=split)
    changed_from = mapped.version + 1
    for name, verb in VERBS.items():
        for table in (mapped, plain):
            verb(table)
        assert _local(mapped) == _local(plain), name
        if MORE > 1 and name in JUDGED:
            _read(delta_spark, lake, tmp_path / "mapped")
    found = _read(delta_spark, lake, tmp_path / "mapped")
    assert len(found) > 10
    _assert_feed(delta_spark, lake, tmp_path, changed_from)
    if MORE > 1:
        _assert_copies(delta_spark, lake, tmp_path, found)
    for name, verb in MAPPED.items():
        verb(mapped)
        if MORE > 1 and name in JUDGED:
            assert _read(delta_spark, lake, tmp_path / "mapped"), name
    _assert_copies(delta_spark, lake, tmp_path, _read(delta_spark, lake, tmp_path / "mapped"))


def _assert_feed(spark: SparkSession, lake: Lake, folder: Path, version: int) -> None:
    """The changes of the last versions, whose files are there after the vacuum."""
    newest = vl.Table.open(folder / "mapped").version
    first = max(version, newest - 1)
    feed = lake.changes(folder / "mapped", first, newest)
    theirs = (
        spark.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", first)
        .option("endingVersion", newest)
        .load(str(folder / "mapped"))
    )
    assert rows(feed.select(*theirs.columns)) == rows(theirs)


def _assert_copies(spark: SparkSession, lake: Lake, folder: Path, wanted: Counter[str]) -> None:
    table = vl.Table.open(folder / "mapped")
    for kind in ("deep", "shallow"):
        place = folder / f"{kind}{table.version}"
        table.clone(place, deep=kind == "deep")
        assert rows(spark.read.format("delta").load(str(place))) == wanted, kind
        assert _local(vl.Table.open(place)) == _local(table), kind
    place = folder / f"mirror{table.version}"
    (variant,) = (
        each.name for each in table.snapshot.schema.fields if isinstance(each.type, VariantType)
    )
    vl.mirror(table, place, ["id", f"{variant}:a::bigint AS a"])
    query = f"SELECT id, {variant}:a::bigint AS a FROM delta.`{folder / 'mapped'}`"
    assert rows(spark.read.format("delta").load(str(place))) == rows(lake.sql(query))
    again: Any = vl.Table.open(folder / f"deep{table.version}")
    again.update({"p": "changed"}, "id = 22")
    _read(spark, lake, folder / f"deep{table.version}")
