"""The facts about one file, known without reading its rows: counts and bounds of columns and paths.

The same records come from a file's footer, from our writer (which knows more) and from the log, so
that planning need not know their source. Unknown is -1 (counts), None (bounds) or False (flags),
and always the safe side: planning keeps the file, and reads it natively.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeVar

import pyarrow as pa

from variantlake.errors import in_file
from variantlake.parquet.metadata.annotate import ColumnPath
from variantlake.parquet.metadata.arrow_types import arrow_type_of
from variantlake.parquet.metadata.column_chunks import ColumnChunk
from variantlake.parquet.metadata.footer import Footer, RowGroup, parse_footer, read_tail
from variantlake.parquet.metadata.old_times import OldTimes
from variantlake.parquet.metadata.schema_tree import SchemaNode
from variantlake.parquet.metadata.value_notes import SPARK_KEY
from variantlake.parquet.stats.bounds import UNBOUNDED, Bounds, decode_bounds
from variantlake.parquet.variant.variant_group import GroupNode, VariantGroup, variant_groups
from variantlake.paths import Path
from variantlake.shredding.schema import Leaf, Node, ShreddingSchema, Untyped
from variantlake.shredding.values import ValueNotes
from variantlake.storage.opening import Source, name_of
from variantlake.types import NULL_VALUE

UNKNOWN = -1
"""An unknown count."""

MAX_INSIDE = 48
"""The most nodes inside an array for which facts tell whether they are clean: the bits of a tag."""


@dataclass(frozen=True, slots=True)
class PathFacts:
    """The facts about one node of a Variant column's shredding schema, over all rows of the file.

    `typed` counts rows whose `typed_value` is set, `nulls` rows whose residual `value` at this node
    is the Variant null `00`, `residuals` rows with any other residual (for objects also partial
    ones); -1 if unknown. Nodes inside arrays have no PathFacts.

    `clean_inside` are bits, for arrays only: bit i is set if the residual `value` of node i of
    `Array.inside()` is known to be absent or a Variant null in all elements of all rows.

    `bounds` enclose the `typed_value`s of a primitive leaf, ordered by value for numbers (without
    NaN), by unsigned bytes for strings, binary and UUIDs; without values there are none. A float
    bound of zero is widened to [-0.0, +0.0].

    `plain_floats` is true if the leaf is FLOAT or DOUBLE and is known to hold neither NaN nor -0.0
    (EXACTNESS, rule 8).
    """

    path: Path
    node: Node
    typed: int = UNKNOWN
    nulls: int = UNKNOWN
    residuals: int = UNKNOWN
    bounds: Bounds = UNBOUNDED
    plain_floats: bool = False
    clean_inside: int = 0

    @property
    def clean(self) -> bool:
        """Whether every residual at this path is absent or a Variant null (EXACTNESS, rule 9)."""
        return self.residuals == 0 and self.nulls >= 0


@dataclass(frozen=True, slots=True)
class VariantSizes:
    """Compressed bytes of a Variant column's residuals and of its typed columns.

    Chunks without values do not count, nor does metadata.
    """

    residuals: int
    typed: int


@dataclass(frozen=True, slots=True)
class VariantFacts:
    """The facts about one Variant column: its shredding in this file, and the facts of each node.

    `column` is the column's path through structs, in the names of the file. `nulls` counts SQL
    NULLs, -1 if unknown. `paths` follow `ShreddingSchema.nodes()` one to one.

    `is_legacy`: the file has Spark's older layout. There a value may also be in the `untyped_value`
    of a group above it, so a path is clean only if those and its own are null in every row;
    otherwise its counts are unknown. `has_others`: the group has leaves that are not part of the
    Variant, at which Spark's Variant reader fails (EXACTNESS, rule 10). `notes` describe its
    values, None if there are none. `sizes` come from a footer.
    """

    column: tuple[str, ...]
    schema: ShreddingSchema
    nulls: int
    paths: tuple[PathFacts, ...]
    is_legacy: bool = False
    has_others: bool = False
    notes: ValueNotes | None = None
    sizes: VariantSizes | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """The facts about an ordinary column or a leaf of a struct; arrays and maps have no bounds.

    `nulls` counts rows without a value, also below a null struct; -1 if unknown. `bounds` and
    `plain_floats` as in PathFacts. `type` is the Arrow type that the file stores.
    """

    column: tuple[str, ...]
    type: pa.DataType
    nulls: int = UNKNOWN
    bounds: Bounds = UNBOUNDED
    plain_floats: bool = False


@dataclass(frozen=True, slots=True)
class FileFacts:
    """The facts about one data file, or one of its row groups. `size` is in bytes."""

    size: int
    num_records: int
    row_groups: int
    variants: tuple[VariantFacts, ...] = ()
    columns: tuple[ColumnFacts, ...] = ()

    def variant(self, column: tuple[str, ...]) -> VariantFacts | None:
        """Return the facts about this Variant column, None if there are none."""
        return next((facts for facts in self.variants if facts.column == column), None)

    def column(self, column: tuple[str, ...]) -> ColumnFacts | None:
        """Return the facts about this ordinary column, None if there are none."""
        return next((facts for facts in self.columns if facts.column == column), None)


Facts = TypeVar("Facts", PathFacts, ColumnFacts)


# --- From a footer --------------------------------------------------------------------------------


def read_facts(file: Source, columns: Collection[ColumnPath] = ()) -> FileFacts:
    """Read the facts of a Parquet file; `columns` as in `facts_of`. Raises as `read_footer`."""
    with in_file(name_of(file)):
        tail = read_tail(file)
        return facts_of(parse_footer(tail.footer, tail.offset), tail.size, columns)


def facts_of(
    footer: Footer,
    size: int,
    columns: Collection[ColumnPath] = (),
    paths: Collection[Path] | None = None,
) -> FileFacts:
    """Return the facts that a footer holds about a file of `size` bytes.

    `columns` names the Variant columns that the file does not mark. Variant columns inside arrays
    and maps have no facts. With `paths`, only these and the paths above them get facts, and there
    are no sizes: that saves decoding hundreds of others.

    Raises MalformedFile for a Variant group that breaks the specification.
    """
    return _Facts(footer, columns, paths).of(footer.row_groups, size)


def row_group_facts(
    footer: Footer,
    columns: Collection[ColumnPath] = (),
    paths: Collection[Path] | None = None,
) -> tuple[FileFacts, ...]:
    """Return the facts of each row group; their sizes are those of the compressed columns.

    `columns` and `paths` as in `facts_of`.
    """
    facts = _Facts(footer, columns, paths)
    return tuple(
        facts.of((group,), sum(chunk.compressed_size for chunk in group.columns))
        for group in footer.row_groups
    )


@dataclass(frozen=True, slots=True)
class _LeafFacts:
    """A leaf in some row groups: rows without and with a value (or UNKNOWN), and its bounds."""

    nulls: int
    present: int
    bounds: Bounds


class _Facts:
    """Makes the facts of any row groups of one footer."""

    def __init__(
        self, footer: Footer, columns: Collection[ColumnPath], paths: Collection[Path] | None
    ) -> None:
        self._wanted = (
            None
            if paths is None
            else {Path(path.steps[:n]) for path in paths for n in range(len(path.steps) + 1)}
        )
        groups = variant_groups(footer, columns)
        self._footer = footer
        self._variants = tuple(group for group in groups if not group.repeated)
        self._columns = tuple(_ordinary_columns(footer.schema, {g.column for g in groups}))
        # parquet-cpp never truncates bounds: it leaves long ones out.
        self._writer_is_exact = footer.created_by.startswith("parquet-cpp")
        self._julian = OldTimes.of(footer).julian

    def of(self, row_groups: Sequence[RowGroup], size: int) -> FileFacts:
        return FileFacts(
            size=size,
            num_records=sum(group.num_rows for group in row_groups),
            row_groups=len(row_groups),
            variants=tuple(self._variant(variant, row_groups) for variant in self._variants),
            columns=tuple(self._column(column, row_groups) for column in self._columns),
        )

    def _leaf(self, index: int, row_groups: Sequence[RowGroup]) -> _LeafFacts:
        leaf = self._footer.leaves[index]
        nulls = present = 0
        bounds: Bounds | None = None
        for group in row_groups:
            chunk = group.columns[index]
            if chunk.num_values != group.num_rows:
                return _LeafFacts(UNKNOWN, UNKNOWN, Bounds())
            null_count = 0 if leaf.max_definition == 0 else chunk.null_count
            if null_count is None:
                nulls = UNKNOWN
            elif nulls != UNKNOWN:
                nulls += null_count
                present += chunk.num_values - null_count
            if null_count != chunk.num_values:
                decoded = self._bounds(chunk, index)
                bounds = decoded if bounds is None else bounds.merge(decoded)
        return _LeafFacts(nulls, UNKNOWN if nulls == UNKNOWN else present, bounds or Bounds())

    def _bounds(self, chunk: ColumnChunk, index: int) -> Bounds:
        """Decode the bounds of a chunk; none for times whose calendar changes when read."""
        if index in self._julian:
            return Bounds()
        node = self._footer.leaves[index].node
        return decode_bounds(chunk, node, writer_is_exact=self._writer_is_exact)

    def _variant(self, variant: VariantGroup, row_groups: Sequence[RowGroup]) -> VariantFacts:
        if variant.metadata is None:
            return self._legacy(variant, row_groups)
        nulls = 0 if variant.required else self._leaf(variant.metadata, row_groups).nulls
        if nulls and self._footer.leaves[variant.metadata].node.repetition != "required":
            nulls = UNKNOWN  # metadata may be missing where the Variant is not
        wanted = self._wanted
        paths = tuple(
            self._path(path, node, row_groups)
            if wanted is None or path in wanted
            else PathFacts(path, node.node)
            for path, node in variant.nodes()
        )
        notes = variant.notes
        by_spark = any(key == SPARK_KEY for key, _ in self._footer.key_value_metadata)
        if notes is None and (
            by_spark or all(self._is_clean(node, row_groups) for node in variant.root.walk())
        ):
            notes = ValueNotes()
        return VariantFacts(
            variant.column,
            variant.schema,
            nulls,
            paths,
            has_others=variant.has_others,
            notes=notes,
            sizes=sizes_of(variant.root, row_groups) if wanted is None else None,
        )

    def _legacy(self, variant: VariantGroup, row_groups: Sequence[RowGroup]) -> VariantFacts:
        known: dict[Path, PathFacts] = {}
        for path, node in variant.nodes():
            above = known.get(path.parent) if path.steps else None
            is_clean = not node.others and (above is None or above.clean)
            if is_clean and node.value is not None:
                is_clean = self._leaf(node.value, row_groups).present == 0
            residuals = 0 if is_clean else UNKNOWN
            known[path] = self._path(path, node, row_groups, (residuals, residuals))
        # The count of SQL NULLs is unknown: a group with no member set is one too.
        return VariantFacts(
            variant.column, variant.schema, UNKNOWN, tuple(known.values()), is_legacy=True
        )

    def _path(
        self,
        path: Path,
        node: GroupNode,
        row_groups: Sequence[RowGroup],
        residuals: tuple[int, int] | None = None,
    ) -> PathFacts:
        nulls, others = residuals or self._residuals(node.value, row_groups)
        facts = PathFacts(path, node.node, nulls=nulls, residuals=others)
        if isinstance(node.node, Untyped):
            return replace(facts, typed=0)
        if residuals is None and node.element is not None:
            return replace(facts, clean_inside=self._clean_inside(node, row_groups))
        if not isinstance(node.node, Leaf) or node.typed_value is None:
            return facts
        typed = self._leaf(node.typed_value, row_groups)
        return replace(facts, bounds=typed.bounds, typed=typed.present)

    def _clean_inside(self, array: GroupNode, row_groups: Sequence[RowGroup]) -> int:
        """See PathFacts. In a repeated column, the nulls of a chunk include absent elements."""
        nodes = enumerate(islice(array.inside(), MAX_INSIDE))
        return sum(1 << number for number, node in nodes if self._is_clean(node, row_groups))

    def _is_clean(self, node: GroupNode, row_groups: Sequence[RowGroup]) -> bool:
        """Whether every residual of the node, without those below it, is a Variant null."""
        leaf = node.value
        return leaf is None or all(
            self._only_nulls(group.columns[leaf], leaf) for group in row_groups
        )

    def _only_nulls(self, chunk: ColumnChunk, leaf: int) -> bool:
        if chunk.null_count == chunk.num_values:
            return True
        bounds = self._bounds(chunk, leaf)
        return bounds.maximum == NULL_VALUE and chunk.max_exact is not False

    def _residuals(self, value: int | None, row_groups: Sequence[RowGroup]) -> tuple[int, int]:
        """Count rows with a Variant null, and rows with another residual; UNKNOWN if unclear.

        The single byte 00 is the smallest value: if the minimum is above it, no residual is a
        Variant null; if the maximum equals it, all are.
        """
        nulls = residuals = 0
        if value is None:
            return 0, 0
        for group in row_groups:
            leaf = self._leaf(value, (group,))
            low, high = leaf.bounds.minimum, leaf.bounds.maximum
            if leaf.present == UNKNOWN:
                return UNKNOWN, UNKNOWN
            if leaf.present == 0:
                continue
            if high == NULL_VALUE and group.columns[value].max_exact is not False:
                nulls += leaf.present
            elif isinstance(low, bytes) and low > NULL_VALUE:
                residuals += leaf.present
            else:
                return UNKNOWN, UNKNOWN
        return nulls, residuals

    def _column(self, column: _Column, row_groups: Sequence[RowGroup]) -> ColumnFacts:
        node = column.node
        if node.leaf is None or node.repetition == "repeated":
            return ColumnFacts(column.path, column.type, 0 if column.required else UNKNOWN)
        leaf = self._leaf(node.leaf, row_groups)
        return ColumnFacts(column.path, column.type, leaf.nulls, leaf.bounds)


def sizes_of(root: GroupNode, row_groups: Sequence[RowGroup]) -> VariantSizes:
    """Return the sizes of a Variant column (its `root`) in some row groups."""
    nodes = list(root.walk())
    return VariantSizes(
        sum(_bytes(node.value, row_groups) for node in nodes),
        sum(_bytes(node.typed_value, row_groups) for node in nodes),
    )


def _bytes(leaf: int | None, row_groups: Sequence[RowGroup]) -> int:
    if leaf is None:
        return 0
    chunks = (group.columns[leaf] for group in row_groups)
    return sum(each.compressed_size for each in chunks if each.null_count != each.num_values)


@dataclass(frozen=True, slots=True)
class _Column:
    """An ordinary column: a leaf outside arrays and maps, or a whole array or map."""

    path: ColumnPath
    node: SchemaNode
    type: pa.DataType
    required: bool


def _ordinary_columns(root: SchemaNode, variants: Collection[ColumnPath]) -> Iterator[_Column]:
    stack: list[tuple[SchemaNode, ColumnPath, bool]] = [
        (child, (child.name,), True) for child in reversed(root.children)
    ]
    while stack:
        node, path, required = stack.pop()
        if path in variants:
            continue
        required = required and node.repetition == "required"
        is_struct = node.is_group and node.logical is None and node.repetition != "repeated"
        if is_struct:
            stack.extend((c, (*path, c.name), required) for c in reversed(node.children))
        else:
            yield _Column(path, node, arrow_type_of(node), required)
