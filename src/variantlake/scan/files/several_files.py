"""Row groups read as if they were one: those of a file, or of many small files.

What a column chunk, a condition and a group cost beside their values is then paid once for many. A
path is decoded in one go if all files store it alike, and otherwise row group by row group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from variantlake.errors import VariantLakeError
from variantlake.expressions.arrays import Values, at_places, joined_values
from variantlake.expressions.tree import Ref
from variantlake.parquet.read.chunk_values import read_joined
from variantlake.parquet.stats.fact_columns import Bools, Int64s
from variantlake.planning.exact.readings import NullColumn, PhysicalColumn
from variantlake.scan.files.combinations import Combinations
from variantlake.scan.files.file_rows import Rows
from variantlake.scan.files.file_tasks import together
from variantlake.scan.files.stretches import Stretches
from variantlake.scan.files.typed_columns import as_stored, converted

SHORT = 1 << 15
"""Rows of a row group that is read with others: of more the dictionaries grow too long as one."""


def joined_groups(groups: Iterable[Rows], asked: Iterable[Ref]) -> Iterator[Rows | JoinedRows]:
    """Row groups of open files, several as one if all that is asked of them are typed columns."""
    refs = tuple(dict.fromkeys(asked))
    for each in together(
        (group, group.count if _is_joined(group, refs) else -1) for group in groups
    ):
        yield each[0] if len(each) == 1 else JoinedRows.of(each)


def _is_joined(rows: Rows, refs: Sequence[Ref]) -> bool:
    """Whether these are typed columns, or the same in all rows, of a short row group."""
    reader = rows.reader
    return rows.count <= SHORT and all(
        reader.is_constant(ref.column[0])
        or isinstance(reader.reading(ref), PhysicalColumn | NullColumn)
        for ref in refs
    )


class _Groups:
    """Whole row groups, whose rows follow each other, and what was decoded of them."""

    def __init__(self, groups: Sequence[Rows]) -> None:
        self.groups = groups
        self.starts: Int64s = np.cumsum([0, *(each.count for each in groups)])
        self._cached: dict[Ref, Values] = {}

    def values(self, ref: Ref, places: Int64s) -> Values:
        """A path or constant in some rows, by their places. Raises as `Rows.values`."""
        is_whole = len(places) == self.starts[-1]
        found = self._cached.get(ref)
        if found is not None:
            return found if is_whole else found.take(places)
        found = self._decoded(ref, None if is_whole else places)
        if found is None:
            found = self._one_by_one(ref, places)
        if is_whole:
            self._cached[ref] = found
        return found

    def _decoded(self, ref: Ref, places: Int64s | None) -> Values | None:
        """A path that kernels decode in one go; None if the files store it in different ways."""
        readings = {each.reader.reading(ref) for each in self.groups}
        reading = readings.pop()
        if readings or not isinstance(reading, PhysicalColumn):
            return None
        try:
            chunks = [each.reader.chunk(ref, reading, each.row_group) for each in self.groups]
            there = [chunk for chunk in chunks if chunk is not None]
            if len(there) < len(chunks):
                return None
            array = as_stored(read_joined(there, places), reading.stored)
            if array is not None and places is not None:
                array = at_places(array, places)
            return None if array is None else converted(array, ref, reading)
        except VariantLakeError:
            return None  # which names its file if that is read alone

    def _one_by_one(self, ref: Ref, places: Int64s) -> Values:
        parts = [rows for rows, _ in self.parts(places)]
        there = [rows for rows in parts if rows.count] or parts[:1]
        return joined_values([rows.values(ref) for rows in there])

    def parts(self, places: Int64s) -> Iterator[tuple[Rows, int]]:
        """Of each row group the rows at these places, and how many come before them."""
        ends = np.searchsorted(places, self.starts).tolist()
        for number, each in enumerate(self.groups):
            own = places[ends[number] : ends[number + 1]] - self.starts[number]
            kept = np.ones(len(own), np.bool_)
            yield Rows(each.reader, each.row_group, kept, own), ends[number]


@dataclass(frozen=True, slots=True)
class JoinedRows:
    """Some rows of several row groups: see `Rows`; `places` count from the first row of all."""

    source: _Groups
    kept: Bools
    places: Int64s

    @classmethod
    def of(cls, groups: Sequence[Rows]) -> JoinedRows:
        """All rows of whole row groups."""
        source = _Groups(groups)
        kept = np.concatenate([each.kept for each in groups])
        return cls(source, kept, np.arange(len(kept)))

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.places)

    @property
    def is_whole(self) -> bool:
        """Whether these are all rows of the row groups."""
        return self.count == int(self.source.starts[-1])

    def only(self, chosen: Bools) -> JoinedRows:
        """The chosen ones of these rows."""
        own = np.flatnonzero(chosen)
        return JoinedRows(self.source, self.kept[own], self.places[own])

    def parts(self) -> Iterator[tuple[Rows, int]]:
        """These rows by row group, and how many come before each."""
        return self.source.parts(self.places)

    def stretches(self, asked: Iterable[Ref]) -> Stretches | None:
        """These columns if these are all rows, and all of them are in runs."""
        if not self.is_whole:
            return None
        refs, parts = tuple(dict.fromkeys(asked)), []
        for each in self.source.groups:
            found = each.stretches(refs)
            if found is None:
                return None
            parts.append(found)
        ends = [each.ends + start for each, start in zip(parts, self.source.starts, strict=False)]
        columns = {ref: joined_values([each.columns[ref] for each in parts]) for ref in refs}
        return Stretches(np.concatenate(ends), columns)

    def alike(self, asked: Iterable[Ref]) -> Stretches | Combinations | None:
        """The same, or by what the rows hold if that is of few different values."""
        refs = tuple(dict.fromkeys(asked))
        found = self.stretches(refs)
        if found is not None or not self.is_whole:
            return found
        readers = [each.reader for each in self.source.groups]
        if not all(reader.is_encoded(ref) for reader in readers for ref in refs):
            return None
        return Combinations.of({ref: self.values(ref) for ref in refs}, self.count)

    def has_whole(self, ref: Ref) -> bool:  # noqa: ARG002
        """Never: columns as they stand in the file are read row group by row group."""
        return False

    def values(self, ref: Ref) -> Values:
        """A path or constant in these rows."""
        return self.source.values(ref, self.places)
