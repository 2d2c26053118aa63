"""Timestamps of nanoseconds in a table of microseconds: exact, cut on request, or an error."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from tests.cli.command import run
from variantlake.encoding.scalar import Scalar, encode_scalar
from variantlake.encoding.variant import Variant
from variantlake.errors import InvalidValue
from variantlake.parquet.variant.variant_arrays import variant_array, variants
from variantlake.types import Primitive

NANOS, MICROS = pa.timestamp("ns"), pa.timestamp("us")


def rows(*counts: int | None) -> pa.Table:
    times = pa.array(counts, pa.int64()).cast(NANOS)
    lists = pa.ListArray.from_arrays(pa.array(range(len(counts) + 1), pa.int32()), times)
    structs = pa.StructArray.from_arrays([times.cast(pa.timestamp("ns", "UTC"))], ["t"])
    return pa.table({"t": times, "l": lists, "s": structs})


def cut(*counts: int | None) -> list[dict[str, Any]]:
    times: list[Any] = pa.array(counts, pa.int64()).cast(MICROS).to_pylist()
    aware = [value and value.replace(tzinfo=dt.UTC) for value in times]
    return [
        {"t": t, "l": [t], "s": {"t": with_zone}} for t, with_zone in zip(times, aware, strict=True)
    ]


COLUMNS = "t TIMESTAMP_NTZ, l ARRAY<TIMESTAMP_NTZ>, s STRUCT<t: TIMESTAMP>"


def test_appends_are_exact_or_cut_on_request(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", COLUMNS)
    table.append(rows(5_000, None, -7_000))
    assert vl.Table.open(tmp_path / "t").scan().to_arrow().to_pylist() == cut(5, None, -7)
    with pytest.raises(InvalidValue, match=r"column 't'.*below microseconds") as caught:
        table.append(rows(1_000, 5_001))
    assert caught.value.row == 1
    assert "truncate_timestamps=True" in str(caught.value)
    other = vl.Table.create(tmp_path / "u", COLUMNS)
    other.append(rows(5_001, None, -7_001), truncate_timestamps=True)
    assert vl.Table.open(tmp_path / "u").scan().to_arrow().to_pylist() == cut(5, None, -8)


def test_the_first_nanoseconds_that_there_are_are_refused_by_name(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "at TIMESTAMP")
    first = pa.array([None, 1 - (1 << 63)], pa.int64()).cast(pa.timestamp("ns", "UTC"))
    with pytest.raises(InvalidValue, match="below microseconds") as caught:
        table.append(pa.table({"at": first}))
    assert caught.value.row == 1


@pytest.mark.parametrize("column", ["t", "l", "s"])
def test_convert_and_its_dry_run_say_the_same(tmp_path: Path, column: str) -> None:
    file = tmp_path / "f.parquet"
    pq.write_table(rows(1_000, 2_000, 3_001, None).select([column]), file, row_group_size=2)
    target = str(tmp_path / "t")
    said = []
    for dry_run in (True, False):
        with pytest.raises(InvalidValue, match=rf"column '{column}'.*below") as caught:
            vl.convert(target, str(file), dry_run=dry_run)
        said.append(str(caught.value))
        assert (caught.value.file, caught.value.row) == (str(file), 2)
    assert said[0] == said[1]
    vl.convert(target, str(file), dry_run=True, truncate_timestamps=True)
    vl.convert(target, str(file), truncate_timestamps=True)
    found = vl.Table.open(target).scan().to_arrow().to_pylist()
    assert found == [{column: row[column]} for row in cut(1, 2, 3, None)]


def test_int96_is_an_instant_at_any_depth_and_its_digits_are_looked_at(tmp_path: Path) -> None:
    file = tmp_path / "f.parquet"
    at = dt.datetime.fromisoformat
    times = [at("0001-01-01"), at("9999-12-31T23:59:59.999999"), None]
    table = pa.table({"t": pa.array(times, MICROS), "l": [[value] for value in times]})
    pq.write_table(table, file, use_deprecated_int96_timestamps=True)
    target = str(tmp_path / "t")
    vl.convert(target, str(file), dry_run=True)
    vl.convert(target, str(file))
    opened = vl.Table.open(target)
    assert [str(field.type) for field in opened.schema.fields] == ["timestamp", "array<timestamp>"]
    aware = [value and value.replace(tzinfo=dt.UTC) for value in times]
    found = opened.scan().to_arrow().to_pylist()
    assert found == [{"t": value, "l": [value]} for value in aware]
    pq.write_table(rows(1_000, 2_001).select(["t"]), file, use_deprecated_int96_timestamps=True)
    for dry_run in (True, False):
        with pytest.raises(InvalidValue, match="below microseconds") as caught:
            vl.convert(str(tmp_path / "u"), str(file), dry_run=dry_run)
        assert caught.value.row == 1


def test_nanoseconds_of_variants_stay(tmp_path: Path) -> None:
    file = tmp_path / "f.parquet"
    value = Variant(b"\x01\x00\x00", encode_scalar(Scalar(Primitive.TIMESTAMP_NTZ_NANOS, 1_001)))
    table = pa.table({"v": variant_array([value])})
    vl.parquet.write_table(table, file, shredding={"v": "TIMESTAMP_NTZ_NANOS"})
    vl.convert(str(tmp_path / "t"), str(file), rewrite=True, dry_run=True)
    vl.convert(str(tmp_path / "t"), str(file), rewrite=True, truncate_timestamps=True)
    (kept,) = variants(vl.Table.open(tmp_path / "t").scan().to_arrow()["v"])
    assert kept == value


def test_the_command_names_its_own_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "f.parquet"
    pq.write_table(rows(1_001).select(["t"]), file)
    given = ("convert", file, tmp_path / "t")
    done = run(monkeypatch, capfd, *given, "--dry-run")
    assert done.code == 1
    assert "--truncate-timestamps" in done.err
    assert run(monkeypatch, capfd, *given, "--truncate-timestamps").code == 0
