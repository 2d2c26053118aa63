"""Facts of the log about all files of a snapshot, as columns that are decoded on demand.

Statistics and tags are packed texts. Compiled kernels extract from them what one query needs: a
member of the statistics, one node's counts, one path's bound. The plain readers, `stats_reader` and
`variant_bounds`, read texts of an unusual form row by row. The facts of each row equal those of the
twin `file_facts.FactsReader`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from variantlake.delta.schema.table_schema import (
    StructField,
    StructType,
    VariantType,
    arrow_type,
)
from variantlake.delta.stats.columns.files_part import FilesPart, Layouts, Narrow
from variantlake.delta.stats.file_texts import FileTexts, TextRuns
from variantlake.delta.stats.tags import (
    CLEAN_INSIDE_SHIFT,
)
from variantlake.parquet.stats.fact_columns import (
    BoundColumns,
    ColumnPath,
    Int64s,
    NodeCounts,
    OrdinaryColumns,
    VariantColumns,
    are_few,
    map_parts,
    put_rows,
    stored_type,
    take_rows,
)
from variantlake.parquet.stats.facts import UNKNOWN
from variantlake.paths import Path
from variantlake.shredding.schema import ShreddingSchema
from variantlake.types import ShreddedType

T = TypeVar("T")
N = TypeVar("N", bound=np.generic)


class LogFacts:
    """The facts of these files, as FactColumns.

    `previous` are the facts of an older version of the same table. Texts that both share are not
    decoded again.
    """

    def __init__(
        self, files: TextRuns, schema: StructType, previous: LogFacts | None = None
    ) -> None:
        if previous is not None and previous.schema != schema:
            previous = None
        parts = {} if previous is None else {part.texts: part for part in previous.parts}
        layouts = Layouts() if previous is None else previous.layouts
        self.schema: StructType = schema
        self.layouts: Layouts = layouts
        self._runs: list[tuple[FilesPart, Int64s]] = []
        for texts, rows in files.runs():
            part = parts.setdefault(texts, FilesPart(texts, schema, layouts))
            self._runs.append((part, rows))
        self._ends = np.cumsum([len(rows) for _, rows in self._runs]).astype(np.int64)
        self._memo: dict[Any, Any] = {}

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    @property
    def parts(self) -> list[FilesPart]:
        """The batches of files, in the files' order."""
        return [part for part, _ in self._runs]

    def pieces(self) -> list[LogFacts]:
        """Split into the facts of each batch, in the files' order."""
        return [
            LogFacts(_PartRun(part.texts, rows), self.schema, self) for part, rows in self._runs
        ]

    def is_of(self, other: LogFacts) -> bool:
        """Whether both are facts of the same files of one batch."""
        if len(self._runs) != 1 or len(other._runs) != 1 or self.schema != other.schema:
            return False
        (part, rows), (other_part, others) = self._runs[0], other._runs[0]
        return part is other_part and np.array_equal(rows, others)

    def forget(self) -> None:
        """Drop cached columns, which refer back to this object and would delay its release."""
        self._memo.clear()

    def joined(self, read: Callable[[FilesPart], npt.NDArray[N]]) -> npt.NDArray[N]:
        """Return a number for each file; `read` returns those of a whole part."""
        found = [
            column if _is_whole(part, rows) else take_rows(column, rows)
            for column, (part, rows) in zip(self.each(read), self._runs, strict=True)
        ]
        if len(found) == 1:
            return found[0]
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    def each(self, read: Callable[[FilesPart], T]) -> list[T]:
        """Return what `read` returns for each part; threads share the work for many files."""
        # Each part is read once, even if it occurs twice.
        parts = list(dict.fromkeys(self.parts))
        found = dict(zip(parts, map_parts(read, parts, len(self)), strict=True))
        return [found[part] for part in self.parts]

    @cached_property
    def num_records(self) -> Int64s:
        """See FactColumns."""
        return self.joined(lambda part: part.num_records)

    def variant(self, column: ColumnPath) -> VariantColumns | None:
        """See FactColumns."""
        if column not in self.schema.variant_columns(physical=True):
            return None
        if column not in self._memo:
            self._memo[column] = _Variant(self, column)
        found: _Variant = self._memo[column]
        return found

    def column(self, column: ColumnPath) -> OrdinaryColumns | None:
        """See FactColumns."""
        leaves = dict(self.schema.leaves(physical=True))
        if column not in leaves or isinstance(leaves[column].type, VariantType):
            return None
        if column not in self._memo:
            self._memo[column] = _OrdinaryColumn(self, column, leaves[column])
        found: _OrdinaryColumn = self._memo[column]
        return found

    def of_parts(self, rows: Int64s, found: Sequence[T]) -> Iterator[tuple[T, Int64s, Int64s]]:
        """Yield the result of `each` for every part that has some of `rows`.

        With it come the places of these in `rows`, and their rows within the part.
        """
        rising = bool((rows[1:] >= rows[:-1]).all())
        order = np.arange(len(rows)) if rising else np.argsort(rows, kind="stable")
        cuts = np.searchsorted(rows, self._ends, sorter=None if rising else order)
        first = 0
        runs = zip(self._runs, found, self._ends, cuts.tolist(), strict=True)
        for (_, own), column, end, last in runs:
            if first < last:
                some = order[first:last]
                yield column, some, take_rows(own, take_rows(rows, some) - (end - len(own)))
            first = last


def _is_whole(part: FilesPart, rows: Int64s) -> bool:
    """Whether the rows are all rows of the part, in order."""
    return len(rows) == part.rows and bool((rows == np.arange(part.rows)).all())


@dataclass(frozen=True, slots=True)
class _PartRun:
    """Files of one batch, as TextRuns."""

    texts: FileTexts
    rows: Int64s

    def runs(self) -> Sequence[tuple[FileTexts, Int64s]]:
        return ((self.texts, self.rows),)


class _Variant:
    """One Variant column of LogFacts, as VariantColumns."""

    def __init__(self, facts: LogFacts, column: ColumnPath) -> None:
        self._facts, self._column = facts, column
        self._layout: Narrow = facts.joined(lambda part: part.layout(column))
        self.schemas: Sequence[ShreddingSchema] = tuple(facts.layouts.schemas)
        self.legacy: Sequence[bool] = (False,) * len(self.schemas)
        self.others = self.legacy

    @property
    def layout(self) -> Int64s:
        """See VariantColumns."""
        return self._layout.astype(np.int64)

    @property
    def nulls(self) -> Int64s:
        """See VariantColumns."""
        return self._facts.joined(lambda part: part.nulls(self._column))

    @property
    def notes(self) -> Int64s:
        """See VariantColumns."""
        return self._facts.joined(lambda part: part.notes(self._column)).astype(np.int64)

    def counts(self, rows: Int64s, nodes: Int64s) -> NodeCounts:
        """See VariantColumns."""
        # The four numbers of `FilesPart.counts`, by columns.
        table = np.full((4, len(rows)), UNKNOWN, np.int64)
        for path, some in self._paths(rows, nodes):
            for which, found in self._counts(path, take_rows(rows, some)):
                for number in range(4):
                    put_rows(table[number], take_rows(some, which), found[:, number])
        inside = np.where(table[3] > 0, table[3] >> CLEAN_INSIDE_SHIFT, 0)
        return NodeCounts(table[0], table[1], table[2], inside)

    def _counts(self, path: Path, rows: Int64s) -> Iterator[tuple[Int64s, Narrow]]:
        """Yield the places of some of `rows`, with the four numbers of a node in them."""
        if are_few(rows, len(self._facts)):
            for part, which, there in self._facts.of_parts(rows, self._facts.parts):
                yield which, part.counts(self._column, path, there)
            return
        columns = self._facts.each(partial(FilesPart.counts, column=self._column, path=path))
        for found, which, there in self._facts.of_parts(rows, columns):
            yield which, found[there]

    def bounds(self, rows: Int64s, nodes: Int64s, leaf: ShreddedType) -> BoundColumns:
        """See VariantColumns."""
        result = BoundColumns.unknown(len(rows), leaf)
        for path, some in self._paths(rows, nodes):
            read = partial(FilesPart.variant_bounds, column=self._column, path=path, leaf=leaf)
            columns = self._facts.each(read)
            for found, which, there in self._facts.of_parts(take_rows(rows, some), columns):
                result.put(take_rows(some, which), found.take(there))
        return result

    def _paths(self, rows: Int64s, nodes: Int64s) -> Iterator[tuple[Path, Int64s]]:
        """Yield the paths of these nodes, mostly only one, with the places of their rows."""
        layout, paths = self._layout[rows].astype(np.int64), self._facts.layouts.paths
        width = max((len(known) for known in paths), default=0) + 1
        codes = layout * width + nodes
        if len(codes) and (codes == codes[0]).all():
            yield paths[layout[0]][nodes[0]], np.arange(len(rows))
            return
        pairs, inverse = np.unique(codes, return_inverse=True)
        names = [paths[pair // width][pair % width] for pair in pairs.tolist()]
        for path in dict.fromkeys(names):
            alike = np.array([name == path for name in names], np.bool_)
            yield path, np.flatnonzero(alike[inverse])


class _OrdinaryColumn:
    """One ordinary column of LogFacts, as OrdinaryColumns."""

    def __init__(self, facts: LogFacts, column: ColumnPath, item: StructField) -> None:
        self._facts, self._column, self._item = facts, column, item
        self.types: Sequence[ShreddedType | None] = (stored_type(arrow_type(item.type)),)
        self.type: Int64s = np.zeros(len(facts.num_records), np.int64)
        self.nulls: Int64s = facts.joined(lambda part: part.nulls(column))

    def bounds(self, rows: Int64s, stored: ShreddedType) -> BoundColumns:
        """See OrdinaryColumns."""
        result = BoundColumns.unknown(len(rows), stored)
        columns = self._facts.each(
            lambda part: part.column_bounds(self._column, self._item, stored)
        )
        for found, some, there in self._facts.of_parts(rows, columns):
            result.put(some, found.take(there))
        return result
