"""Find how files shred their Variant columns, and choose how the files that replace them do.

Layouts of existing files come from the log, or from footers where the log lacks them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from variantlake.arrays import map_values
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.properties import shredding_schemas
from variantlake.delta.schema.table_schema import VariantType
from variantlake.delta.stats.tags import PREFIX, column_name
from variantlake.errors import InvalidSchema, VariantLakeError
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.parquet.stats.facts import facts_of
from variantlake.paths import Path
from variantlake.planning.files import ScanFile
from variantlake.planning.log_files import LogFiles
from variantlake.shredding.layout import check_writable
from variantlake.shredding.schema import ShreddingSchema
from variantlake.shredding.values import parse_notes
from variantlake.writing.table_write import UNSHREDDED

_THREADS = 16

NO_PATHS: frozenset[Path] = frozenset()


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """How one file shreds a column.

    `schema` is None if the column cannot be copied as it is stored, or nothing is known.
    `told_apart` as in ValueNotes; `has_nulls` is true if there may be SQL NULLs.
    """

    schema: ShreddingSchema | None = None
    told_apart: frozenset[Path] = NO_PATHS
    has_nulls: bool = True


UNKNOWN = ColumnLayout()

FileLayout = tuple[ColumnLayout, ...]
"""A file's layout: that of each Variant column, in the table's order."""


def variant_columns(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the physical names of the top-level VARIANT columns."""
    return tuple(
        item.physical_name
        for item in snapshot.schema.fields
        if isinstance(item.type, VariantType) and item.name not in snapshot.partition_columns
    )


def layouts_of(snapshot: Snapshot, files: LogFiles, rows: Int64s) -> list[FileLayout]:
    """Return the layouts of these files; reads the footers of files whose layout is not in the log.

    A file that cannot be read has unknown layouts; reading its rows raises the error.
    """
    found = logged_layouts(snapshot, files, rows)
    lacking = [place for place, layout in enumerate(found) if UNKNOWN in layout]
    if lacking:
        unknown = files.files(rows[lacking])
        with ThreadPoolExecutor(min(_THREADS, len(lacking))) as pool:
            read = pool.map(lambda file: _of_footer(snapshot, file), unknown)
            for place, layout in zip(lacking, read, strict=True):
                found[place] = layout
    return found


def logged_layouts(snapshot: Snapshot, files: LogFiles, rows: Int64s) -> list[FileLayout]:
    """Return the layouts of these files from the log alone, UNKNOWN where it has none."""
    columns = [_of_log(snapshot, files, name, rows) for name in variant_columns(snapshot)]
    return list(zip(*columns, strict=True)) if columns else [()] * len(rows)


def _of_log(snapshot: Snapshot, files: LogFiles, name: str, rows: Int64s) -> list[ColumnLayout]:
    facts = files.of_log.variant((name,))
    if facts is None:
        return [UNKNOWN] * len(rows)
    usable = [
        None if legacy or other else schema
        for schema, legacy, other in zip(facts.schemas, facts.legacy, facts.others, strict=True)
    ]
    codes, nulls = facts.layout[rows].tolist(), (facts.nulls[rows] != 0).tolist()
    tags: Any = snapshot.files.take(rows)["tags"]
    key = f"{PREFIX}values.{column_name((name,))}"
    notes = map_values(tags, key).to_pylist()
    told = list(zip(codes, notes, nulls, strict=True))
    made = {
        each: UNKNOWN if each[0] < 0 else _shared(usable[each[0]], _told_apart(each[1]), each[2])
        for each in set(told)
    }
    return [made[each] for each in told]


@lru_cache(maxsize=1024)
def _told_apart(text: str | None) -> frozenset[Path]:
    notes = parse_notes(text)
    return NO_PATHS if notes is None else notes.told_apart


@lru_cache(maxsize=1024)
def _shared(
    schema: ShreddingSchema | None,
    told: frozenset[Path],
    has_nulls: bool,
) -> ColumnLayout:
    """Return one object for equal layouts, because they are compared by the thousand."""
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
    """Return the layout of files that join these ones.

    Returns the paths that are told apart by column, and the columns without NULL.
    """
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


class Targets:
    """Chooses the layouts of new files. `common` is the layout for files that join several.

    For each column this is the table's schema, else the one that most bytes of these files have.
    """

    def __init__(
        self, snapshot: Snapshot, layouts: Sequence[FileLayout], sizes: Sequence[int]
    ) -> None:
        self._enabled = snapshot.shredding_enabled
        known = shredding_schemas(snapshot.properties, snapshot.schema)
        self.common = tuple(
            known.get(name) or self._most([layout[place].schema for layout in layouts], sizes)
            for place, name in enumerate(variant_columns(snapshot))
        )
        self._by_columns: dict[tuple[ShreddingSchema | None, ...], tuple[ShreddingSchema, ...]] = {}

    def of(self, layout: FileLayout) -> tuple[ShreddingSchema, ...]:
        """Return the new layout for files of this one: the same where that may be written."""
        own = tuple(each.schema for each in layout)
        if own not in self._by_columns:
            self._by_columns[own] = tuple(
                schema if schema is not None and self._may_write(schema) else common
                for schema, common in zip(own, self.common, strict=True)
            )
        return self._by_columns[own]

    def _may_write(self, schema: ShreddingSchema) -> bool:
        if schema == UNSHREDDED:
            return True
        if not self._enabled:
            return False
        try:
            check_writable(schema)
        except InvalidSchema:
            return False
        return True

    def _most(
        self, schemas: Sequence[ShreddingSchema | None], sizes: Sequence[int]
    ) -> ShreddingSchema:
        weights: dict[int, int] = {}  # by object id, because hashing a schema walks all of it
        for schema, size in zip(schemas, sizes, strict=True):
            weights[id(schema)] = weights.get(id(schema), 0) + size
        each = {id(schema): schema for schema in schemas if schema is not None}
        found = [schema for schema in each.values() if self._may_write(schema)]
        return max(found, key=lambda schema: weights[id(schema)], default=UNSHREDDED)
