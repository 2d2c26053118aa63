"""Sorted files of names: of each name the newest row, few of them, and nothing of a stranger's."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import variantlake as vl
from tests.autoloading.sources import ids, put
from tests.strategies import MORE
from variantlake.autoloading.discover import _SortedPieces
from variantlake.autoloading.runs import RUN, RunReader, merged
from variantlake.autoloading.state import FileState, LoadState, read_state
from variantlake.delta.actions.actions import DomainMetadata
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import MalformedLog
from variantlake.storage.opening import open_store
from variantlake.writing.autoload_files import DOMAIN, FOLDER

names = st.binary(min_size=1, max_size=3)


def rows(of: dict[bytes, int]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "name": name, "size": size, "tag": size, "state": int(FileState.LOADED), "rows": 1,
                "bad_rows": 0, "batch": 1, "version": 0, "time": 0, "error": None,
            }
            for name, size in sorted(of.items())
        ],
        schema=RUN,
    )  # fmt: skip


@settings(max_examples=30 * MORE)
@given(
    st.lists(st.dictionaries(names, st.integers(0, 9), min_size=1), max_size=4), st.integers(1, 4)
)
def test_of_each_name_the_newest_row_counts(runs: list[dict[bytes, int]], piece: int) -> None:
    streams = []
    expected: dict[bytes, int] = {}
    for run in runs:
        table = rows(run)
        streams.append(iter([table.slice(at, piece) for at in range(0, table.num_rows, piece)]))
        expected |= run
    found = [row for table in merged(streams) for row in table.to_pylist()]
    assert [(row["name"], row["size"]) for row in found] == sorted(expected.items())


@settings(max_examples=30 * MORE)
@given(
    st.dictionaries(names, st.integers(0, 9), max_size=12),
    st.lists(names, min_size=1, unique=True),
    st.integers(1, 4),
)
def test_what_is_known_goes_along_with_a_listing(
    known: dict[bytes, int], listing: list[bytes], piece: int
) -> None:
    table = rows(known)
    pieces = (table.slice(at, piece) for at in range(0, table.num_rows, piece))
    walk = _SortedPieces(pieces)
    seen: list[Any] = []
    for name in sorted(listing):
        given_rows = walk.up_to(name)["name"].to_pylist()
        assert all(each is not None and each <= name for each in given_rows)
        assert (name in known) == (name in given_rows)
        seen += given_rows
    assert seen == sorted(name for name in known if name <= max(listing))


def test_runs_stay_few_and_small_batches_cost_little(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    reader = RunReader(store)
    state = LoadState("events", "/in")
    written = 0
    for batch in range(100):
        of = {f"folder/of/files/{batch:06}-{number:06}.json".encode(): 1 for number in range(100)}
        state = state.next(
            store, reader, rows(of), after=None, listed=0, ordered=True, version=batch
        )
        written += state.runs[-1].rows
    assert state.count == 10_000
    assert len(state.runs) <= 8
    assert written <= 10_000 * 8
    assert sum(run.size for run in state.runs) < 10_000 * 20
    assert sum(piece.num_rows for piece in state.sorted_pieces(reader)) == 10_000


def _loaded(tmp_path: Path) -> Path:
    put(tmp_path / "in" / "a.json", 1)
    vl.autoload(tmp_path / "table", tmp_path / "in", name="events")
    return tmp_path / "table"


def test_a_damaged_or_missing_run_is_said_and_nothing_is_loaded_again(tmp_path: Path) -> None:
    table = _loaded(tmp_path)
    (run,) = (table / "_variantlake").rglob("*.parquet")
    data = run.read_bytes()
    for broken in (data[:-1] + b"\0", data[:9], None):
        run.unlink() if broken is None else run.write_bytes(broken)
        with pytest.raises(MalformedLog, match="names of what was loaded"):
            vl.autoload(table, tmp_path / "in", name="events")
        with pytest.raises(MalformedLog):
            vl.Table.open(table).loads()
    assert ids(table) == [1]


@pytest.mark.parametrize(
    "change",
    [
        {"format": 3}, {"batch": 0}, {"batch": "1"}, {"runs": {}}, {"after": 3}, {"source": None},
        {"runs": [{"path": "../../x"}]},
    ],
    ids=str,
)  # fmt: skip
def test_a_domain_that_we_did_not_write_so_is_refused(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    snapshot = Snapshot.read(_loaded(tmp_path))
    (name,) = snapshot.domains
    document = orjson.loads(snapshot.domains[name].configuration)
    if change.get("runs") and isinstance(change["runs"], list):
        change = {"runs": [document["runs"][0] | change["runs"][0]]}
    broken = orjson.dumps(document | change).decode()
    domains = {name: DomainMetadata(name, broken)}
    object.__setattr__(snapshot, "domains", domains)
    with pytest.raises(MalformedLog, match="is not what was written"):
        read_state(snapshot, name.removeprefix(DOMAIN))


def test_vacuum_removes_runs_that_no_version_within_the_retention_names(tmp_path: Path) -> None:
    source, table = tmp_path / "in", tmp_path / "table"
    for number in range(1, 5):
        put(source / f"{number}.json", number)
        vl.autoload(table, source, name="n")
    folder = table / FOLDER / "n"
    orphan = folder / f"{9:010d}-{'0' * 32}.parquet"
    other = folder / "notes.txt"
    for file in (orphan, other):
        file.write_bytes(b"x")
    state = read_state(Snapshot.read(table), "n")
    assert state is not None
    live = {Path(run.path).name for run in state.runs}
    assert len(list(folder.iterdir())) > len(live) + 2
    # What is young may be a running autoload's, and older versions still name the runs before.
    assert vl.Table.open(table).vacuum().files_removed == 0
    for file in (*table.rglob("*.parquet"), *table.rglob("*.txt"), *table.rglob("*.json")):
        os.utime(file, (0, 0))
    done = vl.Table.open(table).vacuum()
    assert done.kinds == {"state of an autoload": done.files_removed}
    assert {file.name for file in folder.iterdir()} == {*live, "notes.txt"}
    put(source / "5.json", 5)
    assert vl.autoload(table, source, name="n").files_read == 1
    assert ids(table) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("named", [False, True])
def test_vacuum_keeps_the_runs_of_the_version_before_the_young_ones(
    tmp_path: Path, named: bool
) -> None:
    """Seed 15 of the simulation: an autoload that began there, or a name, still needs them."""
    source, table = tmp_path / "in", tmp_path / "table"
    loads = []
    for number in range(1, 5):
        put(source / f"{number}.json", number)
        vl.autoload(table, source, name="n")
        loads.append(vl.Table.open(table).loads().num_rows)
    if named:
        vl.Table.open(table).tag("then", 2)
    for file in (*table.rglob("*.parquet"), *table.rglob("*.json")):
        if named or file.stem != f"{3:020d}":
            os.utime(file, (0, 0))
    vl.Table.open(table).vacuum()
    assert vl.Table.open(table, "then" if named else 2).loads().num_rows == loads[2]


def aged(source: Path, name: str, day: int, *keys: int) -> None:
    """A file that changed last on a day, counted from an old one."""
    put(source / name, *keys)
    os.utime(source / name, (day * 86_400, day * 86_400))


def known_of(table: Path) -> tuple[set[str], LoadState]:
    snapshot = Snapshot.read(str(table))
    state = read_state(snapshot, "a")
    assert state is not None
    files: list[Any] = vl.Table.open(table).loads()["file"].to_pylist()
    return set(files), state


@settings(max_examples=2 * MORE, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=15, max_size=30))
def test_old_files_are_forgotten_and_loaded_once(days: list[tuple[int, bool]]) -> None:
    """Names in any order: whatever is dropped, no file comes twice, and the records stay few."""
    with tempfile.TemporaryDirectory() as folder:
        source, table = Path(folder, "in"), Path(folder, "table")
        source.mkdir()
        today, loaded = 20_000, set()
        for number, (late, goes) in enumerate(days):
            today += 1
            name = f"{(number * 7919) % 1000:03d}-{number}.json"
            aged(source, name, today - late, number)
            options: dict[str, Any] = {"max_file_age": "5d", "settle": 0}
            done = vl.autoload(table, source, name="a", **options)
            loaded |= {number} if done.files_read else set()
            # Only one that was late by more than the age may be left out.
            assert done.files_read == 1 or late >= 5
            if goes:
                (source / name).unlink()
            found = ids(table)
            assert sorted(found) == sorted(loaded)
        names, state = known_of(table)
        assert state.floor > 0
        assert len(names) <= 5 * 3 + 9
        fresh = vl.autoload(table, source, name="a", settle=0)  # the floor is the table's
        assert fresh.files_read == 0


def test_a_touched_file_is_not_forgotten(tmp_path: Path) -> None:
    source, table = tmp_path / "in", tmp_path / "table"
    source.mkdir()
    options: dict[str, Any] = {"name": "a", "settle": 0, "max_file_age": "2d"}
    aged(source, "a.json", 20_000, 1)
    vl.autoload(table, source, **options)
    aged(source, "a.json", 20_001, 1, 2)  # written again, and left alone
    for day in range(20_001, 20_010):
        aged(source, f"{day}.json", day, day)
        assert vl.autoload(table, source, **options).files_read == 1
    assert "a.json" in known_of(table)[0]
    (source / "a.json").unlink()
    for day in range(20_010, 20_030):
        aged(source, f"{day}.json", day, day)
        vl.autoload(table, source, **options)
    assert "a.json" not in known_of(table)[0]
    assert sorted(ids(table)) == [1, *range(20_001, 20_030)]


def test_a_file_of_the_future_or_a_wrong_clock_forgets_nothing_else(tmp_path: Path) -> None:
    source, table = tmp_path / "in", tmp_path / "table"
    source.mkdir()
    options: dict[str, Any] = {"name": "a", "settle": 0, "max_file_age": "2d"}
    aged(source, "a.json", 20_000, 1)
    with patch.object(time, "time_ns", lambda: 86_400_000_000_000 * 50_000):
        vl.autoload(table, source, **options)
    assert known_of(table)[1].floor == 86_400_000 * 19_998
    aged(source, "b.json", 40_000, 2)
    vl.autoload(table, source, **options)
    assert 86_400_000 * 19_998 < known_of(table)[1].floor <= time.time() * 1000


def test_a_state_with_a_floor_is_for_those_that_know_it() -> None:
    state = LoadState("a", "/in", batch=1)
    assert orjson.loads(state.configuration())["format"] == 1
    later = orjson.loads(replace(state, floor=5).configuration())
    assert (later["format"], later["floor"]) == (2, 5)
