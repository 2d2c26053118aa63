"""A table has one name, whatever is done with it; what is not a table never becomes a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import variantlake as vl
from variantlake.errors import (
    InvalidQuery,
    InvalidValue,
    NotADeltaTable,
    StoreFailed,
    UnsupportedFeature,
    VariantLakeError,
)
from variantlake.quoting import Parts
from variantlake.spark.lake import Lake, connect
from variantlake.spark.query.names import CatalogTable
from variantlake.spark.query.table_locations import find_place, name_parts, writable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEW = CatalogTable((), "", "")
CATALOG: dict[Parts, CatalogTable] = {
    ("shop", "orders"): CatalogTable(("c", "shop", "orders"), "delta", "file:/lake/orders"),
    ("shop", "csv"): CatalogTable(("c", "shop", "csv"), "csv", "file:/lake/csv"),
    ("late",): VIEW,
}
REGISTERED = {"shop.ev": "/lake/ev", "ev": "/lake/ev"}


def location(name: Any) -> str:
    return writable(find_place(name, REGISTERED, find), name)


def find(parts: Parts) -> CatalogTable | None:
    return CATALOG.get(tuple(part.lower() for part in parts))


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("ev", "/lake/ev"),
        ("SHOP.Ev", "/lake/ev"),
        ("`shop` . `ev`", "/lake/ev"),
        ("shop.orders", "file:/lake/orders"),
        ("`Shop`.orders", "file:/lake/orders"),
        ("delta.`/lake/t`", "/lake/t"),
        ("DELTA.`s3://bucket/t`", "s3://bucket/t"),
        ("/lake/t", "/lake/t"),
        ("./t", "./t"),
        ("../t", "../t"),
        ("lake/t", "lake/t"),
        ("s3a://bucket/t", "s3a://bucket/t"),
        ("file:///lake/t", "file:///lake/t"),
        ("~/t", str(Path.home() / "t")),
        (Path("events"), "events"),
    ],
)
def test_names_paths_and_urls(name: Any, place: str) -> None:
    assert location(name) == place


@pytest.mark.parametrize(
    ("name", "error", "says"),
    [
        ("events", NotADeltaTable, r"no table 'events'[\s\S]*\./events"),
        ("shop.missing", NotADeltaTable, "no table 'shop.missing'"),
        ("parquet.`/lake/t`", NotADeltaTable, "no table"),
        ("my-table", NotADeltaTable, "neither the name of a table nor a path"),
        ("", NotADeltaTable, "neither"),
        ("delta./lake/t", NotADeltaTable, "write delta.`/lake/t`"),
        ("dbfs:/lake/t", StoreFailed, "a URL of dbfs"),
        ("hdfs://host/t", StoreFailed, "a URL of hdfs"),
        ("delta.`dbfs:/t`", StoreFailed, "a URL of dbfs"),
        ("s3:/bucket/t", StoreFailed, "write s3://bucket/path"),
        ("file://host/t", StoreFailed, "another machine"),
        ("file:t", StoreFailed, "not absolute"),
        ("shop.csv", UnsupportedFeature, "no Delta table"),
        ("late", UnsupportedFeature, "a view"),
        ("/lake/t@v3", InvalidQuery, "can only be read"),
        (7, InvalidValue, "not by an int"),
        (b"/lake/t", InvalidValue, "not by a value of bytes"),
    ],
)
def test_what_is_no_table_is_an_error(name: Any, error: type[VariantLakeError], says: str) -> None:
    with pytest.raises(error, match=says):
        location(name)


def test_paths_alone_where_there_is_no_session(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for wrong in ("delta.`/lake/t`", "dbfs:/lake/t", "s3:/bucket/t", "file://host/t"):
        with pytest.raises((StoreFailed, UnsupportedFeature)):
            vl.Table.create(wrong, "event VARIANT")
        with pytest.raises((StoreFailed, UnsupportedFeature)):
            vl.Table.open(wrong)
    with pytest.raises(StoreFailed, match="a URL of dbfs"):
        vl.ndjson("dbfs:/a.json")
    assert not list(tmp_path.iterdir())
    assert vl.Table.create("events", "event VARIANT").uri == str(tmp_path / "events")
    (tmp_path / "a:b.json").write_text("{}\n")
    assert len(vl.ndjson("a:b.json").sources) == 1


def test_names_as_sql_writes_them() -> None:
    assert name_parts("a.`b.c`.`d``e`") == ("a", "b.c", "d`e")
    assert name_parts("a..b") is None
    assert name_parts("a b") is None


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("places") / "a.ndjson"
    file.write_text('{"n": 1}\n{"n": 2}\n')
    return str(file)


def everything(lake: Lake, spark: SparkSession, name: str, source: str) -> None:
    """All that a Lake does with a table, by one name; the table has a column `event`."""
    before = lake.read(name).count()
    assert lake.ingest(name, source).rows_written == 2
    frame = spark.sql("SELECT parse_json('{\"n\": 3}') AS event")
    lake.append(name, frame)
    assert lake.read(name).count() == before + 3
    assert lake.table(name).selectExpr("event:n::int AS n").count() == before + 3
    assert lake.sql(f"SELECT event:n::int FROM {name}").count() == before + 3
    assert len(lake.explain(f"SELECT event:n::int FROM {name}").tables) == 1
    lake.add_constraint(name, "positive", "event:n::int > 0")
    lake.overwrite(name, frame)
    assert lake.read(name).count() == 1


@pytest.mark.spark
def test_one_name_for_all(
    spark: SparkSession, source: str, tmp_path: Path, monkeypatch: Any
) -> None:
    folder = tmp_path / "working"
    folder.mkdir()
    monkeypatch.chdir(folder)
    lake = connect(spark)
    spark.sql("CREATE DATABASE IF NOT EXISTS shop_places")
    try:
        spark.sql("CREATE TABLE shop_places.orders (event VARIANT) USING delta")
        names = [f"delta.`{tmp_path / 'path'}`", "shop.ev", "`shop_places`.orders"]
        vl.Table.create(tmp_path / "path", "event VARIANT")
        vl.Table.create(tmp_path / "ev", "event VARIANT")
        lake.register("shop.ev", tmp_path / "ev")
        lake.register("mine", "shop_places.orders")
        for name in names:
            everything(lake, spark, name, source)
        assert lake.read("mine").count() == 1
        spark.sql("CREATE TEMP VIEW late_orders AS SELECT event FROM shop_places.orders")
        assert lake.read("late_orders").count() == 1
        assert lake.table("late_orders").selectExpr("event:n::int AS n").collect()[0].n == 3
        assert lake.read(f"{tmp_path / 'ev'}@v0").count() == 0
        for wrong in ("events", "shop_places.missing", "late_orders", "dbfs:/x"):
            for act in (lake.ingest, lake.convert):
                with pytest.raises(VariantLakeError):
                    act(source, wrong)
            with pytest.raises(VariantLakeError):
                lake.append(wrong, spark.sql("SELECT parse_json('1') AS event"))
        with pytest.raises(NotADeltaTable):
            lake.sql("SELECT 1 FROM t", tables={"t": "missing"})
    finally:
        spark.sql("DROP DATABASE shop_places CASCADE")
    assert not [path for path in folder.iterdir() if path.name not in ("metastore_db", "derby.log")]
