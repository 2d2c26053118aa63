"""Match rows of the table with rows of a MERGE's source, and decide on a clause for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from variantlake.delta.actions.actions import AddFile
from variantlake.delta.log.files.logical_files import adds_of
from variantlake.delta.log.snapshot import Snapshot
from variantlake.dml.merge.clauses import BY_SOURCE, MATCHED, NOT_MATCHED, Clauses
from variantlake.dml.merge.keys import Key, KeyJoin
from variantlake.dml.merge.sides import SourceRows, in_table, sides_of
from variantlake.expressions.arrays import Values
from variantlake.expressions.rows import evaluate, of_refs, truth_of
from variantlake.expressions.tree import (
    And,
    Expression,
    Or,
    Predicate,
    Ref,
    conjuncts,
    map_refs,
    refs,
)
from variantlake.parquet.stats.fact_columns import Bools, Int64s
from variantlake.planning.files import NO_ROWS, ScanFile
from variantlake.planning.stats.skipping import Skipper
from variantlake.scan.files.chosen_rows import cast_error
from variantlake.scan.files.file_rows import FileReader, Rows
from variantlake.scan.table_names import stored_ref
from variantlake.scan.table_scan import Scan


@dataclass(frozen=True, slots=True)
class FileMatches:
    """Rows of one file that a clause changes, or that count as matched.

    `places` are rows of the file, and may repeat. For each, `clauses` has the place of its clause
    and `source` the row of the source that matches it, -1 for none.
    """

    add: AddFile
    file: ScanFile
    num_rows: int
    places: Int64s
    clauses: Int64s
    source: Int64s


@dataclass(frozen=True, slots=True)
class Matcher:
    """Matches the rows of a version of the table with those of the source.

    `matched_source` marks the rows of the source that have matched so far.
    """

    snapshot: Snapshot
    source: SourceRows
    clauses: Clauses
    keys: Sequence[Key]
    rest: Sequence[Predicate]
    join: KeyJoin
    matched_source: Bools = field(repr=False)

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        source: SourceRows,
        clauses: Clauses,
        keys: Sequence[Key],
        rest: Sequence[Predicate],
    ) -> Matcher:
        """Raises InvalidValue for a key of the source whose cast fails."""
        rows = source.table.num_rows
        values = [_checked(key.source, _evaluated(key.source, source.values, rows)) for key in keys]
        join = KeyJoin(keys, values, rows)
        return cls(snapshot, source, clauses, keys, rest, join, np.zeros(rows, np.bool_))

    @property
    def bound(self) -> Predicate | None:
        """The predicate that is true for every row that may match, None if there is none."""
        own = {self.clauses.target}
        parts = self.join.bounds()
        parts += [map_refs(each, in_table) for each in self.rest if sides_of(each) == own]
        return And(tuple(parts)) if parts else None

    def files(self) -> Iterator[FileMatches]:
        """Yield the matches, file by file. `matched_source` is complete after the last one.

        Raises InvalidValue if a cast fails, otherwise as `Scan.to_batches`.
        """
        reached = self._reached()
        scan = Scan(self.snapshot, (), reached)
        skipper = Skipper(scan.predicate, scan.partition_types)
        choice = scan.numbered_choice
        adds = adds_of(self.snapshot.files.take(choice.rows))
        for add, file in zip(adds, choice.files, strict=True):
            parts = [(NO_ROWS, NO_ROWS, NO_ROWS)]
            requested = [self._stored(ref) for ref in self._refs_to_read()]
            with FileReader(self.snapshot, file, requested, scan.partition_types) as reader:
                groups = reader.footer.row_groups
                starts = np.cumsum([0, *(group.num_rows for group in groups)])
                for rows in reader.rows(skipper):
                    for places, clause, source in self._in_group(rows):
                        own = rows.places[places] + int(starts[rows.row_group])
                        parts.append((own, clause, source))
            places, clause, source = map(np.concatenate, zip(*parts, strict=True))
            if len(places):
                yield FileMatches(add, file, int(starts[-1]), places, clause, source)

    def _reached(self) -> Predicate | None:
        """Return the predicate that finds files to read: rows that may match or be BY_SOURCE."""
        bound = self.bound
        others = [clause.condition for _, clause in self.clauses.of(BY_SOURCE)]
        if not others:
            return bound
        wanted = [map_refs(each, in_table) for each in others if each is not None]
        if bound is None or len(wanted) < len(others):
            return None
        return Or((bound, *wanted))

    def _refs_to_read(self) -> list[Ref]:
        own = [ref for key in self.keys for ref in refs(key.target)]
        own += [ref for part in self.rest for ref in refs(part)]
        own += self.clauses.refs(MATCHED, BY_SOURCE)
        return [ref for ref in own if ref.column[0] == self.clauses.target]

    def _stored(self, ref: Ref) -> Ref:
        return stored_ref(self.snapshot, in_table(ref))

    def _in_group(self, rows: Rows) -> Iterator[tuple[Int64s, Int64s, Int64s]]:
        def stored_values(ref: Ref) -> Values:
            return rows.values(self._stored(ref))

        keys = []
        for key in self.keys:
            values = evaluate(key.target, of_refs(stored_values), rows.count)
            if values.failed is not None and (values.failed & rows.kept).any():
                raise cast_error(key.target, rows.reader.file)
            keys.append(values)
        matched = np.zeros(rows.count, np.bool_)
        for target, source in self.join.pairs(keys, rows.kept):
            pairs = _Pairs(self, rows, target, source)
            true = pairs.fulfil(self.rest)
            if len(true) < len(target):
                pairs = _Pairs(self, rows, target[true], source[true])
            matched[pairs.target] = True
            self.matched_source[pairs.source] = True
            clause = self.clauses.decide(MATCHED, len(pairs.target), pairs.values)
            counted = (clause >= 0) | pairs.counted()
            yield pairs.target[counted], clause[counted], pairs.source[counted]
        if self.clauses.of(BY_SOURCE):
            alone = np.flatnonzero(rows.kept & ~matched)
            pairs = _Pairs(self, rows, alone, np.full(len(alone), -1, np.int64))
            clause = self.clauses.decide(BY_SOURCE, len(alone), pairs.values)
            taken = clause >= 0
            yield alone[taken], clause[taken], pairs.source[taken]

    def inserted(self) -> Int64s:
        """Return for each source row the place of the clause that inserts it, -1 for none."""
        alone = np.flatnonzero(~self.matched_source)
        found = np.full(len(self.matched_source), -1, np.int64)
        found[alone] = self.clauses.decide(
            NOT_MATCHED, len(alone), lambda ref, at: self.source.values(ref, alone[at])
        )
        return found


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Pairs of a row in a row group and a row of the source (-1 for none)."""

    matcher: Matcher
    rows: Rows
    target: Int64s
    source: Int64s

    def values(self, ref: Ref, at: Int64s) -> Values:
        """Return a column's values in some of the pairs."""
        if ref.column[0] != self.matcher.clauses.target:
            return self.matcher.source.values(ref, self.source[at])
        own, places = np.unique(self.target[at], return_inverse=True)
        chosen = np.zeros(self.rows.count, np.bool_)
        chosen[own] = True
        stored = self.matcher._stored(ref)  # noqa: SLF001 - of this module
        return self.rows.only(chosen).values(stored).take(places)

    def fulfil(self, conditions: Sequence[Predicate]) -> Int64s:
        """Return the pairs for which all conditions are true. Raises InvalidValue if one fails."""
        at = np.arange(len(self.target))
        if not conditions:
            return at
        condition = And(tuple(conditions))
        truth = truth_of(condition, of_refs(lambda ref: self.values(ref, at)), len(at))
        if truth.failed.any():
            raise cast_error(condition, self.rows.reader.file)
        found: Int64s = np.flatnonzero(truth.true)
        return found

    def counted(self) -> Bools:
        """Return which pairs count as a match of their row even if no clause takes them.

        As in Delta Spark, all do if there is a clause other than WHEN MATCHED. Otherwise a pair
        counts if, for some clause, the conjuncts that do not name the source are all true.
        """
        clauses = self.matcher.clauses
        found = np.ones(len(self.target), np.bool_)
        if any(each.when != MATCHED for each in clauses.all):
            return found
        found[:] = False
        for clause in clauses.all:
            own = [
                part for part in conjuncts(clause.condition) if clauses.source not in sides_of(part)
            ]
            found[self.fulfil(own)] = True
        return found


def _evaluated(expression: Expression, values: object, rows: int) -> Values:
    return evaluate(expression, of_refs(values), rows)  # type: ignore[arg-type]


def _checked(expression: Expression, values: Values) -> Values:
    if values.failed is not None and values.failed.any():
        raise cast_error(expression, None)
    return values
