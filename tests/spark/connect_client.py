"""A client of Spark Connect: runs queries and appends, as JSON says. A process of its own.

A line of stdin is the work of one session; what came of it is a line of stdout.
"""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import variantlake as vl
from tests.spark.layouts import rows
from tests.spark.random_joins import try_table
from variantlake.errors import VariantLakeError
from variantlake.planning import late_materialization
from variantlake.spark.session import connect_files, versions

_USUAL = (versions.NEWEST, connect_files.MAX_SCANS, late_materialization.MIN_BYTES)


def main() -> None:
    """Work from stdin, what came of it to stdout, both as JSON."""
    for line in sys.stdin:
        found = done(json.loads(line))
        versions.NEWEST = _USUAL[0]  # type: ignore[misc] # some works replace it
        connect_files.MAX_SCANS, late_materialization.MIN_BYTES = _USUAL[1:]
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


def done(work: dict[str, Any]) -> dict[str, Any]:
    """What comes of one work, in a session of its own."""
    spark = SparkSession.builder.remote(work["remote"]).getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    for name, value in work.get("settings", {}).items():
        spark.conf.set(name, value)
    settings = dict(map(tuple, spark.sql("SET").collect()))
    versions.NEWEST = tuple(work.get("newest", versions.NEWEST))  # type: ignore[misc] # a fake
    lake = vl.spark.connect(spark)
    overwritten = [overwrite(spark, lake, table) for table in work.get("overwrites", ())]
    appended = [append(spark, lake, load) for load in work.get("appends", ())]
    kept = [keep_up(lake, table) for table in work.get("kept", ())]
    constrained = [constrain(lake, **each) for each in work.get("constraints", ())]
    placed = use_names(spark, lake, **work["names"]) if "names" in work else []
    if "stream" in work:
        stream(spark, **work["stream"])
    answers = queried(spark, lake, work, settings) if "queries" in work else {}
    if "joins" in work:
        requested = work["joins"]
        answers["joins"] = try_table(
            spark, Path(requested["folder"]), requested["seed"], requested["texts"]
        )
    answers["texts"] = {
        name: answered(spark, lake, text) for name, text in work.get("texts", {}).items()
    }
    spark.stop()
    return {
        "appends": appended,
        "overwritten": overwritten,
        "placed": placed,
        "constrained": constrained,
        "kept": kept,
        **answers,
    }


def append(spark: SparkSession, lake: Any, load: dict[str, Any]) -> Any:
    """The rows of a query into a table: rows and bad rows, or the error."""
    try:
        result = lake.append(load["table"], spark.sql(load["query"]), **load["options"])
    except vl.VariantLakeError as error:
        return f"{type(error).__name__}: {error}"
    return [result.version, result.rows_written, result.rows_bad]


def stream(spark: SparkSession, source: str, tables: list[str], checkpoint: str) -> None:
    """Lines of a folder into the first table, its rows into the second, by both ways of writing."""
    vl.spark.register(spark)
    first, second = tables

    def run(writer: Any, name: str) -> None:
        writer = writer.option("checkpointLocation", f"{checkpoint}/{name}")
        writer.trigger(availableNow=True).start().awaitTermination()

    lines = spark.readStream.text(source).selectExpr("value AS event")
    sink = lines.writeStream.format("variantlake").option("jsonColumns", "event")
    run(sink.option("path", first), "first")

    def take(batch: Any, number: int) -> None:
        vl.spark.connect(batch.sparkSession).write_batch(second, batch, number, query="copy")

    read = spark.readStream.format("variantlake").option("where", "event:id::int > 1").load(first)
    run(read.writeStream.foreachBatch(take), "second")


def keep_up(lake: Any, table: str) -> list[int]:
    """What upkeep of a table did, step by step: files that it read, or the version."""
    return [
        lake.optimize(table, "day = 'd0'").files_read,
        lake.cluster(table, budget=1 << 30).files_read,
        lake.reshred(table, "user STRING").files_read,
        lake.unshred(table).files_read,
        lake.drop_feature(table, "variantShredding").version,
        lake.restore(table, 1).version,
        lake.vacuum(table, dry_run=True).files_unneeded,
    ]


def constrain(lake: Any, *, table: str, texts: list[str]) -> list[int | str]:
    """For each condition, as a constraint: the table's new version, or the error."""
    found: list[int | str] = []
    for number, text in enumerate(texts):
        try:
            found.append(lake.add_constraint(table, f"c{number}", text).version)
        except VariantLakeError as error:
            found.append(error.message)
    return found


def use_names(
    spark: SparkSession,
    lake: Any,
    *,
    setup: list[str],
    source: str,
    registered: str,
    tables: list[str],
) -> list[list[Any]]:
    """For each name: rows after a load, an append and an overwrite by it, or their errors."""
    for statement in setup:
        spark.sql(statement)
    lake.register("known", registered)
    frame = spark.sql("SELECT parse_json('{\"a\": 7}') AS event")

    def after(table: str, change: Any) -> Any:
        try:
            change()
            counts = {lake.read(table).count(), lake.table(table).select("event").count()}
            if "/" not in table or "`" in table:
                counts.add(lake.sql(f"SELECT event FROM {table}").count())
                lake.explain(f"SELECT event:a::int FROM {table}")
        except vl.VariantLakeError as error:
            return type(error).__name__
        return counts.pop() if len(counts) == 1 else sorted(counts)

    return [
        [
            after(table, lambda table=table: lake.ingest(table, source)),
            after(table, lambda table=table: lake.append(table, frame)),
            after(table, lambda table=table: lake.overwrite(table, frame)),
        ]
        for table in tables
    ]


def overwrite(spark: SparkSession, lake: Any, table: str) -> list[str]:
    """What becomes of overwrites by rows that were read of the table before an append."""
    lake.read(table).createOrReplaceTempView("read_before")
    frames = [
        lake.read(table).where("n > 1"),
        lake.sql(f"SELECT event, n FROM delta.`{table}` WHERE event:a::int > 0"),
        spark.table("read_before").limit(7),
        spark.range(1).selectExpr("parse_json('1') AS event", "1L AS n"),
    ]
    lake.append(table, spark.sql("SELECT parse_json('{\"a\": 1}') AS event, 99L AS n"))
    said = []
    for frame in frames:
        try:
            said.append(str(lake.overwrite(table, frame).rows_written))
        except vl.VariantLakeError as error:
            said.append(type(error).__name__)
    return said


def answered(spark: SparkSession, lake: Any, text: dict[str, Any]) -> Any:
    """The rows of a text under its own settings and limits, or of a table; or an explanation."""
    for name, value in text.get("settings", {}).items():
        spark.conf.set(name, value)
    connect_files.MAX_SCANS = text.get("scans", 32)
    late_materialization.MIN_BYTES = text.get("late", 8 << 20)
    try:
        if "explain" in text:
            return lake.explain(text["explain"]).to_dict()
        if "source" in text:
            vl.spark.register(spark)
            frame = spark.read.format("variantlake").load(text["source"])
        elif "read" in text:
            frame = lake.read(text["read"])
        else:
            frame = lake.sql(text["sql"], text.get("args"), tables=text.get("tables"))
        if "then" in text:
            frame = spark.sql(text["then"])
        return dict(rows(frame.selectExpr(*text.get("select", ["*"]))))
    except vl.VariantLakeError as error:
        return f"{type(error).__name__}: {error.message}"
    finally:
        for name in text.get("settings", {}):
            spark.conf.unset(name)


def queried(
    spark: SparkSession, lake: Any, work: dict[str, Any], settings: dict[str, str]
) -> dict[str, Any]:
    """For each query the rows or the error, its columns and plan; and what is left behind."""
    found: dict[str, Any] = {}
    columns: dict[str, list[str]] = {}
    for name, query in work["queries"].items():
        try:
            frame = lake.sql(query)
            columns[name] = frame.columns
            found[name] = dict(rows(frame))
        except vl.VariantLakeError as error:
            found[name] = f"{type(error).__name__}: {error.message}"
    kind, number = vl.path("event", "$.kind").string(), vl.path("event", "$.id").bigint()
    chosen = lake.table(work["table"], timestamp="2200-01-01").where(number < 105)
    frame = chosen.select(kind, number.alias("n"), "k")
    made = frame.groupBy("kind").agg(sf.sum("n").alias("s")).join(frame, "kind").orderBy("k")
    del frame, chosen
    gc.collect()
    made = made.withColumn("twice", made["n"] * 2)
    grouped = [dict(rows(made)), dict(rows(made))]
    del made
    read = dict(rows(lake.read(work["table"])))
    named = lake.sql("SELECT count(*) AS n FROM t", tables={"t": work["table"]}).collect()[0][0]
    reports = {name: lake.explain(work["queries"][name]).to_dict() for name in work["explain"]}
    gc.collect()
    lake.explain(work["queries"][work["explain"][0]])  # drops what nobody needs any longer
    return {
        "rows": found,
        "columns": columns,
        "grouped": grouped,
        "read": read,
        "n": named,
        "explain": reports,
        "left": sum(
            lake._session.runner._files._prefix in item.name
            for item in spark.catalog.listTables("global_temp")
        ),
        "settings": [
            key
            for key, value in map(tuple, spark.sql("SET").collect())
            if settings.get(key) != value
        ],
    }


if __name__ == "__main__":
    main()
