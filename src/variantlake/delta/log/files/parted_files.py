"""The files of a very large checkpoint, which stay there until a caller needs them all.

A plan with a condition reads them part by part, and keeps the files that it does not skip. The
files that later commits added are few, and are in memory.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeGuard

import pyarrow as pa

from variantlake.delta.log.files.checkpoint_texts import CheckpointTexts
from variantlake.delta.log.files.file_keys import check_unique_paths, without_keys
from variantlake.delta.log.files.file_paths import AbsolutePaths, check_paths, check_vectors
from variantlake.delta.log.files.logical_files import LogicalFiles, bytes_of, files_of
from variantlake.delta.log.files.path_index import PathIndex, repeated_hashes
from variantlake.delta.stats.file_texts import FileTexts


class Part(Protocol):
    """Some of the files of a checkpoint, all listed in one of its Parquet files."""

    @property
    def rows(self) -> int:
        """The number of files at most."""

    @property
    def is_local(self) -> bool:
        """Whether texts can stay in the checkpoint's file, which remains open."""

    def read(self, *, passing: bool) -> Iterator[LogicalFiles]:
        """Yield the files, a row group at a time.

        With `passing`, texts stay in the file, and each item is valid until the next one is read.
        Raises MalformedLog naming the file, MissingSource.
        """


class PartedFiles(LogicalFiles):
    """Files of a checkpoint in parts, without those that later commits touch, and `added`.

    The first access to a column reads all parts into memory; `read` yields them part by part. A
    pickled copy reads them anew.
    """

    __slots__ = ("_added", "_gone", "_index", "_lock", "_policy", "_whole", "parts")

    def __init__(
        self,
        parts: Sequence[Part],
        added: LogicalFiles | None = None,
        gone: Any = None,
        policy: AbsolutePaths = AbsolutePaths.ALLOW,
    ) -> None:
        """`gone` are the keys, as text, that later commits touch; `policy` applies to all paths."""
        self.parts = tuple(parts)
        self._added: LogicalFiles = files_of(()) if added is None else added
        self._gone: Any = pa.chunked_array([], pa.string()) if gone is None else gone
        self._policy = policy
        self._whole: LogicalFiles | None = None
        self._index = PathIndex()
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        return PartedFiles, (self.parts, self._added, self._gone, self._policy)

    @property
    def listed(self) -> Any:
        """See LogicalFiles. Raises as `load`."""
        return self.load().listed

    @property
    def texts(self) -> Mapping[int, FileTexts]:
        """See LogicalFiles. Raises as `load`."""
        return self.load().texts

    @property
    def is_local(self) -> bool:
        """Whether all parts are local (see Part), so that their files stay usable after `read`."""
        return all(part.is_local for part in self.parts)

    @property
    def is_read(self) -> bool:
        """Whether all files are in memory."""
        return self._whole is not None

    @property
    def most_rows(self) -> int:
        """The number of files at most, without reading them."""
        return sum(part.rows for part in self.parts) + self._added.num_rows

    @property
    def index(self) -> PathIndex:
        """The path hashes of the files that `load` read; empty before that."""
        return self._index

    @property
    def bytes_expected(self) -> int:
        """An estimate of the bytes of all files, from the first ones. Raises as `read`."""
        first = next(self.read(), None)
        if first is None or not first.num_rows:
            return 0
        return bytes_of(first) * self.most_rows // first.num_rows

    def obeying(self, policy: AbsolutePaths) -> PartedFiles:
        """Return the same files; `read` checks their paths against this policy."""
        return PartedFiles(self.parts, self._added, self._gone, policy)

    def changed(self, keys: pa.ChunkedArray[Any], added: LogicalFiles) -> PartedFiles:
        """Return the files after commits that touch these keys, given as text, and add `added`."""
        kept = self._added.of_batches([*without_keys(self._added, keys, PathIndex())])
        gone = pa.chunked_array([*self._gone.chunks, *keys.chunks], pa.string())
        return PartedFiles(self.parts, LogicalFiles.joined([kept, added]), gone, self._policy)

    def shares(self) -> list[PartedFiles]:
        """Return the same files in order: one share for each part, and one for the added files."""
        shares = [PartedFiles([part], None, self._gone, self._policy) for part in self.parts]
        return [*shares, PartedFiles((), self._added, None, self._policy)]

    def read(self, *, passing: bool = True) -> Iterator[LogicalFiles]:
        """Yield the files, some at a time; see `Part.read` for `passing`.

        Raises MalformedLog, AbsolutePathRefused, MissingSource.
        """
        for part in self.parts:
            for files in part.read(passing=passing):
                yield self._checked(self._without_gone(files))
        if self._added.num_rows:
            yield self._checked(self._added)

    def load(self) -> LogicalFiles:
        """Read all files into memory. Raises as `read`, and MalformedLog for one listed twice."""
        with self._lock:
            if self._whole is None:
                found = [*self.read(passing=False)]
                self._index = index_of(found)
                files = LogicalFiles.joined(found)
                check_unique(files, self._index)
                self._whole = files
            return self._whole

    def _without_gone(self, files: LogicalFiles) -> LogicalFiles:
        if not len(self._gone):
            return files
        return files.of_batches([*without_keys(files, self._gone, index_of([files]))])

    def _checked(self, files: LogicalFiles) -> LogicalFiles:
        check_paths(files.odd_paths(), self._policy)
        check_vectors(files["deletion_vector"], self._policy)
        return files


def is_unread(files: LogicalFiles) -> TypeGuard[PartedFiles]:
    """Whether files are PartedFiles that are not in memory yet."""
    return isinstance(files, PartedFiles) and not files.is_read


def index_of(parts: Iterable[LogicalFiles]) -> PathIndex:
    """Return an index of the hashes that CheckpointTexts have already; others are hashed later."""
    index = PathIndex()
    for part in parts:
        for texts in part.texts.values():
            chunks = part.listed["origin"].chunks
            if isinstance(texts, CheckpointTexts) and len(chunks) == 1 == len(part.texts):
                index.put(chunks[0], texts.hashes)
    return index


def check_unique(files: LogicalFiles, index: PathIndex) -> None:
    """Like `check_unique_paths`, but compares paths only if hashes repeat."""
    hashes = [index.hashes(files, batch) for batch in files.listed.to_batches()]
    if len(repeated_hashes(hashes)):
        check_unique_paths(files)
