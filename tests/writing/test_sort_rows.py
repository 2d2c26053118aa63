"""Files sorted by paths: values ascend within a file, NULLs come last, and nothing else changes."""

from __future__ import annotations

import gzip
import json
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from tests.corpora import EARTHQUAKES
from tests.ingest.test_load import documents
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.stats.variant_bounds import decode_bounds
from variantlake.errors import InvalidPath, InvalidSchema
from variantlake.ingest.local_run import ingest_here
from variantlake.paths import Path as VariantPath
from variantlake.writing import files

MAGNITUDES = "properties STRUCT<mag: DECIMAL(18, 4), place: STRING>"


def magnitudes(table: Path) -> list[list[float | None]]:
    """The magnitudes of each file, in the order of its rows."""
    snapshot = Snapshot.read(table)
    found = []
    for add in sorted(snapshot.add_files(), key=lambda add: add.path):
        column = vl.parquet.read_table(snapshot.location(add.path)).column("event")
        texts = vl.to_json(column.combine_chunks()).to_pylist()
        found.append([json.loads(text)["properties"]["mag"] for text in texts if text])
    return found


def ascending(values: list[Any]) -> bool:
    known = [value for value in values if value is not None]
    return values == sorted(known) + [None] * (len(values) - len(known))


@pytest.mark.parametrize(
    "order",
    ["$.properties.mag", "event:properties.mag::double", ["$['properties']['mag']", "$.id"]],
    ids=str,
)
def test_rows_of_each_file_ascend(tmp_path: Path, order: Any) -> None:
    lines = gzip.decompress(EARTHQUAKES.read_bytes()).splitlines()[:400]
    documents_in = [json.loads(line) for line in lines]
    documents_in[5]["properties"]["mag"] = documents_in[9]["properties"]["mag"] = None
    source = tmp_path / "a.ndjson"
    source.write_text("\n".join(map(json.dumps, documents_in)))
    result = ingest_here(source, tmp_path / "t", order_by=order, max_rows_per_file=120)
    (first, *others) = magnitudes(tmp_path / "t")
    assert result.files_written == 1 + len(others) == 4
    assert all(map(ascending, [first, *others]))
    # One task's rows are sorted together, so that its files follow one another.
    assert ascending([value for part in (first, *others) for value in part])
    plain = ingest_here(source, tmp_path / "u")
    key = lambda row: row.to_json()
    assert plain.rows_written == result.rows_written
    assert sorted(documents(tmp_path / "t"), key=key) == sorted(documents(tmp_path / "u"), key=key)


def test_pages_and_row_groups_get_narrow_bounds(tmp_path: Path) -> None:
    source = tmp_path / "a.ndjson"
    source.write_text("".join(f'{{"n": {i * 7919 % 10_000}}}\n' for i in range(10_000)))
    properties = {"variantlake.rowGroupRows": "1000"}
    ingest_here(source, tmp_path / "t", order_by="$.n", properties=properties)
    (add,) = Snapshot.read(tmp_path / "t").add_files()
    metadata = pq.read_metadata(tmp_path / "t" / add.path)
    bounds = []
    for group in range(metadata.num_row_groups):
        (column,) = (
            metadata.row_group(group).column(i)
            for i in range(metadata.num_columns)
            if metadata.row_group(group).column(i).path_in_schema.endswith("n.typed_value")
        )
        assert column.statistics is not None
        bounds.append((column.statistics.min, column.statistics.max))
    assert bounds == [(i, i + 999) for i in range(0, 10_000, 1000)]


def test_a_sorted_file_ends_where_its_memory_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "SORT_BYTES", 100_000)
    table = vl.Table.create(tmp_path / "t", "n INT, event VARIANT, day DATE", partition_by=["day"])
    rows = 50_000
    data = pa.table({"n": [i * 31 % rows for i in range(rows)], "event": ["1"] * rows})
    batches = pa.RecordBatchReader.from_batches(data.schema, data.to_batches(5000))
    table.append(batches, json_columns=["event"], order_by="n")
    adds = list(table.refresh().snapshot.add_files())
    assert len(adds) > 2
    found: list[list[Any]] = [
        pq.read_table(tmp_path / "t" / a.path, columns=["n"])["n"].to_pylist() for a in adds
    ]
    assert all(part == sorted(part) for part in found)
    assert sorted(n for part in found for n in part) == list(range(rows))


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ("$.nope", "not shredded"),
        ("$.properties", "holds objects"),
        ("$.geometry.coordinates[0]", "not shredded"),
        ("nope:a", "no column 'nope'"),
        ("$.properties.mag::string", "unexpected"),
        ("event:properties.mag::string", "is shredded as decimal"),
        ("event:", "expected a key"),
    ],
)
def test_what_cannot_be_sorted_by_is_refused(tmp_path: Path, order: str, message: str) -> None:
    with pytest.raises((InvalidSchema, InvalidPath), match=message):
        ingest_here(EARTHQUAKES, tmp_path / "t", order_by=order, shredding=MAGNITUDES)
    assert not (tmp_path / "t").exists()


def test_strings_of_many_bytes_have_bounds_in_the_log(tmp_path: Path) -> None:
    source = tmp_path / "a.ndjson"
    texts = ["b" * 6000, "a" * 7000, "c" * 9000]
    source.write_text("\n".join(json.dumps({"text": text, "n": 1}) for text in texts))
    ingest_here(source, tmp_path / "t")
    (add,) = Snapshot.read(tmp_path / "t").add_files()
    column = pq.read_metadata(tmp_path / "t" / add.path).row_group(0)
    assert any(  # what Parquet's own writer leaves out
        not getattr(column.column(i).statistics, "has_min_max", False)
        for i in range(column.num_columns)
        if column.column(i).path_in_schema.endswith("text.typed_value")
    )
    assert add.stats is not None
    stats = json.loads(add.stats)
    path = VariantPath.parse("$.text")
    low = decode_bounds(stats["minValues"]["event"])[path].value
    high = decode_bounds(stats["maxValues"]["event"])[path].value
    assert isinstance(low, str)
    assert isinstance(high, str)
    assert texts[1].startswith(low)
    assert 0 < len(low) < 2000
    assert high > texts[2]


def test_uuids_are_sorted_by_their_bytes(tmp_path: Path) -> None:
    given = [uuid.UUID(int=number) for number in (3, 1 << 127, 2)]
    table = vl.Table.create(tmp_path, "v VARIANT", properties={"variantlake.shredding.v": "u UUID"})
    table.append(
        pa.table({"v": vl.parquet.variant_array([{"u": each} for each in given])}), order_by="v:u"
    )
    (add,) = table.refresh().snapshot.add_files()
    rows = vl.parquet.variants(vl.parquet.read_table(tmp_path / add.path).column("v"))
    assert [each.to_python()["u"] for each in rows if each] == sorted(given)
