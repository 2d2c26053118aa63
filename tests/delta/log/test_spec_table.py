"""A table of Delta's RFCs for Variants, log and file written byte by byte.

Specs: Variant Data Type; Variant Shredding, "Per-file Statistics", whose example is this table.
"""

from __future__ import annotations

import json
from pathlib import Path as File
from typing import Any

import pytest

from tests.delta.tables import read_stats
from tests.parquet.by_hand import file_bytes
from tests.parquet.test_spec_files import row
from variantlake.delta.log.snapshot import Snapshot
from variantlake.encoding.scalar import Scalar
from variantlake.parquet.read.check import check_file
from variantlake.paths import Path
from variantlake.table import Table
from variantlake.types import Primitive

COLUMN = """
  optional group varCol {
    required binary metadata;
    optional binary value;
    optional group typed_value {
      required group a {
        optional binary value;
        optional binary typed_value (STRING);
      }
      required group b {
        optional binary value;
        optional group typed_value {
          required group c {
            optional binary value;
            optional int32 typed_value (INT(8, true));
          }
        }
      }
    }
  }"""
NAMES = bytes.fromhex("11 03 00 01 02 03 61 62 63")
STATS = {
    "numRecords": 4,
    "nullCount": {"varCol": 2},
    "minValues": {"varCol": "0S&u501fk+ze0(tB98CpzF6vU0rJl95HpNdvjbtatpi(cu0wW^cTu"},
    "maxValues": {"varCol": "0S&u500&]LC42A9vqZe}wb#-i1}-a+cT!xdbWhT9cTx}7v<+K"},
}
FEATURES = ["variantType", "variantShredding"]


def document(text: str, number: int) -> dict[str, Any]:
    inner = {"typed_value": {"c": {"typed_value": number}}}
    return row(None, {"a": {"typed_value": text}, "b": inner}, NAMES)


@pytest.fixture
def table(tmp_path: File) -> File:
    rows = [document("variant", 1), None, document("min-string", 100), None]
    data = file_bytes(COLUMN, [{"varCol": each} for each in rows])
    (tmp_path / "part-0.parquet").write_bytes(data)
    field = {"name": "varCol", "type": "variant", "nullable": True, "metadata": {}}
    actions: list[dict[str, Any]] = [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": FEATURES,
                "writerFeatures": FEATURES,
            }
        },
        {
            "metaData": {
                "id": "0b1c0e5a-1111-4222-8333-444455556666",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": [field]}),
                "partitionColumns": [],
                "configuration": {"delta.enableVariantShredding": "true"},
            }
        },
        {
            "add": {
                "path": "part-0.parquet",
                "partitionValues": {},
                "size": len(data),
                "modificationTime": 0,
                "dataChange": True,
                "stats": json.dumps(STATS),
            }
        },
    ]
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / f"{0:020d}.json").write_text("\n".join(map(json.dumps, actions)))
    return tmp_path


def test_the_table_is_read(table: File) -> None:
    snapshot = Snapshot.read(table)
    assert (snapshot.version, snapshot.shredding_enabled) == (0, True)
    snapshot.check_writable()
    assert (
        list(check_file(table / "part-0.parquet", annotation=False, variant_columns=["varCol"]))
        == []
    )
    found = Table.open(table).scan(["varCol:a::string AS a", "varCol:b.c::int AS c"]).to_arrow()
    assert found.to_pylist() == [
        {"a": "variant", "c": 1},
        {"a": None, "c": None},
        {"a": "min-string", "c": 100},
        {"a": None, "c": None},
    ]


def test_the_statistics_are_those_of_the_example(table: File) -> None:
    snapshot = Snapshot.read(table)
    (add,) = snapshot.add_files()
    stats = read_stats(add.stats, snapshot.schema)
    column = ("varCol",)
    assert (stats.num_records, stats.variant_nulls[column]) == (4, 2)
    a, c = Path.of("a"), Path.of("b", "c")
    for bounds, text, number in (
        (stats.minimums[column], "min-string", 1),
        (stats.maximums[column], "variant", 100),
    ):
        assert bounds == {a: Scalar(Primitive.STRING, text), c: Scalar(Primitive.INT8, number)}


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("varCol:b.c::int = 100", 1),
        ("varCol:b.c::int > 100", 0),
        ("varCol:a::string >= 'variant'", 1),
        ("varCol:a::string < 'm'", 0),
        ("varCol IS NULL", 2),
    ],
)
def test_statistics_of_others_lose_no_rows(table: File, condition: str, rows: int) -> None:
    assert Table.open(table).scan("*", condition).count() == rows
