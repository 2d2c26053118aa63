"""The main job in one script: real NDJSON in, a shredded Delta table, three path queries out.

Run by `make demo`. Everything lives in a temporary folder that is removed at the end.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table as Grid

import variantlake as vl

SOURCE = Path(__file__).parent / "earthquakes.ndjson.gz"

QUERIES = {
    "An aggregate: earthquakes by network": """
        SELECT event:properties.net::string AS net,
               count(*) AS quakes,
               round(max(event:properties.mag::double), 1) AS strongest
        FROM delta.`{table}` GROUP BY 1 ORDER BY quakes DESC LIMIT 5""",
    "A selective range: the strong ones of three hours": """
        SELECT event:properties.place::string AS place,
               event:properties.mag::double AS magnitude
        FROM delta.`{table}`
        WHERE event:properties.time::bigint BETWEEN 1517700000000 AND 1517710800000
          AND event:properties.mag::double >= 4.0
        ORDER BY magnitude DESC LIMIT 5""",
    "A path that was not shredded: depth, inside an array": """
        SELECT round(avg(event:geometry.coordinates[2]::double), 2) AS mean_depth_km,
               round(max(event:geometry.coordinates[2]::double), 1) AS deepest_km
        FROM delta.`{table}` WHERE event:properties.type::string = 'earthquake'""",
}


def main() -> None:
    """Ingest, show what was shredded, query, explain."""
    console = Console(width=110)
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("variantlake demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    lake = vl.spark.connect(spark)
    with tempfile.TemporaryDirectory(prefix="variantlake-demo-") as folder:
        table = str(Path(folder) / "earthquakes")
        started = time.perf_counter()
        result = lake.ingest(table, str(SOURCE), max_rows_per_file=150)
        console.rule("Ingest")
        console.print(
            f"{result.rows_written:,} documents into {result.files_written} files, "
            f"version {result.version}, "
            f"{time.perf_counter() - started:.1f} s (Spark's start and kernels included)"
        )
        console.print("Shredded into columns:", style="bold")
        console.print(result.shredding, highlight=False)
        for title, query in QUERIES.items():
            console.rule(title)
            text = query.format(table=table)
            started = time.perf_counter()
            rows = lake.sql(text)
            grid = Grid(*rows.columns)
            for row in rows.collect():
                grid.add_row(*(str(cell) for cell in row))
            console.print(grid)
            console.print(f"{time.perf_counter() - started:.2f} s", style="dim")
            console.print(str(lake.explain(text)), highlight=False)
    spark.stop()


if __name__ == "__main__":
    main()
