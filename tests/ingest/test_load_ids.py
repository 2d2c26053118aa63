"""A load with an id is committed once, however often and by however many it is tried."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import variantlake as vl
from tests.ingest import bad_input
from tests.ingest.test_load import documents
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import CommitUnknown, InvalidValue, StoreFailed
from variantlake.ingest import local_run
from variantlake.ingest.load import LoadTask
from variantlake.ingest.local_run import ingest_here
from variantlake.jobs import threads
from variantlake.storage.store import LocalStore


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "a.ndjson"
    path.write_text('{"a": 1}\n' * 3)
    return path


def test_a_repeated_load_does_nothing_and_names_the_version(tmp_path: Path, source: Path) -> None:
    table = tmp_path / "t"
    first = ingest_here(source, table, load_id="monday")
    assert (first.version, first.already_loaded) == (0, False)
    ingest_here(source, table)
    ingest_here(source, table, load_id="tuesday")
    before = bad_input.listing(table)
    source.unlink()  # what was loaded need not be there any more
    for load_id, version in (("monday", 0), ("tuesday", 2)):
        again = ingest_here(source, table, load_id=load_id)
        assert (again.version, again.already_loaded, again.rows_written) == (version, True, 0)
    assert bad_input.listing(table) == before
    assert Snapshot.read(table).transactions.keys() == {"monday", "tuesday"}


def test_appends_of_arrow_data_have_ids_too(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT")
    data = pa.table({"event": ["1"]})
    assert table.append(data, json_columns=["event"], load_id="x").version == 1
    assert table.append(data, json_columns=["event"]).version == 2
    assert table.append(data, json_columns=["event"], load_id="x").version == 1
    assert table.refresh().version == 2


def test_the_version_is_told_after_a_checkpoint(tmp_path: Path, source: Path) -> None:
    table = tmp_path / "t"
    ingest_here(source, table, properties={"delta.checkpointInterval": "2"})
    ingest_here(source, table, load_id="x")
    for _ in range(3):
        ingest_here(source, table)
    assert ingest_here(source, table, load_id="x").version == 1
    for version in range(4):  # a log that was cleaned up
        (table / "_delta_log" / f"{version:020d}.json").unlink()
    again = ingest_here(source, table, load_id="x")
    assert (again.version, again.already_loaded) == (1, True)


def test_of_loads_at_once_exactly_one_commits(tmp_path: Path, source: Path) -> None:
    def run(_: int) -> bool:
        return ingest_here(source, tmp_path / "t", load_id="x").already_loaded

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(run, range(6))) == [False] + [True] * 5
    assert len(documents(tmp_path / "t")) == 3
    assert len(list((tmp_path / "t").glob("*.parquet"))) == 1


@pytest.mark.parametrize("existing", [False, True], ids=["new-table", "existing-table"])
def test_who_is_overtaken_by_the_same_load_gives_way(
    tmp_path: Path, source: Path, existing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "t"
    if existing:
        ingest_here(source, table)
    run = threads.run_in_threads

    def overtaken(task: LoadTask, watch: Callable[[int], None]) -> list[bytes]:
        with monkeypatch.context() as patch:
            patch.setattr(local_run, "run_in_threads", run)
            ingest_here(source, table)  # in between comes another one
            ingest_here(source, table, load_id="x")
        return run(task, watch)

    monkeypatch.setattr(local_run, "run_in_threads", overtaken)
    result = ingest_here(source, table, load_id="x")
    assert (result.already_loaded, result.version) == (True, 1 + existing)
    assert len(list(table.glob("*.parquet"))) == 2 + existing


LostPuts = list[tuple[str, bytes]]


def lose_answer(outcome: str, monkeypatch: pytest.MonkeyPatch) -> LostPuts:
    """Have a store lose the answer of one put, and fail to be read right after it.

    The put "stands", is "lost", or is "late": then the list has it.
    """
    put, read = LocalStore.put_if_absent, LocalStore.stream
    late: LostPuts = []
    left = ["put", "read"]

    def put_once(store: LocalStore, path: str, data: bytes) -> bool:
        if "put" not in left:
            return put(store, path, data)
        left.remove("put")
        if outcome == "stands":
            put(store, path, data)
        elif outcome == "late":
            late.append((path, data))
        raise StoreFailed("no answer")

    def read_later(store: LocalStore, path: str) -> Iterator[bytes]:
        if "put" not in left and "read" in left:
            left.remove("read")
            raise StoreFailed("no answer")
        return read(store, path)

    monkeypatch.setattr(LocalStore, "put_if_absent", put_once)
    monkeypatch.setattr(LocalStore, "stream", read_later)
    return late


@pytest.mark.parametrize("outcome", ["stands", "lost", "late"])
@pytest.mark.parametrize("existing", [False, True], ids=["new-table", "existing-table"])
def test_a_load_of_unknown_outcome_is_repeated_by_its_own_id(
    tmp_path: Path, source: Path, existing: bool, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "t"
    if existing:
        assert ingest_here(source, table).load_id.startswith("variantlake-0-")
    late = lose_answer(outcome, monkeypatch)
    with pytest.raises(CommitUnknown) as caught:
        ingest_here(source, table)
    error = caught.value
    assert f"load_id={error.load_id!r}" in error.hint
    assert f"--load-id {error.load_id}" in (error.cli_hint or "")
    run = threads.run_in_threads
    if late:

        def overtaken(task: LoadTask, watch: Callable[[int], None]) -> list[bytes]:
            LocalStore(table).put_if_absent(*late.pop())
            return run(task, watch)

        monkeypatch.setattr(local_run, "run_in_threads", overtaken)
    for _ in range(2):
        again = ingest_here(source, table, load_id=error.load_id)
        monkeypatch.setattr(local_run, "run_in_threads", run)
        assert (again.version, again.load_id) == (int(existing), error.load_id)
    assert again.already_loaded
    assert len(documents(table)) == 3 + 3 * existing
    assert not late


def test_an_own_id_that_the_log_no_longer_holds_is_unknown(tmp_path: Path, source: Path) -> None:
    table = tmp_path / "t"
    ingest_here(source, table, properties={"delta.checkpointInterval": "2"})
    load_id = ingest_here(source, table).load_id
    ingest_here(source, table)
    assert ingest_here(source, table, load_id=load_id).version == 1
    assert not Snapshot.read(table).transactions  # every snapshot carries all of these
    for version in range(2):
        (table / "_delta_log" / f"{version:020d}.json").unlink()
    with pytest.raises(CommitUnknown, match="no longer holds it"):
        ingest_here(source, table, load_id=load_id)


@pytest.mark.parametrize("load_id", ["", "x" * 513])
def test_an_id_that_cannot_be_is_refused(tmp_path: Path, source: Path, load_id: str) -> None:
    with pytest.raises(InvalidValue, match="load id"):
        ingest_here(source, tmp_path / "t", load_id=load_id)


@pytest.mark.parametrize("existing", [False, True], ids=["new-table", "existing-table"])
def test_a_killed_load_leaves_no_row_and_its_repeat_no_duplicate(
    tmp_path: Path, existing: bool
) -> None:
    source, table = tmp_path / "events.ndjson", tmp_path / "t"
    source.write_text('{"a": 1, "b": "%s"}\n' % ("x" * 1000) * 40_000)
    if existing:
        (tmp_path / "one").write_text("0")
        ingest_here(tmp_path / "one", table)
    command = [sys.executable, "-m", "variantlake.cli.main", "ingest", "--load-id", "x"]
    command += ["--max-rows-per-file", "500", str(source), str(table)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while len(list(table.glob("*.parquet"))) < 3 + existing and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    if existing:
        assert len(documents(table)) == 1
    else:
        assert not (table / "_delta_log").exists()
    for _ in range(2):
        result = ingest_here(source, table, load_id="x")
        assert result.version == int(existing)
    assert len(documents(table)) == 40_000 + existing
