"""Folders of Parquet files that become partitioned tables where they are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.errors import (
    InvalidSchema,
    InvalidValue,
    MissingSource,
    UnsupportedFeature,
    VariantLakeError,
)
from variantlake.ingest.conversion.folders import convert_folder

NULL = "__HIVE_DEFAULT_PARTITION__"


def _write(folder: Path, inside: str, **columns: Any) -> None:
    (folder / inside).mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns or {"id": [len(inside)]}), folder / inside / "a.parquet")


def _convert(folder: Path, ddl: str) -> vl.Table:
    convert_folder(str(folder), parse_table_ddl(ddl))
    return vl.Table.open(folder)


def test_values_are_in_the_names_of_folders(tmp_path: Path) -> None:
    folder = tmp_path / "x=1" / "t"  # folders above the table are none of it
    for name, number in (("day=2026-01-31/p=a%2Fb", 1), (f"day={NULL}/p=%3D", 2)):
        _write(folder, name, id=[number])
    made = _convert(folder, "day DATE, P STRING")
    rows = made.scan().to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], str(row["day"]), row["P"]) for row in rows] == [
        (1, "2026-01-31", "a/b"),
        (2, "None", "="),
    ]
    assert made.scan(where="P = 'a/b'").count() == 1
    assert (made.version, made.snapshot.partition_columns) == (0, ("day", "P"))


def test_a_number_is_written_once_however_a_folder_does(tmp_path: Path) -> None:
    _write(tmp_path, "n=01", id=[1])
    _write(tmp_path, "n=1", id=[2])
    assert _convert(tmp_path, "n INT").scan(where="n = 1").count() == 2


@pytest.mark.parametrize(
    ("inside", "column", "ddl", "error"),
    [
        ("n=x", "id", "n INT", InvalidValue("n=x is not a value")),
        ("n=1", "n", "n INT", InvalidSchema("is a column of the files too")),
        ("n=1", "id", "m INT", InvalidSchema("m=...")),
        ("n=1/m=2", "id", "n INT", InvalidSchema("n=...")),
        ("m=1/n=2", "id", "n INT, m INT", InvalidSchema("n=.../m=...")),
        ("other", "id", "other INT", InvalidSchema("other=...")),
        ("n=1", "id", "n TIMESTAMP", UnsupportedFeature("zone of the timestamp")),
    ],
)
def test_what_cannot_be_converted_leaves_the_folder_alone(
    tmp_path: Path, inside: str, column: str, ddl: str, error: VariantLakeError
) -> None:
    _write(tmp_path, inside, **{column: [1]})
    with pytest.raises(type(error), match=re.escape(error.message)):
        _convert(tmp_path, ddl)
    assert [each.name for each in tmp_path.iterdir()] == [inside.split("/", maxsplit=1)[0]]


def test_no_file_is_rewritten(tmp_path: Path) -> None:
    _write(tmp_path, "n=1", t=pa.array([1], pa.timestamp("ns")))
    with pytest.raises(UnsupportedFeature, match="stored as another type"):
        _convert(tmp_path, "n INT")


def test_a_folder_without_files_is_missing(tmp_path: Path) -> None:
    with pytest.raises(MissingSource):
        _convert(tmp_path, "n INT")


def test_the_verb_makes_a_partitioned_table_of_its_folder(tmp_path: Path) -> None:
    for day, region in (("2026-01-31", "eu"), ("2026-02-01", "us")):
        _write(tmp_path, f"day={day}/region={region}", id=[1, 2])
    folders = ["day DATE", "region STRING"]
    planned = vl.convert(tmp_path, tmp_path, partition_by=folders, dry_run=True)
    assert [step.action.value for step in planned.steps] == ["add", "add"]
    assert not (tmp_path / "_delta_log").exists()
    done = vl.convert(tmp_path, tmp_path, partition_by=folders, properties={"of": "me"})
    assert (done.version, done.rows_written, len(done.steps)) == (0, 4, 2)
    made = vl.Table.open(tmp_path)
    assert (made.snapshot.partition_columns, made.properties["of"]) == (("day", "region"), "me")
    assert made.scan(where="day = DATE'2026-01-31' AND region = 'eu'").count() == 2
    with pytest.raises(InvalidValue, match="a Delta table already"):
        vl.convert(tmp_path, tmp_path, partition_by=folders)


@pytest.mark.parametrize(
    ("source", "more", "said"),
    [
        ("other", {}, "the folder that holds the files"),
        (".", {"rewrite": True}, "rewrite is for files that are rewritten"),
        (".", {"json_columns": "id"}, "json_columns is for files that are rewritten"),
    ],
)
def test_what_partitions_cannot_be_combined_with(
    tmp_path: Path, source: str, more: dict[str, Any], said: str
) -> None:
    _write(tmp_path, "n=1", id=[1])
    with pytest.raises(UnsupportedFeature, match=said):
        vl.convert(tmp_path, tmp_path / source, partition_by="n INT", **more)
