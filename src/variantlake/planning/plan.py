"""Plan a scan by Spark: the chosen files, grouped by how to read each requested path.

Files with one layout of the requested paths form a group, and a group is one scan. Its key is the
exact Parquet type of each requested leaf with its conversion. Spark's nested reader neither checks
nor converts types (EXACTNESS, rule 4): a leaf of another type would be read as garbage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from variantlake.expressions.tree import Predicate, Ref
from variantlake.logs import logger
from variantlake.parquet.stats.fact_columns import (
    INTEGERS,
    LACKING,
    REORDERED,
    Bools,
    Int64s,
    VariantColumns,
)
from variantlake.parquet.stats.facts import UNKNOWN
from variantlake.planning.choose_files import FileChoice, choose_files, readings_of
from variantlake.planning.exact.readings import (
    Native,
    NullColumn,
    PhysicalColumn,
    Reading,
    readable_by_spark,
)
from variantlake.planning.files import FileColumns, FileRows, pieces_with
from variantlake.planning.stats.first_rows import FirstRows
from variantlake.shredding.folding import fold_key
from variantlake.shredding.schema import Untyped

_LOG = logger("plan")

MAX_GROUPS = 16
"""A plan with more groups merges the smallest: each is a scan, and small ones cost too much."""


@dataclass(frozen=True, slots=True)
class ScanGroup:
    """Files that are scanned together, and how each requested path is read in all of them.

    A group reads a Variant column in one way: if one of its paths is Native, all are. `kernels` is
    true if our kernels have to read a native column instead of Spark's own Variant reader, see
    `_need_kernels`. `prefilter` are conjuncts that find rows on typed columns before their Variants
    are rebuilt, see `late_materialization`; empty if all rows are rebuilt.
    """

    readings: tuple[tuple[Ref, Reading], ...]
    files: FileRows
    kernels: bool = False
    prefilter: tuple[Predicate, ...] = ()

    def reading(self, ref: Ref) -> Reading:
        """How to read this Ref. Raises KeyError for one that was not requested."""
        for known, reading in self.readings:
            if known == ref:
                return reading
        raise KeyError(str(ref))

    @property
    def by_kernels(self) -> bool:
        """Whether our kernels read the files, and not the engine's own reader."""
        return self.kernels or bool(self.prefilter)

    @property
    def physical(self) -> bool:
        """Whether no Variant is read at all."""
        return not any(isinstance(reading, Native) for _, reading in self.readings)


@dataclass(frozen=True)
class ScanPlan(FileChoice):
    """What Spark reads of one table version: the chosen files, by layout, for `requests`."""

    groups: tuple[ScanGroup, ...] = ()
    requests: tuple[Ref, ...] = ()


def plan_scan(
    files: FileColumns,
    requests: Sequence[Ref],
    predicate: Predicate | None = None,
    *,
    partition_types: Mapping[str, str] | None = None,
    has_kernels: bool = False,
    first: FirstRows | None = None,
) -> ScanPlan:
    """Choose files as `choose_files` does, and group them by how Spark reads the requested paths.

    `requests` are the Refs that the query reads, including those of its predicates; ordinary
    columns among them need no reading and are left out. If there are more than MAX_GROUPS groups,
    the smallest ones are read natively as one, or as two if our kernels have to rebuild some of
    them. `has_kernels`: the engine can run our kernels, which then also read files where its own
    reader may fail, and whole Variants whose integers it would make decimals (EXACTNESS, rules 31
    and 33).
    """
    choice = choose_files(files, predicate, partition_types=partition_types, first=first)
    paths = tuple(dict.fromkeys(ref for ref in requests if ref.path is not None))
    groups = _group_files(files, choice.rows, paths, has_kernels=has_kernels)
    for group in groups:
        ways = ", ".join(f"{ref} {type(reading).__name__}" for ref, reading in group.readings)
        _LOG.debug("files %d: %s", len(group.files), ways or "no paths")
    shared = {each.name: getattr(choice, each.name) for each in fields(FileChoice)}
    return ScanPlan(**shared, groups=groups, requests=paths)


def _group_files(
    files: FileColumns, read: Int64s, paths: Sequence[Ref], *, has_kernels: bool
) -> tuple[ScanGroup, ...]:
    """Group the rows `read` by how to read `paths`, the largest group (in bytes) first."""
    # A Variant in the result shows whether a value is an integer or a decimal.
    shown = {ref.column for ref in paths if "variant" in ref.type}
    needs = {
        column: _need_kernels(files, read, column, shown=column in shown, has_kernels=has_kernels)
        for column in {ref.column for ref in paths}
    }
    by_layout = _by_layout(files, read, paths, needs)
    by_size = sorted(by_layout.items(), key=lambda entry: -int(files.sizes[entry[1]].sum()))
    merged = _merge_few(files, _join_absent(by_size), paths, needs)
    return tuple(
        ScanGroup(tuple(zip(paths, readings, strict=True)), FileRows(files, np.sort(rows)), kernels)
        for (readings, kernels), rows in merged
    )


_Layout = tuple[tuple[Reading, ...], bool]
"""The reading of each path, and whether native reading needs our kernels."""

_Grouped = list[tuple[_Layout, Int64s]]

_Needs = Mapping[tuple[str, ...], Int64s]
"""The result of `_need_kernels` for each Variant column."""

SAME_COLUMN = "another path needs the whole Variant"
MANY_LAYOUTS = "its files have too many different layouts"


def _by_layout(
    files: FileColumns, read: Int64s, paths: Sequence[Ref], needs: _Needs
) -> dict[_Layout, Int64s]:
    """Group the rows by equal readings of all paths."""
    by_path = [readings_of(files, path, read) for path in paths]
    # One code for each file and path; files that are read alike have equal codes.
    codes = [found.codes[read] for found in by_path]
    codes += [needs[column][read] for column in needs]
    found: dict[_Layout, list[Int64s]] = {}
    for rows in _alike(codes, read):
        first = int(rows[0])
        readings = [each.choices[each.codes[first]] for each in by_path]
        native = {
            path.column
            for path, reading in zip(paths, readings, strict=True)
            if isinstance(reading, Native)
        }
        native |= _twins(paths, readings)
        kernels = any(needs[column][first] for column in native)
        found.setdefault((_one_way(paths, readings, native), kernels), []).append(rows)
    return {layout: np.concatenate(rows) for layout, rows in found.items()}


_FEW = 1 << 10


def _alike(codes: Sequence[Int64s], rows: Int64s) -> Iterator[Int64s]:
    """Yield the rows with equal codes together, in the order of their first rows."""
    if not len(rows):
        return
    group = np.zeros(len(rows), np.int64)
    for code in codes:
        # Renumbered each time, so that the numbers never grow beyond the number of rows.
        group = _numbered(group * (int(code.max()) + 1) + code)
    if not group.any():
        yield rows
        return
    order = np.argsort(group, kind="stable")
    ends = np.flatnonzero(np.diff(group[order])) + 1
    yield from sorted(np.split(rows[order], ends), key=lambda part: int(part[0]))


def _numbered(codes: Int64s) -> Int64s:
    """Renumber the codes from 0 on, in the same order."""
    if int(codes.min()) >= 0 and int(codes.max()) < len(codes) + _FEW:
        return (np.cumsum(np.bincount(codes) > 0) - 1)[codes]
    found: Int64s = np.unique(codes, return_inverse=True)[1]
    return found


def _twins(paths: Sequence[Ref], readings: Sequence[Reading]) -> set[tuple[str, ...]]:
    """The Variant columns with requested keys that differ only by case (EXACTNESS, rule 5).

    When Spark prunes the columns of a scan, it takes one of them for the other.
    """
    found = set()
    known: dict[tuple[object, ...], str | int] = {}
    for path, reading in zip(paths, readings, strict=True):
        steps = reading.steps if isinstance(reading, PhysicalColumn) else ()
        folded: tuple[object, ...] = path.column
        for step in steps:
            folded = (*folded, fold_key(step) if isinstance(step, str) else step)
            if known.setdefault(folded, step) != step:
                found.add(path.column)
    return found


def _one_way(
    paths: Sequence[Ref], readings: Sequence[Reading], native: set[tuple[str, ...]]
) -> tuple[Reading, ...]:
    """Make the readings of all paths of the `native` columns native."""
    return tuple(
        Native(SAME_COLUMN)
        if path.column in native and not isinstance(reading, Native)
        else reading
        for path, reading in zip(paths, readings, strict=True)
    )


def _need_kernels(
    files: FileColumns, read: Int64s, column: tuple[str, ...], *, shown: bool, has_kernels: bool
) -> Int64s:
    """For each file 1 if our kernels have to read the Variant column where it is native, else 0.

    The numbers of files other than `read` (ascending) mean nothing. Our kernels have to read it if
    Spark's own reader fails, or would not find keys (EXACTNESS, rule 40). If there are kernels,
    they also read it if that reader may fail, or would change the types of numbers that are
    `shown`.
    """
    needs = np.zeros(files.rows, np.int64)
    for piece, start, rows in pieces_with(files, read):
        variants = piece.facts.variant(column)
        if variants is not None and variants.schemas:
            needs[start + rows] = _kernels_needed(
                variants, rows, shown=shown, has_kernels=has_kernels
            )
    return needs


def _kernels_needed(
    variants: VariantColumns, rows: Int64s, *, shown: bool, has_kernels: bool
) -> Bools:
    fails = np.array(
        [
            legacy or others or not readable_by_spark(schema)
            for schema, legacy, others in zip(
                variants.schemas, variants.legacy, variants.others, strict=True
            )
        ]
    )
    shredded = np.array([not isinstance(each.root, Untyped) for each in variants.schemas])
    layout, notes = variants.layout[rows], variants.notes[rows]
    unknown = notes == UNKNOWN
    noted = ~unknown & (notes & LACKING != 0)
    if has_kernels:
        noted |= unknown
        if shown:
            noted |= notes & INTEGERS != 0
    needs = fails[layout] | (noted & shredded[layout])
    needs |= ~unknown & (notes & REORDERED != 0)
    return np.where(layout >= 0, needs, False)


def _join_absent(groups: _Grouped) -> _Grouped:
    """Join files that lack a path to files that have it: a scan reads NULLs where it is missing."""
    joined: _Grouped = []
    for layout, rows in groups:
        for number, (other, others) in enumerate(joined):
            if _reads_as(layout, other):
                joined[number] = (other, np.concatenate([others, rows]))
                break
        else:
            joined.append((layout, rows))
    return joined


def _reads_as(layout: _Layout, other: _Layout) -> bool:
    """Whether files of `layout` give the right values when they are read as `other`."""
    return layout[1] == other[1] and all(
        mine == theirs
        or (
            isinstance(mine, NullColumn)
            and (
                isinstance(theirs, Native) or (mine.joinable and isinstance(theirs, PhysicalColumn))
            )
        )
        for mine, theirs in zip(layout[0], other[0], strict=True)
    )


def _merge_few(
    files: FileColumns, groups: _Grouped, paths: Sequence[Ref], of_columns: _Needs
) -> _Grouped:
    """Read the smallest groups natively together when there are too many."""
    if len(groups) <= MAX_GROUPS:
        return groups
    few = groups[: MAX_GROUPS - 1]
    rest = np.concatenate([rows for _, rows in groups[MAX_GROUPS - 1 :]])
    needs = np.zeros(files.rows, np.int64)
    for each in of_columns.values():
        needs |= each
    readings = tuple(Native(MANY_LAYOUTS) for _ in paths)
    by_need = [(bool(need), rest[needs[rest] == need]) for need in (0, 1)]
    return few + [((readings, need), rows) for need, rows in by_need if len(rows)]
