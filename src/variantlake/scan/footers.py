"""Read and cache the footers of data files whose layout the log lacks.

A read never commits what it learns from them (EXACTNESS, rule 9).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import VariantLakeError
from variantlake.expressions.tree import And, Ref
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.stats.fact_columns import RecordColumns
from variantlake.parquet.stats.facts import FileFacts, facts_of, row_group_facts
from variantlake.planning.choose_files import FileChoice
from variantlake.planning.explain import RowGroups, count_row_groups
from variantlake.planning.files import ScanFile
from variantlake.planning.log_files import LogFiles
from variantlake.planning.stats.skipping import Skipper
from variantlake.shredding.schema import ShreddingSchema

_THREADS = 16


class Footers:
    """Caches the facts in the footers of foreign files."""

    def __init__(self) -> None:
        self._facts: dict[tuple[str, int, int], FileFacts | None] = {}
        self._layouts: dict[ShreddingSchema, ShreddingSchema] = {}

    def with_facts(self, snapshot: Snapshot, files: LogFiles, paths: Iterable[Ref]) -> LogFiles:
        """Return the files with facts from their footers where the log lacks the layout.

        Reads footers only if a query reads a path, and each once. The layout of an unreadable file
        stays unknown, and the scan raises the error.
        """
        lacking = files.lacking({ref.column for ref in paths if ref.path is not None})
        if not len(lacking):
            return files
        unknown = list(files.files(lacking))
        missing = [file for file in unknown if _key(file) not in self._facts]
        if missing:
            with ThreadPoolExecutor(min(_THREADS, len(missing))) as pool:
                found = pool.map(lambda file: _facts(snapshot, file), missing)
                for file, facts in zip(missing, found, strict=True):
                    self._facts[_key(file)] = facts and self._shared(facts)
        known = [self._facts.get(_key(file)) for file in unknown]
        return files.with_facts(lacking, RecordColumns(known)) if any(known) else files

    def _shared(self, facts: FileFacts) -> FileFacts:
        """Share one object per layout between facts: planning decides once per object."""
        variants = tuple(
            replace(variant, schema=self._layouts.setdefault(variant.schema, variant.schema))
            for variant in facts.variants
        )
        return replace(facts, variants=variants)


def row_groups(
    snapshot: Snapshot, choice: FileChoice, partition_types: Mapping[str, str]
) -> RowGroups | None:
    """Count the row groups of the chosen files by their footers; None if one cannot be read."""
    files = list(choice.files)
    if not files:
        return RowGroups(0, 0)
    with ThreadPoolExecutor(min(_THREADS, len(files))) as pool:
        found = list(pool.map(lambda file: _by_footer(snapshot, file, row_group_facts), files))
    skipper = Skipper(And(choice.conjuncts), partition_types)
    known = [(file, groups) for file, groups in zip(files, found, strict=True) if groups]
    return count_row_groups(skipper, known) if len(known) == len(files) else None


def _key(file: ScanFile) -> tuple[str, int, int]:
    return file.path, file.size, file.modified


def _facts(snapshot: Snapshot, file: ScanFile) -> FileFacts | None:
    found = _by_footer(snapshot, file, lambda f, names: (facts_of(f, file.size, names),))
    return found[0] if found else None


def _by_footer(
    snapshot: Snapshot, file: ScanFile, facts: Callable[..., tuple[FileFacts, ...]]
) -> tuple[FileFacts, ...]:
    """The facts of a footer; none if it is unreadable, or has other names than the log."""
    try:
        footer = read_footer(file.path)
        if not snapshot.has_stored_names(footer):
            return ()
        return facts(footer, snapshot.schema.variant_columns(physical=True))
    except (VariantLakeError, OSError):
        return ()
