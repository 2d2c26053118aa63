"""The plugin of dbt-duckdb: sources that are pushed into, and models that become tables."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from variantlake.errors import InvalidValue

plugins = pytest.importorskip("dbt.adapters.duckdb.plugins")


@pytest.fixture
def plugin() -> Any:
    return plugins.BasePlugin.create("variantlake.dbt", config={}, alias="variantlake")


@pytest.fixture
def table(tmp_path: Path) -> vl.Table:
    """Four files of ten rows."""
    table = vl.Table.create(tmp_path / "t", "event VARIANT")
    table.append([{"n": n, "kind": f"k{n % 2}"} for n in range(40)], max_rows_per_file=10)
    return table.refresh()


def test_a_source_is_a_scan(plugin: Any, table: vl.Table) -> None:
    config = {"table": table.uri, "select": ["event:n::bigint AS n"], "where": "event:n::int >= 5"}
    with duckdb.connect() as connection:
        connection.register("source_df", plugin.load(config))
        connection.execute("CREATE VIEW source AS SELECT * FROM source_df")
        found = connection.execute("SELECT min(n), count(*) FROM source WHERE n < 8").fetchall()
    assert found == [(5, 3)]
    with pytest.raises(InvalidValue, match="needs table"):
        plugin.load({"select": "*"})


def test_a_model_becomes_a_table(plugin: Any, tmp_path: Path) -> None:
    file, place = tmp_path / "model.parquet", str(tmp_path / "model")
    target = SimpleNamespace(
        location=SimpleNamespace(path=str(file)),
        config={"variantlake_table": place, "variantlake_json_columns": ["doc"]},
    )
    for count in (3, 2):
        rows = {"id": list(range(count)), "doc": [f'{{"n": {n}}}' for n in range(count)]}
        pq.write_table(pa.table(rows), file)
        plugin.store(target)
        found = vl.Table.open(place).scan("id, doc:n::bigint AS n").to_pylist()
        assert found == [{"id": n, "n": n} for n in range(count)]
