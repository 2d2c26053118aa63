"""Sort the rows of a query; with a limit, find only the first rows.

Files are read in the order of their bounds of the first term. Once as many rows as the limit are
found, a file or a row group whose rows all come after the last of them is skipped. Columns that the
order does not need are then read only for the rows of the result.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from variantlake.encoding.scalar import decode_string
from variantlake.engine.grouped import evaluate_used
from variantlake.engine.ordering import in_order
from variantlake.engine.queries import Ordering
from variantlake.engine.reading import Known, Reading, joined, take_rows
from variantlake.expressions.tree import Ref, below
from variantlake.expressions.typing import STRING, type_of
from variantlake.parallel.streams import chained
from variantlake.parquet.stats.bounds import Raw
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.planning.files import ScanFile
from variantlake.planning.stats.first_rows import Order, up_to
from variantlake.planning.stats.skipping import domains_in
from variantlake.scan.files.file_rows import Rows
from variantlake.scan.files.file_tasks import MOST_BYTES, MOST_FILES
from variantlake.scan.files.several_files import JoinedRows
from variantlake.shredding.fit import raws_of


@dataclass(frozen=True, slots=True)
class _TopRows:
    """Rows in order, with the columns that the order needs, and the place of each.

    `places` has one row for each: the file, its row group, and the place in that.
    """

    columns: Known
    places: Int64s

    @property
    def count(self) -> int:
        return len(self.places)


def sorted_rows(reading: Reading) -> Known | None:
    """The columns of the query in all rows of its result, in order; None without rows."""
    query = reading.query
    needed = [part for term in query.order for part in below(term.expression)]
    columns = [each for each in query.columns if each in needed]
    others = [each for each in query.columns if each not in needed]
    if query.limit is None:
        columns, others = list(query.columns), []
    files = list(reading.files())
    best = _best(reading, files, columns)
    if best is None:
        return None
    return best.columns | _rest(reading, files, others, best.places) if others else best.columns


def _best(reading: Reading, files: list[ScanFile], columns: list[Ref]) -> _TopRows | None:
    """The rows of the result, in order, with these columns; None without rows."""
    limit, term = reading.query.limit, reading.query.order[0]
    numbers = {id(file): number for number, file in enumerate(files)}
    if limit == 0:
        return None
    ref = None if limit is None else _bounded(reading, term)
    if limit is not None and ref is not None:
        top = _Top(reading, files)
        for rows in top.rows(columns, ref, limit):
            found = _first(reading, [_top_rows(reading, rows, columns, numbers)])
            top.best = found if top.best is None else _first(reading, [top.best, found])
        return top.best
    parts = (
        _part(reading, reading.joined_rows(some, columns, part=part), columns, numbers)
        for some, part in reading.pieces(files)
    )
    every = chained(parts, lambda _: 0)
    if limit is None:
        found_parts = list(every)
        return _first(reading, found_parts) if found_parts else None
    best = None
    for part in every:
        best = part if best is None else _first(reading, [best, part])
    return best


def _part(
    reading: Reading,
    found: Iterable[Rows | JoinedRows],
    columns: list[Ref],
    numbers: Mapping[int, int],
) -> Generator[_TopRows, None, None]:
    for rows in found:
        part = _top_rows(reading, rows, columns, numbers)
        yield part if reading.query.limit is None else _first(reading, [part])


def _top_rows(
    reading: Reading, rows: Rows | JoinedRows, columns: list[Ref], numbers: Mapping[int, int]
) -> _TopRows:
    return _TopRows(reading.values(rows, columns), _places(rows, numbers))


def _places(rows: Rows | JoinedRows, numbers: Mapping[int, int]) -> Int64s:
    """The place of each row; `numbers` has the number of each file by its object's id."""
    places = np.empty((rows.count, 3), np.int64)
    for part, start in rows.parts() if isinstance(rows, JoinedRows) else [(rows, 0)]:
        own = places[start : start + part.count]
        own[:, 0], own[:, 1] = numbers[id(part.reader.file)], part.row_group
        own[:, 2] = part.places
    return places


def _first(reading: Reading, parts: Sequence[_TopRows]) -> _TopRows:
    """The first rows of all parts, in order."""
    query = reading.query
    columns = joined([part.columns for part in parts])
    places = np.concatenate([part.places for part in parts])
    terms = [evaluate_used(term.expression, columns, len(places)) for term in query.order]
    order = in_order(query.order, terms, len(places), query.limit)
    return _TopRows(take_rows(columns, order), places[order])


class _Top:
    """Reads the rows that may matter; the caller sets `best` to the best rows so far."""

    def __init__(self, reading: Reading, files: list[ScanFile]) -> None:
        self._reading = reading
        self._files = files
        self.best: _TopRows | None = None

    def rows(self, columns: list[Ref], ref: Ref, limit: int) -> Iterator[Rows | JoinedRows]:
        """Yield the rows of files that may matter, small ones together; `ref` is the first term."""
        reading, term = self._reading, self._reading.query.order[0]
        order = Order(ref, term.descending, term.nulls_first)
        left, room = deque(_by_bound(reading, term, ref)), 1
        while left:
            some: list[ScanFile] = []
            last = _last(self.best, term, limit)
            while left and len(some) < room:
                number, bound = left.popleft()
                if last is not None and bound is not None and _after(term, bound, last[0]):
                    continue
                some.append(self._files[number])
                if some[-1].size > MOST_BYTES:
                    break
            near = None if last is None else up_to(order, last[0])
            yield from reading.joined_rows(some, columns, [near] if near else [])
            # After the first files, the others may no longer matter.
            room = min(2 * room, MOST_FILES)


def _bounded(reading: Reading, term: Ordering) -> Ref | None:
    """The column that a term orders by, by its name in files; None if bounds do not help."""
    if not isinstance(term.expression, Ref) or term.expression.char_length:
        return None
    return reading.scan.stored(term.expression)


def _by_bound(reading: Reading, term: Ordering, ref: Ref) -> Iterator[tuple[int, Raw | None]]:
    """Yield the files, nearest first, with the bound that all values come after; unknown ones last.

    The bound is also unknown if a NULL or NaN comes before any value.
    """
    scan = reading.scan
    domains = domains_in(scan.choice.table, ref, scan.partition_types)
    side = domains.maximum if term.descending else domains.minimum
    bounds: list[tuple[int, Raw | None]] = []
    for number, row in enumerate(reading.log_answer.read.tolist()):
        open_ = (term.nulls_first and domains.nulls[row]) or (term.descending and domains.nan[row])
        bounds.append((number, None if open_ else side.raw(row)))
    known = [(_key(bound), number, bound) for number, bound in bounds if bound is not None]
    known.sort(key=lambda each: each[0], reverse=term.descending)
    yield from ((number, bound) for _, number, bound in known)
    yield from (each for each in bounds if each[1] is None)


def _last(held: _TopRows | None, term: Ordering, limit: int) -> tuple[Raw | None] | None:
    """The first term's value in row `limit`, in a tuple; None if there are fewer rows."""
    if held is None or held.count < limit:
        return None
    array = held.columns[term.expression].array
    last: Any = raws_of(array.slice(limit - 1, 1))[0]
    is_text = isinstance(last, bytes) and type_of(term.expression) == STRING
    return (decode_string(last, 0, len(last)) if is_text else last,)


def _key(value: Raw) -> tuple[bool, Raw]:
    """A sort key in Spark's order: NaN is the greatest; texts order by code points as by bytes."""
    if isinstance(value, float) and math.isnan(value):
        return True, 0.0
    return False, value


def _after(term: Ordering, bound: Raw, last: Raw | None) -> bool:
    """Whether all values from the bound on come after the last row; an equal value does not."""
    if last is None:
        return term.nulls_first
    one, other = _key(bound), _key(last)
    return one < other if term.descending else one > other


def _rest(reading: Reading, files: list[ScanFile], columns: list[Ref], places: Int64s) -> Known:
    """Read other columns in these rows."""
    order = np.lexsort((places[:, 2], places[:, 1], places[:, 0]))
    parts: list[Known] = []
    for number in np.unique(places[:, 0]).tolist():
        with reading.reader(files[number], columns) as reader:
            own = places[order][places[order][:, 0] == number]
            for group in np.unique(own[:, 1]).tolist():
                rows = reader.group(group, own[own[:, 1] == group][:, 2])
                parts.append(reading.values(rows, columns))
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return take_rows(joined(parts), back)
