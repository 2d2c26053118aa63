"""Ibis on DuckDB works over a table that is attached to its connection."""

from __future__ import annotations

import pytest

import variantlake as vl
from variantlake.storage.opening import open_file

ibis = pytest.importorskip("ibis")
pytest.importorskip("pyarrow_hotfix")  # which Ibis needs on DuckDB
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table")  # Ibis calls it


def test_ibis_on_duckdb(table: vl.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = set()

    def noted(path: str) -> object:
        opened.add(path)
        return open_file(path)

    monkeypatch.setattr("variantlake.scan.files.file_rows.open_file", noted)
    lake = ibis.duckdb.connect()
    vl.duckdb.attach(lake.con, "events", table, "event:n::bigint AS n, event:kind::string AS kind")
    events = lake.table("events")
    last = events.filter(events.n >= 35)
    query = last.group_by("kind").agg(count=last.count()).order_by("kind")
    assert query.to_pyarrow().to_pylist() == [
        {"kind": "even", "count": 2},
        {"kind": "odd", "count": 3},
    ]
    assert len(opened) == 1


@pytest.fixture
def table(tmp_path_factory: pytest.TempPathFactory) -> vl.Table:
    """Four files of ten rows."""
    table = vl.Table.create(tmp_path_factory.mktemp("ibis") / "t", "event VARIANT")
    rows = [{"n": n, "kind": "odd" if n % 2 else "even"} for n in range(40)]
    table.append(rows, max_rows_per_file=10)
    return table.refresh()
