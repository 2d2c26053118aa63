"""Merge the facts of files into those of a file with all their rows.

A fact that is unknown for one of them is unknown for the merged file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_

from variantlake.parquet.stats.bounds import Bounds
from variantlake.parquet.stats.facts import (
    UNKNOWN,
    ColumnFacts,
    Facts,
    FileFacts,
    PathFacts,
    VariantFacts,
)


def merge_facts(parts: Sequence[FileFacts], size: int) -> FileFacts:
    """Merge the facts of files, at least one, into those of a file of `size` bytes.

    Leaves out columns that one of them lacks, and columns whose layouts differ.
    """
    first = parts[0]
    parts = [part for part in parts if part.num_records] or [first]
    return FileFacts(
        size=size,
        num_records=_sum(part.num_records for part in parts),
        row_groups=_sum(part.row_groups for part in parts),
        variants=tuple(
            _variant(found)
            for variant in first.variants
            if (found := [v for p in parts if (v := p.variant(variant.column)) is not None])
            and len(found) == len(parts)
            and all(each.schema == found[0].schema for each in found)
        ),
        columns=tuple(
            _column(of_all, [part.num_records for part in parts])
            for column in first.columns
            if (of_all := [c for p in parts if (c := p.column(column.column)) is not None])
            and len(of_all) == len(parts)
            and all(each.type == of_all[0].type for each in of_all)
        ),
    )


def sharpened(facts: FileFacts, merged: FileFacts) -> FileFacts:
    """Fill unknown facts of a footer with those merged from parts with the same rows.

    Both are true, so each count and bound may come from either.
    """
    return replace(
        facts,
        variants=tuple(
            variant
            if (other := merged.variant(variant.column)) is None or other.schema != variant.schema
            else replace(
                variant,
                nulls=_either(variant.nulls, other.nulls),
                paths=tuple(map(_sharper_path, variant.paths, other.paths)),
            )
            for variant in facts.variants
        ),
        columns=tuple(
            column
            if (same := merged.column(column.column)) is None or same.type != column.type
            else replace(_sharper(column, same), nulls=_either(column.nulls, same.nulls))
            for column in facts.columns
        ),
    )


def _variant(found: Sequence[VariantFacts]) -> VariantFacts:
    return replace(
        found[0],
        nulls=_sum(each.nulls for each in found),
        paths=tuple(_path(each) for each in zip(*(v.paths for v in found), strict=True)),
        is_legacy=any(each.is_legacy for each in found),
        has_others=any(each.has_others for each in found),
        notes=None,  # the merged file has them in its footer
    )


def _path(parts: Sequence[PathFacts]) -> PathFacts:
    counted = replace(
        parts[0],
        typed=_sum(each.typed for each in parts),
        nulls=_sum(each.nulls for each in parts),
        residuals=_sum(each.residuals for each in parts),
    )
    inside = reduce(and_, (each.clean_inside for each in parts))
    return _bounded(replace(counted, clean_inside=inside), [p for p in parts if p.typed != 0])


def _column(parts: Sequence[ColumnFacts], rows: Sequence[int]) -> ColumnFacts:
    counted = replace(parts[0], nulls=_sum(each.nulls for each in parts))
    return _bounded(
        counted, [part for part, count in zip(parts, rows, strict=True) if part.nulls != count]
    )


def _bounded(facts: Facts, parts: Sequence[Facts]) -> Facts:
    """Set the merged bounds of `parts`, which are the ones that may hold a value."""
    bounds = reduce(Bounds.merge, (each.bounds for each in parts)) if parts else Bounds()
    plain_floats = facts.plain_floats and all(each.plain_floats for each in parts)
    return replace(facts, bounds=bounds, plain_floats=plain_floats)


def _sharper_path(facts: PathFacts, other: PathFacts) -> PathFacts:
    return replace(
        _sharper(facts, other),
        typed=_either(facts.typed, other.typed),
        nulls=_either(facts.nulls, other.nulls) if facts.residuals < 0 else facts.nulls,
        residuals=_either(facts.residuals, other.residuals),
        clean_inside=facts.clean_inside | other.clean_inside,
    )


def _sharper(facts: Facts, other: Facts) -> Facts:
    bounds = facts.bounds.filled(other.bounds)
    plain_floats = facts.plain_floats or other.plain_floats
    return replace(facts, bounds=bounds, plain_floats=plain_floats)


def _either(count: int, other: int) -> int:
    return other if count == UNKNOWN else count


def _sum(counts: Iterable[int]) -> int:
    """Return the sum; UNKNOWN if a count is."""
    total = 0
    for count in counts:
        if count == UNKNOWN:
            return UNKNOWN
        total += count
    return total
