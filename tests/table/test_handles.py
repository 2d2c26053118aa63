"""A handle follows its own writes, all its methods look at one version, a fixed one only reads."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl


@pytest.fixture
def table(tmp_path: Path) -> vl.Table:
    return vl.Table.create(
        tmp_path / "t", "id BIGINT", properties={"delta.enableChangeDataFeed": "true"}
    )


def ids(table: vl.Table) -> list[Any]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def test_every_read_sees_what_the_handle_wrote(table: vl.Table) -> None:
    done = table.append(pa.table({"id": [1, 2, 3]}))
    assert table.version == done.version == table.history(1)[0].version
    assert ids(table) == [1, 2, 3]
    assert table.sql("SELECT count(*) AS n FROM t").to_arrow()["n"].to_pylist() == [3]
    table.delete("id = 2")
    assert ids(table) == [1, 3]
    assert table.sql("SELECT count(*) AS n FROM t").to_arrow()["n"].to_pylist() == [2]
    assert table.changes(0).to_arrow().num_rows == 4
    assert table.files().num_rows == table.health().table_files
    table.add_column("note STRING")
    assert [field.name for field in table.schema.fields] == ["id", "note"]


def test_a_write_takes_the_handle_past_what_others_wrote_and_refresh_does_too(
    table: vl.Table,
) -> None:
    other = vl.Table.open(table)
    other.append(pa.table({"id": [1]}))
    assert (ids(table), table.version) == ([], 0)
    plan = table.delete("id = 1", dry_run=True)
    assert (plan.rows_deleted, table.version, ids(table)) == (1, 1, [1])
    other.append(pa.table({"id": [2]}))
    assert table.refresh() is table
    assert ids(table) == [1, 2]


def test_a_failed_write_leaves_a_good_handle(table: vl.Table) -> None:
    with pytest.raises(vl.InvalidSchema):
        table.append(pa.table({"nope": [1]}))
    assert ids(table) == []
    table.append(pa.table({"id": [1]}))
    assert ids(table) == [1]


@pytest.mark.parametrize(
    "write",
    [
        lambda t: t.append(pa.table({"id": [1]})),
        lambda t: t.overwrite(pa.table({"id": [1]})),
        lambda t: t.delete("id = 1"),
        lambda t: t.update({"id": 1}),
        lambda t: t.set_properties({"a": "b"}),
        lambda t: t.optimize(),
        lambda t: t.vacuum(),
        lambda t: t.restore(0),
        lambda t: t.refresh(),
    ],
)
def test_a_handle_of_a_version_only_reads(table: vl.Table, write: Callable[[Any], Any]) -> None:
    table.append(pa.table({"id": [1]}))
    for fixed in (
        vl.Table.open(table, version=0),
        vl.Table.open(table, timestamp=table.history()[1].time),
    ):
        again = pickle.loads(pickle.dumps(fixed))  # noqa: S301 - our own bytes
        for each in (fixed, again):
            with pytest.raises(vl.InvalidValue, match="fixed at version 0, for reading"):
                write(each)
            assert (ids(each), each.version) == ([], 0)
    assert table.refresh().version == 1


def test_what_takes_a_path_takes_a_table(table: vl.Table) -> None:
    table.append(pa.table({"id": [1]}))
    assert os.fspath(table) == table.uri
    assert ids(vl.Table.open(table)) == [1]
    # Where somebody would write, or read another version, this is no table.
    fixed = vl.Table.open(table, version=0)
    with pytest.raises(vl.NotADeltaTable):
        vl.Table.open(fixed)


def test_a_pickled_handle_is_at_the_same_version(table: vl.Table) -> None:
    table.append(pa.table({"id": [1]}))
    again = pickle.loads(pickle.dumps(table))  # noqa: S301 - our own bytes
    assert again == table
    assert hash(again) == hash(table)
    again.append(pa.table({"id": [2]}))
    assert (ids(again), ids(table)) == ([1, 2], [1])
    assert again != table
