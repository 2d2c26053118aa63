"""The compiled kernels: one file that every process loads, or a sentence that says what to do."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from variantlake.errors import NotCompiled
from variantlake.kernels.json.lines import find_newlines, split_lines
from variantlake.kernels.native import levels, sources
from variantlake.kernels.native import library as _library

# Uses a kernel; prints what came with it, and whether the library was there as it is.
USE = """
import sys
opened = []
sys.addaudithook(lambda event, given: opened.append(given) if event == "open" else None)
started = []
sys.addaudithook(lambda event, given: started.append(event) if event in PROCESSES else None)
PROCESSES = ("subprocess.Popen", "os.exec", "os.fork", "os.posix_spawn", "os.system")
import variantlake
import numpy as np
from variantlake.kernels.json.lines import find_newlines, split_lines
assert split_lines(np.frombuffer(b"a\\nb\\n", np.uint8)).starts.tolist() == [0, 2]
assert "_machine_code" in find_newlines.__dict__
written = [path for path, mode, _ in opened if set(str(mode or "")) & set("wax+")]
print([name for name in ("numba", "llvmlite", "pyspark") if name in sys.modules], written, started)
"""


@pytest.fixture
def _loaded_anew() -> Iterator[None]:
    """The library is looked for again, during and after the test."""

    def forget() -> None:
        _library._library.cache_clear()
        _library._sources.cache_clear()
        _library._level.cache_clear()
        sources._constants.cache_clear()
        sources._compiler.cache_clear()
        find_newlines.__dict__.pop("_machine_code", None)

    forget()
    yield
    forget()


def use() -> None:
    find_newlines.__dict__.pop("_machine_code", None)
    split_lines(np.frombuffer(b"a\nb\n", np.uint8))


def test_the_first_kernel_compiles_nothing_writes_nothing_and_loads_no_compiler() -> None:
    """How fast it is, `benchmarks/cold_start.py` tells."""
    library = Path(_library.library_file())
    before = library.stat()
    done = subprocess.run(
        [sys.executable, "-B", "-c", USE], capture_output=True, check=True, text=True
    )
    assert done.stdout == "[] [] []\n"
    assert library.stat().st_mtime_ns == before.st_mtime_ns


def test_a_process_needs_no_place_to_write_to() -> None:
    env = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/no", "TMPDIR": "/dev/null/no"}
    subprocess.run([sys.executable, "-B", "-c", USE], env=env, check=True, capture_output=True)


@pytest.mark.skipif(sys.platform != "linux", reason="reads an ELF file with Linux's tools")
def test_the_library_needs_nothing_but_memset() -> None:
    file = str(_library.library_file())
    listed = subprocess.run(["nm", "-D", file], capture_output=True, check=True, text=True).stdout
    assert re.findall(r" U (\S+)", listed) == ["memset"]
    dynamic = subprocess.run(["readelf", "-d", file], capture_output=True, check=True, text=True)
    assert "NEEDED" not in dynamic.stdout


def test_every_level_has_every_kernel() -> None:
    library = _library._library()
    entry = find_newlines
    for level in levels.levels():
        assert getattr(library, _library.symbol_of(level, entry))  # type: ignore[arg-type]


@pytest.mark.usefixtures("_loaded_anew")
@pytest.mark.parametrize("level", levels.levels())
def test_levels_below_the_best_answer_alike(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    best = levels.levels().index(_library._level())
    if levels.levels().index(level) > best:
        pytest.skip(f"this processor has no {level}")
    monkeypatch.setattr(_library, "_level", lambda: level)
    find_newlines.__dict__.pop("_machine_code", None)
    text = b"ab\n" * 1000
    assert split_lines(np.frombuffer(text, np.uint8)).starts.tolist() == list(range(0, 3000, 3))


@pytest.mark.usefixtures("_loaded_anew")
def test_a_missing_library_says_how_to_make_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_library, "library_file", lambda: tmp_path / "libkernels.so")
    with pytest.raises(NotCompiled, match=r"libkernels.so: the kernels are not compiled") as raised:
        use()
    assert "make setup" in raised.value.hint


@pytest.mark.usefixtures("_loaded_anew")
def test_a_package_in_an_archive_says_to_unpack_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "packages.zip" / "variantlake" / "libkernels.so"
    monkeypatch.setattr(_library, "library_file", lambda: file)
    with pytest.raises(NotCompiled, match=r"packages.zip.*in an archive") as raised:
        use()
    assert "spark.archives" in raised.value.hint


@pytest.mark.usefixtures("_loaded_anew")
def test_a_damaged_library_says_how_to_make_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "libkernels.so"
    file.write_bytes(b"no library")
    monkeypatch.setattr(_library, "library_file", lambda: file)
    with pytest.raises(NotCompiled, match="cannot be loaded") as raised:
        use()
    assert "make setup" in raised.value.hint


@pytest.mark.usefixtures("_loaded_anew")
def test_a_machine_without_kernels_is_told_of_plain_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_library, "library_file", lambda: tmp_path / "libkernels.so")
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(NotCompiled, match="on riscv64") as raised:
        use()
    assert "VARIANTLAKE_PURE_PYTHON=1" in raised.value.hint


@pytest.mark.usefixtures("_loaded_anew")
def test_a_processor_that_is_too_old_is_told_of_plain_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_library, "levels", lambda: ("x86-64-v2", "x86-64-v3"))
    monkeypatch.setattr(_library, "level_of", lambda _cpuid, _xgetbv: None)
    if platform.machine() != "x86_64":
        pytest.skip("only x86-64 asks its processor")
    with pytest.raises(NotCompiled, match="older than x86-64-v2") as raised:
        use()
    assert "VARIANTLAKE_PURE_PYTHON=1" in raised.value.hint


@pytest.mark.usefixtures("_loaded_anew")
def test_a_source_that_changed_says_how_to_compile_it(monkeypatch: pytest.MonkeyPatch) -> None:
    use()
    monkeypatch.setattr(_library, "digest_of", lambda unit: f"another {unit}")
    with pytest.raises(NotCompiled, match=r"older than the source of 'json\.lines'") as raised:
        use()
    assert "make setup" in raised.value.hint


@pytest.mark.usefixtures("_loaded_anew")
def test_an_installed_package_has_no_sources_to_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_library, "SOURCES", "nothing_of_this_name")
    monkeypatch.setattr(_library, "digest_of", lambda unit: f"another {unit}")
    use()
