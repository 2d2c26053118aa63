"""Typed mirrors: the same rows after any history, read by every Delta reader, at little cost."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st

import variantlake as vl
from tests.dml.changed import VECTORS
from tests.strategies import MORE
from variantlake.errors import (
    InvalidQuery,
    InvalidSchema,
    InvalidValue,
    MissingSource,
    UnsupportedFeature,
)
from variantlake.mirroring.mirror import MirrorResult
from variantlake.scan.table_scan import Scan

SELECT = "id, event:n::bigint AS n, event:user::string AS user, event:rest[0]::int AS first"


def rows(ids: Iterable[int], mark: int = 0) -> pa.Table:
    """Rows with documents, of which every fifth lacks a path."""
    ids = list(ids)
    users: list[Any] = [{} if n % 5 == 0 else {"user": f"u{n}"} for n in ids]
    texts = [
        json.dumps({"n": n * 10 + mark, "rest": [n % 3], **user})
        for n, user in zip(ids, users, strict=True)
    ]
    return pa.table({"id": pa.array(ids, pa.int64()), "event": texts})


def new_table(folder: Path, count: int = 20, properties: Any = VECTORS) -> vl.Table:
    table = vl.Table.create(folder, "id BIGINT, event VARIANT", properties=properties)
    if count:
        append(table, range(count), max_rows_per_file=5)
    return table


def append(table: vl.Table, ids: Iterable[int], mark: int = 0, **options: Any) -> None:
    table.append(rows(ids, mark), json_columns=["event"], **options)


def content(location: Path) -> list[tuple[Any, ...]]:
    found = vl.Table.open(location).scan().to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def expected(table: vl.Table) -> list[tuple[Any, ...]]:
    found = table.refresh().scan(SELECT).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def refreshed(table: vl.Table, target: Path, **options: Any) -> MirrorResult:
    done = vl.mirror(table, target, SELECT, **options)
    assert content(target) == expected(table)
    return done


def test_only_what_changed_is_read(tmp_path: Path) -> None:
    table, target = new_table(tmp_path / "t"), tmp_path / "m"
    done = refreshed(table, target)
    assert (done.rows_written, done.source_version, done.is_rebuilt) == (20, 1, True)
    assert refreshed(table, target).version == done.version
    append(table, range(20, 23))
    assert refreshed(table, target).files_read == 1
    done = vl.mirror(table, target)
    assert (done.files_read, done.files_written) == (0, 0)


def test_a_compaction_reads_nothing(tmp_path: Path) -> None:
    table, target = new_table(tmp_path / "t"), tmp_path / "m"
    refreshed(table, target)
    append(table, range(20, 22))
    refreshed(table, target)
    table.optimize()
    assert table.version > 2
    with patch.object(Scan, "batches_of", side_effect=AssertionError("read")):
        done = vl.mirror(table, target)
    assert (done.files_read, done.files_removed, done.source_version) == (0, 0, table.version)
    assert content(target) == expected(table)
    table.delete("id = 3")  # of the file that all of them are in now
    refreshed(table, target)
    table.restore(version=1)
    refreshed(table, target)


@pytest.mark.parametrize("reader", ["deltalake", "polars", "duckdb"])
def test_other_readers_give_equal_rows(tmp_path: Path, reader: str) -> None:
    table, target = new_table(tmp_path / "t"), tmp_path / "m"
    refreshed(table, target, cluster_by="n")
    table.update({"event:user": "new"}, "id = 4")
    table.delete("id in (7, 8)")
    refreshed(table, target)
    columns = ["id", "n", "user", "first"]
    if reader == "deltalake":
        found: Any = deltalake.DeltaTable(str(target)).to_pyarrow_table().select(columns)
    elif reader == "polars":
        found = pl.scan_delta(str(target)).select(columns).collect().to_arrow()
    else:
        # DuckDB's own extension for Delta must be downloaded: the files are those of delta-rs.
        files = deltalake.DeltaTable(str(target)).file_uris()
        chosen = ", ".join(f'"{column}"' for column in columns)
        found = duckdb.connect().read_parquet(files).select(chosen).to_arrow_table()
    assert sorted(tuple(row.values()) for row in found.to_pylist()) == expected(table)
    renamed = pl.scan_delta(str(target)).filter(pl.col("user") == "new").collect()
    assert renamed["id"].to_list() == [4]


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["append", "delete", "update", "upsert", "optimize", "restore", "empty", "erase"]
        ),
        st.sets(st.integers(0, 12), min_size=1, max_size=3),
        st.booleans(),
    ),
    min_size=1,
    max_size=7,
)


@settings(max_examples=4 * MORE, deadline=None)
@examples(_STEPS, st.sampled_from([VECTORS, {}, {"delta.checkpointInterval": "3"}]))
def test_any_history_is_followed(
    tmp_path_factory: pytest.TempPathFactory, steps: Any, properties: Any
) -> None:
    folder = tmp_path_factory.mktemp("m")
    table, target = new_table(folder / "t", 8, properties), folder / "m"
    refreshed(table, target)
    for number, (what, ids, refreshes) in enumerate(steps):
        listed = ", ".join(map(str, sorted(ids)))
        if what == "append":
            append(table, ids, number, max_rows_per_file=2)
        elif what == "delete":
            table.delete(f"id in ({listed})")
        elif what == "erase":
            table.erase(f"id in ({listed})")
        elif what == "update":
            table.update({"event:n": number}, f"id in ({listed})")
        elif what == "upsert":
            table.delete(f"id in ({listed})")
            table.upsert(rows(ids, number), "id", json_columns=["event"])
        elif what == "optimize":
            table.optimize()
        elif what == "restore":
            table.restore(version=max(1, table.version - 2))
        else:
            table.delete("id >= 0")
        if refreshes:
            refreshed(table, target)
    refreshed(table, target)
    assert vl.mirror(table, target).files_read == 0


def test_a_log_that_was_cut_is_followed_by_its_files(tmp_path: Path) -> None:
    table, target = new_table(tmp_path / "t"), tmp_path / "m"
    refreshed(table, target)
    append(table, range(20, 24))
    table.delete("id = 2")
    table.optimize()
    table.checkpoint()
    for version in range(table.version):
        (tmp_path / "t" / "_delta_log" / f"{version:020}.json").unlink(missing_ok=True)
    assert refreshed(vl.Table.open(tmp_path / "t"), target).files_read > 0


def test_another_table_in_the_place_is_read_anew(tmp_path: Path) -> None:
    target = tmp_path / "m"
    refreshed(new_table(tmp_path / "t"), target)
    other = new_table(tmp_path / "u", 3)
    assert refreshed(other, target).is_rebuilt


def test_files_that_others_put_into_the_mirror_go(tmp_path: Path) -> None:
    table, target = new_table(tmp_path / "t"), tmp_path / "m"
    refreshed(table, target)
    vl.Table.open(target).delete("id = 3")
    assert refreshed(table, target).is_rebuilt


def test_partitions_and_other_paths(tmp_path: Path) -> None:
    table, target = new_table(tmp_path / "t"), tmp_path / "m"
    vl.mirror(table, target, SELECT, partition_by="first")
    assert content(target) == sorted(expected(table))
    assert sorted(pl.read_delta(str(target)).rows()) == content(target)
    other = SELECT.replace("event:n::bigint", "event:n::bigint").replace(
        "event:user::string", "event:missing::string"
    )
    with pytest.raises(InvalidSchema, match="other columns"):
        vl.mirror(table, target, other)
    with pytest.raises(InvalidValue, match="partition_by 'first', not 'id'"):
        vl.mirror(table, target, SELECT, partition_by="id")
    with pytest.raises(InvalidValue, match="cluster_by '', not 'id'"):
        vl.mirror(table, target, SELECT, partition_by="first", cluster_by="id")
    assert vl.mirror(table, target, other, rebuild=True).is_rebuilt
    assert {row[2] for row in content(target)} == {None}


MAPPED = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}


def mapped_table(folder: Path) -> vl.Table:
    """Two rows with columns that a test may rename, drop and widen."""
    table = vl.Table.create(folder, "id BIGINT, n INT, s INT, event VARIANT", properties=MAPPED)
    table.append([{"id": 1, "n": 10, "s": 20, "event": {"k": 1}}, {"id": 2, "n": 11, "s": 21}])
    return table


@pytest.mark.parametrize(
    "properties",
    [{}, {"delta.columnMapping.mode": "name"}, {"delta.enableRowTracking": "true"}],
)
def test_a_column_of_another_type(tmp_path: Path, properties: dict[str, str]) -> None:
    table, target = mapped_table(tmp_path / "t"), tmp_path / "m"
    vl.mirror(table, target, "id, n", properties=properties)
    table.change_type("n", "BIGINT")
    table.append([{"id": 3, "n": 2**40}])
    with pytest.raises(InvalidSchema, match="since the last refresh: n is int in the mirror, not"):
        vl.mirror(table, target)
    assert vl.mirror(table, target, rebuild=True).is_rebuilt
    assert content(target) == [(1, 10), (2, 11), (3, 2**40)]
    assert str(vl.Table.open(target).schema) == "struct<id: long, n: long>"
    table.delete("id = 1")
    assert not vl.mirror(table, target, "id, n").is_rebuilt
    assert content(target) == [(2, 11), (3, 2**40)]


def test_a_rebuild_takes_other_columns(tmp_path: Path) -> None:
    table, target = mapped_table(tmp_path / "t"), tmp_path / "m"
    vl.mirror(table, target, "id, n", partition_by="id")
    with pytest.raises(InvalidSchema, match="columns: s is not in the mirror; n is only in the m"):
        vl.mirror(table, target, "id, s")
    with pytest.raises(InvalidSchema, match="columns: the order in the mirror is id, n"):
        vl.mirror(table, target, "n, id")
    vl.mirror(table, target, "s, id, event:k::int AS k", rebuild=True)
    rows = vl.Table.open(target).to_pylist()
    assert sorted(rows, key=str) == [{"s": 20, "id": 1, "k": 1}, {"s": 21, "id": 2, "k": None}]
    assert not vl.mirror(table, target).is_rebuilt
    with pytest.raises(InvalidSchema, match=r"keeps its partitions .* 'id' is not in the schema"):
        vl.mirror(table, target, "s, n", rebuild=True)
    ordered = tmp_path / "o"
    vl.mirror(table, ordered, "id, n", cluster_by="n")
    with pytest.raises(InvalidSchema, match="cannot cluster by 'n': the table has no column 'n'"):
        vl.mirror(table, ordered, "id, s", rebuild=True)


def test_a_column_that_was_renamed(tmp_path: Path) -> None:
    table, target = mapped_table(tmp_path / "t"), tmp_path / "m"
    vl.mirror(table, target, "id, n, event:k::int AS k")
    table.rename_column("n", "number")
    table.rename_column("event", "doc")
    with pytest.raises(InvalidQuery, match="n is called number now; event is called doc now"):
        vl.mirror(table, target)
    with pytest.raises(InvalidSchema, match="number is n in the mirror: number AS n"):
        vl.mirror(table, target, "id, number, doc:k::int AS k")
    table.append([{"id": 3, "number": 12, "doc": {"k": 3}}])
    done = vl.mirror(table, target, "id, number AS n, doc:k::int AS k")
    assert (done.files_read, done.is_rebuilt) == (1, False)
    assert content(target)[2] == (3, 12, 3)
    table.append([{"id": 4, "number": 13}])
    assert vl.mirror(table, target).files_read == 1


def test_another_column_of_the_same_name(tmp_path: Path) -> None:
    table, target = mapped_table(tmp_path / "t"), tmp_path / "m"
    vl.mirror(table, target, "id, n, s")
    table.drop_columns("s")
    with pytest.raises(InvalidQuery, match="since the last refresh: s is gone"):
        vl.mirror(table, target)
    table.add_column("s INT")
    assert vl.mirror(table, target).is_rebuilt
    assert content(target) == [(1, 10, None), (2, 11, None)]
    table.update({"s": 5}, "id = 2")
    table.rename_column("n", "old")
    table.rename_column("s", "n")
    table.rename_column("old", "s")
    vl.mirror(table, target)
    assert content(target) == [(1, None, 10), (2, 5, 11)]
    table.restore(table.version - 3)
    vl.mirror(table, target)
    assert content(target) == [(1, 10, None), (2, 11, 5)]


def test_a_mirror_that_says_only_texts_of_its_columns(tmp_path: Path) -> None:
    table, target = mapped_table(tmp_path / "t"), tmp_path / "m"
    vl.mirror(table, target, "id, n")
    mirror = vl.Table.open(target)
    described = json.loads(mirror.properties["variantlake.mirror"])
    del described["sources"]
    log = target / "_delta_log" / f"{mirror.version + 1:020}.json"
    metadata = json.loads((target / "_delta_log" / f"{0:020}.json").read_text().splitlines()[2])
    metadata["metaData"]["configuration"]["variantlake.mirror"] = json.dumps(described)
    log.write_text(json.dumps(metadata) + "\n")
    table.append([{"id": 3, "n": 12}])
    assert not vl.mirror(table, target).is_rebuilt
    assert "sources" in vl.Table.open(target).properties["variantlake.mirror"]
    assert len(content(target)) == 3


def test_refreshes_again_and_again(tmp_path: Path) -> None:
    table, target = new_table(tmp_path / "t"), tmp_path / "m"
    rounds: list[MirrorResult] = []

    def more(done: MirrorResult) -> None:
        rounds.append(done)
        append(table, [100 + len(rounds)])

    total = vl.mirror(
        table, target, SELECT, every=0.01, stop=lambda: len(rounds) > 2, on_refresh=more
    )
    assert total.rows_written == 22
    assert total.source_version == 3


def test_what_is_no_mirror_is_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", 3)
    with pytest.raises(InvalidValue, match="no mirror yet"):
        vl.mirror(table, tmp_path / "m")
    with pytest.raises(InvalidSchema, match="would be VARIANT"):
        vl.mirror(table, tmp_path / "m", "id, event")
    with pytest.raises(InvalidSchema, match="would be VARIANT"):
        vl.mirror(table, tmp_path / "m", "event:n AS n")
    with pytest.raises(InvalidQuery):
        vl.mirror(table, tmp_path / "m", "nope")
    assert not (tmp_path / "m").exists()
    with pytest.raises(InvalidSchema, match="not a mirror"):
        vl.mirror(table, tmp_path / "t", "id")
    with pytest.raises(InvalidValue, match="every"):
        vl.mirror(table, tmp_path / "m", SELECT, every="soon")


def test_two_at_the_same_time_write_it_once(tmp_path: Path) -> None:
    table, target = new_table(tmp_path / "t"), tmp_path / "m"
    refreshed(table, target)
    append(table, [20])
    original = Scan.batches_of
    done: list[MirrorResult] = []

    def slow(scan: Scan, files: Any) -> Any:
        if not done:
            done.append(MirrorResult(version=0, source_version=0))
            done[0] = vl.mirror(table, target)
        return original(scan, files)

    with patch.object(Scan, "batches_of", slow):
        second = vl.mirror(table, target)
    assert (done[0].files_written, second.files_written) == (1, 0)
    assert content(target) == expected(table)


def test_deleted_rows_are_taken_out_without_reading_the_table(tmp_path: Path) -> None:
    """Row by row, of a file that has lost rows already, of several files in one refresh."""
    for name, properties in (("copied", {}), ("marked", VECTORS)):
        table, target = new_table(tmp_path / f"t-{name}"), tmp_path / f"m-{name}"
        refreshed(table, target, properties=properties)
        for where in ("id = 7", "id = 8 OR id = 6", "id IN (1, 12, 19)", "id = 0"):
            table.delete(where)
            with patch.object(Scan, "batches_of", side_effect=AssertionError("it was read")):
                done = vl.mirror(table, target)
            assert content(target) == expected(table)
            assert (done.files_read, done.rows_written) == (0, 0)
        table.delete("id > 14")  # a file that has no rows any more
        refreshed(table, target)
        marked = [add.deletion_vector for add in vl.Table.open(target).snapshot.add_files()]
        assert name == "marked" or not any(marked)


def test_a_change_of_a_row_writes_few_others_again(tmp_path: Path) -> None:
    table, target = new_table(tmp_path / "t"), tmp_path / "m"
    with patch("variantlake.mirroring.mirror.ROW_BYTES", 2 << 20):  # eight rows to a group
        assert refreshed(table, target).files_written == 4
        append(table, range(20, 23))
        append(table, range(23, 26))
        assert refreshed(table, target).files_written == 1
    table.delete("id = 7")
    assert refreshed(table, target).files_removed == 1


def test_another_mirror_in_the_place_of_one_that_was_refreshed(tmp_path: Path) -> None:
    table, other, target = new_table(tmp_path / "t"), new_table(tmp_path / "o", 7), tmp_path / "m"
    refreshed(table, target)
    for source in (other, table):
        shutil.rmtree(target)
        assert refreshed(source, target).is_rebuilt
    table.delete("id = 3")
    assert not refreshed(table, target).is_rebuilt


def test_a_refresh_after_a_delete_does_not_import_pandas(tmp_path: Path) -> None:
    """It takes ten times as long as the refresh; PyArrow does so at many an occasion."""
    table = new_table(tmp_path / "t")
    vl.mirror(table, tmp_path / "m", f"{SELECT}, event:n::double AS d")
    table.delete("id = 7")
    code = "import sys; import variantlake as vl; vl.mirror(*sys.argv[1:]); "
    code += "sys.exit('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "t", tmp_path / "m"], check=False)
    assert done.returncode == 0
    assert vl.Table.open(tmp_path / "m").count() == 19


def test_deletes_of_which_the_older_vector_is_gone(tmp_path: Path) -> None:
    table, target = new_table(tmp_path / "t"), tmp_path / "m"
    table.delete("id = 3")
    refreshed(table, target)
    table.delete("id = 4")
    gone = MissingSource("a vacuum took it")
    with patch("variantlake.mirroring.deleted_rows.deleted_rows", side_effect=gone):
        assert refreshed(table, target).files_read > 0


def test_deletes_of_a_sorted_mirror_read_its_group_again(tmp_path: Path) -> None:
    table, target = new_table(tmp_path / "t"), tmp_path / "m"
    refreshed(table, target, cluster_by="user")
    table.delete("id = 3")
    assert refreshed(table, target).files_read > 0


def test_a_mirror_has_no_constraints(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    rule = {"delta.constraints.c": "n > 5"}
    with pytest.raises(UnsupportedFeature, match="checkConstraints"):
        vl.mirror(table, tmp_path / "new", SELECT, properties=rule)
    assert not (tmp_path / "new").exists()
