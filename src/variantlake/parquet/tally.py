"""What only the writer sees: counts and bounds taken from the rows while they pass.

A footer cannot tell Variant nulls from other residuals where both occur, counts no objects, says
nothing of NaN and -0.0, and has no bounds for long strings. All of it costs a few vector operations
a batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.parquet.annotate import ColumnPath
from variantlake.parquet.arrow_types import AnyArray
from variantlake.parquet.bounds import Bounds
from variantlake.parquet.facts import ColumnFacts, FileFacts, PathFacts, VariantFacts
from variantlake.shredding.layout import (
    TYPED_VALUE,
    VALUE,
    schema_of,
    struct_storage,
)
from variantlake.shredding.schema import Leaf, Node, Object, ShreddingSchema
from variantlake.types import NULL_VALUE

MAX_BOUND_LENGTH = 1024
"""Characters (for binary: bytes) that we keep of a bound too long for the footer."""

_MAX_CODE_POINT = 0x10FFFF


class LeafTally:
    """Values of one column or `typed_value`, and what a footer does not tell about them."""

    def __init__(self, kind: pa.DataType) -> None:
        self.nulls = 0
        self._is_float = pa.types.is_floating(kind)
        self._has_nan = False
        self._has_negative_zero = False
        self._bounds: Bounds | None = None

    def add(self, array: AnyArray) -> None:
        """Count a batch; nulls of the structs above must be in its validity."""
        self.nulls += array.null_count
        if self._is_float:
            self._add_floats(array)
        elif is_text(array.type) and array.null_count < len(array):
            bounds = _text_bounds(array)
            self._bounds = bounds if self._bounds is None else self._bounds.merge(bounds)

    def _add_floats(self, array: AnyArray) -> None:
        values = array.drop_null().to_numpy(zero_copy_only=False)
        self._has_nan = self._has_nan or bool(np.isnan(values).any())
        zeros = values[values == 0]
        self._has_negative_zero = self._has_negative_zero or bool(np.signbit(zeros).any())

    @property
    def plain_floats(self) -> bool:
        """Whether these are floats of which none is NaN or -0.0."""
        return self._is_float and not (self._has_nan or self._has_negative_zero)

    def improve(self, facts: Facts) -> Facts:
        """The footer's facts with the bounds and flags that are known better here."""
        minimum, minimum_exact = facts.minimum, facts.minimum_exact
        maximum, maximum_exact = facts.maximum, facts.maximum_exact
        if self._bounds is not None and minimum is None:
            minimum, minimum_exact = self._bounds.minimum, self._bounds.minimum_exact
        if self._bounds is not None and maximum is None:
            maximum, maximum_exact = self._bounds.maximum, self._bounds.maximum_exact
        if self._has_nan:
            # Spark orders NaN above all numbers, so what the footer gives is no maximum.
            maximum, maximum_exact = None, False
        return replace(
            facts,
            minimum=minimum,
            maximum=maximum,
            minimum_exact=minimum_exact,
            maximum_exact=maximum_exact,
            plain_floats=self.plain_floats,
        )


Facts = TypeVar("Facts", PathFacts, ColumnFacts)


class NodeTally:
    """One node of a shredding schema outside of arrays."""

    def __init__(self, node: Node) -> None:
        self._leaf = LeafTally(node.type.arrow) if isinstance(node, Leaf) else None
        self._typed = 0
        self._nulls = 0
        self._residuals = 0
        self._fields = (
            {name: NodeTally(child) for name, child in node.fields}
            if isinstance(node, Object)
            else {}
        )

    def add(self, group: AnyArray) -> None:
        """Count a batch of the group that holds `value` and `typed_value`."""
        members = children_of(group)
        if VALUE in members:
            value = members[VALUE]
            equal: pa.BooleanArray = pc.equal(value, pa.scalar(NULL_VALUE, value.type))
            nulls = equal.true_count
            self._nulls += nulls
            self._residuals += len(value) - value.null_count - nulls
        if TYPED_VALUE in members:
            typed = members[TYPED_VALUE]
            self._typed += len(typed) - typed.null_count
            if self._leaf is not None:
                self._leaf.add(typed)
            elif self._fields:
                fields = children_of(typed)
                for name, tally in self._fields.items():
                    tally.add(fields[name])

    def improve(self, facts: PathFacts) -> PathFacts:
        """The facts of this node with the counts taken here."""
        counted = replace(facts, typed=self._typed, nulls=self._nulls, residuals=self._residuals)
        return counted if self._leaf is None else self._leaf.improve(counted)

    def walk(self) -> Iterator[NodeTally]:
        """This node and those below it, in the order of `ShreddingSchema.nodes()`."""
        yield self
        for child in self._fields.values():
            yield from child.walk()


class VariantTally:
    """One Variant column outside of arrays and maps."""

    def __init__(self, schema: ShreddingSchema) -> None:
        self._nulls = 0
        self._root = NodeTally(schema.root)

    def add(self, group: AnyArray) -> None:
        """Count a batch of the column."""
        self._nulls += group.null_count
        self._root.add(group)

    def improve(self, facts: VariantFacts) -> VariantFacts:
        """The footer's facts of the column with the counts taken here."""
        tallies = self._root.walk()
        paths = tuple(tally.improve(path) for tally, path in zip(tallies, facts.paths, strict=True))
        return replace(facts, nulls=self._nulls, paths=paths)


class FileTally:
    """All columns of a file: Variant columns at `variants`, the rest as ordinary ones."""

    def __init__(self, schema: pa.Schema, variants: frozenset[ColumnPath]) -> None:
        self._variants: dict[ColumnPath, VariantTally] = {}
        self._columns: dict[ColumnPath, LeafTally] = {}
        for path, kind in _columns_of(schema, variants):
            if path in variants:
                self._variants[path] = VariantTally(schema_of(kind))
            else:
                self._columns[path] = LeafTally(kind)

    def add(self, batch: pa.RecordBatch) -> None:
        """Count a batch of rows."""
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

    def improve(self, facts: FileFacts) -> FileFacts:
        """The facts of the file's footer with all that is known better here."""
        return replace(
            facts,
            variants=tuple(self._variants[v.column].improve(v) for v in facts.variants),
            columns=tuple(self._improve_column(column) for column in facts.columns),
        )

    def _improve_column(self, facts: ColumnFacts) -> ColumnFacts:
        tally = self._columns[facts.column]
        return tally.improve(replace(facts, nulls=tally.nulls))


def _columns_of(
    schema: pa.Schema, variants: frozenset[ColumnPath]
) -> Iterator[tuple[ColumnPath, pa.DataType]]:
    """Variant columns, leaves of structs, and whole lists and maps."""
    stack: list[tuple[ColumnPath, pa.DataType]] = [((field.name,), field.type) for field in schema]
    while stack:
        path, kind = stack.pop()
        if path in variants or not pa.types.is_struct(kind):
            yield path, kind
        else:
            stack.extend(((*path, field.name), field.type) for field in struct_storage(kind))


def children_of(array: AnyArray) -> dict[str, AnyArray]:
    """The children of a struct array, null wherever the struct itself is null."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if not isinstance(array, pa.StructArray):
        raise TypeError(f"{array.type} has no children")
    names = [field.name for field in struct_storage(array.type)]
    return dict(zip(names, array.flatten(), strict=True))


def is_text(kind: pa.DataType) -> bool:
    """Whether values are strings or bytes of any length."""
    return (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


Text = TypeVar("Text", str, bytes)


def _text_bounds(array: AnyArray) -> Bounds:
    extremes = pc.min_max(array)
    minimum, minimum_exact = cut_minimum(extremes["min"].as_py())
    maximum, maximum_exact = cut_maximum(extremes["max"].as_py())
    return Bounds(minimum, maximum, minimum_exact, maximum_exact)


def cut_minimum(text: Text, length: int = MAX_BOUND_LENGTH) -> tuple[Text, bool]:
    """A lower bound of at most `length` characters, and whether it is the text itself."""
    return text[:length], len(text) <= length


def cut_maximum(text: Text, length: int = MAX_BOUND_LENGTH) -> tuple[Text | None, bool]:
    """An upper bound of at most `length` characters, and whether it is the text itself.

    A cut text is followed by every text that starts with it, so its last character that can be
    counted up is; None when there is none.
    """
    if len(text) <= length:
        return text, True
    if isinstance(text, bytes):
        kept = text[:length].rstrip(b"\xff")
        return (kept[:-1] + bytes([kept[-1] + 1]) if kept else None), False
    kept = text[:length].rstrip(chr(_MAX_CODE_POINT))
    if not kept:
        return None, False
    following = ord(kept[-1]) + 1
    # Surrogates are no characters of their own.
    return kept[:-1] + chr(0xE000 if following == 0xD800 else following), False
