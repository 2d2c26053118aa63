"""Read row groups as if they were one: those of a file, or of many small files.

The fixed costs of a column chunk, a condition and a group are then paid once for many. A path is
decoded at once if all files store it in the same way, and otherwise row group by row group.
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
"""The most rows of a row group that is read with others: the joined dictionary must stay short."""


def joined_groups(groups: Iterable[Rows], asked: Iterable[Ref]) -> Iterator[Rows | JoinedRows]:
    """Yield row groups of open files, joined if all that is read are typed columns or constants."""
    refs = tuple(dict.fromkeys(asked))
    for each in together(
        (group, group.count if _is_joined(group, refs) else -1) for group in groups
    ):
        yield each[0] if len(each) == 1 else JoinedRows.of(each)


def _is_joined(rows: Rows, refs: Sequence[Ref]) -> bool:
    """Whether the row group is short, and these are typed columns, or the same in all rows."""
    reader = rows.reader
    return rows.count <= SHORT and all(
        reader.is_constant(ref.column[0])
        or isinstance(reader.reading(ref), PhysicalColumn | NullColumn)
        for ref in refs
    )


class _Groups:
    """Whole row groups, one after the other, with a cache of what was decoded of them."""

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
        """Decode a path at once with kernels; None if the files store it in different ways."""
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
            return None  # when the file is read alone, the error names it

    def _one_by_one(self, ref: Ref, places: Int64s) -> Values:
        parts = [rows for rows, _ in self.parts(places)]
        there = [rows for rows in parts if rows.count] or parts[:1]
        return joined_values([rows.values(ref) for rows in there])

    def parts(self, places: Int64s) -> Iterator[tuple[Rows, int]]:
        """Yield each row group's rows at these places, and the number of those before them."""
        ends = np.searchsorted(places, self.starts).tolist()
        for number, each in enumerate(self.groups):
            own = places[ends[number] : ends[number + 1]] - self.starts[number]
            kept = np.ones(len(own), np.bool_)
            yield Rows(each.reader, each.row_group, kept, own), ends[number]


@dataclass(frozen=True, slots=True)
class JoinedRows:
    """Some rows of several row groups, like `Rows`; `places` count from the very first row."""

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
        """The chosen rows among these."""
        own = np.flatnonzero(chosen)
        return JoinedRows(self.source, self.kept[own], self.places[own])

    def parts(self) -> Iterator[tuple[Rows, int]]:
        """Yield these rows by row group, and the number of those before them."""
        return self.source.parts(self.places)

    def stretches(self, asked: Iterable[Ref]) -> Stretches | None:
        """Stretches of these columns; None unless these are all rows and all columns have runs."""
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
        """Stretches, or else combinations if the columns have few distinct values, or None."""
        refs = tuple(dict.fromkeys(asked))
        found = self.stretches(refs)
        if found is not None or not self.is_whole:
            return found
        readers = [each.reader for each in self.source.groups]
        if not all(reader.is_encoded(ref) for reader in readers for ref in refs):
            return None
        return Combinations.of({ref: self.values(ref) for ref in refs}, self.count)

    def has_whole(self, ref: Ref) -> bool:  # noqa: ARG002
        """Never: whole columns are read row group by row group."""
        return False

    def values(self, ref: Ref) -> Values:
        """A path or constant in these rows."""
        return self.source.values(ref, self.places)
