"""Rows that are updated, merged, moved or erased around keep their ids: a random history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st

import variantlake as vl
from tests.dml.changed import FEED, VECTORS, arrow, ids, new_table
from tests.dml.tracked import TRACKED, tracked_rows
from tests.strategies import MORE
from variantlake.delta.actions.actions import AddCdcFile
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.log.reconciliation import read_commit
from variantlake.delta.protocol.row_tracking import ROW_ID

PROPERTIES = [{}, VECTORS, {**VECTORS, **FEED}, {"delta.columnMapping.mode": "name"}]


@pytest.mark.parametrize("properties", PROPERTIES, ids=["plain", "vectors", "feed", "mapped"])
def test_updated_rows_keep_their_ids(tmp_path: Path, properties: Any) -> None:
    table = new_table(tmp_path / "t", rows=12, per_file=6, properties={**properties, **TRACKED})
    before = tracked_rows_of(table)
    assert table.update({"day": "x"}, "id in (1, 4, 7)", dry_run=True).rows_updated == 3
    version = table.update({"day": "x"}, "id in (1, 4, 7)").version or 0
    after = tracked_rows_of(table)
    assert {n: row_id for n, (row_id, _) in after.items()} == {
        n: row_id for n, (row_id, _) in before.items()
    }
    assert {n for n, (_, last) in after.items() if last == version} == {1, 4, 7}
    table.update({"day": "y"}, "id = 4")  # an id that is stored goes before the default
    assert tracked_rows_of(table)[4] == (before[4][0], version + 1)


def tracked_rows_of(table: vl.Table) -> dict[Any, tuple[int, int]]:
    return tracked_rows(table, table.refresh().snapshot.schema.fields[0].physical_name)


def test_the_history_says_that_ids_are_kept(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=4, properties={**VECTORS, **TRACKED})
    table.update({"day": "x"}, "id = 1")
    assert table.history(1)[0].info["tags"] == {"delta.rowTracking.preserved": "true"}
    table.erase("id = 2")
    assert table.history(1)[0].info["tags"] == {"delta.rowTracking.preserved": "true"}


def test_a_merge_gives_ids_to_new_rows_only(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=10, per_file=5, properties={**VECTORS, **TRACKED})
    before = tracked_rows(table)
    version = table.upsert(arrow([3, 8, 20, 21]), "id").version
    after = tracked_rows(table)
    assert (after[3], after[8]) == ((before[3][0], version), (before[8][0], version))
    assert min(after[20][0], after[21][0]) > max(row_id for row_id, _ in before.values())
    assert (after[20][1], after[21][1]) == (version, version)
    assert {n: after[n] for n in before if n not in (3, 8)} == {
        n: each for n, each in before.items() if n not in (3, 8)
    }


def test_the_change_feed_has_no_ids(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=6, properties={**VECTORS, **FEED, **TRACKED})
    done = table.update({"day": "x"}, "id = 1")
    actions = read_commit(table.snapshot.store, commit_path(done.version or 0))
    for action in actions:
        if isinstance(action, AddCdcFile):
            found = vl.parquet.read_table(tmp_path / "t" / action.path)
            assert table.properties[ROW_ID] not in found.column_names


def test_erased_rows_leave_the_ids_of_the_others(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=10, per_file=5, properties={**VECTORS, **TRACKED})
    table.update({"day": "x"}, "id = 7")
    before = tracked_rows(table)
    assert table.erase("id in (3, 8)").rows_erased == 2
    assert tracked_rows(table) == {n: each for n, each in before.items() if n not in (3, 8)}


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["update", "delete", "upsert", "append", "optimize", "cluster", "erase"]),
        st.sets(st.integers(0, 30), min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=6 * MORE, deadline=None)
@examples(_STEPS, st.sampled_from(PROPERTIES[:3]))
def test_ids_through_a_random_history(
    tmp_path_factory: pytest.TempPathFactory, steps: Any, properties: Any
) -> None:
    folder = tmp_path_factory.mktemp("t") / "t"
    given = {**properties, **TRACKED, "variantlake.clusterBy": "id"}
    table = new_table(folder, rows=12, per_file=4, properties=given)
    model = tracked_rows(table)
    for what, keys in steps:
        listed = ", ".join(map(str, sorted(keys)))
        changed = keys & model.keys()
        before = table.version
        if what == "update":
            table.update({"day": "z"}, f"id in ({listed})")
        elif what == "delete":
            table.delete(f"id in ({listed})")
        elif what == "erase":
            table.erase(f"id in ({listed})")
        elif what == "upsert":
            table.upsert(arrow(sorted(keys)), "id")
        elif what == "append":
            table.append(arrow(sorted(keys - model.keys())))
        elif what == "optimize":
            table.optimize()
        else:
            table.cluster()
        found = tracked_rows(table)
        highest = max((row_id for row_id, _ in model.values()), default=-1)
        for key in sorted(found):
            if key not in model:
                assert found[key][0] > highest
                model[key] = found[key]
                assert found[key][1] > before
            elif what in ("update", "upsert") and key in changed:
                assert found[key] == (model[key][0], table.version)
                model[key] = found[key]
        if what in ("delete", "erase"):
            model = {key: each for key, each in model.items() if key not in keys}
        assert found == model
        assert ids(table) == sorted(model)
