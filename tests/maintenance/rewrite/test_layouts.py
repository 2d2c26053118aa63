"""In which layout a rewrite puts rows: whoever rewrites goes by one rule."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.variant.variant_group import variant_groups
from variantlake.shredding import layout
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.schema import ShreddingSchema

REWRITES: dict[str, Callable[[vl.Table], object]] = {
    "optimize": lambda table: table.optimize(),
    "cluster": lambda table: table.cluster(),
    "delete": lambda table: table.delete("id = 3"),
}
each_rewrite = pytest.mark.parametrize("rewrite", list(REWRITES))


def layouts(table: vl.Table) -> set[ShreddingSchema]:
    snapshot = table.refresh().snapshot
    footers = [read_footer(snapshot.location(add.path)) for add in snapshot.add_files()]
    return {group.schema for each in footers for group in variant_groups(each, {("event",)})}


def rows(table: vl.Table) -> list[str]:
    return sorted(map(str, table.refresh().scan("id, event").to_arrow().to_pylist()))


def table_of(folder: Path, shredding: str, monkeypatch: pytest.MonkeyPatch) -> vl.Table:
    """Two files of the same rows, which another program may have written."""
    documents = [{"a": n, "A": f"upper{n}"} for n in range(10)]
    events = vl.parquet.variant_array([vl.parse_json(json.dumps(each)) for each in documents])
    for name in ("1.parquet", "2.parquet"):
        both = pa.table({"id": pa.array(range(10), pa.int64()), "event": events})
        with monkeypatch.context() as patch:
            patch.setattr(layout, "check_writable", lambda _: None)  # we never write such a file
            vl.parquet.write_table(both, folder / name, shredding=shredding)
    vl.convert(folder, folder)
    table = vl.Table.open(folder)
    table.set_clustering("id")
    return table.refresh()


@each_rewrite
def test_columns_that_differ_by_case_alone_are_not_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rewrite: str
) -> None:
    table = table_of(tmp_path, "a BIGINT, A STRING", monkeypatch)
    before = rows(table)
    REWRITES[rewrite](table)
    assert layouts(table) == {ShreddingSchema()}
    assert rows(table) == [row for row in before if rewrite != "delete" or "'id': 3" not in row]


@each_rewrite
def test_a_table_that_forbids_shredding_gets_no_shredded_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rewrite: str
) -> None:
    table = table_of(tmp_path, "a BIGINT", monkeypatch)
    assert layouts(table) == {parse_ddl("a BIGINT")}
    table.set_properties({"delta.enableVariantShredding": "false"})
    REWRITES[rewrite](table.refresh())
    assert layouts(table) == {ShreddingSchema()}
