"""Batches of streams: each is in the table once, whatever happens to the query."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

import variantlake as vl
from tests.corpora import library
from tests.telemetry.exposition import samples
from variantlake.autoloading import auto_compact
from variantlake.errors import (
    CommitConflict,
    InvalidJson,
    InvalidQuery,
    InvalidSchema,
    InvalidValue,
    LostCheckpoint,
    NotADeltaTable,
    UnsupportedFeature,
)
from variantlake.spark.load.sink_options import SinkOptions
from variantlake.spark.load.source_writer import WrittenPart
from variantlake.spark.streaming.data_source import TableSource
from variantlake.spark.streaming.sink import TableStreamWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

COLUMNS = StructType([StructField("event", StringType()), StructField("n", IntegerType())])


def ids(table: Path) -> list[int]:
    rows = vl.Table.open(table).scan(select="event:id::bigint AS id").to_arrow()
    found: list[Any] = rows["id"].to_pylist()
    return sorted(found)


def transactions(table: Path) -> dict[str, int]:
    found = vl.Table.open(table).snapshot.transactions
    return {name: each.version for name, each in found.items()}


def data_files(table: Path) -> set[str]:
    return {str(each.relative_to(table)) for each in table.rglob("*.parquet")}


# --- The writer, as Spark's processes call it ---


def writer(table: Path, columns: StructType = COLUMNS, **options: str) -> TableStreamWriter:
    """As it comes out of the process that planned the batch."""
    given = {"path": str(table), "queryId": "q", "jsonColumns": "event"} | options
    return TableStreamWriter(SinkOptions.of(given), columns, {})


def pickled(given: T) -> T:
    return pickle.loads(pickle.dumps(given))  # type: ignore[no-any-return]  # noqa: S301 - our own


def written(sink: TableStreamWriter, *texts: str) -> WrittenPart:
    """What one task gives back."""
    copy = pickled(sink)
    batch = pa.record_batch({"event": list(texts), "n": pa.array([1] * len(texts), pa.int32())})
    return pickled(copy.write(iter([batch])))


def document(number: int) -> str:
    return json.dumps({"id": number})


def test_the_files_of_a_batch(tmp_path: Path) -> None:
    table = tmp_path / "t"
    sink = writer(table)
    parts = [written(sink, document(1)), written(sink, document(2), document(3))]
    written(sink, document(2), document(3))  # a doubled task, which nobody asks again
    writer(table).commit(parts, 0)
    assert ids(table) == [1, 2, 3]
    assert transactions(table) == {"q": 0}
    assert len(data_files(table)) == 2
    assert vl.Table.open(table).snapshot.properties["variantlake.shredding.event"] == "id BIGINT"
    # The batch comes again: whoever repeats it leaves nothing.
    again = writer(table)
    part = written(again, document(1), document(2), document(3))
    writer(table).commit([part], 0)
    assert (vl.Table.open(table).version, len(data_files(table))) == (0, 2)
    # A batch without rows is not a commit.
    writer(table).commit([written(writer(table))], 1)
    assert vl.Table.open(table).version == 0
    # Two of one number at once, as of a query that was started twice: one is in the table.
    one, other = writer(table), writer(table)
    pairs = [(each, written(each, document(4))) for each in (one, other)]
    for each, part in pairs:
        each.commit([part], 2)
    assert ids(table) == [1, 2, 3, 4]
    assert len(data_files(table)) == 3


def test_small_files_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "t"
    monkeypatch.setattr(auto_compact, "MIN_FILES", 4)
    for number in range(4):
        sink = writer(table, autoCompact="true")
        sink.commit([written(sink, document(number))], number)
    assert ids(table) == [0, 1, 2, 3]
    assert vl.Table.open(table).history(1)[0].operation == "OPTIMIZE"
    assert len(list(vl.Table.open(table).snapshot.add_files())) == 1


def test_figures_are_kept_for_prometheus(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    library("prometheus_client")
    table, file = tmp_path / "t", tmp_path / "stream.prom"

    def load(number: int, *texts: str) -> dict[str, float]:
        sink = writer(table, metricsFile=str(file), mode="quarantine")
        sink.commit([written(sink, *texts)], number)
        found = samples(file.read_text())
        assert {labels for _, labels in found} == {
            frozenset({("query", "q"), ("table", str(table))})
        }
        return {
            name.removeprefix("variantlake_stream_"): value for (name, _), value in found.items()
        }

    load(0, document(1), "none")
    for number in (1, 1):  # comes again
        values = load(number, document(2), document(3))
    assert values.pop("last_batch_timestamp_seconds") > 1e9
    assert values.pop("write_seconds_total") > 0
    adds = list(vl.Table.open(table).snapshot.add_files())
    assert values == {
        "batches_total": 2,
        "repeated_batches_total": 1,
        "rows_total": 3,
        "bad_rows_total": 1,
        "written_bytes_total": sum(add.size for add in adds),
        "written_files_total": 2,
        "table_version": 1,
        "last_batch": 1,
    }
    # The batch is in the table, whatever becomes of its figures.
    file.write_text("variantlake_stream_rows_total of another form\n")
    assert load(2, document(4))["rows_total"] == 1
    sink = writer(table, metricsFile=str(tmp_path / "none" / "x.prom"))
    sink.commit([written(sink, document(5))], 3)
    assert ids(table) == [1, 2, 3, 4, 5]
    assert "no figures of batch 3" in caplog.text


def test_a_batch_that_fails_leaves_nothing(tmp_path: Path) -> None:
    table = tmp_path / "t"
    sink = writer(table)
    good, bad = written(sink, document(1)), written(sink, document(2), "[1, 2")
    with pytest.raises(InvalidJson) as failed:
        writer(table).commit([good, bad], 0)
    assert failed.value.row == 1
    sink = writer(table)
    writer(table).abort([written(sink, document(1)), None], 0)
    assert not table.exists() or not data_files(table)
    # Where all tasks were done nobody knows whether the commit is in the log.
    writer(table).abort([written(sink, document(1))], 0)
    assert len(data_files(table)) == 1


def test_a_query_that_lost_its_checkpoint(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for number in (0, 3):
        writer(table).commit([written(writer(table), document(number))], number)
    part = written(writer(table), document(9))
    with pytest.raises(LostCheckpoint, match="has its batches up to 3") as lost:
        writer(table).commit([part], 0)
    assert "another query id" in lost.value.hint
    assert ids(table) == [0, 3]
    assert len(data_files(table)) == 2


def test_a_table_that_changes_under_a_batch(tmp_path: Path) -> None:
    table = tmp_path / "t"
    writer(table).commit([written(writer(table), document(0))], 0)
    part = written(writer(table), document(1))
    vl.Table.open(table).add_column("other INT")
    with pytest.raises(CommitConflict, match="was changed while"):
        writer(table).commit([part], 1)
    writer(table).commit([written(writer(table), document(1))], 1)
    assert ids(table) == [0, 1]


def test_what_the_sink_refuses(tmp_path: Path) -> None:
    table = tmp_path / "t"
    with pytest.raises(InvalidQuery, match="no option 'jsonColumn'") as refused:
        writer(table, jsonColumn="event")
    assert "jsonColumns" in refused.value.hint
    with pytest.raises(InvalidValue, match="mode is 'lenient'"):
        writer(table, mode="lenient")
    with pytest.raises(NotADeltaTable):
        writer(table, createTable="false")
    vl.Table.create(table, "event VARIANT, n INT")
    assert writer(table, jsonColumns="")._task.json_columns == {"event"}  # text, into a VARIANT
    with pytest.raises(InvalidSchema, match="has no column 'm'"):
        writer(table, StructType([*COLUMNS.fields, StructField("m", IntegerType())]))
    merged = writer(
        table, StructType([*COLUMNS.fields, StructField("m", IntegerType())]), mergeSchema="true"
    )
    assert "m" in merged._task.plan.schema.to_json()
    nameless = writer(table, queryId="")
    with pytest.raises(InvalidValue, match="does not give the id"):
        nameless.commit([written(nameless, document(1))], 0)


# --- Streams ---


@pytest.fixture(scope="module")
def lake(spark: SparkSession) -> vl.spark.Lake:
    vl.spark.register(spark)
    return vl.spark.connect(spark)


def put(folder: Path, name: str, *documents: dict[str, Any] | str) -> None:
    """A file of the stream's source; Spark takes them by their times."""
    folder.mkdir(exist_ok=True)
    lines = [each if isinstance(each, str) else json.dumps(each) for each in documents]
    (folder / name).write_text("".join(f"{line}\n" for line in lines))
    os.utime(folder / name, (ord(name), ord(name)))


def lines(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder))


def run(frame: DataFrame, table: Path, checkpoint: Path, **options: str) -> Any:
    query = (
        frame.writeStream.format("variantlake")
        .options(**options)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start(str(table))
    )
    query.awaitTermination()
    return query


@pytest.mark.spark
def test_a_stream_of_json_text(spark: SparkSession, lake: vl.spark.Lake, tmp_path: Path) -> None:
    del lake  # registers
    source, table, checkpoint = tmp_path / "in", tmp_path / "t", tmp_path / "c"
    put(source, "a", {"id": 1, "kind": "a"}, {"id": 2, "kind": "b"})
    put(source, "b", {"id": 3, "kind": "a"}, "no json", {"id": 4, "kind": "b"})
    frame = lines(spark, source).selectExpr(
        "CAST(value AS BINARY) AS event", "get_json_object(value, '$.kind') AS kind", "7 AS n"
    )
    options = {"jsonColumns": "event", "partitionBy": "kind", "mode": "quarantine"}
    query = run(frame, table, checkpoint, **options)
    assert ids(table) == [1, 2, 3, 4]
    assert transactions(table) == {query.id: 1}
    opened = vl.Table.open(table)
    newest, first = opened.history()
    assert (first.operation, newest.operation) == ("STREAMING UPDATE",) * 2
    parameters = {"outputMode": "Append", "queryId": query.id, "epochId": "1"}
    assert newest.info["operationParameters"] == parameters
    assert newest.info["operationMetrics"]["numQuarantinedRows"] == "1"
    (bad,) = (table / "_quarantine").rglob("*.ndjson")
    assert json.loads(bad.read_text())["values"]["n"] == 7
    assert [each.name for each in opened.snapshot.schema.fields] == ["event", "kind", "n"]
    assert opened.snapshot.partition_columns == ("kind",)
    # The judge reads the same.
    judged = spark.sql(f"SELECT variant_get(event, '$.id', 'int') i, kind FROM delta.`{table}`")
    assert sorted(map(tuple, judged.collect())) == [(1, "a"), (2, "b"), (3, "a"), (4, "b")]


@pytest.mark.spark
def test_two_queries_make_and_fill_one_table(
    spark: SparkSession, lake: vl.spark.Lake, tmp_path: Path
) -> None:
    del lake  # registers
    table, queries = tmp_path / "t", []
    for number in (0, 1):
        source = tmp_path / f"in-{number}"
        for batch in range(3):
            put(source, "abc"[batch], *({"id": 10 * number + batch, "k": n} for n in (1, 2)))
        writer = lines(spark, source).selectExpr("value AS event").writeStream
        writer = writer.format("variantlake").option("jsonColumns", "event")
        writer = writer.option("checkpointLocation", str(tmp_path / f"c-{number}"))
        queries.append(writer.trigger(availableNow=True).start(str(table)))
    for query in queries:
        query.awaitTermination()
    assert ids(table) == [each for each in (0, 1, 2, 10, 11, 12) for _ in (1, 2)]
    assert transactions(table) == {query.id: 2 for query in queries}


@pytest.mark.spark
def test_partition_by_of_spark(spark: SparkSession, lake: vl.spark.Lake, tmp_path: Path) -> None:
    """Spark does not hand it on: the table's own partitions count, or the option's."""
    del lake  # registers
    source = tmp_path / "in"
    put(source, "a", {"id": 1, "kind": "a"}, {"id": 2, "kind": "b"})
    frame = lines(spark, source).selectExpr(
        "value AS event", "get_json_object(value, '$.kind') AS kind"
    )
    vl.Table.create(tmp_path / "there", "event VARIANT, kind STRING", partition_by=["kind"])
    for name, expected in (("there", ("kind",)), ("new", ())):
        writer = frame.writeStream.format("variantlake").partitionBy("kind")
        writer = writer.option("jsonColumns", "event").trigger(availableNow=True)
        checkpoint = str(tmp_path / f"c-{name}")
        writer.option("checkpointLocation", checkpoint).start(
            str(tmp_path / name)
        ).awaitTermination()
        assert ids(tmp_path / name) == [1, 2]
        assert vl.Table.open(tmp_path / name).snapshot.partition_columns == expected
    adds = vl.Table.open(tmp_path / "there").snapshot.add_files()
    assert sorted(each.partition_values["kind"] or "" for each in adds) == ["a", "b"]


@pytest.mark.spark
def test_a_driver_that_is_killed(spark: SparkSession, tmp_path: Path) -> None:
    """The process that commits is killed before a commit and after one; the query starts again."""
    source, table, checkpoint = tmp_path / "in", tmp_path / "t", tmp_path / "c"
    marks = str(tmp_path)

    class Killed(TableSource):
        def streamWriter(self, schema: Any, overwrite: bool) -> Any:  # noqa: N802
            def kill(moment: str) -> None:
                mark = Path(marks, moment)
                if not mark.exists():
                    mark.touch()
                    os.kill(os.getpid(), signal.SIGKILL)

            class Killing(TableStreamWriter):
                def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803
                    if batchId == 0:
                        kill("before")
                    super().commit(messages, batchId)
                    if batchId == 1:
                        kill("after")

            sink = super().streamWriter(schema, overwrite)
            sink.__class__ = Killing
            return sink

    put(source, "a", {"id": 1}, {"id": 2})
    put(source, "b", {"id": 3}, {"id": 4})
    frame = lines(spark, source).selectExpr("parse_json(value) AS event")
    spark.dataSource.register(Killed)
    try:
        for commits in (0, 2):
            with pytest.raises(Exception, match="STREAM_FAILED"):
                run(frame, table, checkpoint)
            assert len(list(table.glob("_delta_log/*.json"))) == commits
    finally:
        vl.spark.register(spark)
    query = run(frame, table, checkpoint)
    assert ids(table) == [1, 2, 3, 4]
    assert transactions(table) == {query.id: 1}


@pytest.mark.spark
def test_foreach_batch(
    spark: SparkSession, lake: vl.spark.Lake, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source, table, checkpoint = tmp_path / "in", tmp_path / "t", tmp_path / "c"
    put(source, "a", {"id": 1})
    frame = lines(spark, source).selectExpr("value AS event")
    results: list[Any] = []

    def load(query: str | None) -> str:
        def take(batch: DataFrame, number: int) -> None:
            given = {"query": query, "json_columns": ["event"]}
            results.append(lake.write_batch(table, batch, number, **given))  # type: ignore[arg-type]

        writer = frame.writeStream.foreachBatch(take).trigger(availableNow=True)
        started = writer.option("checkpointLocation", str(checkpoint)).start()
        started.awaitTermination()
        return str(started.id)

    load("orders")
    shutil.rmtree(checkpoint)
    with pytest.raises(Exception, match="this batch of another checkpoint"):
        load("orders")
    assert "begins with batch 0" not in caplog.text
    shutil.rmtree(checkpoint)
    own = load(None)
    assert "begins with batch 0, and 1 other queries" in caplog.text
    assert ids(table) == [1, 1]
    assert transactions(table) == {"orders": 0, own: 0}
    assert [each.rows_written for each in results] == [1, 1]
    # Outside of a stream the query must be named.
    batch = spark.sql("""SELECT '{"id": 5}' AS event""")
    with pytest.raises(InvalidValue, match="unknown here"):
        lake.write_batch(table, batch, 0, json_columns=["event"])
    done = lake.write_batch(table, batch, 4, query="q", json_columns=["event"])
    again = lake.write_batch(table, batch, 4, query="q", json_columns=["event"])
    assert (again.already_loaded, again.version) == (True, done.version)
    with pytest.raises(LostCheckpoint, match="up to 4"):
        lake.write_batch(table, batch, 3, query="q", json_columns=["event"])
    # Constraints are for this way alone.
    lake.add_constraint(table, "positive", "event:id::int > 0")
    with pytest.raises(UnsupportedFeature, match="constraints") as refused:
        writer(table, StructType(COLUMNS.fields[:1]))
    assert "foreachBatch" in refused.value.hint
    lake.write_batch(table, batch, 5, query="q", json_columns=["event"])
    assert ids(table) == [1, 1, 5, 5]
