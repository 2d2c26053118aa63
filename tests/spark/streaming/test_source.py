"""A table as the source of a stream: the same rows per version as Delta Spark's own source."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.features import SCAN_FEATURES
from variantlake.errors import (
    InvalidQuery,
    InvalidValue,
    MalformedFile,
    MissingSource,
    UnsupportedFeature,
    VariantLakeError,
)
from variantlake.feed.appended import ChangeCommits
from variantlake.spark.streaming import reader
from variantlake.spark.streaming.offsets import Offset
from variantlake.spark.streaming.reader import stream_of
from variantlake.spark.streaming.source import TableStream
from variantlake.spark.streaming.source_options import StreamOptions
from variantlake.spark.streaming.stream_columns import stream_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def lake(spark: SparkSession) -> vl.spark.Lake:
    vl.spark.register(spark)
    return vl.spark.connect(spark)


def documents(*numbers: int) -> pa.Table:
    texts = [json.dumps({"id": n, "kind": f"k{n % 2}"}) for n in numbers]
    return pa.table({"event": texts, "day": [f"d{n % 2}" for n in numbers]})


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Versions: 1 to 3 append, 4 joins files, 5 appends."""
    path = tmp_path_factory.mktemp("source") / "t"
    properties = {"delta.enableChangeDataFeed": "true"}
    made = vl.Table.create(path, "event VARIANT, day STRING", properties=properties)
    for version in range(3):
        numbers = range(10 * version, 10 * version + 4)
        made.append(documents(*numbers), json_columns=["event"], max_rows_per_file=2)
    made.optimize()
    vl.Table.open(path).append(documents(90), json_columns=["event"])
    return path


# --- The reader, as Spark's process on the driver calls it ---


def stream(table: Path, **options: str) -> TableStream:
    chosen = StreamOptions.of({"path": str(table), **options}, "UTC")
    opened = Snapshot.read(str(table), applies=SCAN_FEATURES)
    return stream_of(chosen, lambda: opened, stream_schema(opened, chosen), {})


def rows(source: TableStream, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of one batch, as tasks read them."""
    parts = [pickle.loads(pickle.dumps(part)) for part in source.partitions(start, end)]  # noqa: S301
    return [row for part in parts for batch in source.read(part) for row in batch.to_pylist()]


def all_batches(source: TableStream, start: dict[str, Any] | None = None) -> list[list[int]]:
    """The ids of each batch, sorted, until nothing is left; `select` gives them."""
    found = []
    start = start or source.initialOffset()
    while (end := source.next_offset(start, limited=True)) != start:
        found.append(sorted(row["id"] for row in rows(source, start, end)))
        start = end
    return found


IDS = {"select": "event:id::int AS id"}


def test_where_a_stream_begins(table: Path) -> None:
    everything = [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23, 90]
    assert all_batches(stream(table, **IDS)) == [everything]
    # Files that were only joined (version 4) are nobody's news.
    assert all_batches(stream(table, **IDS, startingVersion="1")) == [everything]
    assert all_batches(stream(table, **IDS, startingVersion="3")) == [[20, 21, 22, 23, 90]]
    assert all_batches(stream(table, **IDS, startingVersion="latest")) == []
    # The log goes by the files' times; the file system's clock may be behind that of commitInfo.
    written = (table / "_delta_log" / f"{5:020}.json").stat().st_mtime_ns // 1_000_000
    moment = dt.datetime.fromtimestamp(written / 1000, dt.UTC)
    since = stream(table, **IDS, startingTimestamp=moment.isoformat())
    assert all_batches(since) == [[90]]
    with pytest.raises(MissingSource, match="version 99 does not exist"):
        stream(table, startingVersion="99").initialOffset()


def test_limits_and_offsets(table: Path) -> None:
    source = stream(table, **IDS, startingVersion="1", maxFilesPerTrigger="3")
    assert all_batches(source) == [[0, 1, 2, 3, 10, 11], [12, 13, 20, 21, 22, 23], [90]]
    start = source.initialOffset()
    identity = vl.Table.open(table).snapshot.metadata.id
    assert start == {
        "sourceVersion": 1,
        "reservoirId": identity,
        "reservoirVersion": 1,
        "index": -1,
        "isStartingVersion": False,
    }
    first = source.next_offset(start, limited=True)
    assert (first["reservoirVersion"], first["index"]) == (2, 0)
    assert source.next_offset(start, limited=False)["reservoirVersion"] == 6
    # Another process, after a restart, reads the same rows between the same offsets.
    again = stream(table, **IDS, startingVersion="1")
    assert sorted(row["id"] for row in rows(again, start, first)) == [0, 1, 2, 3, 10, 11]
    # The table as a whole is one version: its files in order, also over several batches.
    whole = stream(table, **IDS, maxFilesPerTrigger="1")
    end = whole.next_offset(whole.initialOffset(), limited=True)
    assert (end["reservoirVersion"], end["index"], end["isStartingVersion"]) == (5, 0, True)
    assert list(itertools.chain(*all_batches(whole))) == all_batches(stream(table, **IDS))[0]
    # By bytes: one file at least.
    assert len(all_batches(stream(table, **IDS, startingVersion="1", maxBytesPerTrigger="1b"))) == 7
    assert len(all_batches(stream(table, **IDS, startingVersion="1", maxBytesPerTrigger="1g"))) == 1
    with pytest.raises(UnsupportedFeature, match="belongs to another table"):
        source.partitions(start | {"reservoirId": "other"}, first)
    with pytest.raises(MissingSource, match="restored from a copy"):
        source.next_offset(start | {"reservoirVersion": 9}, limited=True)
    for broken in ({}, start | {"index": -2}, start | {"sourceVersion": 9}, {"offset": 1}):
        with pytest.raises(MalformedFile, match="not of this source"):
            Offset.of(broken)


def test_columns_and_a_selection(table: Path) -> None:
    plain = stream(table, startingVersion="3", maxFilesPerTrigger="1")
    start = plain.initialOffset()
    (first, second) = rows(plain, start, plain.next_offset(start, limited=True))
    assert list(first) == ["event", "day"]
    assert (set(first["event"]), second["day"]) == ({"value", "metadata"}, "d1")
    options = {
        "select": "event:id::int AS id, event:kind::string AS kind, event, day",
        "where": "event:id::bigint > 12 AND day = 'd1'",
    }
    source = stream(table, **options, startingVersion="1")
    kinds = [field.dataType.simpleString() for field in source._schema]
    assert kinds == ["int", "string", "variant", "string"]
    start = source.initialOffset()
    end = source.next_offset(start, limited=True)
    found = sorted((row["id"], row["kind"], row["day"]) for row in rows(source, start, end))
    assert found == [(13, "k1", "d1"), (21, "k1", "d1"), (23, "k1", "d1")]
    # Of seven files the four are not read that cannot have such a row.
    files = [part.value.files for part in source.partitions(start, end)]
    assert sum(map(len, files)) == 3


def test_versions_that_change_rows(tmp_path: Path) -> None:
    path = tmp_path / "t"
    properties = {"delta.enableChangeDataFeed": "true"}
    made = vl.Table.create(
        path, "event VARIANT, day STRING", partition_by=["day"], properties=properties
    )
    made.append(documents(0, 1, 2, 3), json_columns=["event"])  # 1
    vl.Table.open(path).delete("day = 'd0'")  # 2: whole files
    vl.Table.open(path).delete("event:id::int = 1")  # 3: a row of a file
    vl.Table.open(path).append(documents(5), json_columns=["event"])  # 4
    for policy, match in (("", "version 2 removes"), ("ignoreDeletes", "version 3 changes")):
        options = {policy: "true"} if policy else {}
        source = stream(path, **IDS, **options, startingVersion="1")
        with pytest.raises(UnsupportedFeature, match=match) as refused:
            all_batches(source)
        assert "skipChangeCommits" in refused.value.hint
    skipping = stream(path, **IDS, skipChangeCommits="true", startingVersion="1")
    assert all_batches(skipping) == [[0, 1, 2, 3, 5]]
    again = stream(path, **IDS, ignoreChanges="true", startingVersion="1")
    assert all_batches(again) == [[0, 1, 2, 3, 3, 5]]
    # What is as it is now, without what went.
    assert all_batches(stream(path, **IDS)) == [[3, 5]]
    select = "event:id::int AS id, _change_type AS what, _commit_version AS version"
    feed = stream(path, select=select, readChangeFeed="true", startingVersion="1")
    start = feed.initialOffset()
    found = rows(feed, start, feed.next_offset(start, limited=True))
    assert sorted((row["version"], row["what"], row["id"]) for row in found) == [
        (1, "insert", 0), (1, "insert", 1), (1, "insert", 2), (1, "insert", 3),
        (2, "delete", 0), (2, "delete", 2), (3, "delete", 1), (4, "insert", 5),
    ]  # fmt: skip
    # The changes of a version stay together, whatever the limit is.
    few = stream(path, select=select, readChangeFeed="true", startingVersion="1",
                 maxFilesPerTrigger="1")  # fmt: skip
    assert [len(each) for each in all_batches(few)] == [4, 2, 1, 1]
    # Without a first version: what is there are inserts of that version.
    whole = stream(path, readChangeFeed="true")
    start = whole.initialOffset()
    found = rows(whole, start, whole.next_offset(start, limited=True))
    kinds = {(row["_change_type"], row["_commit_version"]) for row in found}
    assert (len(found), kinds) == (2, {("insert", 4)})


def test_the_feed_of_columns_that_are_found_by_their_ids(tmp_path: Path) -> None:
    path = tmp_path / "t"
    properties = {"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": "id"}
    made = vl.Table.create(path, "event VARIANT, day STRING", properties=properties)
    made.append(documents(0, 1, 2, 3), json_columns=["event"])
    vl.Table.open(path).delete("event:id::int = 1")
    for selected in ({}, {"select": "_change_type, event:id::int AS id"}):
        feed = stream(path, readChangeFeed="true", startingVersion="2", **selected)
        found = rows(
            feed, feed.initialOffset(), feed.next_offset(feed.initialOffset(), limited=True)
        )
        assert [row["_change_type"] for row in found] == ["delete"]


def test_a_table_that_changes_under_a_stream(tmp_path: Path) -> None:
    path = tmp_path / "t"
    made = vl.Table.create(path, "event VARIANT, day STRING")
    made.append(documents(1), json_columns=["event"])
    source = stream(path, **IDS)
    start = source.next_offset(source.initialOffset(), limited=True)
    source.stop_at_newest()
    vl.Table.open(path).append(documents(2), json_columns=["event"])
    assert source.next_offset(start, limited=True) == start
    source = stream(path, **IDS)
    vl.Table.open(path).add_column("other INT")
    with pytest.raises(UnsupportedFeature, match="it has the column 'other'") as refused:
        source.next_offset(start, limited=True)
    assert "start the stream again" in refused.value.hint
    source = stream(path, **IDS)
    assert all_batches(source, start) == [[2]]
    # What the log does not hold any more.
    vl.Table.open(path).checkpoint()
    (path / commit_path(2)).rename(tmp_path / "gone")
    lost = stream(path, **IDS, startingVersion="2")
    with pytest.raises(VariantLakeError, match="version 2"):
        lost.next_offset(start, limited=True)


def test_pyspark_before_4_2(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says neither where a batch begins nor how much it may hold."""
    monkeypatch.setattr(reader, "HAS_LIMITS", False)
    source = stream(table, **IDS, startingVersion="3")
    start, end = source.initialOffset(), source.latestOffset()  # type: ignore[call-arg]
    assert (start["reservoirVersion"], end["reservoirVersion"]) == (3, 6)
    assert sorted(row["id"] for row in rows(source, start, end)) == [20, 21, 22, 23, 90]
    with pytest.raises(UnsupportedFeature, match=r"before 4\.2"):
        stream(table, maxFilesPerTrigger="1")


def test_options() -> None:
    def of(**options: str) -> StreamOptions:
        return StreamOptions.of({"path": "t"} | options, "UTC")

    assert of().max_files == 1000
    assert (of(MAXBYTESPERTRIGGER="64k").max_bytes, of(maxBytesPerTrigger="1m").max_files) == (
        65536, None,
    )  # fmt: skip
    assert of(ignoreDeletes="true", skipChangeCommits="true").changes is ChangeCommits.SKIP
    with pytest.raises(InvalidQuery, match="no option 'maxFilePerTrigger'") as refused:
        of(maxFilePerTrigger="1")
    assert "maxFilesPerTrigger" in refused.value.hint
    for wrong in (
        {"maxFilesPerTrigger": "0"},
        {"maxBytesPerTrigger": "much"},
        {"readChangeFeed": "yes"},
    ):
        with pytest.raises(InvalidValue, match=next(iter(wrong))):
            of(**wrong)
    for both in (
        {"startingVersion": "1", "startingTimestamp": "2026-01-01"},
        {"ignoreChanges": "true", "skipChangeCommits": "true"},
    ):
        with pytest.raises(InvalidQuery):
            of(**both)


# --- Streams ---


def batches(
    spark: SparkSession, table: Path, scratch: Path, source: str = "variantlake", **options: Any
) -> list[list[Any]]:
    """The ids of each batch of a stream, sorted, and of a change feed what became of them."""
    found: dict[int, list[Any]] = {}
    feed = "readChangeFeed" in options

    def take(frame: Any, number: int) -> None:
        columns = ["id"] if "select" in options else ["event:id::int AS id"]
        if feed:
            columns += ["_change_type", "_commit_version"]
        rows = [tuple(row) if feed else row[0] for row in frame.selectExpr(*columns).collect()]
        found[number] = sorted(rows)

    stream = spark.readStream.format(source).options(**options).load(str(table))
    writer = stream.writeStream.foreachBatch(take).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(scratch / "checkpoint")).start()
    query.awaitTermination()
    return [rows for _, rows in sorted(found.items())]


def offsets(scratch: Path) -> list[dict[str, Any]]:
    """What the checkpoint holds of the source, batch by batch."""
    files = sorted((scratch / "checkpoint/offsets").glob("[0-9]*"), key=lambda each: int(each.name))
    return [json.loads(each.read_text().splitlines()[2]) for each in files]


@pytest.mark.spark
def test_rows_by_version_as_delta_spark_reads_them(
    spark: SparkSession, lake: vl.spark.Lake, table: Path, tmp_path: Path
) -> None:
    options = {"startingVersion": "1", "maxFilesPerTrigger": "3"}
    ours = batches(spark, table, tmp_path / "ours", **options)
    theirs = batches(spark, table, tmp_path / "theirs", "delta", **options)
    assert ours == theirs == [[0, 1, 2, 3, 10, 11], [12, 13, 20, 21, 22, 23], [90]]
    for place in (0, -1):
        one, other = offsets(tmp_path / "ours")[place], offsets(tmp_path / "theirs")[place]
        assert one.keys() == other.keys()
        for name in ("reservoirId", "reservoirVersion", "isStartingVersion"):
            assert one[name] == other[name], name
    # Restarted from the checkpoint it gives what is new alone, and what became of rows as a feed.
    first = vl.Table.open(table).version + 1
    vl.Table.open(table).append(documents(91, 93), json_columns=["event"])
    assert batches(spark, table, tmp_path / "ours", **options) == [[91, 93]]
    lake.update(str(table), {"day": "x"}, "event:id::int = 91")
    options = {"startingVersion": str(first), "readChangeFeed": "true"}
    (feed,) = batches(spark, table, tmp_path / "feed", **options)
    assert feed == [
        (91, "insert", first),
        (91, "update_postimage", first + 1),
        (91, "update_preimage", first + 1),
        (93, "insert", first),
    ]
    assert [feed] == batches(spark, table, tmp_path / "their feed", "delta", **options)
    with pytest.raises(Exception, match="no option 'startingversion'"):
        spark.read.format("variantlake").option("startingVersion", "1").load(str(table)).collect()
