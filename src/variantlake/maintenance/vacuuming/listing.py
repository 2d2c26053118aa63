"""List the files in a table's folder that no version needs, into a temporary file.

As in Delta Spark, hidden names (`_` or `.` first) are not data and stay. Exceptions are change data
files, partition columns with such names, checksum files of Hadoop, our own temporary files,
quarantine files, and state that autoloads no longer need. The listing never enters `_delta_log`,
nor a folder with a separate log.
"""

from __future__ import annotations

import enum
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pyarrow.compute as pc

from variantlake.batches import batched
from variantlake.delta.log.log_segment import LOG
from variantlake.delta.log.snapshot import Snapshot
from variantlake.maintenance.vacuuming.retained import RetainedPaths
from variantlake.storage.list_files import Folder, Link, walk
from variantlake.storage.store import Entry, LocalStore
from variantlake.writing.autoload_files import OWN_FOLDER, RUN_PATH
from variantlake.writing.quarantine import FOLDER as QUARANTINE

CHANGE_DATA = "_change_data"

_MARKER = re.compile(r"variantlake-load-([0-9a-f]{32})\.running")
_VECTOR = re.compile(r"deletion_vector_[0-9a-f-]{36}\.bin")
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}\.tmp")
_CHECKSUM = re.compile(r"\.(.+)\.crc")
_ENTRIES_AT_ONCE = 4096


class FileKind(enum.StrEnum):
    """The kind of a file, by its name."""

    DATA = "data"
    VECTOR = "deletion vector"
    CHANGES = "change data"
    CHECKSUM = "checksum"
    MARKER = "marker of a load"
    TEMPORARY = "temporary"
    QUARANTINE = "quarantine"
    LOADS = "state of an autoload"


@dataclass(frozen=True, slots=True)
class UnneededFile:
    """A file that no version within the retention needs. `path` is relative to the table's root."""

    path: str
    size: int
    kind: FileKind


class UnneededFiles:
    """A list of files, kept in a local temporary file; a context manager that removes it."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="variantlake-vacuum-")  # noqa: SIM115 - see exit
        self.count = 0
        self.size = 0
        self.kinds: Counter[FileKind] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, found: UnneededFile) -> None:
        """Add a file."""
        name = found.path.encode("utf-8", "surrogateescape")
        self._file.write(b"%d %s %s\0" % (found.size, found.kind.name.encode(), name))
        self.count += 1
        self.size += found.size
        self.kinds[found.kind] += 1

    def __iter__(self) -> Iterator[UnneededFile]:
        """Iterate over all files in the order of `add`; do not add files meanwhile."""
        self._file.seek(0)
        rest = b""
        while piece := self._file.read(1 << 20):
            *records, rest = (rest + piece).split(b"\0")
            for record in records:
                size, kind, name = record.split(b" ", 2)
                path = name.decode("utf-8", "surrogateescape")
                yield UnneededFile(path, int(size), FileKind[kind.decode()])


@dataclass(slots=True)
class Listing:
    """What a listing found besides unneeded files.

    `folders` are local folders to remove if they are empty. `kept_below` are folders and files that
    stay whatever the log says. `files` and `visited` count the files and folders listed.
    `quarantine_files` and `quarantine_size` (bytes) are of quarantine files that stay.
    """

    folders: list[str] = field(default_factory=list)
    kept_below: set[str] = field(default_factory=set)
    files: int = 0
    visited: int = 1
    quarantine_files: int = 0
    quarantine_size: int = 0

    def keeps(self, path: str) -> bool:
        """Whether a file, or a folder above it, is in `kept_below`."""
        if not self.kept_below:
            return False
        steps = path.split("/")
        starts = ("/".join(steps[:count]) for count in range(len(steps) + 1))
        return not self.kept_below.isdisjoint(starts)


def list_unneeded(
    snapshot: Snapshot,
    retained: RetainedPaths,
    cutoff: int,
    found: UnneededFiles,
    *,
    quarantine: bool,
    progress: Callable[[int], object],
) -> Listing:
    """Add to `found` the files that are not `retained` and were written before `cutoff`.

    `cutoff` is in milliseconds; a running writer may need later files. With `quarantine`, old
    quarantine files go too; without it, only those of killed loads. `progress` gets the number of
    files listed so far.
    """
    names = FolderNames.of(snapshot)
    listing = Listing()
    killed: set[str] = set()
    entries = _files(snapshot, names, listing, cutoff)
    for some in batched(entries, _ENTRIES_AT_ONCE):
        needed = retained.holds([_subject(entry.path) for entry in some])
        for entry, is_needed in zip(some, np.asarray(needed).tolist(), strict=True):
            kind = names.kind(entry.path)
            marker = _MARKER.fullmatch(entry.path)
            stays = is_needed or entry.modified >= cutoff
            if marker and not stays and not _is_in_log(snapshot, marker[1]):
                killed.add(marker[1])
            if kind is FileKind.QUARANTINE:
                stays = stays or not (quarantine or _load_of(entry.path) in killed)
                listing.quarantine_files += stays
                listing.quarantine_size += entry.size if stays else 0
            if kind is not None and not stays:
                found.add(UnneededFile(entry.path, entry.size, kind))
        listing.files += len(some)
        progress(listing.files)
    return listing


def _files(
    snapshot: Snapshot, names: FolderNames, listing: Listing, cutoff: int
) -> Iterator[Entry]:
    """Yield the files of a walk; adds folders and links to `listing`."""
    store = snapshot.store

    def enter(folder: str) -> bool:
        if folder.endswith(f"/{LOG}"):
            listing.kept_below.add(folder.rpartition("/")[0])
        if not names.is_entered(folder):
            return False
        if isinstance(store, LocalStore) and (store.root / folder / LOG).is_dir():
            listing.kept_below.add(folder)
            return False
        return True

    for each in walk(store, enter):
        match each:
            case Folder():
                listing.visited += 1
                if each.modified < cutoff:
                    listing.folders.append(each.path)
            case Link():
                listing.kept_below.add(each.path)
                if each.target is not None:
                    listing.kept_below.add(each.target)
            case Entry():
                yield each


@dataclass(frozen=True, slots=True)
class FolderNames:
    """The meaning of names in a table whose partition folders start with `partitions`."""

    partitions: tuple[str, ...]

    @classmethod
    def of(cls, snapshot: Snapshot) -> FolderNames:
        """Return the names of a table."""
        fields = [snapshot.schema.get(name) for name in snapshot.partition_columns]
        names = {name for f in fields if f is not None for name in (f.name, f.physical_name)}
        return cls(tuple(f"{name}=" for name in sorted(names)))

    def is_entered(self, folder: str) -> bool:
        """Whether files in a folder may be the table's; the caller checks the folders above it."""
        name = folder.rpartition("/")[2]
        if name == LOG or name.startswith("_delta_index"):
            return False
        return (
            not _has_hidden_name(name)
            or folder in (CHANGE_DATA, QUARANTINE, OWN_FOLDER)
            or (bool(self.partitions) and name.startswith(self.partitions))
        )

    def kind(self, path: str) -> FileKind | None:
        """Return the kind of a file, None for one that vacuum leaves alone."""
        name = path.rpartition("/")[2]
        if path.startswith(f"{QUARANTINE}/"):
            return FileKind.QUARANTINE
        if path.startswith(f"{OWN_FOLDER}/"):
            return FileKind.LOADS if RUN_PATH.fullmatch(path) else None
        if _has_hidden_name(name):
            if _TEMPORARY.fullmatch(name):
                return FileKind.TEMPORARY
            checked = _CHECKSUM.fullmatch(name)
            return FileKind.CHECKSUM if checked and not _has_hidden_name(checked[1]) else None
        if path.startswith(f"{CHANGE_DATA}/"):
            return FileKind.CHANGES
        if _VECTOR.fullmatch(name):
            return FileKind.VECTOR
        return FileKind.MARKER if _MARKER.fullmatch(path) else FileKind.DATA


def _has_hidden_name(name: str) -> bool:
    return name.startswith(("_", "."))


def _subject(path: str) -> str:
    """Return the file whose need decides about this one: for a checksum, the file it belongs to."""
    folder, slash, name = path.rpartition("/")
    checked = _CHECKSUM.fullmatch(name) if name.startswith(".") else None
    return f"{folder}{slash}{checked[1]}" if checked else path


def _load_of(path: str) -> str:
    """Return the id of the load that wrote a quarantine file."""
    return path.split("/")[1]


def _is_in_log(snapshot: Snapshot, load_id: str) -> bool:
    """Whether the newest version shows that a load was committed."""
    named = pc.match_substring(snapshot.files["path"], f"-{load_id}-")
    return load_id in snapshot.transactions or bool(pc.any(named).as_py())
