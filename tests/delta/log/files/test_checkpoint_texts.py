"""Paths, statistics and tags that stay in a checkpoint until somebody asks for them."""

from __future__ import annotations

import json
import pickle
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import variantlake as vl
from tests.children import run_measured
from tests.delta.stats.columns.test_log_facts import SCHEMA, adds, check_same
from tests.delta.tables import add, create_table
from tests.strategies import MORE
from variantlake.delta.actions.actions import AddFile
from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
from variantlake.delta.log.files import checkpoint_texts
from variantlake.delta.log.files.file_paths import AbsolutePaths
from variantlake.delta.log.files.logical_files import LogicalFiles, files_of
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.stats.columns.log_facts import LogFacts
from variantlake.errors import MalformedLog
from variantlake.planning.log_files import LogFiles
from variantlake.storage.opening import open_store

FEATURES = frozenset({"deletionVectors"})
CHECKPOINT = f"_delta_log/{0:020d}.checkpoint.parquet"


def _table(root: Path, made: list[AddFile], **properties: str) -> None:
    """A table whose log is a checkpoint of these files."""
    files = [
        replace(add, path=f"f{number}", deletion_vector=None) for number, add in enumerate(made)
    ]
    store = open_store(root)
    create_table(store, SCHEMA, adds=files, properties=properties)
    write_checkpoint(store)
    (root / f"_delta_log/{0:020d}.json").unlink()


def _read(root: Path, least_rows: int) -> LogicalFiles:
    with patch.object(checkpoint_texts, "LEAST_ROWS", least_rows):
        return Snapshot.read(root, applies=FEATURES).files


@settings(max_examples=10 * MORE, deadline=None)
@given(
    made=st.lists(adds(), min_size=1, max_size=4),
    times=st.sampled_from([1, 40]),
    as_text=st.booleans(),
)
def test_files_whose_texts_stay_in_the_checkpoint_are_those_that_are_read(
    made: list[AddFile], times: int, as_text: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        forms = {"writeStatsAsJson": as_text, "writeStatsAsStruct": not as_text}
        _table(
            Path(folder),
            made * times,
            **{f"delta.checkpoint.{name}": str(on).lower() for name, on in forms.items()},
        )
        stored, plain = _read(Path(folder), 0), _read(Path(folder), 1 << 40)
        assert stored == plain
        check_same(LogFacts(stored, SCHEMA), LogFacts(plain, SCHEMA))


def _made(count: int) -> list[AddFile]:
    return [AddFile("", 1, 1, stats=_stats(n), tags={"k": str(n)}) for n in range(count)]


def _stats(records: int) -> str:
    return f'{{"numRecords":{records}}}'


def test_texts_outlive_their_checkpoint(tmp_path: Path) -> None:
    _table(tmp_path, _made(9))
    stored = _read(tmp_path, 0)
    (tmp_path / CHECKPOINT).unlink()
    assert stored["stats"].to_pylist() == [_stats(n) for n in range(9)]
    again: LogicalFiles = pickle.loads(pickle.dumps(stored))  # noqa: S301
    assert again == stored
    some = stored.take(np.array([7, 2]))
    assert some["tags"].to_pylist() == [[("k", "7")], [("k", "2")]]


def test_a_snapshot_that_has_planned_is_sent_to_tasks_small(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, "event VARIANT", shredding={"event": "n BIGINT"})
    for n in range(3):
        table.append([{"n": n}])
    table.checkpoint()
    for opened in (table, vl.Table.open(tmp_path)):
        query = "SELECT count(*) AS n FROM t WHERE event:n::bigint > 0"
        assert opened.sql(query).to_pylist() == [{"n": 2}]
        sent = pickle.dumps(opened)
        assert len(sent) < 40_000
        again: vl.Table = pickle.loads(sent)  # noqa: S301 - our own bytes
        assert again.sql(query).to_pylist() == [{"n": 2}]


def test_damage_of_texts_is_said_when_they_are_asked_for(tmp_path: Path) -> None:
    _table(tmp_path, _made(9), **{"delta.parquet.compression.codec": "uncompressed"})
    path = tmp_path / CHECKPOINT
    data = path.read_bytes()
    path.write_bytes(data.replace(b'{"numRecords":3}', b'{"numRecords":4}'))
    stored = _read(tmp_path, 0)
    assert stored["path"].to_pylist() == [f"f{n}" for n in range(9)]
    with pytest.raises(MalformedLog, match="cannot be read") as caught:
        LogFacts(stored, SCHEMA).num_records  # noqa: B018
    assert caught.value.file == str(path)
    with pytest.raises(MalformedLog, match="cannot be read"):
        _read(tmp_path, 1 << 40)


def _with_paths(root: Path, paths: list[str]) -> None:
    """A table whose checkpoint says of its files that they are these."""
    _table(root, _made(len(paths)))
    table = pq.read_table(root / CHECKPOINT)
    add: Any = table["add"].combine_chunks()
    others = len(add) - len(paths)
    names = pa.array([*[""] * others, *paths])
    parts = [names, *add.flatten()[1:]]
    assert add.type[0].name == "path"
    edited = pa.StructArray.from_arrays(parts, fields=list(add.type), mask=add.is_null())
    place = table.column_names.index("add")
    pq.write_table(table.set_column(place, "add", edited), root / CHECKPOINT, row_group_size=4)


@pytest.mark.parametrize(
    "paths",
    [
        ["a", "b", "c"],
        ["day=2024-11-01/a", "d/e"],
        ["a%20b", "c", "d", "e", "f", "g%2520h", "\u00e9"],
    ],
)
def test_paths_are_those_of_the_checkpoint_and_plain_ones_stay_there(
    tmp_path: Path, paths: list[str]
) -> None:
    _with_paths(tmp_path, paths)
    stored, plain = _read(tmp_path, 0), _read(tmp_path, 1 << 40)
    kept = [texts for texts in stored.texts.values() if getattr(texts, "_paths", None) is None]
    assert len(kept) == sum(texts.is_plain for texts in stored.texts.values())
    assert kept or "%" in paths[0]
    odd = {path for path in paths if "%" in path}
    assert odd <= set(stored.odd_paths().to_pylist()) <= set(paths)
    assert stored.take(np.array([1, 0]))["path"].to_pylist() == [paths[1], paths[0]]
    assert stored == plain


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["a", "b", "c", "d", "e", "f", "b"], "'b' is in the table twice"),
        (["a", "b", "c", "d", "e", "%62"], "'b' is in the table twice"),
        (["a", "b", "c", "d", "e", "../x"], "leaves the table's folder"),
        (["a", "b", "c", "d", "e", "/x"], "absolute path"),
    ],
)
def test_paths_that_stay_in_the_checkpoint_are_looked_at(
    tmp_path: Path, paths: list[str], message: str
) -> None:
    _with_paths(tmp_path, paths)
    for least_rows in (0, 1 << 40):
        with (
            patch.object(checkpoint_texts, "LEAST_ROWS", least_rows),
            pytest.raises((MalformedLog, vl.VariantLakeError), match=message),
        ):
            Snapshot.read(tmp_path, applies=FEATURES, absolute_paths=AbsolutePaths.REFUSE)


def _with_partitions(
    root: Path, values: list[dict[str, str | None] | None], *, group: int = 4
) -> None:
    """A table whose checkpoint says that its files have these partition values."""
    _table(root, _made(len(values)))
    table = pq.read_table(root / CHECKPOINT)
    add: Any = table["add"].combine_chunks()
    place = add.type.get_field_index("partitionValues")
    others = [None] * (len(add) - len(values))
    parts = add.flatten()
    maps = [None if each is None else list(each.items()) for each in values]
    parts[place] = pa.array([*others, *maps], pa.map_(pa.string(), pa.string()))
    fields = [field.with_nullable(True) for field in add.type]
    edited = pa.StructArray.from_arrays(parts, fields=fields, mask=add.is_null())
    at = table.column_names.index("add")
    pq.write_table(table.set_column(at, "add", edited), root / CHECKPOINT, row_group_size=group)


@pytest.mark.parametrize("keys", [("day",), ("day", "c\u00f3digo"), ()])
def test_partition_values_stay_in_the_checkpoint(tmp_path: Path, keys: tuple[str, ...]) -> None:
    cycle = [None, "", "2024-11-01", "x", "x", "y", None]
    made = [{key: cycle[(n + i) % 7] for i, key in enumerate(keys)} for n in range(17)]
    _with_partitions(tmp_path, [*made, {}])
    with patch.object(checkpoint_texts, "LEAST_ROWS", 0):
        stored = Snapshot.read(tmp_path, applies=FEATURES)
    plain = Snapshot.read(tmp_path, applies=FEATURES)
    assert stored.files == plain.files
    for snapshot in (stored, plain):
        files = LogFiles(snapshot)
        files.partition_names = {"day"}
        found = files.partition("day")
        assert found is not None
        texts = [found.texts[code] if code >= 0 else "absent" for code in found.codes.tolist()]
        assert texts == [*(each.get("day", "absent") for each in made), "absent"]
    some = stored.files.take(np.array([9, 2]))
    assert [dict(each) for each in some["partition_values"].to_pylist()] == [made[9], made[2]]


@pytest.mark.parametrize("name", ["partition_values", "tags"])
def test_maps_of_few_files_are_those_of_all(tmp_path: Path, name: str) -> None:
    cycle = [None, "", "x", "y"]
    _with_partitions(tmp_path, [{"day": cycle[i % 4], "é": "z"} for i in range(40)], group=1000)
    with patch.object(checkpoint_texts, "LEAST_ROWS", 0):
        files = Snapshot.read(tmp_path, applies=FEATURES).files
    assert any(type(each) is checkpoint_texts.CheckpointTexts for each in files.texts.values())
    whole = files[name].to_pylist()
    assert any(whole)
    for rows in ([3], [0], [39, 0], [7, 7, 1], []):
        few = files.take(np.array(rows, np.int64))[name]
        assert few.type == files[name].type
        assert few.to_pylist() == [whole[row] for row in rows]


def test_partition_values_that_are_null_are_refused_when_they_are_asked_for(
    tmp_path: Path,
) -> None:
    _with_partitions(tmp_path, [{}, {}, None, {}])
    for least_rows in (0, 1 << 40):
        with pytest.raises(MalformedLog, match=r"add\.partitionValues is null in a row") as caught:
            _read(tmp_path, least_rows)["partition_values"]
        assert caught.value.file == str(tmp_path / CHECKPOINT)
    *_, (texts, _) = _read(tmp_path, 0).runs()
    with pytest.raises(MalformedLog, match=r"add\.partitionValues is null in a row"):
        texts.encoded("partition_values")


def test_commits_after_a_checkpoint_take_the_place_of_its_files(tmp_path: Path) -> None:
    _with_paths(tmp_path, [f"f{number}" for number in range(9)])
    actions = [{"remove": {"path": "f3", "dataChange": True}}, add("f5", size=7), add("new")]
    with patch.object(checkpoint_texts, "LEAST_ROWS", 0):
        stored = Snapshot.read(tmp_path, applies=FEATURES)
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (tmp_path / commit_path(1)).write_text(text)
    newer = stored.refresh()
    # Only the row group that has both files was read.
    read = [getattr(each, "_paths", None) is not None for each in stored.files.texts.values()]
    assert sum(read) == 1
    names = [f"f{number}" for number in range(9) if number not in (3, 5)]
    assert sorted(newer.files["path"].to_pylist()) == sorted([*names, "f5", "new"])


def test_files_of_several_commits_and_places_keep_their_texts() -> None:
    parts = [files_of([replace(add, path=f"{at}/{add.size}") for add in _made(3)]) for at in "abc"]
    joined = LogicalFiles.joined(parts)
    rows = np.array([8, 0, 4, 1, 7])
    wanted = [joined.whole().slice(row, 1).to_pylist()[0] for row in rows.tolist()]
    assert joined.take(rows).whole().to_pylist() == wanted


_MEASURED = """
import resource
import sys
from pathlib import Path

import pyarrow as pa

from benchmarks import planning
from variantlake.delta.log.snapshot import Snapshot

pa.array([1])  # which imports pandas if it is there
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
snapshot = Snapshot.read(Path(sys.argv[1]))
planning.plan_scan(planning.LogFiles(snapshot), [planning.TIME], planning.time_range(5))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((peak - before) >> 10, pa.total_allocated_bytes() >> 20)
"""


def test_memory_of_a_plan_of_50000_files_is_bounded(tmp_path: Path) -> None:
    """The statistics of the one row group are 176 MB as text: a plan reads them, and keeps none."""
    from benchmarks.planning import write_checkpoint_alone

    write_checkpoint_alone(tmp_path, 50_000)
    peak, kept = map(int, run_measured(_MEASURED, tmp_path).split())
    assert peak < 4 * 176
    assert kept < 32
