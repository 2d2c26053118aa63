"""Explain a scan plan: what is read, what is skipped and by what, and how each path is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from variantlake.delta.protocol.learned_schemas import (
    LearnedSchemas,
    layout_name,
    learned_schemas,
)
from variantlake.expressions.tree import Predicate, Ref, path_text
from variantlake.parquet.stats.facts import FileFacts
from variantlake.paths import Path
from variantlake.planning.choose_files import FileChoice
from variantlake.planning.exact.readings import (
    Native,
    NullColumn,
    NullTest,
    PhysicalColumn,
    Reading,
    find_place,
)
from variantlake.planning.files import RecordFiles, ScanFile
from variantlake.planning.plan import ScanPlan
from variantlake.planning.stats.skipping import Skipper
from variantlake.shown import counted, size
from variantlake.shredding.folding import fold_key
from variantlake.shredding.schema import Object, ShreddingSchema

MAX_SUGGESTIONS = 3
"""The most close paths to suggest for one that no file has."""

SHOWN_KEPT = 3
"""Kept files whose reasons the text shows; `to_dict` has all that the plan sampled."""

_CLOSENESS = 0.75
"""The least ratio of difflib for a close path: one letter in four may be wrong."""


@dataclass(frozen=True, slots=True)
class RowGroups:
    """The number of row groups of the files to read, and of those that may hold a match.

    An estimate by the bounds that also skip files; the engine's own reader decides.
    """

    total: int
    read: int


@dataclass(frozen=True, slots=True)
class PathExplanation:
    """How one requested path is read, in numbers of files.

    `kernels` counts those of the `whole` files whose Variants our kernels rebuild, not the engine.
    `why_whole` has the reasons why files are read whole, each with its number of files.
    """

    ref: Ref
    physical: int
    absent: int
    whole: int
    why_whole: tuple[tuple[str, int], ...]
    suggestions: tuple[str, ...]
    kernels: int = 0


@dataclass(frozen=True, slots=True)
class LayoutUse:
    """The number of files to read that shred a Variant column with one layout.

    `layout` is its name, empty if it is not known. `schema` is the number of the learned schema
    that has it, None if none has.
    """

    column: str
    layout: str
    schema: int | None
    files: int

    def __str__(self) -> str:
        name = self.layout or "unknown"
        label = name if self.schema is None else f"schema {self.schema} ({name})"
        return f"{label}: {counted(self.files, 'file')}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """What one plan does, as text (`str`) and as JSON (`to_dict`). Sizes are in bytes."""

    total_files: int
    read_files: int
    total_bytes: int
    read_bytes: int
    groups: int
    row_groups: RowGroups | None
    skipped_by: tuple[tuple[str, int], ...]
    paths: tuple[PathExplanation, ...]
    kept: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    prefilter: tuple[tuple[str, int], ...] = ()
    """Conditions that find rows before their Variants are rebuilt, with numbers of files."""
    layouts: tuple[LayoutUse, ...] = ()
    """The layouts of the files to read, by column, oldest schema first."""
    answered: int = 0
    """Files that are neither read nor skipped: the log alone answers for all of their rows."""
    limit: str = ""
    """The LIMIT that leaves files or row groups out, with its order; empty if none does."""
    reach: str = ""
    """A condition that all rows of the LIMIT fulfil, by the bounds and counts of the log."""

    def _repr_html_(self) -> str:
        """What a notebook shows: the text."""
        import html

        return f"<pre>{html.escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """The explanation as JSON-ready values."""
        return {
            "files": {
                "total": self.total_files,
                "read": self.read_files,
                "skipped": self.total_files - self.read_files - self.answered,
                **({"answered_from_log": self.answered} if self.answered else {}),
            },
            "bytes": {"total": self.total_bytes, "read": self.read_bytes},
            "row_groups": self.row_groups
            and {"total": self.row_groups.total, "read": self.row_groups.read},
            "scans": self.groups,
            "layouts": [asdict(use) for use in self.layouts],
            "limit": {"text": self.limit, "reach": self.reach} if self.limit else None,
            "skipped_by": [{"predicate": text, "files": n} for text, n in self.skipped_by],
            "rows_found_by": [{"predicate": text, "files": n} for text, n in self.prefilter],
            "paths": [
                {
                    "path": str(use.ref),
                    "physical": use.physical,
                    "whole": use.whole,
                    "kernels": use.kernels,
                    "absent": use.absent,
                    "why_whole": dict(use.why_whole),
                    "did_you_mean": list(use.suggestions),
                }
                for use in self.paths
            ],
            "kept": [
                {
                    "file": file,
                    "because": [{"predicate": text, "reason": why} for text, why in reasons],
                }
                for file, reasons in self.kept
            ],
        }

    def __str__(self) -> str:
        skipped = self.total_files - self.read_files - self.answered
        share = f"{size(self.read_bytes)} of {size(self.total_bytes)}"
        lines = [
            f"files: {self.read_files} of {self.total_files} read, {skipped} skipped ({share})"
        ]
        if self.answered:
            lines.append(f"answered from the log alone: {counted(self.answered, 'file')}")
        if self.row_groups is not None:
            groups = self.row_groups
            lines.append(f"row groups of these files: {groups.read} of {groups.total} may match")
        if self.groups > 1:
            lines.append(f"scans: {self.groups}, one for each layout")
        known = Counter(use.column for use in self.layouts if use.layout)
        for column, count in known.items():
            if count > 1:
                lines.append(f"layouts of {column}:")
                lines += [f"  {use}" for use in self.layouts if use.column == column]
        if self.skipped_by:
            lines.append("skipped by:")
            lines += [f"  {text}: {counted(n, 'file')}" for text, n in self.skipped_by]
        if self.reach:
            lines.append(f"rows of {self.limit} all fulfil, by bounds and counts of the log:")
            lines.append(f"  {self.reach}")
        if self.prefilter:
            lines.append("rows found before their Variants are rebuilt, by:")
            lines += [f"  {text}: {counted(n, 'file')}" for text, n in self.prefilter]
        if self.paths:
            lines.append("paths:")
            lines += [f"  {use.ref}: {_how(use)}" for use in self.paths]
        if self.kept and any(reasons for _, reasons in self.kept):
            lines.append("kept, for example:")
            for file, reasons in self.kept[:SHOWN_KEPT]:
                lines.append(f"  {file}")
                lines += [f"    {text}: {why}" for text, why in reasons]
        return "\n".join(lines)


def explain(
    choice: FileChoice,
    requests: Iterable[Ref] = (),
    row_groups: RowGroups | None = None,
    properties: Mapping[str, str] | None = None,
) -> Explanation:
    """Explain what is read and skipped, and why; `row_groups` from `count_row_groups`.

    A ScanPlan has its requests and how Spark reads each of them, group by group. For another
    choice, the `requests` are explained file by file, as a scan in this process reads them. The
    table's `properties` number its layouts.
    """
    groups = choice.groups if isinstance(choice, ScanPlan) else ()
    if isinstance(choice, ScanPlan):
        requests = choice.requests
    requests = [ref for ref in dict.fromkeys(requests) if ref.path is not None]
    skipped_by = Counter[Predicate]()
    for part, count in zip(choice.conjuncts, choice.skipped_files, strict=True):
        skipped_by[part] += count
    prefilter = Counter[str]()
    for group in groups:
        prefilter.update({str(part): len(group.files) for part in group.prefilter})
    return Explanation(
        total_files=choice.total_files,
        read_files=choice.read_files,
        total_bytes=choice.total_bytes,
        read_bytes=choice.read_bytes,
        groups=len(groups),
        row_groups=row_groups,
        skipped_by=tuple(
            (str(part), skipped_by[part])
            for part in dict.fromkeys(choice.conjuncts)
            if skipped_by[part]
        ),
        paths=tuple(_use(choice, ref) for ref in requests),
        kept=tuple(
            (kept.file.path, tuple((str(part), why) for part, why in kept.reasons))
            for kept in choice.kept
        ),
        prefilter=tuple(prefilter.items()),
        layouts=tuple(_layouts(choice, requests, properties or {})),
        limit="" if choice.first is None else str(choice.first),
        reach="" if choice.reach is None else str(choice.reach),
    )


def count_row_groups(
    skipper: Skipper, files: Iterable[tuple[ScanFile, Sequence[FileFacts]]]
) -> RowGroups:
    """Count the row groups of files, and those that may match by each group's own facts."""
    groups = [replace(file, facts=group) for file, groups in files for group in groups]
    return RowGroups(len(groups), int(skipper.may_match(RecordFiles(groups)).sum()))


def _layouts(
    choice: FileChoice, requests: Iterable[Ref], properties: Mapping[str, str]
) -> Iterator[LayoutUse]:
    for column, shown in {ref.column: ref.shown or ref.column for ref in requests}.items():
        variants = choice.table.facts.variant(column)
        if variants is None or not len(choice.rows):
            continue
        learned = learned_schemas(properties, ".".join(column)) or LearnedSchemas()
        name = ".".join(shown)
        files: Counter[str] = Counter()
        for code, count in Counter(variants.layout[choice.rows].tolist()).items():
            files[layout_name(variants.schemas[code]) if code >= 0 else ""] += count
        known = {layout: learned.find(layout) for layout in files}
        uses = (
            LayoutUse(name, layout, None if (by := known[layout]) is None else by.number, count)
            for layout, count in files.items()
        )
        yield from sorted(uses, key=lambda use: (use.schema or 0, use.layout))


def _use(choice: FileChoice, ref: Ref) -> PathExplanation:
    physical = absent = whole = kernels = 0
    why: Counter[str] = Counter()
    for reading, files, by_kernels in _ways(choice, ref):
        match reading:
            case PhysicalColumn() | NullTest():
                physical += files
            case NullColumn():
                absent += files
            case Native(reason):
                whole += files
                kernels += files if by_kernels else 0
                why[reason] += files
    variants = choice.table.facts.variant(ref.column)
    layouts = () if variants is None else variants.schemas
    suggestions = () if physical else _suggest(ref, layouts)
    return PathExplanation(
        ref, physical, absent, whole, tuple(why.most_common()), suggestions, kernels
    )


def _ways(choice: FileChoice, ref: Ref) -> Iterator[tuple[Reading, int, bool]]:
    """Yield each reading of a path, its number of files, and whether our kernels read for Spark."""
    if isinstance(choice, ScanPlan):
        for group in choice.groups:
            yield group.reading(ref), len(group.files), group.by_kernels
    else:
        for reading, files in choice.ways(ref):
            yield reading, files, False


def _suggest(ref: Ref, layouts: Sequence[ShreddingSchema]) -> tuple[str, ...]:
    """Suggest paths for one that no file has as a column: first by case, then by spelling."""
    if ref.path is None or not layouts:
        return ()
    known: dict[str, Path] = {}
    for layout in layouts:
        if find_place(layout, ref.path).inside:
            return ()
        for path, node in layout.nodes():
            if path == ref.path:
                return ()
            if path.steps and not isinstance(node, Object):
                known[path_text(path)] = path
    wanted = path_text(ref.path)
    by_case = [text for text in known if fold_key(text) == fold_key(wanted)]
    import difflib

    close = difflib.get_close_matches(wanted, known, MAX_SUGGESTIONS, _CLOSENESS)
    found = list(dict.fromkeys((*by_case, *close)))[:MAX_SUGGESTIONS]
    return tuple(str(replace(ref, path=known[text], type="variant", strict=True)) for text in found)


def _how(use: PathExplanation) -> str:
    parts = []
    if use.physical:
        parts.append(f"a typed column in {counted(use.physical, 'file')}")
    if use.whole:
        why = "; ".join(reason for reason, _ in use.why_whole)
        by_kernels = f", in {counted(use.kernels, 'file')} by our kernels" if use.kernels else ""
        parts.append(
            f"read from the whole Variant in {counted(use.whole, 'file')} ({why}){by_kernels}"
        )
    if use.absent:
        parts.append(f"NULL in {counted(use.absent, 'file')}")
    text = ", ".join(parts) or "no file is read"
    if use.suggestions:
        text += f". Did you mean {' or '.join(use.suggestions)}?"
    return text
