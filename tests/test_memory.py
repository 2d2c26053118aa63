"""Tests keep their files in memory where there is room, and on disk elsewhere."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.memory import ROOM, place_in_memory


def test_files_go_where_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert place_in_memory(tmp_path / "none") is None
    flags = {"f_frsize": 4096, "f_bavail": ROOM // 4096, "f_flag": 0}
    for other, right in (
        ({}, str(tmp_path)),
        ({"f_bavail": ROOM // 4096 - 1}, None),
        ({"f_flag": os.ST_NOEXEC}, None),  # tests build environments, and run what is in them
    ):
        made = SimpleNamespace(**flags | other)
        monkeypatch.setattr(os, "statvfs", lambda _, made=made: made)
        assert place_in_memory(tmp_path) == right, other
