"""Compaction that copies row groups as bytes: where it does, and what the log says then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.encoding.json import parse_json
from variantlake.maintenance import plan_compaction
from variantlake.parquet.variant.variant_arrays import variant_array
from variantlake.parquet.write import copy_row_groups

DDL = "id BIGINT, event VARIANT, x DOUBLE"


@pytest.fixture(autouse=True)
def _small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (plan_compaction, copy_row_groups):
        monkeypatch.setattr(module, "MIN_ROW_GROUP_BYTES", 200)


def rows(start: int, stop: int) -> pa.Table:
    texts = [
        json.dumps(
            {"n": i, "k": f"k{i}", "f": i / 4, "x": [i, {"y": None}], "z": None if i % 3 else 1}
        )
        for i in range(start, stop)
    ]
    return pa.table(
        {
            "id": pa.array(range(start, stop), pa.int64()),
            "event": variant_array([parse_json(text) for text in texts]),
            "x": [i / 3 for i in range(start, stop)],
        }
    )


def made(folder: Path, **options: Any) -> vl.Table:
    shredding = {"event": "n BIGINT, k STRING, f DECIMAL(18,2), z BIGINT, x ARRAY<VARIANT>"}
    vl.Table.create(folder, DDL, shredding=shredding, **options)
    for start in (0, 40, 80):
        vl.Table.open(folder).append(rows(start, start + 40))
    return vl.Table.open(folder)


def test_row_groups_are_copied_and_the_log_says_as_much(tmp_path: Path) -> None:
    copied, encoded = made(tmp_path / "1"), made(tmp_path / "2")
    digest = copied.digest()
    expected = copied.optimize(dry_run=True)
    assert (expected.copied.files, expected.encoded.files) == (3, 0)
    assert expected.not_copied == {}
    done = copied.optimize()
    assert (done.copied.files, done.copied.rows, done.encoded.files) == (3, 120, 0)
    one = vl.Table.open(tmp_path / "1")
    assert one.digest() == digest
    assert one.check_rewrite().equal
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_compaction, "MIN_ROW_GROUP_BYTES", 1 << 40)
        assert encoded.optimize().encoded.files == 3
    (add,) = one.snapshot.add_files()
    (fresh,) = vl.Table.open(tmp_path / "2").snapshot.add_files()
    assert orjson.loads(add.stats or "") == orjson.loads(fresh.stats or "")
    assert add.tags is not None
    assert fresh.tags is not None
    own = {"variantlake.file", "variantlake.sizes.event"}
    assert add.tags.keys() == fresh.tags.keys()
    others = add.tags.keys() - own
    assert {name: add.tags[name] for name in others} == {n: fresh.tags[n] for n in others}
    assert one.scan("id", where="event:n::long = 77").to_arrow()["id"].to_pylist() == [77]


@pytest.mark.parametrize(
    "properties", [{"delta.enableRowTracking": "true"}, {"delta.columnMapping.mode": "name"}]
)
def test_rows_with_ids_are_not_copied(tmp_path: Path, properties: dict[str, str]) -> None:
    table = made(tmp_path, properties=properties)
    digest = table.digest()
    expected = table.optimize(dry_run=True)
    is_mapped = "delta.columnMapping.mode" in properties
    assert expected.not_copied == ({} if is_mapped else {"its rows keep their ids": 3})
    done = table.optimize()
    assert done.copied.files == (3 if "delta.columnMapping.mode" in properties else 0)
    assert vl.Table.open(tmp_path).digest() == digest


def test_deleted_rows_are_not_copied(tmp_path: Path) -> None:
    table = made(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    table.delete("id = 50")
    digest = vl.Table.open(tmp_path).digest()
    done = vl.Table.open(tmp_path).optimize()
    assert done.copied.files == 0
    assert vl.Table.open(tmp_path).digest() == digest


def test_footers_that_differ_are_rewritten_column_by_column(tmp_path: Path) -> None:
    """The plan did not know; the rows come all the same."""
    table = made(tmp_path)
    table.add_column("note STRING")
    newest = vl.Table.open(tmp_path)
    newest.append(rows(120, 160).append_column("note", pa.array(["new"] * 40)))
    newest = vl.Table.open(tmp_path)
    digest = newest.digest()
    expected = newest.optimize(dry_run=True)
    assert expected.not_copied == {"their schemas differ": 4}  # that is in the footers alone
    done = newest.optimize()
    assert (expected.copied, expected.encoded) == (done.copied, done.encoded)
    assert (done.copied.files, done.encoded.files) == (0, 4)
    assert vl.Table.open(tmp_path).digest() == digest


def test_an_odd_file_does_not_keep_others_from_being_copied(tmp_path: Path) -> None:
    """One with deleted rows, one of another layout: each goes its own way, and a rerun has none."""
    table = made(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    table.append(rows(120, 160))
    table.refresh().delete("id >= 120 AND id < 150")
    table.refresh().set_properties({"variantlake.shredding.event": "k STRING"})
    table.refresh().append(rows(160, 200))
    table = vl.Table.open(tmp_path)
    digest = table.digest()
    target = sum(add.size for add in table.snapshot.add_files())
    expected = table.optimize(dry_run=True, target_file_size=target)
    assert (expected.copied.files, expected.encoded.files, expected.reshredded.files) == (3, 1, 1)
    done = table.optimize(target_file_size=target)
    assert (done.copied.files, done.encoded.files, done.reshredded.files) == (3, 1, 1)
    assert table.refresh().digest() == digest
    assert table.refresh().optimize(target_file_size=target).versions == ()
