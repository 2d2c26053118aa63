"""Measure edits of values within Variants: rows per second, best of several runs.

    python -m benchmarks.editing [ROWS]              # the kernel beside its plain twin, one core
    python -m benchmarks.editing [ROWS] --spark      # and through Spark, beside to_json/parse_json

Events as in the other benchmarks, 500 bytes of text each. Spark 4.1 and 4.2 have no function that
changes a Variant: there the way is through text, `parse_json(regexp_replace(to_json(v), …))`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import variantlake as vl
from benchmarks.documents import event_documents
from benchmarks.report import best, timed
from variantlake.encoding.edit import Change, Edit, edited
from variantlake.encoding.variant import Variant
from variantlake.kernels.json.json_reader import JsonReader
from variantlake.kernels.json.lines import split_lines
from variantlake.kernels.tape.words import PADDING
from variantlake.kernels.variant.variant_reader import VariantReader
from variantlake.kernels.variant.variant_writer import write_variant
from variantlake.paths import Path

RUNS = 5
TWIN_ROWS = 5_000


def variants(rows: int) -> pa.StructArray:
    """Events as Variants."""
    text = np.frombuffer(b"\n".join(event_documents(rows)), np.uint8)
    lines = split_lines(text)
    padded = np.concatenate([text, np.zeros(PADDING, np.uint8)])
    return write_variant(JsonReader().read(padded, lines.starts, lines.ends))


def main(rows: int) -> None:
    """The kernel and its twin."""
    array = variants(rows)
    size = array.nbytes / 1e6
    cases: list[tuple[str, Callable[[Any], Any], Edit, Any]] = [
        ("set a top field", lambda a: vl.variant_set(a, "$.kind", "x"), _edit("$.kind"), "x"),
        (
            "set a deep field",
            lambda a: vl.variant_set(a, "$.commit.record.text", "gone"),
            _edit("$.commit.record.text"),
            "gone",
        ),
        ("add a field", lambda a: vl.variant_set(a, "$.seen", 1), _edit("$.seen"), 1),
        (
            "add an object",
            lambda a: vl.variant_set(a, "$.geo", {"lat": 1.5, "lon": 2.5}),
            _edit("$.geo"),
            {"lat": 1.5, "lon": 2.5},
        ),
        ("delete a field", lambda a: vl.variant_delete(a, "$.did"), _edit("$.did", delete=True), 0),
    ]
    print(f"{rows:,} Variants, {size:.0f} MB")
    rows_of: Any = array.slice(0, TWIN_ROWS)
    few = [(row["metadata"], row["value"]) for row in rows_of.to_pylist()]
    for name, kernel, edit, value in cases:
        seconds = best(partial(kernel, array), RUNS)
        tree = None if edit.change is Change.DELETE else Variant.of(value).tree()
        twin = timed(lambda: [edited(*row, edit, tree) for row in few]) / len(few)  # noqa: B023
        print(
            f"{name:18} kernel {rows / seconds / 1e6:5.2f} M rows/s, {size / seconds:5.0f} MB/s; "
            f"twin {1 / twin / 1e3:5.1f} k rows/s; {twin * rows / seconds:4.0f} times"
        )
    tape = best(lambda: write_variant(VariantReader().read(array)), RUNS)
    print(f"reading to a tape and writing again: {size / tape:5.0f} MB/s")


def _run(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _edit(path: str, *, delete: bool = False) -> Edit:
    return Edit(Change.DELETE if delete else Change.SET, Path.parse(path))


def main_spark(rows: int) -> None:
    """The same through Spark: a UDF over Arrow, and Spark's own way through text."""
    with vl.spark.local_session() as spark:
        frame = spark.createDataFrame(
            [(line.decode(),) for line in event_documents(rows)], "doc string"
        ).selectExpr("parse_json(doc) AS event")
        frame = frame.repartition(2).cache()
        frame.count()
        ours = frame.select(vl.variant_set(frame.event, "$.kind", "x").alias("event"))
        theirs = frame.selectExpr(
            """parse_json(regexp_replace(to_json(event),
                '"kind":"[^"]*"', '"kind":"x"')) AS event"""
        )
        for name, changed in (("UDF over Arrow", ours), ("to_json, parse_json", theirs)):
            seconds = best(partial(_run, changed), RUNS)
            print(f"{name:20} {rows / seconds / 1e6:5.2f} M rows/s")


if __name__ == "__main__":
    arguments = [each for each in sys.argv[1:] if each != "--spark"]
    count = int(arguments[0]) if arguments else 200_000
    if "--spark" in sys.argv:
        main_spark(count)
    else:
        main(count)
