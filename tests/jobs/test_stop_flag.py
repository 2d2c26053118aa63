"""When a task of a job stops: the flag is lowered, or an earlier part of the input failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from variantlake.jobs.stop_flag import LoadFlag, LoadStopped
from variantlake.storage.opening import open_store


@pytest.fixture
def flag(tmp_path: Path) -> LoadFlag:
    return LoadFlag(open_store(tmp_path / "t"), "load")


def stopped(flag: LoadFlag, tasks: int = 4) -> list[int]:
    """The tasks that would stop."""
    found = []
    for task in range(tasks):
        try:
            flag.check(task)
        except LoadStopped:
            found.append(task)
    return found


def test_tasks_run_while_the_flag_is_up(flag: LoadFlag) -> None:
    assert stopped(flag) == [0, 1, 2, 3]
    flag.up()
    assert stopped(flag) == []
    flag.down()
    assert stopped(flag) == [0, 1, 2, 3]
    flag.down()  # again, as after an interrupt


def test_a_failure_stops_later_parts_of_the_input_alone(flag: LoadFlag) -> None:
    flag.up()
    flag.fail(2)
    assert stopped(flag) == [3]
    flag.fail(3)  # it was later: the first bad line is what is reported
    assert stopped(flag) == [3]
    flag.fail(0)
    assert stopped(flag) == [1, 2, 3]


def test_a_failure_after_the_end_raises_nothing(flag: LoadFlag, tmp_path: Path) -> None:
    flag.fail(1)
    flag.up()
    flag.down()
    flag.fail(1)
    assert list(tmp_path.rglob("*.running")) == []


def test_in_an_object_store_tasks_run_to_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")  # no request is made
    flag = LoadFlag(open_store("s3://bucket/t"), "load")
    flag.up()
    flag.fail(0)
    assert stopped(flag) == []
    flag.down()
