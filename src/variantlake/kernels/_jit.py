"""How kernels are compiled: the one place that says `njit`, and where compiled code is kept.

Three kinds of functions: an `entry` is called from Python (explicit signature, compiled or loaded
when its module is imported, GIL released, cached on disk); a `helper` is called from kernels; a
`tiny` is inlined into its callers (measured: 1.3 times the speed of the JSON reader). It is LLVM
that inlines: when Numba does it (`inline="always"`), compiling takes 1.5 times as long.

Rules inside kernels: every integer is int64, an index is cast to uint64 where it is used (no
wraparound test; measured 30 %), mixing the two gives float64 and is a bug. Kernels allocate
nothing and never raise. Fast-math is never on.

With NUMBA_DISABLE_JIT=1 everything runs as plain Python, with NUMBA_BOUNDSCHECK=1 every access to
an array is checked (words.py replaces its raw accesses by checked ones).
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numpy as np
from numba.core import config as numba_config

from variantlake import kernels

try:
    import fcntl
except ImportError:  # no flock on Windows: processes that start cold may compile twice, no more
    fcntl = None  # type: ignore[assignment]

P = ParamSpec("P")
R = TypeVar("R")

_config: Any = numba_config  # its members are made at run time
_njit: Any = numba.njit  # the stubs miss the options that switch wrappers and the runtime off

# Kernels allocate nothing, so they need no reference counts; those would cost a third of the
# speed and most of the time to compile.
_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}

UNUSED_SECONDS = 30 * 24 * 60 * 60
"""How long compiled code of another version is kept without being used."""

JIT_OFF: bool = bool(_config.DISABLE_JIT)
"""Kernels run as plain Python functions (NUMBA_DISABLE_JIT=1)."""

BOUNDS_CHECKED: bool = bool(_config.BOUNDSCHECK)
"""Compiled array accesses raise IndexError when outside (NUMBA_BOUNDSCHECK=1)."""

int64 = cast("Callable[[Any], int]", np.int64)
"""The casts of kernels. They make NumPy scalars in plain mode, which mypy takes for int."""
uint64 = cast("Callable[[Any], int]", np.uint64)
float64 = cast("Callable[[Any], float]", np.float64)

i64 = numba.int64
void = numba.void
uint8s = numba.types.Array(numba.uint8, 1, "C")
int32s = numba.types.Array(numba.int32, 1, "C")
int64s = numba.types.Array(numba.int64, 1, "C")
bytes_in = numba.types.Array(numba.uint8, 1, "C", readonly=True)
"""Bytes that a kernel only reads; takes writable arrays as well."""
int32s_in = numba.types.Array(numba.int32, 1, "C", readonly=True)
int64s_in = numba.types.Array(numba.int64, 1, "C", readonly=True)

Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]
Int32s = np.ndarray[tuple[int], np.dtype[np.int32]]
Int64s = np.ndarray[tuple[int], np.dtype[np.int64]]
Records = Any
"""A one-dimensional np.recarray; attribute access to its records has no static type."""


def records(dtype: np.dtype[Any], *, readonly: bool = False) -> Any:
    """The Numba type of a contiguous record array."""
    return numba.types.Array(numba.from_dtype(dtype), 1, "C", readonly=readonly)


def _source_hash() -> str:
    """Of every kernel source: Numba itself does not see an edited helper of another file."""
    digest = hashlib.sha256()
    for source in sorted(Path(kernels.__file__).parent.glob("*.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _cache_bases() -> Iterator[Path]:
    """Places for compiled code, best first."""
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(given)
    with contextlib.suppress(RuntimeError):  # no home directory at all
        if sys.platform == "win32":
            yield Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        elif sys.platform == "darwin":
            yield Path.home() / "Library" / "Caches"
        else:
            yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    # Shared by the worker processes of one user; its owner is checked before it is used.
    user = os.getuid() if hasattr(os, "getuid") else "user"
    yield Path(tempfile.gettempdir()) / f"variantlake-{user}"


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
            return False  # loading machine code that somebody else may write is not an option
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _remove_unused(parent: Path) -> None:
    """Remove other versions' code that nobody has used for long: an upgrade makes a new folder."""
    for folder in parent.glob("kernels-*"):
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime > UNUSED_SECONDS:
                shutil.rmtree(folder)


@functools.cache
def cache_folder() -> Path:
    """Where this version of the kernels keeps its machine code."""
    python = f"{sys.implementation.cache_tag}-{platform.machine()}-numba{numba.__version__}"
    checked = "-checked" if BOUNDS_CHECKED else ""
    name = Path("variantlake") / f"kernels-{python}{checked}-{_source_hash()}"
    for base in _cache_bases():
        folder = base / name
        is_new = not folder.exists()
        if _writable(folder):
            os.utime(folder)  # says when it was last used
            if is_new:
                _remove_unused(folder.parent)
            return folder
    return Path(tempfile.mkdtemp(prefix="variantlake-kernels-"))


@contextlib.contextmanager
def _one_compiler(name: str) -> Iterator[None]:
    """Compile or load under a lock: of many processes starting cold one compiles, the others wait.

    Also points Numba to our folder, for this function only: other libraries' caches stay where
    they are.
    """
    folder = cache_folder()
    before, collects = _config.CACHE_DIR, gc.isenabled()
    with (folder / f"{name}.lock").open("w") as lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        _config.CACHE_DIR = str(folder)
        # Compiling makes millions of objects and few cycles; looking for these takes a seventh of
        # the time.
        gc.disable()
        try:
            yield
        finally:
            _config.CACHE_DIR = before
            if collects:
                gc.enable()


def entry(signature: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare a kernel that Python calls. `signature` is a Numba signature: `i64(bytes_in)`."""

    def compiled(function: Callable[P, R]) -> Callable[P, R]:
        if JIT_OFF:
            return _plain(function)
        with _one_compiler(f"{function.__module__.rpartition('.')[2]}.{function.__name__}"):
            jitted = _njit(signature, cache=True, **_OPTIONS)(function)
        return cast("Callable[P, R]", jitted)

    return compiled


def helper(function: Callable[P, R]) -> Callable[P, R]:
    """Declare a function that only kernels call."""
    return cast("Callable[P, R]", _HELPER(function))


def tiny(function: Callable[P, R]) -> Callable[P, R]:
    """Declare a function that is inlined into the kernels that call it."""
    return cast("Callable[P, R]", _TINY(function))


_HELPER = _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS)
_TINY = _njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS)


def _plain(function: Callable[P, R]) -> Callable[P, R]:
    """Machine integers wrap around without a word; so must NumPy's scalars in their place."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(over="ignore"):
            return function(*args, **kwargs)

    return call
