"""What users do with Spark, each part compared with Spark on the documents themselves.

Runs with the installed package alone: `python matrix_job.py FOLDER [DELTA_PACKAGE]`. It prints one
line of JSON for each part: its name, and what went wrong, which is empty if it went well.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import variantlake as vl
from variantlake.spark.session.kernel_scan import batches
from variantlake.spark.session.versions import arrow_schema

ROWS = 4000
PATHS = {
    "typed": "event:n::bigint, event:kind::string, event:at::timestamp",
    "nested": "event:who.name::string, event:tags[0]::string, event:price::decimal(10, 2)",
    "mixed": "try_variant_get(event, '$.mixed', 'int'), event:mixed::string",
    "absent": "event:none::string, event:n::string",
}
FILTERS = (
    "true",
    "event:n::bigint >= 3990",
    "event:kind::string = 'even' AND event:price::decimal(10, 2) > 9.5",
    "event:who.name::string IS NULL",
)
QUERIES = [
    *(f"SELECT {paths} FROM {{t}} WHERE {where}" for paths in PATHS.values() for where in FILTERS),
    "SELECT event:kind::string AS k, count(*), sum(event:n::bigint) FROM {t} GROUP BY 1",
    """SELECT a.event:n::bigint FROM {t} a JOIN {t} b ON a.event:n::bigint = b.event:n::bigint + 1
    WHERE b.event:kind::string = 'even' AND a.event:n::bigint < 50""",
    "SELECT event:n::bigint n, row_number() OVER (ORDER BY event:n::bigint) FROM {t}",
    "WITH c AS (SELECT event FROM {t} WHERE event:n::int < 9) SELECT event:kind::string FROM c",
    "SELECT to_json(event), event:n::int FROM {t} WHERE event:n::bigint < 20",
]
GROUPED = (
    (
        "SELECT event:kind::string AS k, count(*), sum(event:n::bigint), avg(event:n::bigint), "
        "max(event:who.name::string), count(DISTINCT event:who.name::string) FROM {t} GROUP BY 1"
    ),
    "SELECT DISTINCT event:kind::string, event:who.name::string FROM {t} WHERE event:n::int > 5",
    "SELECT count(*) FILTER (WHERE event:n::bigint > 9), min(event:n::bigint) FROM {t}",
)


def document(n: int) -> dict[str, Any]:
    """The document number `n`."""
    found: dict[str, Any] = {"n": n, "kind": ("even", "odd")[n % 2], "price": n % 1000 / 100}
    found["at"] = f"2026-01-{1 + n % 28:02}T00:00:0{n % 10}Z"
    found["tags"] = [f"t{n % 7}", n]
    found["mixed"] = n if n % 3 else f"m{n}"
    if n % 5:
        found["who"] = {"name": f"u{n % 11}"}
    return found


class Job:
    """The parts; each needs those before it."""

    def __init__(self, folder: Path, package: str, remote: str = "") -> None:
        self.table, self.source = str(folder / "table"), folder / "events.ndjson"
        self.text = [json.dumps(document(n)) for n in range(ROWS)]
        self.folder, self.package, self.remote = folder, package, remote

    @cache  # noqa: B019 - there is one
    def spark(self) -> SparkSession:
        """A session with Delta Spark, if there is a package for it; or a Connect client."""
        if self.remote:
            return SparkSession.builder.remote(self.remote).getOrCreate()
        builder = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.warehouse.dir", str(self.folder / "warehouse"))
            .config("spark.log.level", "ERROR")
            .config("spark.databricks.delta.snapshotPartitions", "2")
            .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        )
        if self.package:
            extension = "io.delta.sql.DeltaSparkSessionExtension"
            catalog = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
            builder = (
                builder.config("spark.jars.packages", self.package)
                .config("spark.sql.extensions", extension)
                .config("spark.sql.catalog.spark_catalog", catalog)
            )
        return builder.getOrCreate()

    @cache  # noqa: B019 - there is one
    def lake(self) -> Any:
        """The session's lake."""
        return vl.spark.connect(self.spark())

    def judge(self) -> None:
        """The rows as Spark's own parser makes them, unshredded, as `judge`."""
        lines = self.spark().read.text(str(self.source))
        lines.selectExpr("parse_json(value) AS event").createOrReplaceTempView("judge")

    def ingest(self) -> None:
        """Half of the documents from a file."""
        whole = "\n".join(self.text)
        self.source.write_text(whole, encoding="utf-8")
        half = self.folder / "half.ndjson"
        half.write_text("\n".join(self.text[: ROWS // 2]), encoding="utf-8")
        result = self.lake().ingest(self.table, vl.ndjson(str(half)))
        assert result.rows_written == ROWS // 2, result

    def append(self) -> None:
        """The others as a DataFrame: a quarter as text, a quarter as Variants."""
        spark, middle = self.spark(), ROWS * 3 // 4
        texts = spark.createDataFrame(
            [(text,) for text in self.text[ROWS // 2 : middle]], "e string"
        )
        loaded = self.lake().append(
            self.table, texts.withColumnRenamed("e", "event"), json_columns=["event"]
        )
        assert loaded.rows_written == ROWS // 4, loaded
        others = spark.createDataFrame([(text,) for text in self.text[middle:]], "e string")
        self.lake().append(self.table, others.selectExpr("parse_json(e) AS event"))

    def queries(self) -> None:
        """Paths in all sorts of places, by `lake.sql` and by Spark on what was parsed."""
        self.judge()
        for query in QUERIES:
            found = self.lake().sql(query.format(t="t"), tables={"t": self.table})
            expected = self.spark().sql(query.format(t="judge"))
            assert found.schema.simpleString() == expected.schema.simpleString(), query
            assert rows(found) == rows(expected), query

    def groups(self) -> None:
        """Groups that our tasks make, and those of the driver, before Spark merges them."""
        self.judge()
        spark, settings = self.spark(), "spark.variantlake.aggregates"
        spark.conf.set(f"{settings}.minBytes", "0")
        for most in ("0", "1000000000"):
            spark.conf.set(f"{settings}.driverBytes", most)
            for query in GROUPED:
                text, tables = query.format(t="t"), {"t": self.table}
                (scan,) = self.lake().explain(text, tables=tables).tables
                assert scan.aggregated == (not self.remote), f"{query}: {scan}"
                found, expected = (
                    self.lake().sql(text, tables=tables),
                    spark.sql(query.format(t="judge")),
                )
                assert found.schema.simpleString() == expected.schema.simpleString(), query
                assert rows(found) == rows(expected), query
        for name in ("minBytes", "driverBytes"):
            spark.conf.unset(f"{settings}.{name}")

    def variants(self) -> None:
        """Whole Variants, of all rows."""
        self.judge()
        text = "SELECT to_json(event) AS e FROM"
        self.lake().read(self.table).createOrReplaceTempView("found")
        found = rows(self.spark().sql(f"{text} found"))
        assert found == rows(self.spark().sql(f"{text} judge"))
        assert len(found) == ROWS

    def explain(self) -> None:
        """Paths are columns, and files are skipped."""
        query = "SELECT event:kind::string FROM t WHERE event:n::bigint >= 3990"
        (scan,) = self.lake().explain(query, tables={"t": self.table}).tables
        shown = str(scan)
        assert "column" in shown, shown
        assert scan.scan.read_files < scan.scan.total_files, shown

    def kernel_scan(self) -> None:
        """A Variant that Spark does not know, and columns of all types by way of Arrow."""
        table = str(self.folder / "uuids")
        made = vl.Table.create(table, "event VARIANT, at TIMESTAMP, n INT")
        events = vl.parquet.variant_array([{"id": uuid.UUID(int=n)} for n in range(10)])
        at = pa.array(range(10), pa.timestamp("us", "UTC"))
        made.append(pa.table({"event": events, "at": at, "n": pa.array(range(10), pa.int32())}))
        found = rows(self.lake().sql(f"SELECT at, n FROM delta.`{table}`"))
        assert len(found) == 10
        schema = self.lake().read(table).select("at", "n").schema

        def task(number: int) -> Any:
            yield pa.record_batch({"at": at, "n": pa.array(range(10), pa.int32())}).slice(number)

        assert arrow_schema(schema).types == [pa.timestamp("us", "UTC"), pa.int32()]
        assert rows(batches(self.spark(), task, 1, schema)) == found

    def data_source(self) -> None:
        """`spark.read.format("variantlake")`."""
        spark = self.spark()
        vl.spark.register(spark)
        frame = spark.read.format("variantlake").load(self.table)
        assert rows(frame.selectExpr("sum(event:n::bigint)")) == [(str(ROWS * (ROWS - 1) // 2),)]

    def rule(self) -> None:
        """Ordinary queries of an accelerated session, by the data source and by Delta Spark."""
        self.judge()
        spark = self.spark()
        vl.spark.accelerate(spark)
        for source in ("variantlake", *(["delta"] if self.package else [])):
            spark.read.format(source).load(self.table).createOrReplaceTempView("ordinary")
            for query in (*QUERIES, *GROUPED):
                found = spark.sql(query.format(t="ordinary"))
                expected = spark.sql(query.format(t="judge"))
                assert found.schema.simpleString() == expected.schema.simpleString(), query
                assert rows(found) == rows(expected), f"{source}: {query}"
            some = spark.table("ordinary").where("event:n::bigint >= 3990")
            (scan,) = self.lake().explain(some.selectExpr("event:kind::string")).tables
            assert scan.scan.read_files < scan.scan.total_files, f"{source}: {scan}"
        vl.spark.decelerate(spark)

    def delta_spark(self) -> None:
        """Delta Spark reads the table, adds to another, which we read."""
        spark, other = self.spark(), str(self.folder / "delta")
        assert spark.read.format("delta").load(self.table).count() == ROWS
        self.judge()
        spark.table("judge").write.format("delta").save(other)
        text = "SELECT count(*), sum(event:n::bigint) FROM"
        assert rows(self.lake().sql(f"{text} delta.`{other}`")) == rows(spark.sql(f"{text} judge"))


def rows(frame: DataFrame) -> list[tuple[str, ...]]:
    """The rows in an order that both sides have."""
    return sorted(tuple(map(str, row)) for row in frame.collect())


def main() -> None:
    """See above. In a session of Spark Connect where the folder is followed by an address."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    folder, package, remote = Path(sys.argv[1]), sys.argv[2], "".join(sys.argv[3:])
    job = Job(folder, package, remote)
    names = ["ingest", "append", "queries", "groups", "variants", "explain", "kernel_scan"]
    names.append("data_source")
    if not remote:
        names.append("rule")
        if package:
            names.append("delta_spark")
    for name in names:
        part: Callable[[], None] = getattr(job, name)
        wrong = ""
        try:
            part()
        except Exception as error:  # noqa: BLE001 - told, and the others run
            wrong = f"{type(error).__name__}: {error}".strip().splitlines()[0][:300]
            traceback.print_exc()
        sys.stdout.write(json.dumps({"part": name, "wrong": wrong}) + "\n")
        sys.stdout.flush()
    job.spark().stop()


if __name__ == "__main__":
    main()
