"""Decide which files of a source to load, by comparing its listing with the log."""

from __future__ import annotations

import enum
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from variantlake.autoloading.listing import Folder, Page, SourceFile
from variantlake.autoloading.options import SETTLE_SECONDS, AutoloadOptions
from variantlake.autoloading.runs import RunReader, upper_bound
from variantlake.autoloading.state import FileState, LoadState
from variantlake.errors import InvalidValue

MANY_FILES = 10_000
"""The number of known files in an object store from which "auto" lists only after the last name.
Listing fewer takes ten requests, about as many as a batch needs anyway."""

_FOR_EVER = 1 << 62

_COLUMNS = ("name", "size", "tag", "state", "modified")


class DiscoveryKind(enum.Enum):
    """What to do with a file."""

    NEW = enum.auto()
    """Load it."""
    OLD = enum.auto()
    """Only record it: it is older than `since`."""
    DONE = enum.auto()
    """Move or delete it: it is loaded."""


@dataclass(frozen=True, slots=True)
class DiscoveredFile:
    """A file to act on; `logged` if the log has a record of it already."""

    file: SourceFile
    kind: DiscoveryKind
    logged: bool = False


@dataclass(slots=True)
class Settling:
    """Tells which files have been unchanged for `seconds`; remembers files across rounds.

    It compares the file's time with the clock or, if these disagree, waits until it has seen the
    same file for that long.
    """

    seconds: float
    _seen: dict[bytes, tuple[SourceFile, float]] = field(default_factory=dict)

    def is_settled(self, file: SourceFile) -> bool:
        """Whether the file may be loaded."""
        if not self.seconds:
            return True
        age = time.time() - file.modified / 1000
        if age >= self.seconds:
            self._seen.pop(file.name, None)
            return True
        before = self._seen.get(file.name)
        now = time.monotonic()
        if before is None or not file.is_same(before[0]):
            self._seen[file.name] = file, now
            return False
        return now - before[1] >= self.seconds

    def forget(self, files: list[SourceFile]) -> None:
        """Forget files that were loaded."""
        for file in files:
            self._seen.pop(file.name, None)


@dataclass(slots=True)
class Discovery:
    """One pass over a source; its figures are complete once it has ended (`is_done`).

    It lists the names after `after`, all names for None; `started` is when, in milliseconds since
    the epoch. `waiting` counts files that have not settled, `first_waiting` is the least name of
    these; `changed` counts loaded files that were written again and are not reloaded,
    `first_changed` is the least name of these. `oldest_touched` is the least recorded time of files
    that were touched since and are not loaded again: if their records were dropped, they would
    count as new.
    """

    folder: Folder
    state: LoadState
    options: AutoloadOptions
    settling: Settling
    after: bytes | None
    started: int = 0
    waiting: int = 0
    first_waiting: bytes | None = None
    changed: int = 0
    first_changed: bytes | None = None
    is_done: bool = False
    oldest_touched: int = _FOR_EVER

    @property
    def is_full(self) -> bool:
        """Whether this pass lists the whole source."""
        return self.after is None

    def files(self, reader: RunReader) -> Iterator[DiscoveredFile]:
        """The files to act on, in the order of names.

        Raises InvalidValue for a changed file if `on_change` is "error", else as the listing.
        """
        known = _SortedPieces(self.state.sorted_pieces(reader, after=self.after))
        for page in self.folder.pages(self.after):
            yield from self._of_page(page, known)
        self.is_done = True

    def _of_page(self, page: Page, known: _SortedPieces) -> Iterator[DiscoveredFile]:
        table = known.up_to(page.names[-1])
        places: list[int | None] = [None] * len(page.names)
        if table.num_rows:
            names = pa.array(page.names, pa.binary())
            indices: Any = pc.index_in(names, value_set=table.column("name").combine_chunks())
            places = indices.to_pylist()
        columns = (table.column(name).to_pylist() for name in _COLUMNS[1:])
        records = list(zip(*columns, strict=True))
        # Known files, too: only this shows that a file was written again.
        files = self.folder.stat_files(page.names) if page.files is None else page.files
        for place, file in zip(places, files, strict=True):
            if file is None:
                continue  # it is gone
            kind = DiscoveryKind.NEW
            if place is not None:
                *stamp, state, modified = records[place]
                is_same = [file.size, file.tag] == stamp
                outcome = self._of_known(file, FileState(state), is_same=is_same)
                again = modified is not None and modified < file.modified
                if again and outcome is not DiscoveryKind.NEW:
                    self.oldest_touched = min(self.oldest_touched, modified)
                if outcome is None:
                    continue
                kind = outcome
            elif file.modified < self.state.floor:
                continue  # it may have been loaded, and its record dropped
            elif self._is_old(file):
                kind = DiscoveryKind.OLD
            if kind is DiscoveryKind.NEW and not self.settling.is_settled(file):
                self.waiting += 1
                self.first_waiting = self.first_waiting or file.name
                continue
            yield DiscoveredFile(file, kind, place is not None)

    def _of_known(
        self, file: SourceFile, state: FileState, *, is_same: bool
    ) -> DiscoveryKind | None:
        if state is FileState.RETRY:
            return DiscoveryKind.NEW
        if state in (FileState.EMPTY, FileState.FAILED) and not is_same:
            return DiscoveryKind.NEW
        if state is FileState.SKIPPED and not is_same and not self._is_old(file):
            return DiscoveryKind.NEW  # it was too old, and never loaded
        if state is FileState.LOADED and not is_same:
            if self.options.on_change == "error":
                raise InvalidValue(
                    "the file was written again after it was loaded",
                    file=self.folder.location(file.name),
                    hint="on_change='reload' loads it again, 'ignore' leaves it out",
                    cli_hint="--on-change reload loads it again, ignore leaves it out",
                )
            if self.options.on_change == "reload":
                return DiscoveryKind.NEW
            self.changed += 1
            self.first_changed = self.first_changed or file.name
            return None
        # An empty file stays: it may be about to be written.
        is_done = state is FileState.LOADED and not self.options.keeps
        return DiscoveryKind.DONE if is_done else None

    def floor(self, newest: int) -> int:
        """The time before which records of unchanged files may be dropped; 0 drops none.

        `newest` is when the newest file of the batch changed; all times are milliseconds since the
        epoch. 0 unless the pass was complete and no file waits. The least of the file's time and
        the clock counts, so that neither a wrong clock nor a file from the future raises it.
        """
        age = self.options.max_file_age
        if age is None or not (self.is_full and self.is_done) or self.first_waiting is not None:
            return 0
        return max(min(min(newest, self.started) - int(age * 1000), self.oldest_touched), 0)

    def _is_old(self, file: SourceFile) -> bool:
        return self.options.since is not None and file.modified < self.options.since


class _SortedPieces:
    """Reads the sorted records of known files side by side with a sorted listing."""

    def __init__(self, pieces: Iterator[pa.Table]) -> None:
        self._pieces = pieces
        self._pending: list[pa.Table] = []

    def up_to(self, name: bytes) -> pa.Table:
        """The next rows, with names up to this one."""
        parts: list[pa.Table] = []
        while True:
            if not self._pending:
                piece = next(self._pieces, None)
                if piece is None:
                    break
                self._pending.append(piece.select(list(_COLUMNS)).combine_chunks())
            piece = self._pending.pop()
            cut = upper_bound(piece, name)
            parts.append(piece.slice(0, cut))
            if cut < piece.num_rows:
                self._pending.append(piece.slice(cut))
                break
        if not parts:
            return pa.table({name: [] for name in _COLUMNS})
        return pa.concat_tables(parts).combine_chunks()


def begin(
    folder: Folder,
    state: LoadState,
    options: AutoloadOptions,
    settling: Settling,
    *,
    listed: int,
) -> Discovery:
    """Begin a pass over the whole source, or over the names after the last one if that suffices.

    `listed` is when the whole source was listed last, in milliseconds since the epoch.
    """
    now = time.time_ns() // 1_000_000
    # A clock that was set back must not delay a full listing.
    is_due = not 0 <= now - listed < options.backfill * 1000
    auto = folder.objects and state.ordered and state.count >= MANY_FILES
    begins_late = options.ascending == "yes" or (options.ascending == "auto" and auto)
    # Only a full listing finds known files.
    meets_known = not options.keeps or options.on_change != "ignore"
    late = begins_late and not meets_known and not is_due and state.listed > 0
    return Discovery(folder, state, options, settling, state.after if late else None, now)


def settle_seconds(folder: Folder, options: AutoloadOptions) -> float:
    """How many seconds files of the folder must be unchanged."""
    if options.settle is not None:
        return options.settle
    return 0.0 if folder.objects else SETTLE_SECONDS
