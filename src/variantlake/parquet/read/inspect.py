"""Describe a file's Variant columns: types, shares, sizes and bounds of every node, and reasons.

Nearly all of it comes from the footer. Rows with an object or an array are counted from the
definition levels of one column in it; the reasons for a layout come from a sample of rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from variantlake.encoding.json_text import to_json
from variantlake.encoding.scalar import encode_scalar
from variantlake.errors import InvalidPath
from variantlake.kernels.variant.profiler import profile
from variantlake.kernels.variant.variant_reader import VariantReader
from variantlake.parquet.metadata.footer import Footer, read_footer
from variantlake.parquet.read.parquet_source import BATCH_ROWS
from variantlake.parquet.read.reader import (
    columns_of_variants,
    iter_batches,
    named_groups,
)
from variantlake.parquet.read.single_paths import count_typed
from variantlake.parquet.stats.bounds import Raw
from variantlake.parquet.stats.facts import UNKNOWN, PathFacts, facts_of
from variantlake.parquet.variant.variant_group import GroupNode, VariantGroup, variant_groups
from variantlake.paths import Path
from variantlake.progress import OnProgress
from variantlake.shredding.arrays import struct_of
from variantlake.shredding.ddl import format_ddl
from variantlake.shredding.fit import encoded_type, scalar_of
from variantlake.shredding.inference.infer import Inference, InferenceOptions, infer
from variantlake.shredding.inference.profile import Profile
from variantlake.shredding.layout import VARIANT_TYPE
from variantlake.shredding.schema import Array, Leaf, Object, type_name
from variantlake.shredding.values import ValueNotes
from variantlake.storage.opening import Source, name_of
from variantlake.storage.options import reach_with
from variantlake.types import EMPTY_METADATA, Kind, ShreddedType

SAMPLE_ROWS = 10_000
"""The first rows, which `why` reads."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of one column over all row groups."""

    compressed: int
    uncompressed: int


@dataclass(frozen=True, slots=True)
class NodeView:
    """One node of a Variant column.

    `path` has the step 0 for the elements of an array. `type` is the name in DDL (`BIGINT`,
    `STRUCT`, `ARRAY`, `VARIANT` for a node without typed_value), `parquet_type` the exact stored
    type of a primitive. `typed`, `nulls` and `residuals` count rows whose typed_value is set, whose
    `value` is a Variant null, and whose `value` is anything else; None if unknown, and inside
    arrays. `share` is `typed` divided by the rows of the file. `minimum` and `maximum` are the
    bounds as JSON, empty if there are none. Sizes are None for columns that the file does not have.
    """

    path: Path
    type: str
    parquet_type: str
    typed: int | None
    nulls: int | None
    residuals: int | None
    share: float | None
    minimum: str
    maximum: str
    value_size: Sizes | None
    typed_value_size: Sizes | None
    children: tuple[NodeView, ...]

    def walk(self) -> Iterator[NodeView]:
        """This node and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class VariantView:
    """One Variant column.

    `nulls` counts SQL NULLs, None if unknown or inside arrays. `notes` describe its values, None
    if the file does not show what its residuals hold. A `legacy` column has Spark's older layout:
    it has no metadata, `value` means its `untyped_value`s, and Variant nulls count as residuals.
    """

    column: tuple[str, ...]
    annotated: bool
    ddl: str
    nulls: int | None
    metadata_size: Sizes
    root: NodeView
    legacy: bool = False
    notes: ValueNotes | None = None


@dataclass(frozen=True, slots=True)
class FileView:
    """The description of a file, which `inspect` prints."""

    num_rows: int
    row_groups: int
    created_by: str
    variants: tuple[VariantView, ...]


def inspect_file(
    path: Source,
    *,
    variant_columns: Collection[str] = (),
    progress: OnProgress | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> FileView:
    """Describe the Variant columns of a file.

    `variant_columns` are dotted names of groups to read as Variants although the file does not mark
    them. For objects and arrays, one column of each is read. `progress` is called meanwhile, for
    each Variant column from the start, with the rows counted so far and the rows of the file.

    Raises MalformedFile, MissingSource, and InvalidPath for a group that the file does not have.
    """
    reach_with(path, storage_options)
    footer = read_footer(path)
    wanted = columns_of_variants(footer, named_groups(footer, variant_columns))
    facts = facts_of(footer, 0, wanted)
    views = []
    for group in variant_groups(footer, wanted):
        known = facts.variant(group.column)
        by_path = {} if known is None else {each.path: each for each in known.paths}
        by_path = _with_counted_groups(path, footer, group, by_path, progress)
        views.append(
            VariantView(
                group.column,
                group.annotated,
                format_ddl(group.schema),
                None if known is None else _or_none(known.nulls),
                Sizes(0, 0) if group.metadata is None else _size(footer, group.metadata),
                _node_view(footer, group.root, Path(), by_path),
                group.is_legacy,
                None if known is None else known.notes,
            )
        )
    return FileView(footer.num_rows, len(footer.row_groups), footer.created_by, tuple(views))


def why(
    path: Source,
    column: str,
    *,
    sample_rows: int = SAMPLE_ROWS,
    variant_columns: Collection[str] = (),
    inference: InferenceOptions | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Inference:
    """Infer a schema for a top-level Variant column, with the reason for every path.

    Args:
        path: A file name, a URL of an object store, or an open binary file.
        column: The name of the column.
        sample_rows: The first rows to infer from, 1 or more.
        variant_columns: Dotted names of groups to read as Variants although the file does not mark
            them.
        inference: Thresholds of the inference; None for the defaults.
        storage_options: How to reach the file's bucket, as for `Table.open`.

    Returns:
        The inferred schema, and for each path whether it becomes a column, with the reason.

    Raises:
        InvalidPath: A column that the file does not have, or that is not a Variant.
        InvalidValue: `sample_rows` below 1.
        MissingSource, MalformedFile: As `read_table`.
    """
    reach_with(path, storage_options)
    found, rows, reader = Profile(), 0, VariantReader()
    for batch in iter_batches(
        path, min(BATCH_ROWS, sample_rows), [column], variant_columns=variant_columns
    ):
        if batch.schema.field(0).type != VARIANT_TYPE:
            raise InvalidPath(
                f"column {column!r} is not a Variant",
                file=name_of(path),
                hint="`variant_columns` names one that nothing in the file marks",
                cli_hint="--variant names one that nothing in the file marks",
            )
        found.merge(profile(reader.read(struct_of(batch.column(0).slice(0, sample_rows - rows)))))
        rows += batch.num_rows
        if rows >= sample_rows:
            break
    return infer(found, inference)


def _with_counted_groups(
    path: Source,
    footer: Footer,
    group: VariantGroup,
    facts: dict[Path, PathFacts],
    progress: OnProgress | None,
) -> dict[Path, PathFacts]:
    """Add to the facts the number of rows with each object and array."""
    wanted = [
        p for p, node in group.nodes() if isinstance(node.node, Object | Array) and p in facts
    ]
    if group.is_legacy:
        return {p: _with_untyped_counts(footer, group, p, known) for p, known in facts.items()}
    if len(group.column) > 1 or not wanted:
        return facts
    counts = count_typed(path, footer, group, wanted, progress)
    return facts | {p: replace(facts[p], typed=counts[p]) for p in wanted}


def _with_untyped_counts(
    footer: Footer, group: VariantGroup, path: Path, facts: PathFacts
) -> PathFacts:
    """Count rows whose `untyped_value` at this path is set, Variant nulls too, as residuals."""
    node = group.find(path)
    if node is None or node.value is None:
        return replace(facts, nulls=UNKNOWN, residuals=0)
    chunks = [row_group.columns[node.value] for row_group in footer.row_groups]
    counts = [chunk.null_count for chunk in chunks]
    if None in counts:
        return facts
    rows = sum(chunk.num_values for chunk in chunks)
    return replace(facts, nulls=UNKNOWN, residuals=rows - sum(filter(None, counts)))


def _node_view(
    footer: Footer, node: GroupNode, path: Path, facts: dict[Path, PathFacts]
) -> NodeView:
    known = facts.get(path)
    typed = None if known is None else _or_none(known.typed)
    children = [_node_view(footer, child, path.child(n), facts) for n, child in node.fields]
    if node.element is not None:
        children.append(_node_view(footer, node.element, path.child(0), {}))
    children += [_node_view(footer, other, path, {}) for other in node.others]
    stored = node.node.type if isinstance(node.node, Leaf) else None
    return NodeView(
        path=path,
        type=type_name(node.node),
        parquet_type=node.parquet_type,
        typed=typed,
        nulls=None if known is None else _or_none(known.nulls),
        residuals=None if known is None else _or_none(known.residuals),
        share=None if typed is None or not footer.num_rows else typed / footer.num_rows,
        minimum="" if known is None else bound_text(stored, known.bounds.minimum),
        maximum="" if known is None else bound_text(stored, known.bounds.maximum),
        value_size=None if node.value is None else _size(footer, node.value),
        typed_value_size=None if node.typed_value is None else _size(footer, node.typed_value),
        children=tuple(children),
    )


def bound_text(stored: ShreddedType | None, raw: Raw | None) -> str:
    """Write a bound as JSON; empty without one."""
    if stored is None or raw is None:
        return ""
    is_uuid = stored.kind is Kind.UUID and isinstance(raw, bytes)
    scalar = scalar_of(
        uuid.UUID(bytes=raw) if is_uuid else raw,  # type: ignore[arg-type]  # bytes: is_uuid
        encoded_type(stored.arrow),
    )
    return to_json(EMPTY_METADATA, encode_scalar(scalar))


def _or_none(count: int) -> int | None:
    return None if count == UNKNOWN else count


def _size(footer: Footer, leaf: int) -> Sizes:
    chunks = [group.columns[leaf] for group in footer.row_groups]
    return Sizes(
        sum(chunk.compressed_size for chunk in chunks),
        sum(chunk.uncompressed_size for chunk in chunks),
    )
