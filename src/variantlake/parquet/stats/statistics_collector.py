"""Collect counts and bounds from the rows while they are written, beyond those of the footer.

A footer cannot tell Variant nulls from other residuals if both occur, does not count objects or
tell of NaN and -0.0, and has no bounds for long strings (pyarrow's limit is 4,096 bytes).
Collecting them costs a few vector operations per batch; bounds are computed only for batches with a
long string.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, repeat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import numpy_array
from variantlake.kernels.tape.arrow_arrays import slots_of
from variantlake.parquet.metadata.annotate import ColumnPath
from variantlake.parquet.stats.bounds import Bounds
from variantlake.parquet.stats.cut_bounds import cut_maximum, cut_minimum
from variantlake.parquet.stats.facts import (
    MAX_INSIDE,
    ColumnFacts,
    Facts,
    FileFacts,
    PathFacts,
    VariantFacts,
)
from variantlake.shredding.arrays import AnyArray, element_field, elements_of, parts_of
from variantlake.shredding.layout import TYPED_VALUE, VALUE, is_text, struct_storage
from variantlake.shredding.schema import Array, Leaf, Node, Object, ShreddingSchema
from variantlake.types import NULL_VALUE

MAX_BOUND_LENGTH = 1024
"""Characters (for binary: bytes) to which we truncate bounds of batches with long values."""


class LeafCollector:
    """Collects the facts about one column or `typed_value` that its footer lacks."""

    def __init__(self, kind: pa.DataType) -> None:
        self.nulls = 0
        self._is_float = pa.types.is_floating(kind)
        self._is_text = is_text(kind)
        self._has_nan = False
        self._has_negative_zero = False
        self._long: Bounds | None = None

    def add(self, array: AnyArray) -> None:
        """Add a batch, which must be null wherever a struct above is null."""
        self.nulls += array.null_count
        if self._is_float:
            self._add_floats(array)
        elif self._is_text and _longest(array) > MAX_BOUND_LENGTH:
            bounds = _text_bounds(array)
            self._long = bounds if self._long is None else self._long.merge(bounds)

    def _add_floats(self, array: AnyArray) -> None:
        values = numpy_array(array.drop_null())
        self._has_nan = self._has_nan or bool(np.isnan(values).any())
        zeros = values[values == 0]
        self._has_negative_zero = self._has_negative_zero or bool(np.signbit(zeros).any())

    @property
    def plain_floats(self) -> bool:
        """Whether the values are floats, and none is NaN or -0.0."""
        return self._is_float and not (self._has_nan or self._has_negative_zero)

    @property
    def has_long_text(self) -> bool:
        """Whether a value was longer than MAX_BOUND_LENGTH bytes: the footer may lack its bound."""
        return self._long is not None

    def refine(self, facts: Facts, groups: Sequence[Facts]) -> Facts:
        """Refine the footer's facts with the collected bounds and flags.

        `groups` are the same facts of each row group, needed only if `has_long_text`.
        """
        bounds = facts.bounds
        if self._long is not None:
            bounds = bounds.filled(_enclosing(self._long, groups))
        if self._has_nan:
            # Spark orders NaN above all numbers, so the footer's maximum is not one.
            bounds = replace(bounds, maximum=None, maximum_exact=False)
        return replace(facts, bounds=bounds, plain_floats=self.plain_floats)


class NodeCollector:
    """Collects facts about one node of a shredding schema, and about the nodes below it.

    `inside` arrays it counts elements and collects no bounds. `kind` is the type of the group that
    holds its `value` and `typed_value`.
    """

    def __init__(self, node: Node, kind: pa.DataType, *, inside: bool = False) -> None:
        self._leaf = None
        if isinstance(node, Leaf) and not inside:
            self._leaf = LeafCollector(node.type.arrow)
        self._typed = 0
        self._nulls = 0
        self.residuals = 0
        group = struct_storage(kind)
        self._value, self._typed_value = map(group.get_field_index, (VALUE, TYPED_VALUE))
        self._fields: list[tuple[int, NodeCollector]] = []
        self._element: NodeCollector | None = None
        if isinstance(node, Object):
            typed = struct_storage(group.field(self._typed_value).type)
            for name, child in node.fields:
                place = typed.get_field_index(name)
                collector = NodeCollector(child, typed.field(place).type, inside=inside)
                self._fields.append((place, collector))
        elif isinstance(node, Array):
            element = element_field(group.field(self._typed_value).type).type
            self._element = NodeCollector(node.element, element, inside=True)

    def add(self, group: AnyArray) -> None:
        """Add a batch of the group that holds `value` and `typed_value`."""
        parts = parts_of(group)
        if self._value >= 0:
            self._add_residuals(parts[self._value])
        if self._typed_value >= 0:
            typed = parts[self._typed_value]
            self._typed += len(typed) - typed.null_count
            if self._leaf is not None:
                self._leaf.add(typed)
            elif self._element is not None:
                self._element.add(elements_of(typed))
            elif self._fields:
                fields = parts_of(typed)
                for place, collector in self._fields:
                    collector.add(fields[place])

    def _add_residuals(self, value: AnyArray) -> None:
        present = len(value) - value.null_count
        if present:
            equal: pa.BooleanArray = pc.equal(value, pa.scalar(NULL_VALUE, value.type))
            nulls = equal.true_count
            self._nulls += nulls
            self.residuals += present - nulls

    @property
    def has_long_text(self) -> bool:
        """See LeafCollector."""
        return self._leaf is not None and self._leaf.has_long_text

    def refine(self, facts: PathFacts, groups: Sequence[PathFacts]) -> PathFacts:
        """Refine the footer's facts about this node; `groups` as for LeafCollector."""
        counted = replace(
            facts,
            typed=self._typed,
            nulls=self._nulls,
            residuals=self.residuals,
            clean_inside=self._clean_inside(),
        )
        return counted if self._leaf is None else self._leaf.refine(counted, groups)

    def _clean_inside(self) -> int:
        """See PathFacts."""
        inside = (
            () if self._element is None else islice(self._element.walk(arrays=True), MAX_INSIDE)
        )
        return sum((each.residuals == 0) << number for number, each in enumerate(inside))

    def walk(self, *, arrays: bool = False) -> Iterator[NodeCollector]:
        """Yield this node and those below it, in the order of `ShreddingSchema.nodes()`.

        With `arrays`, also the nodes inside arrays, in the order of `Array.inside()`.
        """
        yield self
        for _, child in self._fields:
            yield from child.walk(arrays=arrays)
        if arrays and self._element is not None:
            yield from self._element.walk(arrays=True)


class VariantCollector:
    """Collects facts about one Variant column outside arrays and maps; `kind` is its type."""

    def __init__(self, schema: ShreddingSchema, kind: pa.DataType) -> None:
        self._nulls = 0
        self._root = NodeCollector(schema.root, kind)

    def add(self, group: AnyArray) -> None:
        """Add a batch of the column."""
        self._nulls += group.null_count
        self._root.add(group)

    @property
    def has_long_text(self) -> bool:
        """Whether a path has one; see LeafCollector."""
        return any(collector.has_long_text for collector in self._root.walk())

    def refine(self, facts: VariantFacts, groups: Sequence[VariantFacts]) -> VariantFacts:
        """Refine the footer's facts about the column; `groups` as for LeafCollector."""
        of_paths = zip(*(group.paths for group in groups), strict=True) if groups else repeat(())
        paths = tuple(
            collector.refine(path, in_groups)
            for collector, path, in_groups in zip(self._root.walk(), facts.paths, of_paths)  # noqa: B905 - without end
        )
        return replace(facts, nulls=self._nulls, paths=paths)


class StatisticsCollector:
    """Collects facts about all columns of a file; `variants` are the Variant columns' schemas."""

    def __init__(self, schema: pa.Schema, variants: Mapping[ColumnPath, ShreddingSchema]) -> None:
        self._variants: dict[ColumnPath, VariantCollector] = {}
        self._columns: dict[ColumnPath, LeafCollector] = {}
        for path, kind in _columns_of(schema, variants):
            if path in variants:
                self._variants[path] = VariantCollector(variants[path], kind)
            else:
                self._columns[path] = LeafCollector(kind)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch of rows."""
        stack: list[tuple[ColumnPath, AnyArray]] = [
            ((name,), batch.column(name)) for name in batch.schema.names
        ]
        while stack:
            path, array = stack.pop()
            if path in self._variants:
                self._variants[path].add(array)
            elif path in self._columns:
                self._columns[path].add(array)
            else:
                stack.extend(((*path, n), child) for n, child in children_of(array).items())

    @property
    def has_long_text(self) -> bool:
        """Whether `refine` needs the facts of each row group."""
        collectors: list[VariantCollector | LeafCollector] = [
            *self._variants.values(),
            *self._columns.values(),
        ]
        return any(collector.has_long_text for collector in collectors)

    def refine(self, facts: FileFacts, groups: Sequence[FileFacts] = ()) -> FileFacts:
        """Refine the facts of the file's footer with the collected ones.

        `groups` are the facts of each row group, needed only if `has_long_text`.
        """
        return replace(
            facts,
            variants=tuple(
                self._variants[variant.column].refine(variant, [g.variants[i] for g in groups])
                for i, variant in enumerate(facts.variants)
            ),
            columns=tuple(
                self._refine_column(column, [group.columns[i] for group in groups])
                for i, column in enumerate(facts.columns)
            ),
        )

    def _refine_column(self, facts: ColumnFacts, groups: Sequence[ColumnFacts]) -> ColumnFacts:
        collector = self._columns[facts.column]
        return collector.refine(replace(facts, nulls=collector.nulls), groups)


def _columns_of(
    schema: pa.Schema, variants: Container[ColumnPath]
) -> Iterator[tuple[ColumnPath, pa.DataType]]:
    """Yield Variant columns, leaves of structs, and whole lists and maps, with their types."""
    stack: list[tuple[ColumnPath, pa.DataType]] = [((field.name,), field.type) for field in schema]
    while stack:
        path, kind = stack.pop()
        if path in variants or not pa.types.is_struct(kind):
            yield path, kind
        else:
            stack.extend(((*path, field.name), field.type) for field in struct_storage(kind))


def children_of(array: AnyArray) -> dict[str, AnyArray]:
    """Return the children of a struct array, null wherever the struct is null."""
    names = [field.name for field in struct_storage(array.type)]
    return dict(zip(names, parts_of(array), strict=True))


def _longest(array: AnyArray) -> int:
    """Return the bytes of the longest value; 0 if there is none."""
    if array.null_count == len(array):
        return 0
    _, ends = slots_of(array)
    return int(np.subtract(ends[1:], ends[:-1]).max())


def _enclosing(long: Bounds, groups: Sequence[PathFacts | ColumnFacts]) -> Bounds:
    """Merge the bounds of row groups with those of the batches with a long value.

    The footer of a row group lacks only a bound that is long, and `long` includes that value.
    """
    for group in groups:
        long = long.merge(group.bounds.filled(long))
    return long


def _text_bounds(array: AnyArray) -> Bounds:
    extremes = pc.min_max(array)
    low, high = extremes["min"].as_py(), extremes["max"].as_py()
    return Bounds(
        cut_minimum(low, MAX_BOUND_LENGTH),
        cut_maximum(high, MAX_BOUND_LENGTH),
        minimum_exact=len(low) <= MAX_BOUND_LENGTH,
        maximum_exact=len(high) <= MAX_BOUND_LENGTH,
    )
