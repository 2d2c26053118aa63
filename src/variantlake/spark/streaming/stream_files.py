"""The sequence of files that a stream reads, each with the offset after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from variantlake.delta.actions.actions import AddFile
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import MissingSource
from variantlake.feed.appended import appended_files
from variantlake.feed.commits import INSERT, ChangedFile, VersionRange, changed_files
from variantlake.spark.streaming.offsets import Offset
from variantlake.spark.streaming.source_options import StreamOptions


@dataclass(frozen=True, slots=True)
class Unit:
    """One file of a batch: `after` is the offset after it, `change` says what its rows changed.

    `begins` is true for the first file of its version, and for every file of the starting version.
    """

    file: AddFile
    after: Offset
    change: ChangedFile | None
    begins: bool


def units_of(
    read: Snapshot,
    begin: Offset,
    last: int,
    options: StreamOptions,
    first_there: Callable[[int], int],
) -> Iterator[Unit]:
    """Yield the files after `begin`, up to those of version `last`, to be read by `read`'s schema.

    Raises as `appended_files` and `changed_files`; MissingSource for a starting version that the
    log no longer holds.
    """
    version = begin.version
    if begin.is_starting:
        if version <= last:
            yield from _numbered(_starting(read, version, options), begin)
        version += 1
        begin = Offset(begin.table, version)
    if version <= last and (first := first_there(version)) > version:
        version = first
        begin = Offset(begin.table, version)
    if version > last:
        return
    if options.change_feed:
        yield from _changes(read, begin, last)
        return
    for number in range(version, last + 1):
        files = [(file, None) for file in appended_files(read, number, options.changes)]
        yield from _numbered(files, begin if number == version else Offset(begin.table, number))


_File = tuple[AddFile, ChangedFile | None]


def _numbered(files: Sequence[_File], begin: Offset) -> Iterator[Unit]:
    """Yield the files of one version that follow an offset in it."""
    for index, (file, change) in enumerate(files):
        if index <= begin.index:
            continue
        after = Offset(begin.table, begin.version, index, begin.is_starting)
        if index == len(files) - 1:
            after = Offset(begin.table, begin.version + 1)
        yield Unit(file, after, change, index == 0 or begin.is_starting)


def _starting(read: Snapshot, version: int, options: StreamOptions) -> list[_File]:
    """Return all files of the table at a version, the oldest first."""
    try:
        then = read if read.version == version else read.at(version)
    except MissingSource as error:
        raise MissingSource(
            f"the log does not hold version {version} any more, which the stream began with",
            file=read.store.uri,
            hint="give the stream a new checkpoint; rows that it reads again come twice",
        ) from error
    files = sorted(then.add_files(), key=lambda file: (file.modification_time, file.path))
    if not options.change_feed:
        return [(file, None) for file in files]
    stamped = None if then.commit_info is None else then.commit_info.in_commit_timestamp
    time = then.last.modified if stamped is None else stamped
    return [(file, ChangedFile(version, time, INSERT, file)) for file in files]


def _changes(read: Snapshot, begin: Offset, last: int) -> Iterator[Unit]:
    """Yield the changed files from an offset on."""
    files: list[_File] = []
    at = begin.version
    for change in changed_files(read, VersionRange(begin.version, last), read):
        if change.version != at:
            yield from _numbered(files, begin if at == begin.version else Offset(begin.table, at))
            files, at = [], change.version
        files.append((change.file, change))
    yield from _numbered(files, begin if at == begin.version else Offset(begin.table, at))
