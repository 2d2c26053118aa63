"""The store of a table, on a local disk or in an object store, with the few calls a log needs.

Paths are relative to the table's root and use `/`. Commits rest on `put_if_absent`: of several
writers that put the same path, exactly one wins, and nobody ever sees a half-written file. Spec:
PROTOCOL, "Creation of New Log Entries".
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import shutil
import stat
import sys
import urllib.parse
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import pyarrow as pa

from variantlake.errors import (
    InvalidValue,
    MissingSource,
    StoreFailed,
    UnsupportedFeature,
    describe_type,
)
from variantlake.storage.input_file import InputFile
from variantlake.storage.renames import await_renames
from variantlake.storage.unreachable import disk_failure

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
CHUNK = 8 << 20
"""Bytes of each piece that `Store.stream` yields."""
# Errors of a file system without hard links. After these, the link certainly does not exist.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV, errno.EMLINK)


@dataclass(frozen=True, slots=True)
class Entry:
    """A file: its path from the table's root, size in bytes, and time in ms since the epoch.

    `tag` changes whenever the file at the path is replaced. It is the object's etag, or on a disk
    the inode with its times; empty if unknown.
    """

    path: str
    size: int
    modified: int
    tag: str = ""

    def is_same(self, other: Entry | None) -> bool:
        """Whether both entries describe the same file, which nothing replaced in between."""
        # Stores report whole seconds for a single file, but fractions of them in listings.
        return other is not None and (
            (self.path, self.size, self.tag, self.modified // 1000)
            == (other.path, other.size, other.tag, other.modified // 1000)
        )


class Store(Protocol):
    """The storage calls of a table. `uri` is its root, without a trailing slash.

    All calls raise StoreFailed if the store fails, and MissingSource for a path that does not
    exist where nothing else is documented.
    """

    @property
    def uri(self) -> str:
        """The root: an absolute path for a local disk, else a URL."""

    def read(self, path: str) -> bytes:
        """Read the whole file."""

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Read `length` bytes from `start`; fewer if the file ends before."""

    def stream(self, path: str) -> Iterator[bytes]:
        """Yield the file in pieces, in order, never holding all of it in memory."""

    def open(self, path: str) -> InputFile:
        """Open the file for range reads."""

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write the file, whole and durable, unless it exists. Returns True if this call made it.

        An object store may write the file and lose its response. The retry then returns False, so
        callers compare the file with what they sent.
        """

    def put(self, path: str, data: bytes) -> None:
        """Write or replace the file. Readers see the old or the new one, never a mixture."""

    def upload(self, path: str, file: Path) -> None:
        """`put` a local file without holding all of it in memory; durable when this returns."""

    def flush(self, path: str) -> None:
        """Make a file that was written without this store durable, and its directory entry.

        Does nothing in an object store, where every written object is durable.
        """

    def delete(self, path: str) -> None:
        """Delete the file. A missing file is no error."""

    def delete_all(self, paths: Sequence[str]) -> None:
        """Delete many files in few requests. After an error, some of them may remain."""

    def list_from(self, folder: str, after: str = "") -> Iterator[Entry]:
        """Yield the files directly in `folder` whose names sort after `after`, ordered by name.

        Yields nothing for a folder that does not exist. Leaves out files in subfolders.
        """

    def entry(self, path: str) -> Entry | None:
        """Return the file's entry; None if there is no such file."""

    def join(self, path: str) -> str:
        """Return `path` as an absolute location that other readers (Arrow, Spark) can open."""


@dataclass(frozen=True, slots=True)
class LocalStore:
    """A table on a local disk.

    `put_if_absent` writes a temporary file in the target's folder, flushes it, and hard-links it to
    the target's name, which fails atomically if the name is taken. It refuses file systems without
    hard links, where a rename could overwrite another writer's file. Delta Spark commits by such a
    rename, so this waits before and after the link while a temporary file shows that Delta Spark
    is about to rename. Callers read back what they put.
    """

    root: Path

    @property
    def uri(self) -> str:
        """The absolute path of the root."""
        return str(self.root)

    def read(self, path: str) -> bytes:
        """See Store."""
        with self.failures(path):
            return (self.root / path).read_bytes()

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """See Store."""
        with self.failures(path), (self.root / path).open("rb") as file:
            file.seek(start)
            return file.read(length)

    def stream(self, path: str) -> Iterator[bytes]:
        """See Store."""
        with self.failures(path), (self.root / path).open("rb") as file:
            while piece := file.read(CHUNK):
                yield piece

    def open(self, path: str) -> InputFile:
        """See Store."""
        location = str(self.root / path)
        with self.failures(path):
            return InputFile(location, pa.OSFile(location, mode="r"))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """See Store."""
        target = self.root / path
        with self.failures(path):
            with _beside(target) as temporary:
                _write(temporary, data)
                try:
                    await_renames(target)
                    os.link(temporary, target)
                except FileExistsError:
                    return False
                except OSError as error:
                    if error.errno not in _NO_LINKS:
                        raise  # the link may exist all the same
                    raise UnsupportedFeature(
                        f"this file system cannot create hard links: {error.strerror}",
                        file=str(target),
                        hint="a commit needs an atomic create; use another disk or an object store",
                    ) from error
            _flush_folder(target.parent)
            await_renames(target)
            return True

    def put(self, path: str, data: bytes) -> None:
        """See Store."""
        target = self.root / path
        with self.failures(path), _beside(target) as temporary:
            _write(temporary, data)
            temporary.replace(target)
            _flush_folder(target.parent)

    def upload(self, path: str, file: Path) -> None:
        """See Store."""
        target = self.root / path
        with self.failures(path), _beside(target) as temporary:
            shutil.copyfile(file, temporary)
            _flush_file(temporary)
            temporary.replace(target)
            _flush_folder(target.parent)

    def flush(self, path: str) -> None:
        """See Store."""
        target = self.root / path
        with self.failures(path):
            _flush_file(target)
            _flush_folder(target.parent)

    def delete(self, path: str) -> None:
        """See Store."""
        with self.failures(path):
            (self.root / path).unlink(missing_ok=True)

    def delete_all(self, paths: Sequence[str]) -> None:
        """See Store."""
        for path in paths:
            self.delete(path)

    def list_from(self, folder: str, after: str = "") -> Iterator[Entry]:
        """See Store."""
        with self.failures(folder):
            try:
                # Callers want few names of a long log: filter before making objects.
                names = [name for name in os.listdir(self.root / folder) if name > after]  # noqa: PTH208
            except (FileNotFoundError, NotADirectoryError):
                return
            for name in sorted(names):
                path = f"{folder}/{name}" if folder else name
                # Temporary and cleaned-up files may vanish during the listing: skip them.
                try:
                    status = os.stat(f"{self.root}/{path}")  # noqa: PTH116 - one of many
                except FileNotFoundError:
                    continue
                if stat.S_ISREG(status.st_mode):
                    yield _entry(path, status)

    def entry(self, path: str) -> Entry | None:
        """See Store."""
        try:
            with self.failures(path):
                return _entry(path, (self.root / path).stat())
        except MissingSource:
            return None

    def join(self, path: str) -> str:
        """See Store."""
        return str(self.root / path)

    @contextlib.contextmanager
    def failures(self, path: str) -> Iterator[None]:
        """Raise operating system errors as ours, naming the file."""
        try:
            yield
        except FileNotFoundError as error:
            raise MissingSource("no such file", file=str(self.root / path)) from error
        except (NotADirectoryError, IsADirectoryError) as error:
            raise MissingSource(str(error.strerror), file=str(self.root / path)) from error
        except (UnsupportedFeature, MissingSource, StoreFailed):
            raise
        except (OSError, ValueError) as error:
            raise disk_failure(error, str(self.root / path)) from error


def location_text(location: object) -> str:
    """Return a user's location, a path or a URL, as text.

    Raises InvalidValue for what is neither.
    """
    if isinstance(location, os.PathLike):
        location = os.fspath(location)
    if isinstance(location, str) and location:
        return location
    given = repr(location) if location in (None, "") else describe_type(location)
    raise InvalidValue(
        f"a table is named by its path or URL, not by {given}",
        hint="give its location, as in '/lake/events' or 's3://bucket/events'",
    )


def as_hadoop(location: str) -> str:
    """Return a location as Hadoop and Delta Spark write it: local paths with the scheme `file:`."""
    return f"file:{location}" if is_local(location) else location


def is_local(location: str) -> bool:
    """Whether a location is a path or a `file:` URL."""
    return location.lower().startswith("file:") or not _URL.match(location)


def local_path(location: str) -> str:
    """Return the path of a local location. Percent-decodes a `file:` URL, but not a plain path."""
    if not location.lower().startswith("file:"):
        return location
    from urllib.request import url2pathname  # slow to load: imports HTTP and mail modules

    return url2pathname(urllib.parse.urlsplit(location).path)


def _entry(path: str, status: os.stat_result) -> Entry:
    tag = f"{status.st_ino}:{status.st_mtime_ns}:{status.st_ctime_ns}"
    return Entry(path, status.st_size, status.st_mtime_ns // 1_000_000, tag)


@contextlib.contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """Provide the path of a temporary file in the target's folder, hidden from readers."""
    make_folder(target.parent)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _write(temporary: Path, data: bytes) -> None:
    with temporary.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def make_folder(folder: Path) -> None:
    """Make a folder and its missing parents, and flush each new directory entry to the disk."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    _flush_folder(folder.parent)


def start_flush(file: Path) -> None:
    """Start to write a file's data to the disk, without waiting. Does nothing outside of Linux.

    This makes nothing durable, but shortens a later `Store.flush`. A disk error that occurs here
    is still reported by that flush.
    """
    if _sync_file_range is None:
        return
    handle = os.open(file, os.O_RDONLY)
    try:
        _sync_file_range(handle, 0, 0, _SYNC_FILE_RANGE_WRITE)
    finally:
        os.close(handle)


_SYNC_FILE_RANGE_WRITE = 2


def _find_sync_file_range() -> Callable[[int, int, int, int], int] | None:
    """Find the C library's function, which Python does not offer; None if there is none."""
    if sys.platform != "linux":
        return None
    found: Any = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if found is not None:
        found.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    return cast("Callable[[int, int, int, int], int] | None", found)


_sync_file_range = _find_sync_file_range()


def _flush_file(file: Path) -> None:
    """Flush a closed file to the disk."""
    with file.open("r+b") as handle:
        os.fsync(handle.fileno())


def _flush_folder(folder: Path) -> None:
    """Flush a folder's entries where the system supports it (Windows does not)."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
