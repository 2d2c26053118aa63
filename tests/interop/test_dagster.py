"""The IO manager of Dagster: assets are tables, and those who depend on them say as what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest

import variantlake as vl

dagster = pytest.importorskip("dagster")


def materialized(folder: Path, assets: list[Any]) -> Any:
    from variantlake.dagster import VariantLakeIOManager

    manager = VariantLakeIOManager(folder=str(folder))
    return dagster.materialize(assets, resources={"io_manager": manager})


def test_assets_are_tables(tmp_path: Path) -> None:
    @dagster.asset(key_prefix="shop")  # type: ignore[untyped-decorator]
    def events() -> Any:
        return [{"n": n, "user": {"name": f"u{n}"}} for n in range(4)]

    @dagster.asset  # type: ignore[untyped-decorator]
    def names(events: Any) -> Any:
        where = "document:n::int > 1"
        return events.scan("document:user.name::string AS u", where)

    @dagster.asset  # type: ignore[untyped-decorator]
    def counted(names: Any) -> Any:
        return pa.table({"rows": [names.scan().count()]})

    for _ in range(2):
        done = materialized(tmp_path, [events, names, counted])
        assert done.success
    assert vl.Table.open(tmp_path / "shop" / "events").scan().count() == 4
    assert vl.Table.open(tmp_path / "names").scan().to_pylist() == [{"u": "u2"}, {"u": "u3"}]
    assert vl.Table.open(tmp_path / "counted").scan().to_pylist() == [{"rows": 2}]
    (event,) = done.asset_materializations_for_node("counted")
    assert event.metadata["rows"].value == 1


def test_a_parameter_says_what_it_gets(tmp_path: Path) -> None:
    def numbers() -> Any:
        return pd.DataFrame({"n": [1, 2]})

    def doubled(numbers: Any) -> Any:
        return pa.table({"n": [int(numbers.n.sum())]})

    def arrow(doubled: Any) -> Any:
        return doubled.append_column("m", doubled["n"])

    def nothing() -> None:
        return None

    doubled.__annotations__["numbers"] = pd.DataFrame
    arrow.__annotations__["doubled"] = pa.Table
    made = [dagster.asset(each) for each in (numbers, doubled, arrow, nothing)]
    assert materialized(tmp_path, made).success
    assert vl.Table.open(tmp_path / "arrow").scan().to_pylist() == [{"n": 3, "m": 3}]


def test_partitions_are_refused(tmp_path: Path) -> None:
    days = dagster.StaticPartitionsDefinition(["a", "b"])

    @dagster.asset(partitions_def=days)  # type: ignore[untyped-decorator]
    def parts() -> Any:
        return [{"n": 1}]

    from variantlake.dagster import VariantLakeIOManager

    resources = {"io_manager": VariantLakeIOManager(folder=str(tmp_path))}
    done = dagster.materialize(
        [parts], resources=resources, partition_key="a", raise_on_error=False
    )
    assert not done.success
