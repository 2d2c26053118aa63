"""Check whether two versions of a table have the same rows, and find the first differences.

This module reads only the files that one of the versions has: shared files cancel out. If the
digests differ, it reads these files again to find the rows without a partner. It compares one share
of the row hashes at a time, which bounds memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from variantlake.delta.actions.actions import AddFile
from variantlake.delta.log.identity import check_before_read
from variantlake.delta.log.snapshot import HistoryEntry, Snapshot
from variantlake.delta.log.time_travel import check_version
from variantlake.errors import InvalidQuery, InvalidValue
from variantlake.kernels.digest.rows import Digest
from variantlake.kernels.native.declared import Int64s
from variantlake.maintenance.digest import DigestFile, FileDigester, table_digest
from variantlake.progress import OnProgress, count_rows_read
from variantlake.scan.table_scan import Scan
from variantlake.shown import Shown
from variantlake.sql.select import QueryText

REWRITES = frozenset({"OPTIMIZE", "CLUSTER", "RESHRED", "UNSHRED", "REORG"})
"""Operations in the history that rewrite files without changing rows."""

MAX_DIFFERENCES = 10
"""The most rows that a comparison names."""

_ROWS_AT_ONCE = 1 << 25
"""About how many hashes of one version are in memory at a time."""


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row that one version has more often than the other.

    `row` counts from 0 in `file`, deleted rows included. `version` has the row more often.
    """

    version: int
    file: str
    row: int


@dataclass(frozen=True, slots=True, repr=False)
class VersionComparison(Shown):
    """The result of comparing the rows of two versions.

    `before` and `after` are the digests of the rows in files that only that version has.
    `files_before` and `files_after` count these files; `shared_files` counts the files of both.
    """

    from_version: int
    to_version: int
    before: Digest
    after: Digest
    files_before: int
    files_after: int
    shared_files: int
    differences: tuple[RowDifference, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether both versions have the same rows, each equally often."""
        return self.before == self.after


def default_versions(
    history: Sequence[HistoryEntry], first: int | None, last: int | None, newest: int
) -> tuple[int, int]:
    """Return the versions to compare if one or both are not given; `history` is newest first.

    If both are missing, the last commit that only rewrote files and the version before it. A
    missing `last` becomes `newest`, a missing `first` the version before `last`.

    Raises InvalidQuery if there is no such commit, InvalidValue for versions that cannot exist.
    """
    if first is None and last is None:
        for entry in history:
            words = (entry.operation or "").split()
            if words and words[0] in REWRITES and entry.version > 0:
                return entry.version - 1, entry.version
        raise InvalidQuery(
            "no commit in the log rewrote files without changing rows",
            hint="name two versions: from_version and to_version",
            cli_hint="name two versions: --from-version and --to-version",
        )
    if last is None:
        last = newest
    if first is None:
        first = last - 1
    if not 0 <= first <= last:
        raise InvalidValue(f"there are no versions from {first} to {last}")
    return first, last


def check_rewrite(
    snapshot: Snapshot,
    from_version: int | None = None,
    to_version: int | None = None,
    progress: OnProgress | None = None,
) -> VersionComparison:
    """Compare two versions of a table, by default those around the last rewrite.

    See `Table.check_rewrite`.
    """
    check_before_read(snapshot)
    check_version(from_version)
    check_version(to_version)
    history = snapshot.history() if from_version is None and to_version is None else []
    first, last = default_versions(history, from_version, to_version, snapshot.version)
    before, after = (
        snapshot if version == snapshot.version else snapshot.at(version)
        for version in (first, last)
    )
    return compare_versions(before, after, progress)


def digest_rows(
    snapshot: Snapshot, where: str | None = None, progress: OnProgress | None = None
) -> Digest:
    """Digest the rows of a version, or those that meet a condition. See `Table.digest`."""
    check_before_read(snapshot)
    if where is None:
        return table_digest(snapshot, count_rows_read(progress))
    condition = QueryText(snapshot.schema).condition(where)
    digester = FileDigester(snapshot)
    count = count_rows_read(progress)
    total = Digest()
    for found in Scan(snapshot, (), condition).places():
        file = DigestFile(found.file.path, found.file.vector, dict(found.file.partition))
        total += digester.digest(file, count, places=found.places)
    return total


def compare_versions(
    before: Snapshot, after: Snapshot, progress: OnProgress | None = None
) -> VersionComparison:
    """Compare the rows of two versions of one table, with the columns of `after`.

    Raises MalformedFile, MalformedVariant, with file and row; MissingSource for a file that vacuum
    has removed.
    """
    own, other = _files(before), _files(after)
    only = [
        [DigestFile.of(snapshot, add) for key, add in files.items() if key not in others]
        for snapshot, files, others in ((before, own, other), (after, other, own))
    ]
    digester = FileDigester(after)
    count = count_rows_read(progress)
    digests = [digester.sum(files, count) for files in only]
    found: tuple[RowDifference, ...] = ()
    if digests[0] != digests[1]:
        sides = [
            Side(snapshot.version, files, digester)
            for snapshot, files in zip((before, after), only, strict=True)
        ]
        found = tuple(differences(sides, max(digest.rows for digest in digests)))
    return VersionComparison(
        before.version,
        after.version,
        digests[0],
        digests[1],
        len(only[0]),
        len(only[1]),
        len(own.keys() & other.keys()),
        found,
    )


_Key = tuple[str, str | None]


def _files(snapshot: Snapshot) -> dict[_Key, AddFile]:
    return {add.key: add for add in snapshot.add_files()}


@dataclass(frozen=True, slots=True)
class Side:
    """The files that only one version has; `version` goes into each RowDifference."""

    version: int
    files: Sequence[DigestFile]
    digester: FileDigester

    def share(self, number: int, shares: int) -> Int64s:
        """Return the hashes of kept rows that fall into share `number` of `shares`."""
        found = [np.empty(0, np.int64)]
        for file in self.files:
            for rows in self.digester.rows(file):
                own = rows.hashes[rows.kept]
                found.append(
                    own[(own.view(np.uint64) % np.uint64(shares)).astype(np.int64) == number]
                )
        return np.concatenate(found)

    def places(self, wanted: dict[int, int]) -> Iterator[RowDifference]:
        """Yield the last rows with each hash, as many as `wanted` has for it."""
        found: dict[int, list[RowDifference]] = {word: [] for word in wanted}
        hashes = np.array(sorted(wanted), np.int64)
        for file in self.files:
            for rows in self.digester.rows(file):
                for place in np.flatnonzero(rows.kept & np.isin(rows.hashes, hashes)):
                    row = rows.first + int(place)
                    places = found[int(rows.hashes[place])]
                    places.append(RowDifference(self.version, file.location, row))
                    if len(places) > MAX_DIFFERENCES:
                        del places[0]
        for word, places in found.items():
            yield from places[-wanted[word] :]


def differences(sides: Sequence[Side], rows: int) -> list[RowDifference]:
    """Return at most MAX_DIFFERENCES rows that have no partner on the other side.

    `rows` is about how many rows one side has. Reads all files once for each share of hashes, and
    again for the share that differs.
    """
    shares = rows // _ROWS_AT_ONCE + 1
    for number in range(shares):
        counts = _unequal([side.share(number, shares) for side in sides])
        found = [
            place
            for side, own, other in zip(sides, counts, counts[::-1], strict=True)
            if (wanted := _more(own, other))
            for place in side.places(wanted)
        ]
        if found:
            return found[:MAX_DIFFERENCES]
    return []


def _unequal(hashes: Sequence[Int64s]) -> list[dict[int, int]]:
    """Return, per side, the counts of some hashes that occur more often on one side."""
    counted = [np.unique(each, return_counts=True) for each in hashes]
    every = np.union1d(counted[0][0], counted[1][0])
    counts = np.zeros((2, len(every)), np.int64)
    for side, (words, times) in enumerate(counted):
        counts[side, np.searchsorted(every, words)] = times
    places = np.flatnonzero(counts[0] != counts[1])[:MAX_DIFFERENCES]
    return [dict(zip(every[places].tolist(), own[places].tolist(), strict=True)) for own in counts]


def _more(own: dict[int, int], other: dict[int, int]) -> dict[int, int]:
    found = {word: count - other.get(word, 0) for word, count in own.items()}
    return {word: count for word, count in found.items() if count > 0}
