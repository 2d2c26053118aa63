"""Footers of data files, read once and remembered: what the log does not tell of their layout.

Never committed on a read (EXACTNESS, rule 9).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from variantlake.delta.schema import ArrayType, DataType, MapType, StructType
from variantlake.delta.snapshot import Snapshot
from variantlake.delta.store import is_local
from variantlake.errors import VariantLakeError
from variantlake.parquet.fact_columns import RecordColumns
from variantlake.parquet.facts import FileFacts, facts_of, row_group_facts
from variantlake.parquet.footer import Footer, read_footer
from variantlake.parquet.schema_tree import SchemaNode
from variantlake.planning.explain import RowGroups, count_row_groups
from variantlake.planning.files import ScanFile
from variantlake.planning.log_files import LogFiles
from variantlake.planning.plan import ScanPlan
from variantlake.planning.predicates import And, Ref
from variantlake.planning.skipping import Skipper
from variantlake.shredding.schema import ShreddingSchema

_THREADS = 16


class Footers:
    """Remembers what footers of foreign files say; one for all tables."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, int], FileFacts | None] = {}
        self._layouts: dict[ShreddingSchema, ShreddingSchema] = {}

    def with_facts(self, snapshot: Snapshot, files: LogFiles, paths: Iterable[Ref]) -> LogFiles:
        """The files of a snapshot; of those whose layout the log does not tell, footers are read.

        Only when a path is asked, and once for each file. What cannot be read stays unknown here:
        whoever scans it will say why.
        """
        lacking = files.lacking({ref.column for ref in paths if ref.path is not None})
        if not len(lacking) or not is_local(snapshot.store.uri):
            return files
        unknown = list(files.files(lacking))
        missing = [file for file in unknown if _key(file) not in self._known]
        if missing:
            with ThreadPoolExecutor(min(_THREADS, len(missing))) as pool:
                found = pool.map(lambda file: _facts(snapshot, file), missing)
                for file, facts in zip(missing, found, strict=True):
                    self._known[_key(file)] = facts and self._shared(facts)
        known = [self._known.get(_key(file)) for file in unknown]
        return files.with_facts(lacking, RecordColumns(known)) if any(known) else files

    def _shared(self, facts: FileFacts) -> FileFacts:
        """The same facts with one object for each layout: planning decides once for each object."""
        variants = tuple(
            replace(variant, schema=self._layouts.setdefault(variant.schema, variant.schema))
            for variant in facts.variants
        )
        return replace(facts, variants=variants)


def row_groups(
    snapshot: Snapshot, plan: ScanPlan, partition_types: Mapping[str, str]
) -> RowGroups | None:
    """Row groups of the files that are read, by their footers; None if one cannot be read."""
    if not is_local(snapshot.store.uri):
        return None
    files = list(plan.files)
    if not files:
        return RowGroups(0, 0)
    with ThreadPoolExecutor(min(_THREADS, len(files))) as pool:
        found = list(pool.map(lambda file: _row_group_facts(snapshot, file), files))
    skipper = Skipper(And(plan.conjuncts), partition_types)
    known = [(file, groups) for file, groups in zip(files, found, strict=True) if groups]
    return count_row_groups(skipper, known) if len(known) == len(files) else None


def _key(file: ScanFile) -> tuple[str, int, int]:
    return file.path, file.size, file.modified


def _facts(snapshot: Snapshot, file: ScanFile) -> FileFacts | None:
    try:
        footer = read_footer(file.path)
        if not has_stored_names(snapshot, footer):
            return None
        return facts_of(footer, file.size, snapshot.schema.variant_columns(physical=True))
    except (VariantLakeError, OSError):
        return None


def _row_group_facts(snapshot: Snapshot, file: ScanFile) -> tuple[FileFacts, ...]:
    try:
        footer = read_footer(file.path)
        if not has_stored_names(snapshot, footer):
            return ()
        return row_group_facts(footer, snapshot.schema.variant_columns(physical=True))
    except (VariantLakeError, OSError):
        return ()


def has_stored_names(snapshot: Snapshot, footer: Footer) -> bool:
    """Whether the file's columns, and fields of them, have the physical names of the schema.

    Column mapping by id finds columns by their field ids: a file may then call them anything.
    """
    if snapshot.properties.get("delta.columnMapping.mode", "").lower() != "id":
        return True
    return _have_names(snapshot.schema, footer.schema.children)


def _have_names(columns: StructType, nodes: Sequence[SchemaNode]) -> bool:
    known = {field.physical_name: field for field in columns.fields}
    for node in nodes:
        field = known.get(node.name)
        if field is None or field.metadata.get("delta.columnMapping.id") != node.field_id:
            return False
        if not _has_names_inside(field.type, node):
            return False
    return True


def _has_names_inside(type_: DataType, node: SchemaNode) -> bool:
    if isinstance(type_, StructType):
        return _have_names(type_, node.children)
    parts = [part for level in node.children for part in level.children]
    if isinstance(type_, ArrayType):
        return len(parts) == 1 and _has_names_inside(type_.element, parts[0])
    if isinstance(type_, MapType):
        inner = (type_.key, type_.value)
        return len(parts) == len(inner) and all(map(_has_names_inside, inner, parts))
    return True
