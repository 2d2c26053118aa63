"""Vacuum interrupted at every moment around a storage call: nothing that is needed is lost."""

from __future__ import annotations

import contextlib
import shutil
import time
import uuid
import warnings
from pathlib import Path

import pytest

import variantlake as vl
from tests.delta.crashes import Moments, fail, watched
from tests.maintenance.folders import HOUR, add, commit, found, put, remove, vector_file
from tests.maintenance.vacuuming.test_vacuum import check_files
from variantlake.errors import VariantLakeError

NOW = time.time_ns() // 1_000_000
NEEDED = {"old.parquet", "live.parquet", vector_file(uuid.UUID(int=1))}
FAIL_EVERY = 5
"""Each how manieth moment is tried: 1 tries all, which takes a minute."""


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """Versions 1 to 3 are within the retention; a file of version 0 alone and an orphan are not."""
    root = tmp_path / "template"
    vector = uuid.UUID(int=1)
    steps = [
        (NOW - 900 * HOUR, [add("expired.parquet"), add("old.parquet", vector=vector)]),
        (NOW - 800 * HOUR, [remove("expired.parquet", NOW - 800 * HOUR)]),
        (NOW - 700 * HOUR, [add("live.parquet")]),
        (NOW - HOUR, [remove("old.parquet", NOW - HOUR, vector=vector)]),
    ]
    for version, (millis, actions) in enumerate(steps):
        commit(root, version, millis, actions)
    for name in [*NEEDED, "expired.parquet", "orphan.parquet"]:
        put(root, name, NOW - 900 * HOUR)
    return root


def operate(root: Path, *, lite: bool = False) -> None:
    vl.Table.open(root).vacuum(lite=lite)


def check(root: Path) -> None:
    assert found(root) >= NEEDED
    for version in (2, 3):
        check_files(root, version)
    operate(root)
    assert found(root) == NEEDED
    assert vl.Table.open(root).history(1)[0].operation == "VACUUM END"
    shutil.rmtree(root)


def moments_of(template: Path, root: Path) -> int:
    shutil.copytree(template, root)
    moments = Moments()
    with watched(moments):
        operate(root)
    shutil.rmtree(root)
    return len(moments.names)


def test_a_store_that_fails_at_any_moment_loses_nothing(template: Path, tmp_path: Path) -> None:
    root = tmp_path / "table"
    count = moments_of(template, root)
    assert count > 20
    for number in range(0, count, FAIL_EVERY):
        for lasting, lite in ((False, False), (True, False), (True, True)):
            shutil.copytree(template, root)
            with watched(Moments(fail, number, lasting)), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that there is no checksum, or no VACUUM END
                with contextlib.suppress(VariantLakeError):
                    operate(root, lite=lite)
            check(root)
