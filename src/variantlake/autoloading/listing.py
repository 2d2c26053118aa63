"""List the source of an autoload: sorted names, a page at a time.

A name is the path from the source's root, as bytes with `/` between its parts. Disks and object
stores list names in the order of their bytes, so that a listing can be merged with the sorted runs
of the state, and can begin after a name.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import obstore
from obstore.exceptions import BaseError

from variantlake.errors import InvalidValue, MissingSource, StoreFailed, VariantLakeError
from variantlake.ingest.sources.find_files import NDJSON, FilePattern, SourceKind, names_below
from variantlake.storage.objects import ObjectStore, entry_of, open_object
from variantlake.storage.options import storage_options
from variantlake.storage.schemes import check_scheme
from variantlake.storage.store import Entry, is_local, local_path, make_folder
from variantlake.storage.unreachable import disk_failure, explained

PAGE_NAMES = 4096
_PARALLEL_REQUESTS = 16


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file at one moment: `size` in bytes, `modified` in milliseconds since the epoch.

    `tag` changes with the content: a hash of the store's etag, on a disk the time of the last
    change in nanoseconds.
    """

    name: bytes
    size: int
    modified: int
    tag: int

    def is_same(self, other: SourceFile | None) -> bool:
        """Whether the file is unchanged from `other`."""
        return other is not None and (self.size, self.tag) == (other.size, other.tag)


@dataclass(frozen=True, slots=True)
class Page:
    """Sorted names, and their files if the listing describes them."""

    names: list[bytes]
    files: list[SourceFile] | None = None


def open_folder(source: str | os.PathLike[str], kind: SourceKind = NDJSON) -> Folder:
    """Open the source of an autoload: a folder, a glob or one file.

    In a folder it takes files of this kind.

    Raises InvalidValue for another value, MissingSource if the source does not exist.
    """
    given: object = source  # callers without mypy may pass anything
    if not isinstance(given, str | os.PathLike) or not os.fspath(given):
        raise InvalidValue(
            f"the source of an autoload is a folder, a glob or a URL, not {source!r:.100}",
            hint="name one folder; each further folder needs an autoload of its own",
        )
    text = os.fsdecode(source)
    if not is_local(text):
        return _object_folder(text, kind)
    if not os.path.lexists(text):
        check_scheme(text)
    path = str(Path(local_path(text)).absolute())
    if Path(path).is_dir():
        return LocalFolder(os.path.realpath(path), FilePattern(kind))
    if Path(path).exists():
        root, _, name = path.rpartition("/")
        return LocalFolder(os.path.realpath(root or "/"), FilePattern.one(name))
    folder, wanted = FilePattern.below(path)
    if wanted.pattern is None:
        raise MissingSource(
            "the source does not exist", file=path, hint="check the spelling; globs need quotes"
        )
    folder = folder or "/"
    if not Path(folder).is_dir():
        raise MissingSource("the folder of this pattern does not exist", file=folder)
    return LocalFolder(os.path.realpath(folder), wanted)


def _object_folder(url: str, kind: SourceKind) -> Folder:
    store, name = open_object(url)
    if name and not name.endswith("/") and store.entry(name):
        prefix, _, last = name.rpartition("/")
        return ObjectFolder(store, prefix, FilePattern.one(last))
    prefix, wanted = FilePattern.below(name, kind)
    return ObjectFolder(store, prefix.strip("/"), wanted)


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """A folder on a disk with the source files of an autoload.

    Names are relative to `root`, an absolute path.
    """

    root: str
    wanted: FilePattern

    @property
    def objects(self) -> bool:
        """Whether this is an object store: files appear complete, and listing costs requests."""
        return False

    def pages(self, after: bytes | None) -> Iterator[Page]:
        """The files in pages, all or those with names after `after`.

        Raises MissingSource and StoreFailed.
        """
        names: list[bytes] = []
        for name in names_below(self.root, self.wanted, after or b""):
            names.append(name)
            if len(names) == PAGE_NAMES:
                yield Page(names)
                names = []
        if names:
            yield Page(names)

    def stat_files(self, names: Sequence[bytes]) -> list[SourceFile | None]:
        """The files as they are now; None for those that are gone."""
        return [self._stat_file(name) for name in names]

    def _stat_file(self, name: bytes) -> SourceFile | None:
        try:
            status = os.stat(self._path(name))  # noqa: PTH116 - names are bytes
        except OSError:
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        tag = status.st_mtime_ns % (1 << 64)
        return SourceFile(name, status.st_size, status.st_mtime_ns // 1_000_000, tag)

    def location(self, name: bytes) -> str:
        """The path or URL of a file."""
        return os.fsdecode(self._path(name))

    def _path(self, name: bytes) -> bytes:
        return os.fsencode(self.root.rstrip("/")) + b"/" + name

    def delete(self, name: bytes) -> None:
        """Delete a file; one that is gone is not an error."""
        path = self._path(name)
        _attempt("deleted", os.fsdecode(path), lambda: os.unlink(path))  # noqa: PTH108

    def move(self, name: bytes, to: str) -> None:
        """Move a file below another root of the same kind; one that is gone is not an error."""
        source = Path(self.location(name))
        _attempt("moved", str(source), lambda: _move(source, Path(to) / os.fsdecode(name)))


def _attempt(done: str, path: str, work: Callable[[], object]) -> None:
    try:
        work()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise disk_failure(error, path, f"the file was loaded and cannot be {done}") from error


def _move(source: Path, target: Path) -> None:
    make_folder(target.parent)
    if target.exists():
        # Keep both: a file of this name was moved there before.
        target = target.with_name(f"{target.name}.{source.stat().st_mtime_ns:x}")
    try:
        source.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        beside = target.with_name(f".{target.name}.tmp")
        shutil.copy2(source, beside)
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        beside.replace(target)
        source.unlink()


@dataclass(frozen=True, slots=True)
class ObjectFolder:
    """A bucket, or the objects below a prefix (without a trailing slash); else as LocalFolder."""

    store: ObjectStore
    prefix: str
    wanted: FilePattern

    @property
    def root(self) -> str:
        """See LocalFolder."""
        return self.store.join(self.prefix).rstrip("/")

    @property
    def objects(self) -> bool:
        """See LocalFolder."""
        return True

    def pages(self, after: bytes | None) -> Iterator[Page]:
        """See LocalFolder."""
        start = len(self.prefix) + 1 if self.prefix else 0
        offset = None if after is None else self._path(after)
        last = b""
        try:
            listed = obstore.list(
                self.store.backend, self.prefix or None, offset=offset, chunk_size=1000
            )
            for found in listed:
                files = []
                for meta in found:
                    name = meta["path"][start:]
                    if self.wanted.accepts(name):
                        files.append(_source_file(name.encode(), entry_of(meta)))
                # S3 and similar stores list in this order; in another we would miss files.
                names = [file.name for file in files]
                if names and (names != sorted(names) or names[0] <= last):
                    raise StoreFailed(
                        "the store does not list its objects in the order of their names",
                        file=self.root,
                    )
                last = names[-1] if names else last
                if names:
                    yield Page(names, files)
        except VariantLakeError:
            raise
        except (BaseError, OSError, ValueError) as error:
            failed = explained(error, self.root, storage_options(self.root))
            failed.say_first("the source cannot be listed")
            raise failed from error

    def stat_files(self, names: Sequence[bytes]) -> list[SourceFile | None]:
        """See LocalFolder."""
        with ThreadPoolExecutor(_PARALLEL_REQUESTS) as pool:
            return list(pool.map(self._stat_file, names))

    def _stat_file(self, name: bytes) -> SourceFile | None:
        entry = self.store.entry(self._path(name))
        return None if entry is None else _source_file(name, entry)

    def location(self, name: bytes) -> str:
        """See LocalFolder."""
        return self.store.join(self._path(name))

    def _path(self, name: bytes) -> str:
        return f"{self.prefix}/{name.decode()}" if self.prefix else name.decode()

    def delete(self, name: bytes) -> None:
        """See LocalFolder."""
        self.store.delete(self._path(name))

    def move(self, name: bytes, to: str) -> None:
        """See LocalFolder."""
        bucket, below = open_object(to)
        source, target = self._path(name), f"{below.strip('/')}/{name.decode()}".lstrip("/")
        if bucket.uri != self.store.uri:
            raise InvalidValue(
                f"objects are moved within a bucket, not from {self.store.uri} to {bucket.uri}",
                hint="move them below another prefix of the same bucket",
            )
        moved, known = self.store.entry(source), self.store.entry(target)
        if moved is None:
            return
        if known is not None and (known.size, known.tag) != (moved.size, moved.tag):
            target = f"{target}.{moved.tag}"  # keep both: another object was moved there before
        try:
            obstore.copy(self.store.backend, source, target)
        except FileNotFoundError:
            return
        except (BaseError, OSError) as error:
            message = str(error).partition("\n")[0]
            raise StoreFailed(
                f"the object was loaded and cannot be moved: {message}", file=self.location(name)
            ) from error
        self.store.delete(source)


Folder = LocalFolder | ObjectFolder


def _source_file(name: bytes, entry: Entry) -> SourceFile:
    # Whole seconds: stores give fractions in listings only.
    seconds = entry.modified // 1000
    etag = (entry.tag or str(seconds)).encode()
    tag = int.from_bytes(hashlib.blake2b(etag, digest_size=8).digest(), "little")
    return SourceFile(name, entry.size, seconds * 1000, tag)
