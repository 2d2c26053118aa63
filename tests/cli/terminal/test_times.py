"""Dates and timestamps in years that Python does not reach, as Spark writes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from tests.cli.command import Outcome, run
from variantlake.table import Table

Run = Callable[..., Outcome]

DAYS = [2932897, -719529, 0, None]


@pytest.fixture
def variantlake(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    return partial(run, monkeypatch, capfd)


@pytest.fixture
def table(tmp_path: Path) -> str:
    made = Table.create(
        tmp_path / "t", "d DATE, t TIMESTAMP, n TIMESTAMP_NTZ, s STRUCT<d: DATE, l: ARRAY<DATE>>"
    )
    days = pa.array(DAYS, pa.int32()).cast(pa.date32())
    micros = pa.array(
        [None if day is None else day * 86_400_000_000 + 1_230_000 for day in DAYS], pa.int64()
    )
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 4], pa.int32()), days)
    made.append(
        pa.table(
            {
                "d": days,
                "t": micros.cast(pa.timestamp("us", "UTC")),
                "n": micros.cast(pa.timestamp("us")),
                "s": pa.StructArray.from_arrays([days, lists], names=["d", "l"]),
            }
        )
    )
    return str(tmp_path / "t")


FAR = {
    "d": "+10000-01-01",
    "t": "+10000-01-01 00:00:01.23+00:00",
    "n": "+10000-01-01 00:00:01.23",
    "s": {"d": "+10000-01-01", "l": ["+10000-01-01"]},
}


def test_the_local_engine_writes_every_year(variantlake: Run, table: str) -> None:
    query = ("query", table, "SELECT d, t, n, s FROM t", "--engine", "local")
    found = [json.loads(line) for line in variantlake(*query, "--json").out.splitlines()]
    assert found[0] == FAR
    assert found[1]["d"] == "-0001-12-31"
    assert found[2]["n"] == "1970-01-01 00:00:01.23"
    assert found[3] == {"d": None, "t": None, "n": None, "s": {"d": None, "l": [None]}}
    shown = variantlake("query", table, "SELECT d, t FROM t", "--engine", "local").out
    assert "+10000-01-01 00:00:01.23+00:00" in shown


def test_cat_writes_every_year(variantlake: Run, table: str) -> None:
    found = [json.loads(line) for line in variantlake("cat", table).out.splitlines()]
    assert found[0] == FAR
    assert found[1]["s"] == {"d": "-0001-12-31", "l": ["-0001-12-31"]}


def test_a_limit_beyond_python_is_refused_by_name(variantlake: Run, table: str) -> None:
    query = "SELECT d FROM t WHERE d > DATE '+10000-01-01'"
    refused = variantlake("query", table, query, "--engine", "local")
    assert refused.code == 1
    assert "does not take '+10000-01-01' as a date" in refused.err
