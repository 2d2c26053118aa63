"""Ctrl-C during upkeep: no file is left of what is not committed, and the command says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl
from tests.cli.command import run
from tests.maintenance.folders import found
from variantlake.jobs import threads
from variantlake.jobs.tasks import Tasks


@pytest.fixture
def table(tmp_path: Path) -> vl.Table:
    made = vl.Table.create(tmp_path / "t", "event VARIANT", cluster_by="event:n::bigint")
    for _ in range(3):
        docs = [f'{{"n": {n}, "s": "{n}"}}' for n in range(30)]
        made.append(pa.table({"event": docs}), json_columns=["event"])
    return made.refresh()


@pytest.mark.parametrize(
    ("command", "commits"), [(["optimize"], 0), (["cluster"], 0), (["reshred", "--unshred"], 1)]
)
def test_what_was_written_is_removed_and_the_command_says_that_the_table_is_whole(
    table: vl.Table,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    command: list[str],
    commits: int,
) -> None:
    original = threads.run_in_threads
    version = table.version
    before, digest = found(Path(table.uri)), table.digest()

    def interrupted(tasks: Tasks, watch: Callable[[int], None]) -> Iterable[bytes]:
        assert len(list(original(tasks, watch))) > 0
        assert found(Path(table.uri)) > before
        raise KeyboardInterrupt

    monkeypatch.setattr(threads, "run_in_threads", interrupted)
    said = run(monkeypatch, capfd, *command, table.uri)
    assert said.code == 130
    assert said.err.splitlines() == [
        "The table is whole. What is committed stays, a repeat does the rest.",
        "Interrupted.",
    ]
    assert found(Path(table.uri)) == before
    # The table's new schema is a commit of its own.
    assert table.refresh().version == version + commits
    assert table.refresh().digest() == digest
    monkeypatch.setattr(threads, "run_in_threads", original)
    assert run(monkeypatch, capfd, *command, table.uri).code == 0
    assert table.refresh().digest() == digest
    assert table.refresh().version == version + commits + 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["vacuum", "--yes"], "only files that nobody needs are gone"),
        (["restore", "--version", "1"], "the old or the restored version"),
    ],
)
def test_vacuum_and_restore_say_so_too(
    table: vl.Table,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(vl.Table, arguments[0], interrupted)
    shown = run(monkeypatch, capfd, arguments[0], table.uri, *arguments[1:])
    assert (shown.code, said in shown.err) == (130, True)
