"""The scan plan: which files are read, and how each requested path is read in which of them.

Files of one layout for the requested paths form a group, and a group is one scan. Its key is the
exact Parquet type of each requested leaf with its conversion. Spark's nested reader neither checks
nor converts types (EXACTNESS, rule 4): a leaf of another type would be read as garbage.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from variantlake.logs import logger
from variantlake.parquet.stats.fact_columns import INTEGERS, LACKING, Int64s
from variantlake.parquet.stats.facts import UNKNOWN
from variantlake.planning.exact.readings import (
    Native,
    NullColumn,
    PhysicalColumn,
    Reader,
    Reading,
    Readings,
    readable_by_spark,
)
from variantlake.planning.files import FileColumns, FileRows, ScanFile
from variantlake.planning.predicates import And, Predicate, Ref, Unknown, conjuncts
from variantlake.planning.stats.first_rows import FirstRows, enough, reach
from variantlake.planning.stats.skipping import NOT_SKIPPED, Skipper
from variantlake.shredding.schema import Untyped

_LOG = logger("plan")

MAX_GROUPS = 16
"""Groups of one plan; each is a scan of its own, and many small ones cost more than they save."""

MAX_KEPT_SAMPLE = 20
"""Kept files for which a plan says why each predicate could not skip them."""


@dataclass(frozen=True, slots=True)
class ScanGroup:
    """Files that are scanned together, and how each requested path is read in all of them.

    In one group a Variant column is read one way: when one of its paths is Native, all are.
    `kernels` is true when a column that is read natively holds types which Spark's own Variant
    reader fails on. `prefilter` are conjuncts by which rows are found on typed columns before their
    Variants are rebuilt, see `late_materialization`; none where all rows are.
    """

    readings: tuple[tuple[Ref, Reading], ...]
    files: FileRows
    kernels: bool = False
    prefilter: tuple[Predicate, ...] = ()

    def reading(self, ref: Ref) -> Reading:
        """How this Ref is read. Raises KeyError for one that was not requested."""
        for known, reading in self.readings:
            if known == ref:
                return reading
        raise KeyError(str(ref))

    @property
    def by_kernels(self) -> bool:
        """Our kernels read the files, and not the engine's own reader."""
        return self.kernels or bool(self.prefilter)

    @property
    def physical(self) -> bool:
        """No Variant is read at all."""
        return not any(isinstance(reading, Native) for _, reading in self.readings)


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file that may hold matching rows, and why each conjunct could not skip it."""

    file: ScanFile
    reasons: tuple[tuple[Predicate, str], ...]


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """What one query reads of one table version.

    `table` are all files of the version. `skipped_by` gives for each the index of the conjunct that
    skips it, or NOT_SKIPPED. `kept` explains the first MAX_KEPT_SAMPLE files of `groups` when there
    is a predicate. `conjuncts` are the predicate's parts, in order, and last what a LIMIT adds.
    `first` is that LIMIT where it leaves something out; `reach` is what all of its rows fulfil,
    where it goes by an order, which the query's text does not say.
    """

    groups: tuple[ScanGroup, ...]
    table: FileColumns
    skipped_by: Int64s
    kept: tuple[KeptFile, ...]
    requests: tuple[Ref, ...]
    conjuncts: tuple[Predicate, ...]
    first: FirstRows | None = None
    reach: Predicate | None = None

    @property
    def files(self) -> Iterator[ScanFile]:
        """The files that are read, group by group."""
        return chain.from_iterable(group.files for group in self.groups)

    @property
    def read_files(self) -> int:
        """Number of files that are read."""
        return sum(len(group.files) for group in self.groups)

    @property
    def read_bytes(self) -> int:
        """Bytes of the files that are read; columns and row groups skip more."""
        return sum(group.files.size for group in self.groups)

    @property
    def total_files(self) -> int:
        """Number of files of the table version."""
        return self.table.rows

    @property
    def total_bytes(self) -> int:
        """Bytes of all files of the table version."""
        return int(self.table.sizes.sum())


def plan_scan(
    files: FileColumns,
    requests: Sequence[Ref],
    predicate: Predicate | None = None,
    *,
    partition_types: Mapping[str, str] | None = None,
    has_kernels: bool = False,
    first: FirstRows | None = None,
) -> ScanPlan:
    """Skip what the predicate excludes, and group the rest by how the requested paths are read.

    `requests` are the Refs that the query reads, those of its predicates included; ordinary columns
    among them need no reading and are left out. `partition_types` gives Spark types of partition
    columns. At most MAX_GROUPS groups result; the smallest ones of a more mixed table are read
    natively as one, or as two where our kernels have to rebuild some of them.
    `has_kernels` tells that the engine can run these: then they also read what its own reader may
    fail at, and Variants as such where it would make decimals of integers (EXACTNESS, rules 31 and
    33). `first` is a LIMIT on the rows that fulfil the predicate, which is then all of their
    condition.
    """
    far = None if first is None else reach(first, files, predicate, partition_types)
    whole = predicate if far is None else And((*conjuncts(predicate), far))
    skipper = Skipper(whole, partition_types)
    skipped, parts = skipper.skipped_by(files), skipper.conjuncts
    if first is not None:
        chosen = enough(first, files, predicate, partition_types)
        if chosen is not None:
            others = np.equal(skipped, NOT_SKIPPED)
            others[chosen] = False
            skipped[others] = len(parts)
            parts = (*parts, Unknown(str(first)))
    read = np.flatnonzero(skipped == NOT_SKIPPED)
    paths = tuple(dict.fromkeys(ref for ref in requests if ref.path is not None))
    groups = _group_files(files, read, paths, has_kernels=has_kernels)
    sample = read[:MAX_KEPT_SAMPLE] if skipper.conjuncts else read[:0]
    kept = tuple(
        KeptFile(file, skipper.why_kept(files, row))
        for row, file in zip(sample.tolist(), files.files(sample), strict=True)
    )
    limited = first if len(parts) > len(conjuncts(predicate)) else None
    plan = ScanPlan(groups, files, skipped, kept, paths, parts, limited, far)
    _say(plan)
    return plan


def _say(plan: ScanPlan) -> None:
    if not _LOG.isEnabledFor(logging.DEBUG):
        return
    _LOG.debug(
        "read files %d of %d, bytes %d of %d",
        plan.read_files, plan.total_files, plan.read_bytes, plan.total_bytes,
    )  # fmt: skip
    for number, conjunct in enumerate(plan.conjuncts):
        count = int((plan.skipped_by == number).sum())
        _LOG.debug("skipped files %d by %s", count, conjunct)
    for group in plan.groups:
        ways = ", ".join(f"{ref} {type(reading).__name__}" for ref, reading in group.readings)
        _LOG.debug("files %d: %s", len(group.files), ways or "no paths")


def _group_files(
    files: FileColumns, read: Int64s, paths: Sequence[Ref], *, has_kernels: bool
) -> tuple[ScanGroup, ...]:
    """The rows `read` by how they read `paths`, the largest group (in bytes) first."""
    # A Variant that comes out tells an integer from a decimal of the same value.
    shown = {ref.column for ref in paths if "variant" in ref.type}
    needs = {
        column: _need_kernels(files, column, shown=column in shown, has_kernels=has_kernels)
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
"""For each Variant column `_need_kernels`."""

SAME_COLUMN = "another path of the column is read natively"
MANY_LAYOUTS = "its files have too many different layouts"


def _by_layout(
    files: FileColumns, read: Int64s, paths: Sequence[Ref], needs: _Needs
) -> dict[_Layout, Int64s]:
    """The rows with equal readings of all paths."""
    by_path = [readings_of(files, path) for path in paths]
    # One number for each file and path; equal files have equal rows of numbers.
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
        kernels = any(needs[column][first] for column in native)
        found.setdefault((_one_way(paths, readings, native), kernels), []).append(rows)
    return {layout: np.concatenate(rows) for layout, rows in found.items()}


def _alike(codes: Sequence[Int64s], rows: Int64s) -> Iterator[Int64s]:
    """The rows by their codes, those of the first row first."""
    if not len(rows):
        return
    group = np.zeros(len(rows), np.int64)
    for code in codes:
        # Renumbered each time, so that the numbers never grow beyond the number of rows.
        _, group = np.unique(group * (int(code.max()) + 1) + code, return_inverse=True)
    order = np.argsort(group, kind="stable")
    ends = np.flatnonzero(np.diff(group[order])) + 1
    yield from sorted(np.split(rows[order], ends), key=lambda part: int(part[0]))


def readings_of(files: FileColumns, path: Ref) -> Readings:
    """How a path is read in every file, remembered with the files."""
    key = ("readings", path)
    known = files.memo.get(key)
    if not isinstance(known, Readings):
        known = files.memo[key] = Reader(path).read_all(files.facts)
    return known


def _one_way(
    paths: Sequence[Ref], readings: Sequence[Reading], native: set[tuple[str, ...]]
) -> tuple[Reading, ...]:
    """The readings, native for every path of a column that one path needs natively."""
    return tuple(
        Native(SAME_COLUMN)
        if path.column in native and not isinstance(reading, Native)
        else reading
        for path, reading in zip(paths, readings, strict=True)
    )


def _need_kernels(
    files: FileColumns, column: tuple[str, ...], *, shown: bool, has_kernels: bool
) -> Int64s:
    """For each file 1 where our kernels read the Variant column when it is read natively, else 0.

    They have to where Spark's own reader fails. Where there are kernels, they also do where it may
    fail, and where types of numbers are `shown` that would come out wrong.
    """
    variants = files.facts.variant(column)
    if variants is None or not variants.schemas:
        return np.zeros(files.rows, np.int64)
    fails = np.array(
        [
            legacy or others or not readable_by_spark(schema)
            for schema, legacy, others in zip(
                variants.schemas, variants.legacy, variants.others, strict=True
            )
        ]
    )
    shredded = np.array([not isinstance(each.root, Untyped) for each in variants.schemas])
    unknown = variants.notes == UNKNOWN
    noted = ~unknown & (variants.notes & LACKING != 0)
    if has_kernels:
        noted |= unknown
        if shown:
            noted |= variants.notes & INTEGERS != 0
    needs = fails[variants.layout] | (noted & shredded[variants.layout])
    return np.where(variants.layout >= 0, needs, False).astype(np.int64)


def _join_absent(groups: _Grouped) -> _Grouped:
    """Put files that lack a path to files that have it: a scan reads NULLs where nothing stands."""
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
