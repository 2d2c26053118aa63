"""Small tables whose files shred the same documents in different ways, and their judge.

Spark writes the Parquet files (so that the read way is tested apart from our own writer), and the
log is written by hand. The judge of an answer is Spark on the unshredded documents without its
Variant pushdown (EXACTNESS, rule 1).
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PUSHDOWN = "spark.sql.variant.pushVariantIntoScan"

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""A query runs once on few rows: to compile it costs more than to run it."""

COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
"""Spark's own way, and its only one to cast what it pushes into a scan of shredded columns."""

UNADAPTED = {"spark.sql.adaptive.enabled": "false"}
"""For what only judges: a sixth of the time of Delta Spark's statements goes into planning anew."""

PLAINLY = {
    PUSHDOWN: "false",
    "spark.sql.parquet.filterPushdown": "false",
    **UNADAPTED,
    **INTERPRETED,
}
"""How Spark judges: it evaluates whole Variants, and plans no stage anew.

Nor does it skip row groups of Parquet by their statistics, by which it loses rows: those with NaN
to `f = double('NaN')`, those with -0.0 to `f = 0.0`.
"""


@dataclass(frozen=True)
class File:
    """One data file: its documents (None is a SQL NULL), and its shredding (None for none)."""

    name: str
    documents: Sequence[Any]
    shredding: str | None = None
    partition: str | None = None


CLEAN = File(
    "a",
    [
        {
            "id": i,
            "kind": "good" if i % 2 else "bad",
            "t": 1000 + i,
            "price": round(i * 1.25, 2),
            "ok": i % 3 == 0,
            "d": f"2024-01-{i % 28 + 1:02}",
            "n": {"x": None if i % 7 == 0 else i, "y": f"s{i}", "odd key": i},
            "arr": [i, 2],
            "ID": f"upper{i}",
            "mixed": i,
        }
        for i in range(40)
    ],
    "id bigint, kind string, t bigint, price decimal(10,2), ok boolean, d string, "
    "n struct<x bigint, y string, `odd key` bigint>, mixed bigint",
    "first",
)
OTHER_TYPES = File(
    "b",
    [
        {
            "id": 100 + i,
            "kind": "good" if i % 3 else None,
            "t": 1100 + i,
            "price": i,
            "ok": None,
            "n": {"x": i * 10, "y": None},
            "arr": ["a", "b"],
            "mixed": f"s{i}",
        }
        for i in range(20)
    ],
    "id bigint, kind string, t bigint, price decimal(18,4), ok boolean, "
    "n struct<x bigint, y string>, mixed string",
    "it's 100%",
)
UNSHREDDED = File(
    "c",
    [
        *(
            {"id": i, "kind": 7, "n": "flat", "price": "cheap", "mixed": [1]}
            for i in range(300, 305)
        ),
        {},
        {"id": None, "kind": {"deep": 1}},
        {"t": 7, "mixed": True},
        None,
    ],
)
MIXED = File(
    "d",
    [
        {
            "id": 200 + i,
            "kind": "ugly",
            "t": 1200 + i,
            "n": {"x": i, "z": i},
            "big": 10**15 + i,
            "dbl": 1.5e300 if i else 2.5,
            "price": 0.5 + i,
            "mixed": i if i % 2 else "x",
        }
        for i in range(10)
    ],
    "id bigint, kind string, t bigint, price decimal(18,4), big bigint, dbl double, "
    "n struct<x bigint, z bigint>, mixed bigint",
)


@dataclass(frozen=True)
class Shape:
    """A table to make: its files, and whether it is partitioned by a column `p`."""

    files: tuple[File, ...]
    partitioned: bool = False
    columns: Mapping[str, str] = field(default_factory=lambda: {"event": "variant", "k": "integer"})


SHAPES = {
    # All paths that most queries ask for are columns in every file.
    "physical": Shape((CLEAN, OTHER_TYPES, MIXED)),
    # One file has nothing but residuals, and every type where another is expected.
    "mixed": Shape((CLEAN, OTHER_TYPES, UNSHREDDED, MIXED), partitioned=True),
}


def make(spark: SparkSession, path: Path, shape: Shape) -> str:
    """Write the table and give its location."""
    log = path / "_delta_log"
    log.mkdir(parents=True)
    features = ["variantType", "variantShredding"]
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": features,
        "writerFeatures": features,
    }
    types = dict(shape.columns) | ({"p": "string"} if shape.partitioned else {})
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in types.items()]
    metadata = {
        "id": "0",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": ["p"] if shape.partitioned else [],
        "configuration": {},
        "createdTime": 0,
    }
    actions: list[dict[str, Any]] = [{"protocol": protocol}, {"metaData": metadata}]
    for file in shape.files:
        # Blanks and percents in names: the log percent-encodes them.
        target = path / f"part %41 {file.name}.parquet"
        _write(spark, file, path / "scratch", target)
        actions.append(
            {
                "add": {
                    "path": f"part%20%2541%20{file.name}.parquet",
                    "size": target.stat().st_size,
                    "modificationTime": 0,
                    "dataChange": True,
                    "partitionValues": {"p": file.partition} if shape.partitioned else {},
                    "stats": json.dumps({"numRecords": len(file.documents)}),
                }
            }
        )
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)), encoding="utf-8")
    return str(path)


def _write(spark: SparkSession, file: File, scratch: Path, target: Path) -> None:
    settings = {"spark.sql.variant.writeShredding.enabled": "false"}
    if file.shredding is not None:
        settings = {
            "spark.sql.variant.writeShredding.enabled": "true",
            "spark.sql.variant.forceShreddingSchemaForTest": file.shredding,
        }
    frame = _documents(spark, file).selectExpr("parse_json(j) AS event", "k").coalesce(1)
    with changed(spark, settings):
        frame.write.mode("overwrite").parquet(str(scratch))
    (part,) = scratch.glob("part-*.parquet")
    shutil.move(part, target)
    shutil.rmtree(scratch)


def _documents(spark: SparkSession, *files: File) -> DataFrame:
    rows = [
        (None if document is None else json.dumps(document), number, file.partition)
        for file in files
        for number, document in enumerate(file.documents)
    ]
    return spark.createDataFrame(rows, "j STRING, k INT, p STRING")


def judge(spark: SparkSession, name: str, shape: Shape) -> None:
    """A temporary view of the same rows as Spark itself parses them."""
    columns = ["parse_json(j) AS event", "k", *(["p"] if shape.partitioned else [])]
    documents = _documents(spark, *shape.files).coalesce(1)
    documents.selectExpr(*columns).createOrReplaceTempView(name)


class changed:  # noqa: N801 # used as a function
    """Settings of a session for the length of a block."""

    def __init__(self, spark: SparkSession, settings: Mapping[str, str]) -> None:
        self._spark = spark
        self._settings = settings
        self._before: dict[str, str | None] = {}

    def __enter__(self) -> None:
        for name, value in self._settings.items():
            self._before[name] = self._spark.conf.get(name, None)
            self._spark.conf.set(name, value)

    def __exit__(self, *_: object) -> None:
        for name, value in self._before.items():
            if value is None:
                self._spark.conf.unset(name)
            else:
                self._spark.conf.set(name, value)


def rows(frame: DataFrame) -> Counter[str]:
    """The rows as text that tells types apart; Variants as JSON, whose keys keep their order."""
    shown = frame.selectExpr(
        *(
            f"to_json(`{name}`) AS `{name}`" if kind == "variant" else f"`{name}`"
            for name, kind in frame.dtypes
        )
    )
    return Counter(repr(tuple(row)) for row in shown.collect())
