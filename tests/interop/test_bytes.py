"""What engines push into a scan, by the bytes of data files that they read."""

from __future__ import annotations

import pytest
from benchmarks.pushdown import engines, made, read_by

import variantlake as vl

CONDITIONS = ("id = 5000", "id BETWEEN 1000 AND 1100", "id IN (9000, 9001) AND kind = 'k1'")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> vl.Table:
    return made(tmp_path_factory.mktemp("bytes"), 20_000)[0]


@pytest.mark.parametrize("engine", ["Polars", "DuckDB", "DataFusion"])
def test_selective_conditions_read_a_tenth_or_less(table: vl.Table, engine: str) -> None:
    if engine == "DataFusion":
        pytest.importorskip("datafusion")
    query_of = engines(table, None)[engine]
    whole = read_by(query_of("id >= 0"))
    for condition in CONDITIONS:
        assert 0 < read_by(query_of(condition)) * 10 <= whole, condition
    assert read_by(query_of("id < 0")) == 0
