"""Where compiled kernels are kept, and that one process compiles while the others wait."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import llvmlite.binding as llvm

from variantlake import kernels
from variantlake.kernels._declared import BOUNDS_CHECKED

try:
    import fcntl
except ImportError:  # no flock on Windows: processes that start cold may compile twice, no more
    fcntl = None  # type: ignore[assignment]

UNUSED_SECONDS = 30 * 24 * 60 * 60
"""How long compiled code of another version is kept without being used."""

_DIGEST = hashlib.sha256().digest_size


def kept(name: str, make: Callable[[], bytes]) -> bytes:
    """The bytes that `make` makes, from the cache if any process of this user made them before."""
    folder = cache_folder()
    file = folder / name
    found = _read(file)
    if found is None:
        with _lock(folder / f"{name}.lock"):
            found = _read(file)
            if found is None:
                found = make()
                _write(file, found)
    return found


def _read(file: Path) -> bytes | None:
    """The content, None when there is none, or when it is damaged."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    code = content[_DIGEST:]
    return code if hashlib.sha256(code).digest() == content[:_DIGEST] else None


def _write(file: Path, code: bytes) -> None:
    """Write all or nothing. A full disk does not matter: the code is at hand."""
    part = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        part.write_bytes(hashlib.sha256(code).digest() + code)
        part.replace(file)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


@contextlib.contextmanager
def _lock(file: Path) -> Iterator[None]:
    """One process at a time. The system takes the lock from a process that dies."""
    with file.open("w") as lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@functools.cache
def cache_folder() -> Path:
    """Where this version of the kernels keeps its machine code, for this kind of processor."""
    name = Path("variantlake") / f"kernels-{_versions()}-{_key()}"
    for base in _cache_bases():
        folder = base / name
        is_new = not folder.exists()
        if _writable(folder):
            os.utime(folder)  # says when it was last used
            if is_new:
                _remove_unused(folder.parent)
            return folder
    return Path(tempfile.mkdtemp(prefix="variantlake-kernels-"))


def _versions() -> str:
    checked = "-checked" if BOUNDS_CHECKED else ""
    return (
        f"{sys.implementation.cache_tag}-{platform.machine()}"
        f"-numba{version('numba')}-llvmlite{version('llvmlite')}{checked}"
    )


def _key() -> str:
    """Of the processor, as homes are shared by machines, and of every kernel source."""
    digest = hashlib.sha256()
    digest.update(llvm.get_host_cpu_name().encode() + b"\0")
    digest.update(llvm.get_host_cpu_features().flatten().encode() + b"\0")
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
