"""From a broker of Kafka into a table: each record once, bad ones with their place in the topic."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from examples.kafka_broker import Broker

import variantlake as vl
from tests.corpora import REPOSITORY
from tests.test_docs import blocks
from variantlake.delta.protocol.learned_schemas import learned_schemas

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMA = "key STRING, value BINARY, partition INT"


@pytest.fixture(scope="module")
def broker(delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker in KRaft mode on the loopback interface."""
    home = delta_spark._jvm.System.getProperty("java.home")  # type: ignore[union-attr]
    found = Broker(f"{home}/bin/java", tmp_path_factory.mktemp("kafka"))
    try:
        found.__enter__()
    except RuntimeError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    yield found
    found.__exit__(None, None, None)


def send(spark: SparkSession, broker: Broker, values: list[bytes | None]) -> None:
    """Put values into the two partitions of the topic, by turns."""
    rows = [(f"k{number}", value, number % 2) for number, value in enumerate(values)]
    writer = spark.createDataFrame(rows, SCHEMA).write.format("kafka")
    writer.option("kafka.bootstrap.servers", broker.servers).option("topic", "events").save()


def stream(spark: SparkSession, broker: Broker, folder: Path) -> vl.Table:
    """What is new in the topic goes into the table."""
    shown: dict[str, Any] = {}
    for block in blocks(REPOSITORY / "docs" / "kafka.md"):
        exec(block, shown)  # noqa: S102 - what the page shows is what is tried
    table, checkpoint = str(folder / "table"), str(folder / "checkpoint")
    query = shown["load_topic"](spark, broker.servers, "events", table, checkpoint)
    query.awaitTermination()
    return vl.Table.open(table)


def documents(first: int, count: int, *keys: str) -> list[bytes | None]:
    chance = random.Random(first)
    return [
        json.dumps({"id": number} | {key: f"v{chance.random()}" for key in keys}).encode()
        for number in range(first, first + count)
    ]


def places(rows: list[dict[str, Any]]) -> set[tuple[str, int, int]]:
    return {(row["topic"], row["partition"], row["offset"]) for row in rows}


def test_each_record_is_in_the_table_or_in_the_quarantine_with_its_place(
    delta_spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    vl.spark.register(delta_spark)
    bad: list[bytes | None] = [b'{"id": ', b"\xff\xfe", b""]
    send(delta_spark, broker, [*documents(0, 300, "a"), None, *bad])
    table = stream(delta_spark, broker, tmp_path)
    stored = table.scan("key, topic, partition, offset, event:id::bigint AS id").to_arrow()
    rows = stored.to_pylist()
    assert {row["id"] for row in rows} - {None} == set(range(300))
    # A tombstone is a row with its key, and NULL for the event.
    assert [row["key"] for row in rows if row["id"] is None] == ["k300"]
    files = sorted((tmp_path / "table" / "_quarantine").rglob("*.ndjson"))
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert len(lines) == len(bad)
    assert all(line["reason"] for line in lines)
    quarantined = [line["values"] for line in lines]
    texts = {each["key"]: each["event"] for each in quarantined}
    assert texts == {"k301": '{"id": ', "k302": "//4=", "k303": ""}
    known = places(rows) | places(quarantined)
    assert known == {("events", part, offset) for part in (0, 1) for offset in range(152)}
    # Started again it goes on, and new paths become columns of new files.
    for first in (300, 600):
        send(delta_spark, broker, documents(first, 300, "b", "c"))
        table = stream(delta_spark, broker, tmp_path)
    ids = table.scan("event:id::bigint AS id", where="event IS NOT NULL").to_arrow()["id"]
    assert (len(ids), set(ids.to_pylist())) == (900, set(range(900)))
    # Delta Spark is the judge of files in two layouts.
    by_delta = delta_spark.read.format("delta").load(table.uri)
    numbers = by_delta.selectExpr("variant_get(event, '$.id', 'bigint') AS id").collect()
    assert {row.id for row in numbers} - {None} == set(range(900))
    learned = learned_schemas(table.properties, "event")
    assert learned is not None
    assert [each.number for each in learned.schemas] == [1, 2]
    assert table.properties["variantlake.shredding.event"].startswith("a STRING, b STRING, c STR")
