"""Histories of many verbs on one table; `python -m tests.table.random_histories` runs more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.strategies import MORE
from tests.table.random_histories import run


@pytest.mark.parametrize("seed", range(2 + MORE))
def test_every_version_has_the_rows_of_the_model(tmp_path: Path, seed: int) -> None:
    run(tmp_path, seed)
