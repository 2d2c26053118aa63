"""A refresh that is interrupted at any storage call is repeated, and does nothing twice."""

from __future__ import annotations

import contextlib
import os
import shutil
import traceback
from pathlib import Path

import variantlake as vl
from tests.delta.crashes import Moments, check_log, fail, kill, watched
from tests.mirroring.test_mirror import SELECT, append, content, expected, new_table
from tests.strategies import MORE
from variantlake.errors import VariantLakeError

STEP = max(1, 61 // MORE)
"""Each how manieth moment; all of them with many examples."""


def prepare(root: Path) -> None:
    """A table with changes of each kind that its mirror does not have."""
    table = new_table(root / "t", 12)
    vl.mirror(table, root / "m", SELECT)
    append(table, [20, 21])
    table.delete("id = 3")
    table.optimize()
    append(table, [22])


def moments_of(template: Path, run: Path) -> int:
    shutil.copytree(template, run)
    moments = Moments()
    with watched(moments):
        refresh(run)
    check(run)
    return len(moments.names)


def refresh(root: Path) -> None:
    vl.mirror(root / "t", root / "m")


def check(root: Path) -> None:
    table = vl.Table.open(root / "t")
    check_log(root / "m")
    refresh(root)
    assert content(root / "m") == expected(table)
    assert vl.mirror(table, root / "m").files_read == 0
    shutil.rmtree(root)


def test_a_store_that_fails_anywhere(tmp_path: Path) -> None:
    prepare(tmp_path / "template")
    run = tmp_path / "run"
    for number in range(0, moments_of(tmp_path / "template", run), STEP):
        shutil.copytree(tmp_path / "template", run)
        moments = Moments(fail, number, lasting=number % 2 == 0)
        with watched(moments), contextlib.suppress(VariantLakeError):
            refresh(run)
        check(run)


def test_a_process_that_is_killed_anywhere(tmp_path: Path) -> None:
    prepare(tmp_path / "template")
    run = tmp_path / "run"
    for number in range(1, moments_of(tmp_path / "template", run), 3 * STEP):
        shutil.copytree(tmp_path / "template", run)
        child = os.fork()
        if child == 0:
            try:
                with watched(Moments(kill, number)):
                    refresh(run)
            except BaseException:  # noqa: BLE001 - a child must not go on as its parent would
                traceback.print_exc()
            os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status)
        check(run)
