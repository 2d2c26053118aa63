"""`Table.delete`: rows, files, vectors, history, and two writers at the same time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

import variantlake as vl
from tests.dml.changed import FEED, VECTORS, arrow, documents, ids, new_table, text
from variantlake.delta.actions.actions import AddCdcFile, AddFile
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.log.reconciliation import read_commit
from variantlake.dml.delete import delete
from variantlake.errors import CommitConflict, InvalidValue, UnsupportedFeature
from variantlake.planning.choose_files import FileChoice, choose_files
from variantlake.scan import table_scan

BOTH = pytest.mark.parametrize("properties", [VECTORS, {}], ids=["vectors", "rewritten"])


def files(table: vl.Table) -> dict[str, Any]:
    return {add.path: add for add in table.refresh().snapshot.add_files()}


@BOTH
def test_rows_for_which_the_condition_is_true_go(tmp_path: Path, properties: Any) -> None:
    table = new_table(tmp_path / "t", properties=properties)
    done = table.delete("event:user::string = 'u3'")
    gone = [number for number in range(40) if number % 5 == 3 and number % 7]
    assert done.rows_deleted == len(gone)
    # Rows whose user is NULL stay: the condition is not true of them.
    assert documents(table) == {n: text(n) for n in range(40) if n not in gone}
    assert table.refresh().history(1)[0].operation == "DELETE"


def test_a_file_that_is_written_anew_keeps_its_order_and_stays_apart(tmp_path: Path) -> None:
    """Else a run of clustering takes all of it for new, and a compaction joins it in vain."""
    kept = {"variantlake.clusteredBy": "id", "variantlake.apart": "1"}
    table = new_table(tmp_path / "t", rows=10, properties={})
    log = tmp_path / "t" / commit_path(table.snapshot.version)
    actions = [orjson.loads(line) for line in log.read_bytes().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["tags"] |= kept
    log.write_bytes(b"\n".join(map(orjson.dumps, actions)))
    done = vl.Table.open(tmp_path / "t").delete("id in (2, 3)")
    assert (done.files_rewritten, done.rows_deleted) == (1, 2)
    (add,) = files(table).values()
    assert {name: add.tags.get(name) for name in kept} == kept


def test_a_vector_keeps_the_file_and_what_the_log_says_of_it(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=10)
    ((path, before),) = files(table).items()
    done = table.delete("id in (2, 3)")
    ((again, after),) = files(table).items()
    assert (again, after.tags, done.files_marked, done.files_written) == (path, before.tags, 1, 0)
    assert after.deletion_vector.cardinality == 2
    stats = orjson.loads(after.stats)
    assert stats["tightBounds"] is False
    assert stats["numRecords"] == 10
    assert stats["minValues"] == orjson.loads(before.stats)["minValues"]
    table.delete("id = 5")
    ((_, last),) = files(table).items()
    assert last.deletion_vector.cardinality == 3
    info = table.refresh().history(1)[0].info
    assert info["operationParameters"]["predicate"] == '["id = 5"]'
    metrics = info["operationMetrics"]
    assert metrics["numDeletedRows"] == "1"
    assert metrics["numDeletionVectorsUpdated"] == "1"
    assert metrics["numRemovedFiles"] == "0"


def test_files_without_rows_go_and_almost_empty_ones_are_rewritten(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=80, per_file=40)
    done = table.delete("id < 40 or id > 41")
    assert (done.files_removed, done.files_rewritten, done.rows_copied) == (1, 1, 2)
    assert documents(table) == {n: text(n) for n in (40, 41)}
    assert all(add.deletion_vector is None for add in files(table).values())


def test_whole_partitions_go_unread(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", partition_by="day")
    for add in files(table).values():
        (tmp_path / "t" / add.path).write_bytes(b"")
    done = table.delete("day = 'd1'")
    assert (done.rows_deleted, done.files_rewritten, done.files_marked) == (20, 0, 0)
    assert {add.partition_values["day"] for add in files(table).values()} == {"d0"}
    assert table.delete().rows_deleted == 20
    assert files(table) == {}


def test_a_dry_run_and_no_rows_commit_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    version = table.version
    planned = table.delete("id < 3", dry_run=True)
    assert (planned.rows_deleted, planned.files_marked, planned.dry_run) == (3, 1, True)
    assert table.delete("id < 0").version == version
    assert table.refresh().version == version
    assert not list((tmp_path / "t").glob("*.bin"))


def test_what_may_not_lose_rows_is_refused_by_name(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", properties={"delta.appendOnly": "true"})
    with pytest.raises(UnsupportedFeature, match="append-only"):
        table.delete("id = 1")
    with pytest.raises(UnsupportedFeature, match="hash"):
        table.delete("hash(day) = 2")
    with pytest.raises(InvalidValue, match="cast"):
        new_table(tmp_path / "c").delete("event:user::int > 1")


def test_a_condition_may_compute(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=12)
    assert table.delete("id + 1 > 10 OR id * id = 9 AND length(day) = 2").rows_deleted == 3
    left = table.refresh().scan("id").to_arrow()["id"].to_pylist()
    assert set(left) == {0, 1, 2, 4, 5, 6, 7, 8, 9}
    parts = new_table(tmp_path / "p", rows=12, partition_by="day")
    assert parts.delete("concat(day, 'x') = 'd1x'").rows_deleted == 6
    with pytest.raises(InvalidValue):
        parts.refresh().delete("1 div (length(day) - 2) = 1")


def test_row_ids_stay_with_rows_that_are_copied(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=10, properties={"delta.enableRowTracking": "true"})
    table.delete("id in (0, 4)")
    ((path, _),) = files(table).items()
    column = table.properties["delta.rowTracking.materializedRowIdColumnName"]
    found = vl.parquet.read_table(tmp_path / "t" / path).to_pydict()
    assert found[column] == found["id"] == [1, 2, 3, 5, 6, 7, 8, 9]


def test_row_ids_stay_with_a_vector(tmp_path: Path) -> None:
    table = new_table(
        tmp_path / "t", rows=10, properties={**VECTORS, "delta.enableRowTracking": "true"}
    )
    ((_, before),) = files(table).items()
    table.delete("id < 9")
    ((_, after),) = files(table).items()
    assert (after.base_row_id, after.default_row_commit_version) == (
        before.base_row_id,
        before.default_row_commit_version,
    )


def test_two_deletes_of_different_rows_of_a_file_both_win(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=20)
    before = table.snapshot
    counts = {"id = 1": 1, "id = 2 or id = 12": 2, "id = 2": 0, "id <= 3": 2, "id >= 10": 9}
    for condition, rows in counts.items():
        assert delete(before, condition).rows_deleted == rows
    assert ids(table) == list(range(4, 10))
    assert table.refresh().version == before.version + 5
    metrics = [entry.info["operationMetrics"] for entry in table.history(5)]
    assert [int(each["numDeletedRows"]) for each in metrics] == [9, 2, 0, 2, 1]


def test_rows_that_another_writer_added(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    before = table.snapshot
    table.append(arrow(range(100, 110)))
    delete(before, "id < 5")  # would have found none of them
    with pytest.raises(CommitConflict, match="added file"):
        delete(before, "id = 9 or id = 105")
    assert ids(table) == [*range(5, 40), *range(100, 110)]
    assert len(list((tmp_path / "t").glob("*.bin"))) <= 1


def test_weaker_isolation_lets_blind_appends_pass(tmp_path: Path) -> None:
    properties = {**VECTORS, "delta.isolationLevel": "WriteSerializable"}
    table = new_table(tmp_path / "t", rows=10, properties=properties)
    before = table.snapshot
    table.append(arrow([100]))
    delete(before, "id = 9 or id = 100")
    assert ids(table) == [*range(9), 100]


@BOTH
def test_rows_that_were_moved_are_found_again(tmp_path: Path, properties: Any) -> None:
    table = new_table(tmp_path / "t", rows=64, per_file=32, properties=properties)
    before = table.snapshot
    delete(before, "id in (1, 40)" if not properties else "id < 31")  # rewrites files
    delete(before, "id in (2, 31, 41)")
    left = set(range(64)) - ({1, 40} if not properties else set(range(31))) - {2, 31, 41}
    assert ids(table) == sorted(left)


def test_the_change_feed_gets_the_deleted_rows(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=20, properties=FEED)
    done = table.delete("id in (3, 14)")
    actions = read_commit(table.snapshot.store, commit_path(done.version or 0))
    changes = [action for action in actions if isinstance(action, AddCdcFile)]
    found = [
        row
        for each in changes
        for row in vl.parquet.read_table(tmp_path / "t" / each.path).to_pylist()
    ]
    assert sorted((row["id"], row["_change_type"]) for row in found) == [
        (3, "delete"),
        (14, "delete"),
    ]
    # Files that only go tell it themselves.
    done = table.delete()
    actions = read_commit(table.snapshot.store, commit_path(done.version or 0))
    assert not any(isinstance(action, AddCdcFile | AddFile) for action in actions)


def test_columns_of_other_names_in_files(tmp_path: Path) -> None:
    mapped = {"delta.columnMapping.mode": "name"}
    for properties in (mapped, {**mapped, **VECTORS}):
        folder = tmp_path / str(len(properties))
        table = new_table(folder, properties=properties)
        table.delete("event:n::bigint > 36 or day = 'd1'")
        assert documents(table) == {n: text(n) for n in range(0, 37, 2)}


def test_the_files_of_a_delete_are_chosen_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path / "t")
    chosen = []

    def counted(*args: Any, **options: Any) -> FileChoice:
        chosen.append(choose_files(*args, **options))
        return chosen[-1]

    monkeypatch.setattr(table_scan, "choose_files", counted)
    done = delete(table.snapshot, "event:user::string = 'u3'", max_bytes=1 << 30)
    assert done.rows_deleted > 0
    assert len(chosen) == 1
