"""Frames of pandas and Polars are appended as the rows that they show."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pytest

import variantlake as vl
from variantlake.errors import InvalidValue

DOCUMENTS: list[Any] = [{"a": 1}, {"b": [1, "x"]}, 7, "text", None, [True], {"a": {}}]


@pytest.fixture
def table(tmp_path: Path) -> vl.Table:
    return vl.Table.create(tmp_path / "t", "id BIGINT, event VARIANT")


def rows(table: vl.Table) -> list[Any]:
    found = table.refresh().scan("id, event").to_pylist()
    return [row["event"] for row in sorted(found, key=lambda row: row["id"])]


def test_pandas_keeps_the_shape_of_each_document(table: vl.Table) -> None:
    table.append([{"id": n, "event": each} for n, each in enumerate(DOCUMENTS)])
    frame = table.scan().to_pandas()
    again = table.create(f"{table.uri}-2", "id BIGINT, event VARIANT")
    again.append(frame)
    assert rows(again) == DOCUMENTS
    again.upsert(frame[frame.id > 1], key="id")
    again.upsert(frame.set_index("id"), key="id")
    assert rows(again) == DOCUMENTS


def test_missing_cells_arrays_and_text(table: vl.Table) -> None:
    events = [np.nan, pd.NaT, {"n": np.int64(2)}, np.array([1, 2])]
    table.append(pd.DataFrame({"id": range(4), "event": events}))
    table.append(pd.DataFrame({"id": [4, 5], "event": ['{"a":1}', None]}))  # text is JSON
    assert rows(table) == [None, None, {"n": 2}, [1, 2], {"a": 1}, None]


def test_cells_that_no_column_holds(table: vl.Table) -> None:
    with pytest.raises(InvalidValue, match=r"row 1.*column 'event'"):
        table.append(pd.DataFrame({"event": [1, {"a": object()}]}))
    with pytest.raises(InvalidValue, match="no type in common"):
        table.append(pd.DataFrame({"id": [1, "x"]}))


def test_lazy_frames_of_polars(table: vl.Table) -> None:
    table.append([{"id": n, "event": {"n": n}} for n in range(4)])
    lazy = vl.scan_polars(table.refresh()).filter(pl.col("id") > 1)
    table.append(lazy.with_columns(pl.col("id") + 10))
    assert rows(table) == [{"n": n} for n in (0, 1, 2, 3, 2, 3)]


NOON = dt.datetime.fromisoformat("2026-01-01T12:00")


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("DECIMAL(10,2)", [1.005]),
        ("DECIMAL(10,2)", [1.5, float("nan")]),
        ("DATE", [NOON]),
        ("BOOLEAN", [1, 2]),
        ("TIMESTAMP", [1_767_225_600]),
        ("TIMESTAMP_NTZ", [NOON.replace(tzinfo=dt.UTC)]),
        ("FLOAT", [0.5, 1e300]),
    ],
)
@pytest.mark.parametrize("verb", ["append", "upsert"])
def test_a_column_that_would_lose_something_is_refused(
    tmp_path: Path, kind: str, values: list[Any], verb: str
) -> None:
    table = vl.Table.create(tmp_path / "t", f"id BIGINT, n {kind}")
    frame = pl.DataFrame({"id": range(len(values)), "n": values})
    more = {"key": "id"} if verb == "upsert" else {}
    with pytest.raises((vl.InvalidSchema, vl.InvalidValue), match="column 'n' is"):
        getattr(table, verb)(frame, **more)
    assert table.refresh().version == 0


@pytest.mark.parametrize("verb", ["append", "upsert"])
def test_columns_of_other_types_that_lose_nothing(tmp_path: Path, verb: str) -> None:
    table = vl.Table.create(
        tmp_path / "t",
        "id BIGINT, at TIMESTAMP, day DATE, price DECIMAL(10,2), whole DECIMAL(10,2), b BOOLEAN",
    )
    midnight = pd.Timestamp("2026-01-01")
    frame = pd.DataFrame(
        {
            "id": np.array([1, 2], np.uint64),
            "at": [pd.Timestamp(NOON), pd.NaT],
            "day": [midnight, pd.NaT],
            "price": [0.07, np.nan],
            "whole": [3, 4],
            "b": [0, 1],
        }
    )
    getattr(table, verb)(frame, **({"key": "id"} if verb == "upsert" else {}))
    first, second = (list(row.values()) for row in table.refresh().to_pylist())
    at, day = NOON.replace(tzinfo=dt.UTC), dt.date(2026, 1, 1)
    assert first == [1, at, day, Decimal("0.07"), Decimal(3), False]
    assert second == [2, None, None, None, Decimal(4), True]
