"""The scan plan: which files are read, and how each asked path is read in which of them.

Files of one layout for the asked paths form a group, and a group is one scan. Its key is the exact
Parquet type of each asked leaf with its conversion, because Spark's nested reader neither checks
nor converts types (EXACTNESS, rule 4): a leaf of another type would be read as garbage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from variantlake.parquet.facts import FileFacts
from variantlake.planning.predicates import Predicate, Ref
from variantlake.planning.readings import (
    Native,
    NullColumn,
    PhysicalColumn,
    Reader,
    Reading,
    readable_by_spark,
)
from variantlake.planning.skipping import Skipper

MAX_GROUPS = 16
"""Groups of one plan; each is a scan of its own, and many small ones cost more than they save."""

MAX_KEPT_SAMPLE = 20
"""Kept files for which a plan says why each predicate could not skip them."""


@dataclass(frozen=True, slots=True)
class ScanFile:
    """One data file as planning sees it.

    `size` is in bytes, `facts` None when nothing is known of the file. `partition` holds the
    serialised partition values by column. `source` is whatever the caller wants back (an `add`
    action, a deletion vector); planning does not look at it.
    """

    path: str
    size: int
    facts: FileFacts | None = None
    partition: Mapping[str, str | None] = field(default_factory=dict)
    source: object = None


@dataclass(frozen=True, slots=True)
class ScanGroup:
    """Files that are scanned together, and how each asked path is read in all of them.

    In one group a Variant column is read one way: when one of its paths is Native, all are.
    `kernels` is true when a column that is read natively holds types which Spark's own Variant
    reader fails on.
    """

    readings: tuple[tuple[Ref, Reading], ...]
    files: tuple[ScanFile, ...]
    kernels: bool = False

    def reading(self, ref: Ref) -> Reading:
        """How this Ref is read. Raises KeyError for one that was not requested."""
        for known, reading in self.readings:
            if known == ref:
                return reading
        raise KeyError(str(ref))

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def physical(self) -> bool:
        """No Variant is read at all."""
        return not any(isinstance(reading, Native) for _, reading in self.readings)


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file without a matching row, and the conjunct that proves it."""

    file: ScanFile
    by: Predicate


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file that may hold matching rows, and why each conjunct could not skip it."""

    file: ScanFile
    reasons: tuple[tuple[Predicate, str], ...]


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """What one query reads of one table version.

    `kept` explains the first MAX_KEPT_SAMPLE files of `groups` when there is a predicate.
    `conjuncts` are the predicate's parts, in order.
    """

    groups: tuple[ScanGroup, ...]
    skipped: tuple[SkippedFile, ...]
    kept: tuple[KeptFile, ...]
    requests: tuple[Ref, ...]
    conjuncts: tuple[Predicate, ...]

    @property
    def files(self) -> Iterator[ScanFile]:
        """The files that are read, group by group."""
        return (file for group in self.groups for file in group.files)

    @property
    def read_files(self) -> int:
        """Number of files that are read."""
        return sum(len(group.files) for group in self.groups)

    @property
    def read_bytes(self) -> int:
        """Bytes of the files that are read; columns and row groups skip more."""
        return sum(group.size for group in self.groups)

    @property
    def total_files(self) -> int:
        """Number of files of the table version."""
        return self.read_files + len(self.skipped)

    @property
    def total_bytes(self) -> int:
        """Bytes of all files of the table version."""
        return self.read_bytes + sum(skipped.file.size for skipped in self.skipped)


def plan_scan(
    files: Iterable[ScanFile],
    requests: Sequence[Ref],
    predicate: Predicate | None = None,
    *,
    partition_types: Mapping[str, str] | None = None,
    max_groups: int = MAX_GROUPS,
) -> ScanPlan:
    """Skip what the predicate excludes, and group the rest by how the asked paths are read.

    `requests` are the Refs that the query reads, those of its predicates included; ordinary columns
    among them need no reading and are left out. `partition_types` gives Spark types of partition
    columns. At most `max_groups` (at least 1) groups result; the smallest ones of a more mixed
    table are read natively as one, or as two where our kernels have to rebuild some of them.
    """
    skipper = Skipper(predicate, partition_types)
    skipped: list[SkippedFile] = []
    read: list[ScanFile] = []
    for file in files:
        outcome = skipper.outcome(file.facts, file.partition)
        if outcome.by is None:
            read.append(file)
        else:
            skipped.append(SkippedFile(file, outcome.by))
    paths = tuple(dict.fromkeys(ref for ref in requests if ref.path is not None))
    groups = group_files(read, paths, max_groups=max_groups)
    sample = read[:MAX_KEPT_SAMPLE] if skipper.conjuncts else ()
    kept = tuple(KeptFile(file, skipper.why_kept(file.facts, file.partition)) for file in sample)
    return ScanPlan(groups, tuple(skipped), kept, paths, skipper.conjuncts)


def group_files(
    files: Iterable[ScanFile], paths: Sequence[Ref], *, max_groups: int = MAX_GROUPS
) -> tuple[ScanGroup, ...]:
    """The files by how they read `paths`, the largest group (in bytes) first."""
    readers = [Reader(path) for path in paths]
    by_layout = _by_layout(readers, files)
    by_size = sorted(by_layout.items(), key=lambda entry: -sum(file.size for file in entry[1]))
    merged = _merge_few(_join_absent(by_size), paths, max_groups)
    return tuple(
        ScanGroup(tuple(zip(paths, readings, strict=True)), tuple(members), kernels)
        for (readings, kernels), members in merged
    )


_Layout = tuple[tuple[Reading, ...], bool]
"""The reading of each path, and whether native reading needs our kernels."""

_Grouped = list[tuple[_Layout, list[ScanFile]]]

SAME_COLUMN = "another path of the column is read natively"
MANY_LAYOUTS = "its files have too many different layouts"


def _by_layout(
    readers: Sequence[Reader], files: Iterable[ScanFile]
) -> dict[_Layout, list[ScanFile]]:
    # Readers mostly return the same objects again, and comparing those by identity first is much
    # faster than hashing their contents for each file. The dictionary keeps them alive.
    by_objects: dict[tuple[int, ...], tuple[list[Reading], FileFacts | None, list[ScanFile]]] = {}
    for file in files:
        readings = [reader.read(file.facts) for reader in readers]
        key = tuple(map(id, readings))
        if any(isinstance(reading, Native) for reading in readings):
            # Natively, the rest of the layout matters as well.
            variants = () if file.facts is None else file.facts.variants
            key += tuple(id(variant.schema) for variant in variants)
        by_objects.setdefault(key, (readings, file.facts, []))[2].append(file)
    by_layout: dict[_Layout, list[ScanFile]] = {}
    for readings, facts, members in by_objects.values():
        by_layout.setdefault(_layout(readers, readings, facts), []).extend(members)
    return by_layout


def _layout(
    readers: Sequence[Reader], readings: Sequence[Reading], facts: FileFacts | None
) -> _Layout:
    """The readings, native for every path of a column that one path needs natively."""
    native = {
        reader.ref.column
        for reader, reading in zip(readers, readings, strict=True)
        if isinstance(reading, Native)
    }
    if not native:
        return tuple(readings), False
    one_way = tuple(
        Native(SAME_COLUMN)
        if reader.ref.column in native and not isinstance(reading, Native)
        else reading
        for reader, reading in zip(readers, readings, strict=True)
    )
    return one_way, _needs_kernels(facts, native)


def _needs_kernels(facts: FileFacts | None, columns: set[tuple[str, ...]]) -> bool:
    if facts is None:
        return False
    return any(
        variant.column in columns and not readable_by_spark(variant) for variant in facts.variants
    )


def _join_absent(groups: _Grouped) -> _Grouped:
    """Put files that lack a path to files that have it: a scan reads NULLs where nothing stands."""
    joined: _Grouped = []
    for layout, files in groups:
        for other, others in joined:
            if _reads_as(layout, other):
                others.extend(files)
                break
        else:
            joined.append((layout, list(files)))
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


def _merge_few(groups: _Grouped, paths: Sequence[Ref], max_groups: int) -> _Grouped:
    """Read the smallest groups natively together when there are too many."""
    if len(groups) <= max_groups:
        return groups
    columns = {path.column for path in paths}
    few, rest = groups[: max_groups - 1], groups[max_groups - 1 :]
    by_need: dict[bool, list[ScanFile]] = {}
    for _, files in rest:
        for file in files:
            by_need.setdefault(_needs_kernels(file.facts, columns), []).append(file)
    readings = tuple(Native(MANY_LAYOUTS) for _ in paths)
    return few + [((readings, kernels), files) for kernels, files in by_need.items()]
