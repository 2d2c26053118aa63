"""Group and aggregate rows part by part: row groups, and files that the log answers for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from variantlake.engine.codes import coded, coded_parts, group
from variantlake.engine.reading import Counted, Known
from variantlake.engine.states import Distinct, State, known_state, state_of, typed
from variantlake.expressions.rows import evaluate
from variantlake.expressions.tree import Aggregate, Expression
from variantlake.expressions.typing import scalar
from variantlake.planning.stats.exact_facts import KnownFiles
from variantlake.scan.files.chosen_rows import cast_error
from variantlake.shredding.fit import raw_array

MERGED = 1 << 20
"""The size from which parts are merged: it bounds their memory, however large the table."""


@dataclass(frozen=True, slots=True)
class PartialGroups:
    """The values of each key and the state of each aggregate for `count` groups."""

    keys: tuple[Any, ...]
    states: tuple[State, ...]
    count: int

    @property
    def size(self) -> int:
        """The number of groups, plus that of the distinct values that they count."""
        values = (each.codes for each in self.states if isinstance(each, Distinct))
        return self.count + sum(map(len, values))


def part_of_rows(
    keys: Sequence[Expression], aggregates: Sequence[Aggregate], some: Counted
) -> PartialGroups:
    """Group some rows. Raises InvalidValue."""
    known, rows = some.values, some.count
    columns = [coded(evaluate_used(key, known, rows)) for key in keys]
    found = group(columns, rows)
    states = []
    for aggregate in aggregates:
        argument = aggregate.argument
        array = None if argument is None else evaluate_used(argument, known, rows)
        states.append(state_of(aggregate, array, found.ids, found.count, some.sizes))
    return PartialGroups(
        tuple(column.keys_of(found.first) for column in columns),
        tuple(states),
        found.count,
    )


def are_of_stretches(aggregates: Sequence[Aggregate]) -> bool:
    """Whether these can be computed from stretches of equal rows; sums need each row."""
    return all(each.distinct or each.function in ("count", "min", "max") for each in aggregates)


def part_of_log(
    keys: Sequence[Expression], aggregates: Sequence[Aggregate], known: KnownFiles
) -> PartialGroups:
    """Make the groups of files that the log answers for, one per file."""
    columns = []
    for at, key in enumerate(keys):
        type_ = scalar(key)
        columns.append(raw_array([typed(each[at], type_) for each in known.keys], type_))
    states = [
        known_state(aggregate, [each[at] for each in known.values])
        for at, aggregate in enumerate(aggregates)
    ]
    return PartialGroups(tuple(columns), tuple(states), len(known.answered))


def merged(parts: Sequence[PartialGroups]) -> PartialGroups:
    """Merge parts into one, in which no two groups have the same keys."""
    first, *others = parts
    columns = [coded_parts([part.keys[at] for part in parts]) for at in range(len(first.keys))]
    count = sum(part.count for part in parts)
    found = group(columns, count)
    states = [
        state.merged([part.states[at] for part in others], found.ids, found.count)
        for at, state in enumerate(first.states)
    ]
    keys = tuple(column.of_rows(found.first) for column in columns)
    return PartialGroups(keys, tuple(states), found.count)


def all_merged(parts: Iterable[PartialGroups]) -> PartialGroups | None:
    """Merge all parts as they come; None without any."""
    held: list[PartialGroups] = []
    for part in parts:
        held = merged_if_many([*held, part])
    return None if not held else merged(held)


def merged_if_many(parts: list[PartialGroups]) -> list[PartialGroups]:
    """Merge parts once they are much larger than the first, which holds earlier merges."""
    if len(parts) > 1 and sum(each.size for each in parts) > MERGED + parts[0].size:
        return [merged(parts)]
    return parts


def evaluate_used(expression: Expression, known: Known, rows: int) -> Any:
    """Evaluate an expression whose values a query uses. Raises InvalidValue if Spark raises."""
    values = evaluate(expression, known.get, rows)
    if values.failed is not None and np.any(values.failed):
        raise cast_error(expression, None)
    return values.array
