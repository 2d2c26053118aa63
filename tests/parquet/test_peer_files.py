"""Files that other engines wrote, kept in tests/data: read exactly, and rule by rule."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.corpora import REPOSITORY
from variantlake.encoding.json import parse_json
from variantlake.encoding.variant import Variant
from variantlake.parquet.read.check import check_file
from variantlake.parquet.read.inspect import inspect_file
from variantlake.parquet.read.reader import find_variants, read_table
from variantlake.parquet.read.single_paths import read_paths
from variantlake.parquet.variant.variant_arrays import variants

SPARK = REPOSITORY / "tests" / "data" / "spark-4.3"
SAIL = REPOSITORY / "tests" / "data" / "sail-0.7"

DOCUMENTS = [
    '{"a": 1, "b": ["x", "y"], "c": {"d": "s", "e": 1.5}}',
    '{"a": "q", "b": ["x", 2, null, {}], "c": {"d": null, "z": [1]}, "é": {"w": 1}}',
    '{"a": null, "b": [], "c": {}}',
    '{"b": {"not": "a list"}, "c": [1]}',
    '[{"a": 1, "b": "x"}, {"a": "1"}, 5, null]',
    "[]",
    "{}",
    "null",
    '"text"',
    "12.50",
    "1e300",
    "true",
    str(10**30),
]
VALUES = [*map(parse_json, DOCUMENTS), None]
FEW = [VALUES[0], VALUES[2], VALUES[4], None]

TYPES = [
    True,
    pa.scalar(1, pa.int8()),
    pa.scalar(-300, pa.int16()),
    70000,
    5_000_000_000,
    pa.scalar(1.5, pa.float32()),
    -2.25,
    Decimal("12.34"),
    Decimal("-123456789.1234"),
    Decimal("1234567890123456789.0123456789"),
    "é😀",
    "long" * 40,
    b"\x00\xff",
    dt.date(2024, 2, 29),
    dt.datetime(2024, 2, 29, 10, 34, 56, 789012, tzinfo=dt.UTC),
    dt.datetime(2024, 2, 29, 12, 34, 56, 789012),  # noqa: DTZ001  # a timestamp of no zone
]

LAYOUTS = {
    "objects": "a BIGINT, b ARRAY<STRING>, c STRUCT<d: STRING, e: DECIMAL(5,2)>",
    "arrays": "ARRAY<STRUCT<a: INT, b: STRING>>",
    "string": "STRING",
    "inferred": "VARIANT",
}


def column(file: Path) -> list[Variant | None]:
    return variants(read_table(file)["v"])


@pytest.mark.parametrize("name", LAYOUTS)
def test_documents_of_spark(name: str) -> None:
    file = SPARK / f"{name}.parquet"
    (view,) = inspect_file(file).variants
    assert (view.annotated, view.ddl) == (True, LAYOUTS[name])
    found = column(file)
    assert found == VALUES
    # Equal by value is not enough: the types must be Spark's own.
    assert [v and v.to_json() for v in found] == [v and v.to_json() for v in VALUES]
    assert list(check_file(file)) == []


def test_every_type_of_spark_shredded() -> None:
    file = SPARK / "types.parquet"
    first, second = column(file)
    assert first is not None
    assert [first.get(f"$.t{i}") for i in range(len(TYPES))] == list(map(Variant.of, TYPES))
    kinds = [Variant.of(value).type for value in TYPES]
    assert [first.get(f"$.t{i}").type for i in range(len(TYPES))] == kinds  # type: ignore[union-attr]  # all are there
    assert second == Variant.of({"t0": 1})
    paths = {f"t{i}": f"v:t{i}" for i in range(1, len(TYPES))}
    typed: Any = read_paths(file, paths).to_pylist()[0]
    wanted = [Variant.of(value).to_python() for value in TYPES[1:]]
    assert list(typed.values()) == wanted
    assert list(check_file(file)) == []


def test_variants_of_spark_in_structs_lists_and_maps() -> None:
    file = SPARK / "nested.parquet"
    assert find_variants(file) == ("s.x", "l.list.element", "m.key_value.value")
    for name in ("struct", "nested"):
        structs: Any = read_table(SPARK / f"{name}.parquet")["s"].combine_chunks()
        assert variants(structs.flatten()[0]) == FEW
        assert list(check_file(SPARK / f"{name}.parquet")) == []
    lists: Any = read_table(file)["l"].combine_chunks()
    assert variants(lists.values) == [each for value in FEW for each in (value, None)]
    maps: Any = read_table(file)["m"].combine_chunks()
    assert variants(maps.items) == FEW


def test_timestamps_of_96_bits_beside_a_variant() -> None:
    file = SPARK / "int96.parquet"
    table = read_table(file)
    assert variants(table["v"]) == VALUES[:3]
    assert table["at"][0].as_py().isoformat() == "2024-02-29T12:34:56.789000"
    assert list(check_file(file)) == []
    assert read_paths(file, {"a": "v:a::variant"}).num_rows == 3


def test_files_of_arrow_rs() -> None:
    found = column(SAIL / "plain.parquet")
    assert len(found) == 21
    documents = [each and json.loads(each.to_json()) for each in found]
    assert documents[:2] == [json.loads(text) for text in DOCUMENTS[:2]]
    assert found[2:4] == [VALUES[2], VALUES[4]]
    assert [each and each.type for each in found[-10:]] == [
        "double", "int64", "int8", "int16", "int32", "object", "string", "double", "string", None,
    ]  # fmt: skip
    assert find_variants(SAIL / "nested.parquet") == ("s.x", "l.list.item")
    structs: Any = read_table(SAIL / "nested.parquet")["s"].combine_chunks()
    assert variants(structs.flatten()[0]) == found
    for name in ("plain", "nested"):
        rules = {finding.rule for finding in check_file(SAIL / f"{name}.parquet")}
        assert rules == {"a Variant group is annotated with VARIANT(1)"}
