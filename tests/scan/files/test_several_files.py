"""Small files that are read as one: the rows that reading file after file gives."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import variantlake as vl
from variantlake.errors import VariantLakeError
from variantlake.scan.files.file_rows import Rows
from variantlake.scan.files.file_tasks import MOST_FILES, MOST_ROWS, together

SELECT = [
    "event:n::bigint AS n",
    "event:kind::string AS kind",
    "event:name::string AS name",
    "event:size::double AS size",
    "event:n::string AS text",
    "event:none::string AS none",
]
FILES, ROWS = 12, 40


def made(place: Path, **options: Any) -> vl.Table:
    """A table of small files in the order of `n`; `kind` has few values, `name` many."""
    table = vl.Table.create(place, "event VARIANT", **options)
    texts = [
        f'{{"n": {row}, "kind": "k{row % 3}", "name": "user{row:05}", "size": {row / 8}}}'
        if row % 7
        else f'{{"n": {row}}}'
        for row in range(FILES * ROWS)
    ]
    table.append(pa.table({"event": texts}), json_columns=["event"], max_rows_per_file=ROWS)
    return table.refresh()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> vl.Table:
    return made(
        tmp_path_factory.mktemp("several") / "t",
        properties={"delta.enableDeletionVectors": "true"},
    )


def one_by_one(scan: Any) -> list[dict[str, Any]]:
    """The rows of a scan, file after file."""
    files = list(scan.choice.files)
    return pa.Table.from_batches(scan.batches_of(files), scan.schema).to_pylist()


def sizes(scan: Any) -> list[int]:
    return [batch.num_rows for batch in scan.to_batches()]


def test_small_files_are_one_batch(table: vl.Table) -> None:
    for select in (SELECT, SELECT[:1], SELECT[1:2], SELECT[2:4]):
        scan = table.scan(select)
        assert sizes(scan) == [FILES * ROWS]
        assert scan.to_arrow().to_pylist() == one_by_one(scan)


def test_files_of_many_rows_are_one_batch(tmp_path: Path) -> None:
    """Whose integers are differences, and whose texts share their beginnings."""
    table = vl.Table.create(tmp_path / "t", "event VARIANT")
    texts = [
        f'{{"n": {row}, "kind": "k{row % 3}", "name": "user{row:05}", "size": {row / 7}}}'
        for row in range(6000)
    ]
    table.append(pa.table({"event": texts}), json_columns=["event"], max_rows_per_file=2000)
    scan = table.refresh().scan(SELECT)
    with patch.object(Rows, "values", autospec=True, side_effect=Rows.values) as left:
        assert sizes(scan) == [6000]
    assert {str(call.args[1].path) for call in left.call_args_list} == {"$['none']"}
    assert scan.to_arrow().to_pylist() == one_by_one(scan)


def test_rows_of_small_files_are_those_that_fulfil_the_condition(table: vl.Table) -> None:
    scan = table.scan(SELECT[:4], f"event:n::bigint >= {2 * ROWS + 5}")
    assert sizes(scan) == [ROWS - 5, (FILES - 3) * ROWS]  # of one file some, of the others all
    assert scan.to_arrow().to_pylist() == one_by_one(scan)
    assert scan.count() == (FILES - 2) * ROWS - 5
    assert table.scan(SELECT[:4], limit=ROWS + 3).to_arrow().num_rows == ROWS + 3


@pytest.mark.rule(36)
def test_rule_36_deleted_rows_of_small_files_stay_away(tmp_path: Path) -> None:
    table = made(tmp_path / "t", properties={"delta.enableDeletionVectors": "true"})
    table.delete(f"event:n::bigint = {4 * ROWS + 1}")
    scan = table.refresh().scan(SELECT[:4])
    assert sizes(scan) == [FILES * ROWS - 1]
    assert scan.to_arrow().to_pylist() == one_by_one(scan)


def test_files_of_other_layouts_are_read_one_by_one(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    other = ['{"n": "text", "kind": 1.5, "name": "x"}'] * 9
    table.set_properties({"variantlake.shredding.event": "STRUCT<kind: DOUBLE, n: STRING>"})
    table = table.refresh()
    table.append(pa.table({"event": other}), json_columns=["event"])
    table = table.refresh()
    for select in (["event:name::string AS a"], ["event:kind::string AS a"]):
        scan = table.scan(select)
        assert scan.to_arrow().to_pylist() == one_by_one(scan)


def test_what_one_file_raises_comes_behind_the_rows_before(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    files = [file.path for file in table.scan(SELECT[:4]).choice.files]
    Path(files[2]).write_bytes(b"no Parquet file")
    batches = table.scan(SELECT[:4]).to_batches()
    assert [next(batches).num_rows for _ in range(2)] == [ROWS, ROWS]
    with pytest.raises(VariantLakeError) as raised:
        next(batches)
    assert Path(files[2]).name in str(raised.value)


def test_a_value_without_a_cast_is_of_its_file(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    batches = table.scan(["event:name::int AS n"]).to_batches()
    with pytest.raises(VariantLakeError, match="part-"):
        list(batches)


def test_threads_read_small_files_together_too(
    table: vl.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = table.scan(SELECT[:4])
    monkeypatch.setattr("variantlake.scan.table_scan.SMALL_VALUES", 100)
    monkeypatch.setattr("variantlake.scan.files.file_tasks.MOST_FILES", 5)
    assert sizes(scan) == [5 * ROWS, 5 * ROWS, 2 * ROWS]
    assert scan.to_arrow().to_pylist() == one_by_one(scan)


@given(st.lists(st.integers(-1, MOST_ROWS // 3) | st.integers(0, 9)))
def test_files_stay_in_order_and_few(rows: list[int]) -> None:
    groups = list(together(enumerate(rows)))
    assert [each for group in groups for each in group] == list(range(len(rows)))
    for group in groups:
        assert 0 < len(group) <= MOST_FILES
        own = [rows[each] for each in group]
        assert len(group) == 1 or (min(own) >= 0 and sum(own) <= MOST_ROWS)
    for one, other in pairwise(groups):
        own = [rows[each] for each in one + other[:1]]
        assert min(own) < 0 or sum(own) > MOST_ROWS or len(own) > MOST_FILES
