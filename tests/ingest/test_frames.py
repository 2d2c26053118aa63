"""Frames of pandas and Polars are appended as the rows that they show."""

from __future__ import annotations

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
