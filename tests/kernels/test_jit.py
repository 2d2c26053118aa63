"""Where compiled code is kept, and that kernels run in every mode."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.corpora import REPOSITORY
from variantlake.kernels import _jit

# How many of a module's entries this process compiled, and how many it found in the cache.
COUNT = """
from variantlake.kernels import lines
entries = (lines.find_newlines, lines.trim_lines)
print(sum(sum(e.stats.cache_misses.values()) for e in entries),
      sum(sum(e.stats.cache_hits.values()) for e in entries))
"""


def start(*args: str, **env: str) -> subprocess.Popen[str]:
    plain = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_")}
    return subprocess.Popen(
        [sys.executable, "-W", "error", *args],
        env=plain | env,
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert not err
    return out


def test_of_processes_that_start_cold_one_compiles(tmp_path: Path) -> None:
    started = [start("-c", COUNT, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(4)]
    counts = [tuple(map(int, finish(process).split())) for process in started]
    assert sum(misses for misses, _ in counts) == 2  # each entry once
    assert sum(hits for _, hits in counts) == 6
    assert finish(start("-c", COUNT, NUMBA_CACHE_DIR=str(tmp_path))).split() == ["0", "2"]


@pytest.mark.slow
def test_the_whole_set_starts_cold_in_many_processes(tmp_path: Path) -> None:
    started = [
        start("-m", "tests.kernels.fuzz", "50", str(seed), NUMBA_CACHE_DIR=str(tmp_path))
        for seed in range(4)
    ]
    assert all("documents are good" in finish(process) for process in started)


def test_a_home_that_cannot_be_written_to(tmp_path: Path) -> None:
    out = finish(
        start("-c", COUNT, HOME="/dev/null", XDG_CACHE_HOME="/dev/null/no", TMPDIR=str(tmp_path))
    )
    assert out.split() == ["2", "0"]
    assert any(tmp_path.rglob("*.nbc"))


def test_numba_s_own_cache_folder_stays_the_user_s(tmp_path: Path) -> None:
    code = COUNT + "import numba; print(numba.config.CACHE_DIR)"
    out = finish(start("-c", code, NUMBA_CACHE_DIR=str(tmp_path)))
    assert out.splitlines()[-1] == str(tmp_path)


def test_the_folder_is_keyed_by_the_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    before = _jit.cache_folder().name
    _jit.cache_folder.cache_clear()
    try:
        monkeypatch.setattr(_jit, "_source_hash", lambda: "other")
        assert _jit.cache_folder().name != before
    finally:
        monkeypatch.undo()
        _jit.cache_folder.cache_clear()


def test_the_folder_is_not_taken_from_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert not _jit._writable(tmp_path)


def test_an_upgrade_removes_what_was_not_used_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = tmp_path / "variantlake"
    for name, days in (("kernels-old", 31), ("kernels-recent", 29), ("other", 31)):
        (parent / name / "deep").mkdir(parents=True)
        used = time.time() - days * 24 * 60 * 60
        os.utime(parent / name, (used, used))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    _jit.cache_folder.cache_clear()
    try:
        folder = _jit.cache_folder()
    finally:
        _jit.cache_folder.cache_clear()
    left = {path.name for path in parent.iterdir()}
    assert left == {"kernels-recent", "other", folder.name}


def test_kernels_run_as_plain_python() -> None:
    assert "documents are good" in finish(
        start("-m", "tests.kernels.fuzz", "25", "11", NUMBA_DISABLE_JIT="1")
    )


@pytest.mark.slow
def test_kernels_stay_within_their_arrays() -> None:
    assert "documents are good" in finish(
        start("-m", "tests.kernels.fuzz", "400", "12", NUMBA_BOUNDSCHECK="1")
    )
