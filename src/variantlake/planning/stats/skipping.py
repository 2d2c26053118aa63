"""Find the files in which no row fulfils a condition.

A file is skipped if one of the condition's conjuncts cannot be true there (`expressions.bounds`).
What is unknown may be anything, and keeps the file.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from variantlake.expressions.bounds import TRUE, Evaluation
from variantlake.expressions.tree import (
    Compare,
    In,
    Predicate,
    Ref,
    StartsWith,
    Unknown,
    conjuncts,
    is_by_bounds,
    refs,
)
from variantlake.parquet.stats.bounds import Raw
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.planning.files import FileColumns, by_piece, pieces_with
from variantlake.planning.stats.domains import NO_TYPES, OperandDomains, domains_of

NOT_SKIPPED = -1

_REMEMBERED = 32
"""The most operands whose domains are cached; for a million files each takes tens of MB."""


class Skipper:
    """Evaluates one condition for many files; it keeps no state about any of them.

    `partition_types` gives the Spark types of the table's partition columns, by the names that
    files' partition values use.
    """

    def __init__(
        self, predicate: Predicate | None, partition_types: Mapping[str, str] | None = None
    ) -> None:
        self.conjuncts = conjuncts(predicate)
        self._types = partition_types or NO_TYPES

    def skipped_by(self, files: FileColumns) -> Int64s:
        """For each file the index of the first conjunct that skips it, or NOT_SKIPPED."""

        def work(piece: FileColumns) -> Int64s:
            skipped = np.full(piece.rows, NOT_SKIPPED, np.int64)
            found = evaluation(piece, self._types)
            for number, part in enumerate(self.conjuncts):
                never = found.may(part) & TRUE == 0
                skipped[never & (skipped == NOT_SKIPPED)] = number
                if not (skipped == NOT_SKIPPED).any():
                    break  # columns that only the other conjuncts need are not decoded
            return skipped

        return np.concatenate(by_piece(files, work))

    def may_match(self, files: FileColumns) -> npt.NDArray[np.bool_]:
        """For each file whether it may hold a match."""
        return np.equal(self.skipped_by(files), NOT_SKIPPED)

    def may_fail(self, files: FileColumns) -> list[npt.NDArray[np.bool_]]:
        """For each conjunct, and each file, whether it may be false or null in some row."""

        def work(piece: FileColumns) -> list[npt.NDArray[np.bool_]]:
            found = evaluation(piece, self._types)
            return [found.may(part) != TRUE for part in self.conjuncts]

        return [np.concatenate(each) for each in zip(*by_piece(files, work), strict=True)]

    def why_kept(self, files: FileColumns, row: int) -> tuple[tuple[Predicate, str], ...]:
        """For a file that may match: each conjunct with the reason why it could not skip."""
        ((piece, _, (at,)),) = pieces_with(files, np.array([row]))
        return tuple((part, _reason(part, piece, self._types, at)) for part in self.conjuncts)


def domains_in(
    files: FileColumns, ref: Ref, partition_types: Mapping[str, str] = NO_TYPES
) -> OperandDomains:
    """The domains of an operand in each file, cached with the files."""
    memo = files.memo
    key = (ref, partition_types.get(ref.column[0]))
    known = memo.get(key)
    if not isinstance(known, OperandDomains):
        while len(memo) >= _REMEMBERED:
            memo.pop(next(iter(list(memo)), None), None)  # other threads may add or take
        known = memo[key] = _domains(ref, files, partition_types)
    return known


def _domains(ref: Ref, files: FileColumns, types: Mapping[str, str]) -> OperandDomains:
    if not files.pieces:
        return domains_of(ref, files, types)
    return OperandDomains.joined(by_piece(files, lambda piece: domains_in(piece, ref, types)))


def evaluation(files: FileColumns, partition_types: Mapping[str, str] = NO_TYPES) -> Evaluation:
    """Make the Evaluation of conditions over files; `partition_types` as in `Skipper`."""
    return Evaluation(files.rows, lambda ref: domains_in(files, ref, partition_types))


def _reason(part: Predicate, files: FileColumns, types: Mapping[str, str], row: int) -> str:
    if isinstance(part, Unknown):
        return "planning does not understand it"
    if isinstance(part, Compare | In | StartsWith) and not is_by_bounds(part):
        return "only rows decide it"
    texts: list[str] = []
    for ref in dict.fromkeys(refs(part)):
        domains = domains_in(files, ref, types)
        about = "" if isinstance(part, Compare | In | StartsWith) else f"{ref}: "
        texts.append(about + (domains.reason(row) or _range_text(domains, row)))
    return "; ".join(texts) or "it may be true in any row"


def _range_text(domains: OperandDomains, row: int) -> str:
    low, high = (_raw_text(side.raw(row)) for side in (domains.minimum, domains.maximum))
    nan = " and perhaps NaN" if domains.nan[row] else ""
    return f"the file holds {low} to {high}{nan}"


def _raw_text(value: Raw | None) -> str:
    return "?" if value is None else repr(value) if isinstance(value, str) else str(value)
