"""Upkeep of tables in an object store."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import obstore
import pyarrow as pa
import pytest

import variantlake as vl
from tests import s3_server
from variantlake.errors import StoreFailed
from variantlake.maintenance import plan_compaction
from variantlake.maintenance.vacuuming.vacuum import vacuum
from variantlake.parquet.write import copy_row_groups
from variantlake.storage.list_files import walk
from variantlake.storage.objects import ObjectStore

ROOT = f"s3://{s3_server.BUCKET}"


@pytest.fixture(scope="module", autouse=True)
def s3() -> Iterator[None]:
    with s3_server.running():
        yield


def rows(n: int) -> pa.Table:
    return pa.table({"n": pa.array([n], pa.int32())})


def test_a_table_of_a_store_is_listed_and_emptied_of_what_nobody_needs() -> None:
    location = f"{ROOT}/odd name%20/vacuum"
    table = vl.Table.create(location, "n INT")
    table.append(rows(1))
    table.overwrite(rows(2))
    store = table.snapshot.store
    orphans = [f"day=a%3Ab/o {n}+%20é.parquet" for n in range(3)]
    others = ["_hidden/x", "inner/_delta_log/0.json", "inner/a.parquet", "inner/z.parquet"]
    for path in [*orphans, *others]:
        store.put(path, b"x")
    assert isinstance(store, ObjectStore)
    later = table.snapshot.refresh().last.modified + 24 * 3_600_000
    plan = vacuum(table.refresh().snapshot, 1, force=True, dry_run=True, now=later)
    assert (plan.files_unneeded, plan.kinds) == (4, {"data": 4})
    done = vacuum(table.refresh().snapshot, 1, force=True, now=later)
    assert done.files_removed == 4
    left = {entry.path for entry in walk(store, lambda _: True)}
    assert left >= set(others)
    assert len([path for path in left if not path.startswith(("_", "inner/"))]) == 1
    assert table.refresh().scan().to_arrow().to_pydict() == {"n": [2]}
    assert [each.operation for each in table.refresh().history(2)] == ["VACUUM END", "VACUUM START"]


def test_a_request_for_many_that_fails_is_made_one_by_one() -> None:
    table = vl.Table.create(f"{ROOT}/one by one", "n INT")
    store = table.snapshot.store
    for name in ("a.parquet", "b.parquet", "c.parquet"):
        store.put(name, b"x")
    delete = obstore.delete

    def failing(backend: object, paths: object) -> None:
        if not isinstance(paths, str) or paths == "b.parquet":
            raise PermissionError(paths)
        delete(backend, paths)  # type: ignore[arg-type]

    later = table.snapshot.last.modified + 24 * 3_600_000
    with (
        patch.object(obstore, "delete", failing),
        pytest.raises(StoreFailed, match=r"1 of 3 files could not be deleted: s3.*b.parquet"),
    ):
        vacuum(table.snapshot, 1, force=True, now=later)
    assert store.entry("b.parquet") is not None
    assert store.entry("c.parquet") is None


def test_files_are_joined_ordered_and_shredded_anew_and_older_versions_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    properties = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
    ddl = "event VARIANT, n INT, day STRING"
    table = vl.Table.create(
        f"{ROOT}/a b%/kept", ddl, partition_by="day", properties=properties,
        cluster_by="event:k::bigint",
    )  # fmt: skip
    for first in (0, 100, 200):
        numbers = range(first, first + 40)
        events = [f'{{"k": {n * 7919 % 1000}, "s": "x{n}", "z": {n / 4}}}' for n in numbers]
        days = [f"d {n % 2}" for n in numbers]
        data = {"event": events, "n": pa.array(numbers, pa.int32()), "day": days}
        table.append(pa.table(data), json_columns=["event"])
    table.delete("n IN (1, 3, 101, 102)")
    table = table.refresh()
    digest = table.digest()
    for module in (plan_compaction, copy_row_groups):
        monkeypatch.setattr(module, "MIN_ROW_GROUP_BYTES", 100)
    done = table.optimize("day = 'd 0'", max_deleted_share=0)
    assert (done.files_read, done.files_written) == (3, 1)
    first = table.version - 1
    assert table.cluster(budget=1 << 30).files_read >= 3
    assert table.reshred("k BIGINT, z DOUBLE").files_read
    assert table.drop_feature("variantShredding").version == table.refresh().version
    versions = range(first, table.refresh().version + 1)
    assert {vl.Table.open(table.uri, version).digest() for version in versions} == {digest}
    restored = table.restore(first)
    assert restored.files_restored == 6
    newest = table.refresh()
    assert newest.digest() == digest
    later = newest.snapshot.last.modified + 24 * 3_600_000
    gone = vacuum(newest.snapshot, 0, force=True, now=later).files_removed
    left = {entry.path for entry in walk(newest.snapshot.store, lambda _: True)}
    data_files = {path for path in left if path.endswith(".parquet") and not path.startswith("_")}
    assert gone
    assert len(data_files) == newest.files().num_rows
    assert table.refresh().digest() == digest
