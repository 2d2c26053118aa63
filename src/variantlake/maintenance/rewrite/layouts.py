"""How the files of a table shred their Variant columns: from the log, else from their footers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow.compute as pc

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.table_schema import VariantType
from variantlake.delta.stats.tags import PREFIX, column_name
from variantlake.errors import VariantLakeError
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.parquet.stats.facts import facts_of
from variantlake.paths import Path
from variantlake.planning.files import ScanFile
from variantlake.planning.log_files import LogFiles
from variantlake.shredding.schema import ShreddingSchema
from variantlake.shredding.values import parse_notes

_THREADS = 16

NO_PATHS: frozenset[Path] = frozenset()


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """How one file shreds a column: None where its columns cannot be copied, or nothing is known.

    `told_apart` as in ValueNotes; `has_nulls` is true where there may be SQL NULLs.
    """

    schema: ShreddingSchema | None = None
    told_apart: frozenset[Path] = NO_PATHS
    has_nulls: bool = True


UNKNOWN = ColumnLayout()

FileLayout = tuple[ColumnLayout, ...]
"""A file's layout: one of each Variant column, in the table's order."""


def variant_columns(snapshot: Snapshot) -> tuple[str, ...]:
    """The physical names of the columns that are Variants themselves."""
    return tuple(
        item.physical_name
        for item in snapshot.schema.fields
        if isinstance(item.type, VariantType) and item.name not in snapshot.partition_columns
    )


def layouts_of(snapshot: Snapshot, files: LogFiles, rows: Int64s) -> list[FileLayout]:
    """The layouts of these files. Of those that the log does not tell, footers are read.

    A file that cannot be read has an unknown one: whoever reads its rows then says why.
    """
    columns = [_of_log(snapshot, files, name, rows) for name in variant_columns(snapshot)]
    if not columns:
        return [()] * len(rows)
    found: list[FileLayout] = list(zip(*columns, strict=True))
    lacking = [place for place, layout in enumerate(found) if UNKNOWN in layout]
    if lacking:
        unknown = files.files(rows[lacking])
        with ThreadPoolExecutor(min(_THREADS, len(lacking))) as pool:
            read = pool.map(lambda file: _of_footer(snapshot, file), unknown)
            for place, layout in zip(lacking, read, strict=True):
                found[place] = layout
    return found


def _of_log(snapshot: Snapshot, files: LogFiles, name: str, rows: Int64s) -> list[ColumnLayout]:
    facts = files.of_log.variant((name,))
    if facts is None:
        return [UNKNOWN] * len(rows)
    usable = [
        None if legacy or other else schema
        for schema, legacy, other in zip(facts.schemas, facts.legacy, facts.others, strict=True)
    ]
    codes, nulls = facts.layout[rows].tolist(), facts.nulls[rows].tolist()
    tags: Any = snapshot.files["tags"].take(rows)
    key = f"{PREFIX}values.{column_name((name,))}"
    notes = pc.map_lookup(tags, key, "first").to_pylist()
    return [
        UNKNOWN if code < 0 else _shared(usable[code], _told(text), null != 0)
        for code, null, text in zip(codes, nulls, notes, strict=True)
    ]


@lru_cache(maxsize=1024)
def _told(text: str | None) -> frozenset[Path]:
    notes = parse_notes(text)
    return NO_PATHS if notes is None else notes.told_apart


@lru_cache(maxsize=1024)
def _shared(
    schema: ShreddingSchema | None,
    told: frozenset[Path],
    has_nulls: bool,
) -> ColumnLayout:
    """One object for equal ones: they are compared by the thousand."""
    return ColumnLayout(schema, told, has_nulls)


def _of_footer(snapshot: Snapshot, file: ScanFile) -> FileLayout:
    names = variant_columns(snapshot)
    try:
        facts = facts_of(
            read_footer(file.path), file.size, snapshot.schema.variant_columns(physical=True)
        )
    except (VariantLakeError, OSError):
        return tuple(UNKNOWN for _ in names)
    found = []
    for name in names:
        variant = facts.variant((name,))
        if variant is None or variant.is_legacy or variant.has_others:
            found.append(UNKNOWN)
            continue
        told = NO_PATHS if variant.notes is None else variant.notes.told_apart
        found.append(_shared(variant.schema, told, variant.nulls != 0))
    return tuple(found)


def joined_layout(
    names: Sequence[str], schemas: Sequence[ShreddingSchema], files: Sequence[FileLayout]
) -> tuple[Mapping[str, frozenset[Path]], frozenset[str]]:
    """What is told apart, and which columns have no null, in files that join these."""
    told = {
        name: NO_PATHS.union(
            *(layout[place].told_apart for layout in files if layout[place].schema == schema)
        )
        for place, (name, schema) in enumerate(zip(names, schemas, strict=True))
    }
    required = {
        name
        for place, name in enumerate(names)
        if not any(layout[place].has_nulls for layout in files)
    }
    return told, frozenset(required)
