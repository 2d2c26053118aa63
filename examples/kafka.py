"""Events through Kafka into a shredded Delta table, and queries of their paths: `make demo-kafka`.

Starts everything: a broker, somebody who sends events, a stream into the table. Everything lives in
a temporary folder that is removed at the end.
"""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

import variantlake as vl

sys.path.insert(0, str(Path(__file__).parent))
from kafka_broker import SPARK_PACKAGE, Broker

SOURCE = Path(__file__).parent / "earthquakes.ndjson.gz"

QUERY = """
    SELECT event:properties.net::string AS net, count(*) AS quakes,
           round(max(event:properties.mag::double), 1) AS strongest,
           max(struct(partition, offset)) AS last_place
    FROM delta.`{table}` GROUP BY 1 ORDER BY quakes DESC LIMIT 5"""


def main() -> None:
    """Send, stream, query, and show what was not JSON."""
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("variantlake with Kafka")
        .config("spark.jars.packages", SPARK_PACKAGE)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    vl.spark.register(spark)
    lake = vl.spark.connect(spark)
    java = str(Path(os.environ["JAVA_HOME"]) / "bin" / "java")
    with (
        tempfile.TemporaryDirectory(prefix="variantlake-kafka-") as folder,
        Broker(java, Path(folder) / "broker") as broker,
    ):
        table = str(Path(folder) / "earthquakes")
        events = gzip.decompress(SOURCE.read_bytes()).decode().splitlines()
        send(spark, broker, [*events, "not JSON"])
        stream = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", broker.servers)
            .option("subscribe", "earthquakes")
            .option("startingOffsets", "earliest")
            .load()
            .selectExpr("value AS event", "topic", "partition", "offset")
            .writeStream.format("variantlake")
            .option("jsonColumns", "event")
            .option("mode", "quarantine")
            .option("checkpointLocation", f"{folder}/checkpoint")
            .trigger(availableNow=True)
            .start(table)
        )
        stream.awaitTermination()
        found = vl.Table.open(table)
        print(f"\nsent {len(events):,} events and one text, stored {found.scan().count():,}:")
        lake.sql(QUERY.format(table=table)).show(truncate=False)
        print(lake.explain(QUERY.format(table=table)))
        for bad in (Path(table) / "_quarantine").rglob("*.ndjson"):
            print("\nin the quarantine:", bad.read_text())
    spark.stop()


def send(spark: SparkSession, broker: Broker, texts: list[str]) -> None:
    """Put the texts into the topic."""
    rows = spark.createDataFrame([(text,) for text in texts], "value STRING")
    writer = rows.write.format("kafka").option("kafka.bootstrap.servers", broker.servers)
    writer.option("topic", "earthquakes").save()


if __name__ == "__main__":
    main()
