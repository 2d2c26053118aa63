"""The destination of dlt: what is tried again is loaded once, documents are Variants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import variantlake as vl
from variantlake.errors import UnsupportedFeature

dlt = pytest.importorskip("dlt")


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    from variantlake.dlt import destination

    monkeypatch.setenv("RUNTIME__DLTHUB_TELEMETRY", "false")
    return dlt.pipeline(
        "shop", destination=destination(tmp_path / "lake"), pipelines_dir=str(tmp_path / "dlt")
    )


def rows(tmp_path: Path, name: str) -> list[Any]:
    found = vl.Table.open(tmp_path / "lake" / name).scan().to_pylist()
    return sorted(found, key=lambda row: row["id"])


def test_appends_and_new_columns(pipeline: Any, tmp_path: Path) -> None:
    pipeline.run([{"id": 1, "user": {"name": "x", "tags": [1, "a"]}}], table_name="events")
    pipeline.run([{"id": 2, "user": {}, "more": 5}], table_name="events")
    assert rows(tmp_path, "events") == [
        {"id": 1, "user": {"name": "x", "tags": [1, "a"]}, "more": None},
        {"id": 2, "user": {}, "more": 5},
    ]


def test_merges_by_the_primary_key(pipeline: Any, tmp_path: Path) -> None:
    for state in ("new", "paid"):
        orders = [{"id": 1, "state": state}, {"id": len(state), "state": state}]
        pipeline.run(orders, table_name="orders", write_disposition="merge", primary_key="id")
    found = [(row["id"], row["state"]) for row in rows(tmp_path, "orders")]
    assert found == [(1, "paid"), (3, "new"), (4, "paid")]


def test_a_file_that_is_tried_again_is_loaded_once(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from variantlake.dlt import store

    schema = {"name": "t", "columns": {"id": {"data_type": "bigint"}}}
    for retry in range(2):
        file = tmp_path / f"t.abc.{retry}.parquet"
        pq.write_table(pa.table({"id": [1], "_dlt_id": ["x"]}), file)
        store(str(tmp_path / "lake"), str(file), schema)
    assert rows(tmp_path, "t") == [{"id": 1}]
    for disposition in ("replace", "merge"):
        with pytest.raises(UnsupportedFeature, match=disposition):
            store(str(tmp_path), "", {**schema, "write_disposition": disposition})
