"""How kernels are called, compiled and kept, and that they run in every mode."""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from llvmlite import binding

from tests.corpora import REPOSITORY
from variantlake import kernels
from variantlake.kernels import _cache, _jit
from variantlake.kernels.keys import KEY, fill_slots
from variantlake.kernels.lines import find_newlines

# Uses the kernels of one module; prints what this process compiled, and whether it loaded Numba.
USE = """
import sys
import numpy as np
from variantlake.kernels import _machine
from variantlake.kernels.lines import split_lines
assert split_lines(np.frombuffer(b"a\\nb\\n", np.uint8)).starts.tolist() == [0, 2]
print(*_machine.compiled, "numba" in sys.modules)
"""

# Compiles the same module for ever.
HANG = """
import time
from variantlake.kernels import _cache
_cache.kept("lines.o", lambda: (print("compiles", flush=True), time.sleep(1000)))
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


@pytest.fixture
def fresh_folder() -> Iterator[None]:
    """`cache_folder` looks anew, during and after the test."""
    _cache.cache_folder.cache_clear()
    yield
    _cache.cache_folder.cache_clear()


def test_of_processes_that_start_cold_one_compiles(tmp_path: Path) -> None:
    started = [start("-c", USE, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(4)]
    said = sorted(finish(process) for process in started)
    assert said == ["False\n"] * 3 + ["lines True\n"]


def test_numba_is_not_loaded_where_the_code_is_there(tmp_path: Path) -> None:
    assert finish(start("-c", USE, NUMBA_CACHE_DIR=str(tmp_path))) == "lines True\n"
    assert finish(start("-c", USE, NUMBA_CACHE_DIR=str(tmp_path))) == "False\n"


def test_a_process_that_is_killed_while_it_compiles_stops_nobody(tmp_path: Path) -> None:
    killed = start("-c", HANG, NUMBA_CACHE_DIR=str(tmp_path))
    assert killed.stdout is not None
    assert killed.stdout.readline() == "compiles\n"
    waiting = start("-c", USE, NUMBA_CACHE_DIR=str(tmp_path))
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(1.5)
    killed.kill()
    killed.communicate()
    assert finish(waiting) == "lines True\n"


@pytest.mark.parametrize("damage", [b"", b"short", bytes(5000)], ids=["empty", "cut", "zeros"])
def test_damaged_code_is_compiled_again(tmp_path: Path, damage: bytes) -> None:
    file = tmp_path / "code"
    _cache._write(file, b"machine code")
    assert _cache._read(file) == b"machine code"
    file.write_bytes(damage)
    assert _cache._read(file) is None


def test_a_full_disk_costs_nothing_but_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(file: Path, _content: bytes) -> int:
        file.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", no_space)
    _cache._write(tmp_path / "code", b"machine code")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_whole_set_starts_cold_in_many_processes(tmp_path: Path) -> None:
    started = [
        start("-m", "tests.kernels.fuzz", "50", str(seed), NUMBA_CACHE_DIR=str(tmp_path))
        for seed in range(4)
    ]
    assert all("documents are good" in finish(process) for process in started)


def test_a_home_that_cannot_be_written_to(tmp_path: Path) -> None:
    env = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/no", "TMPDIR": str(tmp_path)}
    assert finish(start("-c", USE, **env)) == "lines True\n"
    assert [file.name for file in tmp_path.rglob("*.o")] == ["lines.o"]
    assert finish(start("-c", USE, **env)) == "False\n"


def test_a_home_of_another_user_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert not _cache._writable(tmp_path)


@pytest.mark.usefixtures("fresh_folder")
@pytest.mark.parametrize("part", ["sources", "numba", "llvmlite", "processor"])
def test_an_upgrade_compiles_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    before = _cache.cache_folder()
    _cache.cache_folder.cache_clear()
    if part == "sources":
        copy = tmp_path / "kernels"
        copy.mkdir()
        for source in Path(_jit.__file__).parent.glob("*.py"):
            edited = b"# edited\n" if source.name == "utf8.py" else b""
            (copy / source.name).write_bytes(source.read_bytes() + edited)
        monkeypatch.setattr(kernels, "__file__", str(copy / "__init__.py"))
    elif part == "processor":
        monkeypatch.setattr(binding, "get_host_cpu_name", lambda: "z80")
    else:
        monkeypatch.setattr(_cache, "version", lambda name: version(name) + "9" * (name == part))
    assert _cache.cache_folder() != before


@pytest.mark.usefixtures("fresh_folder")
def test_an_upgrade_removes_what_was_not_used_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = tmp_path / "variantlake"
    for name, days in (("kernels-old", 31), ("kernels-recent", 29), ("other", 31)):
        (parent / name / "deep").mkdir(parents=True)
        used = time.time() - days * 24 * 60 * 60
        os.utime(parent / name, (used, used))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    folder = _cache.cache_folder()
    left = {path.name for path in parent.iterdir()}
    assert left == {"kernels-recent", "other", folder.name}


def test_numba_compiles_other_functions_as_ever(tmp_path: Path) -> None:
    code = (
        """
import numba, numpy as np
def largest(numbers):
    found = numbers[0]
    for number in numbers:
        found = max(found, number)
    return found
before = numba.njit(largest)
assert before(np.array([1, 3, 2])) == 3
"""
        + USE
        + """
assert before(np.array([1.0, 3.0])) == 3
assert numba.njit(largest)(np.array([1, 3, 2])) == 3
assert numba.njit(lambda n: [n] * 2)(4) == [4, 4]
print(numba.config.CACHE_DIR)
"""
    )
    out = finish(start("-c", code, NUMBA_CACHE_DIR=str(tmp_path)))
    assert out.splitlines() == ["lines True", str(tmp_path)]


TEXT = np.frombuffer(b"a\n" * 100, np.uint8)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (TEXT.tobytes(), np.empty(8, np.int64)),
        (TEXT.view(np.int8), np.empty(8, np.int64)),
        (TEXT[::2], np.empty(8, np.int64)),
        (TEXT.reshape(2, -1), np.empty(8, np.int64)),
        (TEXT, np.empty(8, np.int32)),
        (TEXT, np.frombuffer(bytes(64), np.int64)),
        (TEXT, np.empty(72, np.uint8)[4:68].view(np.int64)),
    ],
    ids=["bytes", "signed", "every-other", "two-dimensions", "narrow", "read-only", "unaligned"],
)
def test_a_kernel_takes_no_other_arrays(text: np.ndarray, places: np.ndarray) -> None:
    with pytest.raises(TypeError):
        find_newlines(text, places)


def test_a_kernel_takes_no_records_of_another_layout() -> None:
    words = np.zeros(16, np.int64)
    other = np.zeros(2, np.dtype([*KEY.descr, ("more", "i4")]))
    with pytest.raises(TypeError):
        fill_slots(other, np.zeros(64, np.uint8), np.zeros(4, np.int32), words)


def test_a_kernel_is_pickled_by_name() -> None:
    assert pickle.loads(pickle.dumps(find_newlines)) is find_newlines  # noqa: S301 - our own


def test_kernels_run_as_plain_python() -> None:
    assert "documents are good" in finish(
        start("-m", "tests.kernels.fuzz", "25", "11", NUMBA_DISABLE_JIT="1")
    )


def test_an_access_outside_of_an_array_is_an_error_where_bounds_are_checked() -> None:
    code = """
import numpy as np
from variantlake.kernels.lines import trim_lines
short = np.empty(1, np.int64)
try:
    trim_lines(np.frombuffer(b"a\\nb", np.uint8), np.array([1, 3]), short, short, short)
except IndexError as error:
    print(error)
"""
    out = finish(start("-c", code, NUMBA_BOUNDSCHECK="1"))
    assert out == "lines.trim_lines went outside of an array\n"


@pytest.mark.slow
def test_kernels_stay_within_their_arrays() -> None:
    assert "documents are good" in finish(
        start("-m", "tests.kernels.fuzz", "400", "12", NUMBA_BOUNDSCHECK="1")
    )
