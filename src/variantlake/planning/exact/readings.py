"""Decide how to read one path of one file: from a physical column, as NULL, or natively.

A physical column is used only if the path is *clean* in the file (its own residual is absent or
a Variant null in every row: EXACTNESS, rule 9) and the conversion is in the exactness table. A path
that provably no row has is a typed NULL. Everything else, and everything unknown, is native: Spark
reads the Variant and calls `variant_get`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from variantlake.expressions.tree import PRESENCE, Ref
from variantlake.expressions.typing import spark_type
from variantlake.parquet.stats.bounds import Bounds
from variantlake.parquet.stats.fact_columns import (
    Bools,
    BoundColumns,
    FactColumns,
    Int64s,
    NodeCounts,
    VariantColumns,
)
from variantlake.parquet.stats.facts import MAX_INSIDE, UNKNOWN, FileFacts, PathFacts
from variantlake.paths import Path
from variantlake.planning.exact.exactness import Conversion, ConversionKind, conversion, values_fit
from variantlake.planning.exact.moved_literals import without_moved
from variantlake.shredding.folding import fold_key
from variantlake.shredding.layout import TYPED_VALUE
from variantlake.shredding.legacy.layout import OBJECT
from variantlake.shredding.schema import (
    Array,
    Leaf,
    Node,
    Object,
    ShreddingSchema,
    Untyped,
    subtree,
)
from variantlake.types import Kind, ShreddedType


@dataclass(frozen=True, slots=True)
class PhysicalColumn:
    """The path is the leaf `steps` below the Variant column, of the exact type `stored`.

    `steps` lead from the column down to the `typed_value`: names of fields of the physical structs,
    and for an array the index in it, which gives NULL beyond the end.
    `pushable` is false if a predicate on the bare column would lose rows: floats that may hold
    NaN or -0.0, which Parquet's statistics leave out (EXACTNESS, rule 8), and dates and instants
    if Spark pushes another literal than the query's (rule 39). Such a column needs a form that the
    engine does not push into the file.
    """

    steps: tuple[str | int, ...]
    stored: ShreddedType
    conversion: Conversion
    pushable: bool = True


@dataclass(frozen=True, slots=True)
class NullColumn:
    """No row of the file has a value at the path: a NULL of the requested type.

    `joinable` is true if the file's layout has nothing at the path's place, so that a scan that
    requests a physical column there also gets NULLs.
    """

    joinable: bool = False


@dataclass(frozen=True, slots=True)
class NullTest:
    """Test whether there is a Variant, by its metadata alone."""


@dataclass(frozen=True, slots=True)
class Native:
    """The engine's own Variant reader; `reason` tells users why."""

    reason: str


Reading = PhysicalColumn | NullColumn | NullTest | Native

NO_STATISTICS = "nothing is known about the file"
WHOLE_VARIANT = "the query needs the whole Variant"
NO_METADATA = "the older layout has no column that shows whether there is a Variant"
TWIN_KEY = "the layout has a key that differs only by case"
MIXED = "some rows hold a value of another type"
UNCHECKED = "it is unknown whether its column has all of its values"
IN_RESIDUAL = "the path is not a column in this file"
NOT_A_SCALAR = "the path is an object or an array in this file"


@dataclass(frozen=True, slots=True)
class LayoutPosition:
    """Where a path leads in a layout: the deepest node on its way.

    `index` is the node's place in `ShreddingSchema.nodes()`; `rest` are the steps beyond the node.
    `twin`: the next step is not a field, but differs from one only by case. `if_clean` is the
    reading of a clean path if the layout alone decides it.

    If the way leads into an array, `index` is that array's, and `node` is inside its elements.
    The path is then clean only if the array is, and the array's `clean_inside` has all bits of
    `inside`: the node's own, and those of arrays on the way.
    """

    index: int
    node: Node
    rest: tuple[str | int, ...]
    twin: bool
    inside: int = 0
    if_clean: PhysicalColumn | None = None

    @property
    def leaf(self) -> ShreddedType | None:
        """The type of the path's own typed column; None when it has none."""
        return self.node.type if not self.rest and isinstance(self.node, Leaf) else None

    @property
    def sort(self) -> Hashable:
        """A key that places share if only facts tell them apart."""
        return type(self.node), self.leaf, self.rest, self.twin, self.inside


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """Rows in which a path leads to one sort of place, and the index of the node in each."""

    place: LayoutPosition
    variants: VariantColumns
    rows: Int64s
    nodes: Int64s
    legacy: bool

    @property
    def counts(self) -> NodeCounts:
        """The counts of the nodes; for a node inside an array, those of the array."""
        counts = self.variants.counts(self.rows, self.nodes)
        return counts.with_inside(self.place.inside) if self.place.inside else counts

    def bounds(self, leaf: ShreddedType) -> BoundColumns:
        """The bounds of the nodes, which are leaves of this type; inside arrays there are none.

        Spec: Delta protocol, "Per-file Statistics"; EXACTNESS, rule 24.
        """
        if self.place.inside:
            return BoundColumns.unknown(len(self.rows), leaf)
        return self.variants.bounds(self.rows, self.nodes, leaf)

    def only(self, chosen: Bools) -> PlacedRows:
        """Choose some of the rows."""
        return replace(self, rows=self.rows[chosen], nodes=self.nodes[chosen])

    def record(self, at: int, counts: NodeCounts, bounds: BoundColumns | None) -> PathFacts:
        """The facts of the node in one row."""
        own = PathFacts(
            Path(),
            self.place.node,
            int(counts.typed[at]),
            int(counts.nulls[at]),
            int(counts.residuals[at]),
        )
        if bounds is None:
            return own
        return replace(
            own,
            bounds=Bounds(bounds.minimum.raw(at), bounds.maximum.raw(at)),
            plain_floats=bool(bounds.plain_floats[at]),
        )


@dataclass(frozen=True, slots=True)
class Readings:
    """How one path is read in each row: `choices[codes[row]]`."""

    choices: tuple[Reading, ...]
    codes: Int64s


# One object for each, so that planning recognizes files of one layout by identity.
_NULL, _JOINABLE_NULL, _NULL_TEST = NullColumn(), NullColumn(joinable=True), NullTest()
_native = cache(Native)


class Reader:
    """Decides how to read one Ref, file by file.

    It keeps no state per file; what it caches depends on layouts alone, so threads may share it.
    """

    def __init__(self, ref: Ref) -> None:
        if ref.path is None:
            raise ValueError(f"{ref} is an ordinary column, read as it is")
        self.ref = ref
        self._path = ref.path
        self._requested = spark_type(ref.type)
        self._is_scalar = self._requested is not None
        self._steps = _physical_steps(ref.path)
        # By identity, because hashing a schema of hundreds of fields for each file is slow. The
        # entry also holds the schema, so that no other schema can get its id.
        self._places: dict[int, tuple[ShreddingSchema, LayoutPosition]] = {}

    def place(self, schema: ShreddingSchema) -> LayoutPosition:
        """Where the path leads in this layout."""
        known = self._places.get(id(schema))
        if known is None:
            known = (schema, self._decided(find_place(schema, self._path)))
            self._places[id(schema)] = known
        return known[1]

    def _decided(self, place: LayoutPosition) -> LayoutPosition:
        """Add the reading to the place if it is the same for all files in which it is clean."""
        stored = place.leaf
        if stored is None or not self._is_scalar:
            return place
        unknown = PathFacts(self._path, place.node)
        exact = conversion(stored, self.ref.type, unknown, strict=self.ref.strict)
        pushable = _pushable(place, unknown)
        if exact is None or exact.kind is ConversionKind.TRY_CAST or not pushable:
            return place
        return replace(place, if_clean=PhysicalColumn(self._steps, stored, exact))

    def find(self, facts: FileFacts | None) -> tuple[LayoutPosition, PathFacts] | None:
        """The place of the path in the file's layout and that node's facts; None: unknown."""
        variant = None if facts is None else facts.variant(self.ref.column)
        if variant is None:
            return None
        place = self.place(variant.schema)
        if place.index >= len(variant.paths):
            return None
        own = variant.paths[place.index]
        if place.inside:
            known = own.residuals > 0 or own.clean_inside & place.inside == place.inside
            residuals = own.residuals if known else UNKNOWN
            own = PathFacts(self._path, place.node, own.typed, own.nulls, residuals)
        return place, own

    def read(self, facts: FileFacts | None) -> Reading:
        """How to read the path in the file with these facts."""
        found = self.find(facts)
        if found is None:
            return _native(NO_STATISTICS)
        variant = None if facts is None else facts.variant(self.ref.column)
        return self._in_layout(
            self._read_node(*found), legacy=variant is not None and variant.is_legacy
        )

    def read_all(self, facts: FactColumns, rows: Int64s | None = None) -> Readings:
        """How to read the path in each of many files; if given, only the codes of `rows` count."""
        choices: dict[Reading, int] = {_native(NO_STATISTICS): 0}
        codes = np.zeros(len(facts.num_records), np.int64)
        variants = facts.variant(self.ref.column)
        for placed in self.places(variants, rows):
            for some, reading in self._read_placed(placed):
                found = self._in_layout(reading, legacy=placed.legacy)
                codes[some] = choices.setdefault(found, len(choices))
        return Readings(tuple(choices), codes)

    def _in_layout(self, reading: Reading, *, legacy: bool) -> Reading:
        if legacy and isinstance(reading, PhysicalColumn):
            return replace(reading, steps=_legacy_steps(self._path))
        if legacy and isinstance(reading, NullTest):
            return _native(NO_METADATA)
        return reading

    def places(
        self, variants: VariantColumns | None, rows: Int64s | None = None
    ) -> list[PlacedRows]:
        """Group the rows (all, or `rows`) with known layouts by where the path leads there."""
        if variants is None:
            return []
        nodes = np.zeros(len(variants.schemas), np.int64)
        kinds = nodes.copy()
        first: dict[Hashable, tuple[int, LayoutPosition, bool]] = {}
        for code, (schema, legacy) in enumerate(
            zip(variants.schemas, variants.legacy, strict=True)
        ):
            place = self.place(schema)
            nodes[code] = place.index
            kinds[code] = first.setdefault((place.sort, legacy), (len(first), place, legacy))[0]
        layout = variants.layout if rows is None else variants.layout[rows]
        kind = np.where(layout >= 0, kinds[layout], -1) if first else kinds
        return [
            PlacedRows(
                place, variants, some if rows is None else rows[some], nodes[layout[some]], legacy
            )
            for number, place, legacy in first.values()
            if len(some := np.flatnonzero(kind == number))
        ]

    def _read_placed(self, placed: PlacedRows) -> Iterator[tuple[Int64s, Reading]]:
        """Yield the readings of rows: one decision for all rows that are alike in what decides."""
        place, rows = placed.place, placed.rows
        if not self._is_scalar:
            # Differences between files do not matter.
            yield rows, self._read_node(place, PathFacts(self._path, place.node))
            return
        counts = placed.counts
        if place.if_clean is not None:
            if (clean := counts.clean).any():
                yield rows[clean], place.if_clean
            if clean.all():
                return
            placed = placed.only(~clean)
            rows, counts = placed.rows, placed.counts
        alike = [counts.clean, counts.residuals > 0, counts.typed == 0]
        bounds = None
        if place.leaf is not None and self._requested is not None and counts.clean.any():
            bounds = placed.bounds(place.leaf)
            alike += [values_fit(place.leaf, self._requested, bounds), bounds.plain_floats]
            alike += [without_moved(place.leaf, bounds)]
        bits = sum(flag.astype(np.int64) << i for i, flag in enumerate(alike))
        for number in np.flatnonzero(np.bincount(bits)):
            same = np.flatnonzero(bits == number)
            own = placed.record(int(same[0]), counts, bounds)
            yield rows[same], self._read_node(place, own)

    def _read_node(self, place: LayoutPosition, own: PathFacts) -> Reading:
        """Decide the reading by the layout and the node's facts.

        The facts may matter only by whether the node is clean, has residuals, has typed values,
        whether these fit the requested type, `plain_floats` and `without_moved`: see
        `_read_placed`.
        """
        if place.if_clean is not None and own.clean:
            return place.if_clean
        if self.ref.type == PRESENCE:
            return _NULL_TEST
        if not self._is_scalar:
            return _native(WHOLE_VARIANT)
        if absence := self.absence(place, own):
            return absence
        if place.twin:
            return _native(TWIN_KEY)
        stored = place.leaf
        if stored is None:
            return _native(_no_column(place))
        if not own.clean:
            return _native(not_clean(own))
        exact = conversion(stored, self.ref.type, own, strict=self.ref.strict)
        if exact is None:
            return _NULL if own.typed == 0 else Native(f"stored as {stored}")
        return PhysicalColumn(self._steps, stored, exact, _pushable(place, own))

    def absence(self, place: LayoutPosition, own: PathFacts) -> NullColumn | None:
        """A NullColumn if the facts prove that the path is NULL, as a scalar, in every row.

        `own` are the facts of the deepest node on the way. A twin by case proves nothing.
        """
        if place.twin or not own.clean:
            return None
        node = place.node
        joinable = _NULL if place.inside else _JOINABLE_NULL
        if isinstance(node, Untyped):
            return joinable
        if not place.rest:
            # A leaf without values is read as a column if its type can be, to stay in the group.
            return _NULL if own.typed == 0 and not isinstance(node, Leaf) else None
        if isinstance(node, Object):
            return joinable if isinstance(place.rest[0], str) else _NULL
        if isinstance(node, Leaf) or isinstance(place.rest[0], str) or own.typed == 0:
            return _NULL  # a scalar has no parts, an array no keys
        return None


def find_place(schema: ShreddingSchema, path: Path) -> LayoutPosition:
    """Where `path` leads in `schema`; keys are compared by exact text."""
    node, own = schema.find(path)
    index = next(i for i, (at, _) in enumerate(schema.nodes()) if at == own)
    rest = path.steps[len(own.steps) :]
    twin, inside = False, 0
    if rest and isinstance(rest[0], int) and isinstance(node, Array):
        node, rest, inside = _enter(node, rest)
    if rest and isinstance(rest[0], str) and isinstance(node, Object):
        folded = fold_key(rest[0])
        twin = any(fold_key(name) == folded for name, _ in node.fields)
    return LayoutPosition(index, node, rest, twin, inside)


def _enter(array: Array, rest: tuple[str | int, ...]) -> tuple[Node, tuple[str | int, ...], int]:
    """The deepest node on the way of `rest` into an array, the steps beyond it, and `inside`."""
    node, number, inside = array.element, 0, 0
    rest = rest[1:]
    while rest:
        if isinstance(node, Array) and isinstance(rest[0], int):
            inside |= _bit(number)
            node, number = node.element, number + 1
        elif isinstance(node, Object) and isinstance(rest[0], str):
            names = [name for name, _ in node.fields]
            if rest[0] not in names:
                break
            at = names.index(rest[0])
            number += 1 + sum(len(list(subtree(child))) for _, child in node.fields[:at])
            node = node.fields[at][1]
        else:
            break
        rest = rest[1:]
    return node, rest, inside | _bit(number)


def _bit(number: int) -> int:
    return 1 << min(number, MAX_INSIDE)  # the last is never set


def _no_column(place: LayoutPosition) -> str:
    return IN_RESIDUAL if place.rest or isinstance(place.node, Untyped) else NOT_A_SCALAR


def not_clean(own: PathFacts) -> str:
    """Tell users why a path is not clean."""
    return MIXED if own.residuals > 0 else UNCHECKED


def readable_by_spark(schema: ShreddingSchema) -> bool:
    """Whether Spark's own Variant reader reads the layout: it fails on types that Spark lacks."""
    return all(node.type.info.spark for node in subtree(schema.root) if isinstance(node, Leaf))


def _physical_steps(path: Path) -> tuple[str | int, ...]:
    return (TYPED_VALUE, *(part for step in path.steps for part in (step, TYPED_VALUE)))


def _legacy_steps(path: Path) -> tuple[str | int, ...]:
    """Arrays are never clean in the legacy layout, so no step is an index."""
    return (*(part for step in path.steps for part in (OBJECT, step)), TYPED_VALUE)


def _pushable(place: LayoutPosition, own: PathFacts) -> bool:
    """Whether a predicate on the bare column loses no rows; nothing is pushed into arrays."""
    leaf = place.leaf
    if leaf is None or place.inside > 0 or own.typed == 0:
        return True
    if leaf.kind in (Kind.FLOAT, Kind.DOUBLE):
        return own.plain_floats
    return bool(without_moved(leaf, BoundColumns.of([own], leaf))[0])
