"""How one path of one file is read: from a physical column, as NULL, or natively.

A physical column is taken only where the path is *clean* in the file (its own residual is absent or
a Variant null in every row: EXACTNESS, rule 9) and the conversion is in the exactness table. A path
that provably no row has is a typed NULL. Everything else, and everything unknown, is native: Spark
reads the Variant and calls `variant_get`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from variantlake.parquet.facts import FileFacts, PathFacts, VariantFacts
from variantlake.paths import Path
from variantlake.planning.casts import spark_type
from variantlake.planning.exactness import Conversion, ConversionKind, conversion
from variantlake.planning.predicates import Ref
from variantlake.shredding.folding import fold_key
from variantlake.shredding.schema import Array, Leaf, Node, Object, ShreddingSchema, Untyped
from variantlake.types import Kind, ShreddedType


@dataclass(frozen=True, slots=True)
class PhysicalColumn:
    """The path is the leaf `steps` below the Variant column, of the exact type `stored`.

    `steps` name fields of the physical struct, from the column down to the `typed_value`.
    `pushable` is false for floats that may hold NaN or -0.0: Parquet's statistics leave those out,
    so a predicate on the bare column would lose rows (EXACTNESS, rule 8). Such a column needs a
    form that the engine does not push into the file.
    """

    steps: tuple[str, ...]
    stored: ShreddedType
    conversion: Conversion
    pushable: bool = True


@dataclass(frozen=True, slots=True)
class NullColumn:
    """No row of the file has a value at the path: a NULL of the asked type.

    `joinable` is true when nothing stands at the path's place in the file's layout, so that a scan
    which asks for a physical column there gets NULLs as well.
    """

    joinable: bool = False


@dataclass(frozen=True, slots=True)
class Native:
    """The engine's own Variant reader; `reason` says why, for people."""

    reason: str


Reading = PhysicalColumn | NullColumn | Native

NO_STATISTICS = "nothing is known of the file"
WHOLE_VARIANT = "the Variant itself is asked for"
TWIN_KEY = "the layout has a key that differs only by case"
IN_ARRAY = "the path goes into an array"
MIXED = "some rows hold a value of another type"
UNCHECKED = "nothing says that its column holds all of its values"
IN_RESIDUAL = "the path is not a column in this file"
NOT_A_SCALAR = "the path is an object or an array in this file"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path leads in a layout: the deepest node on its way.

    `index` counts the nodes of `ShreddingSchema.nodes()`; `rest` are the steps that go beyond the
    node. `twin` tells that the next step is not a field but equals one when case is folded.
    `if_clean` is the reading of a clean path where the layout alone decides it.
    """

    index: int
    node: Node
    rest: tuple[str | int, ...]
    twin: bool
    if_clean: PhysicalColumn | None = None

    @property
    def leaf(self) -> ShreddedType | None:
        """The type of the path's own typed column; None when it has none."""
        return self.node.type if not self.rest and isinstance(self.node, Leaf) else None


# One object for each, so that planning tells files of one layout by identity.
_NULL, _JOINABLE_NULL = NullColumn(), NullColumn(joinable=True)
_native = cache(Native)


class Reader:
    """Decides for one Ref, file by file.

    Bound once and without state per file; what it remembers is derived from layouts alone, so
    threads may share it.
    """

    def __init__(self, ref: Ref) -> None:
        if ref.path is None:
            raise ValueError(f"{ref} is an ordinary column, read as it is")
        self.ref = ref
        self._path = ref.path
        self._is_scalar = spark_type(ref.type) is not None
        self._steps = _physical_steps(ref.path)
        # By identity, because hashing a schema of hundreds of fields for each file is slow; the
        # schema is kept beside its place so that its id cannot be given to another one.
        self._places: dict[int, tuple[ShreddingSchema, Place]] = {}

    def place(self, schema: ShreddingSchema) -> Place:
        """Where the path leads in this layout."""
        known = self._places.get(id(schema))
        if known is None:
            known = (schema, self._decided(find_place(schema, self._path)))
            self._places[id(schema)] = known
        return known[1]

    def _decided(self, place: Place) -> Place:
        """The place with its reading, if that is the same for all files where the path is clean."""
        stored = place.leaf
        if stored is None or not self._is_scalar:
            return place
        unknown = PathFacts(self._path, place.node)
        exact = conversion(stored, self.ref.type, unknown, strict=self.ref.strict)
        if exact is None or exact.kind is ConversionKind.TRY_CAST or not _pushable(stored, unknown):
            return place
        return replace(place, if_clean=PhysicalColumn(self._steps, stored, exact))

    def find(self, facts: FileFacts | None) -> tuple[Place, PathFacts] | None:
        """The place of the path in the file's layout and that node's facts; None: unknown."""
        variant = None if facts is None else facts.variant(self.ref.column)
        if variant is None:
            return None
        place = self.place(variant.schema)
        if place.index >= len(variant.paths):
            return None
        return place, variant.paths[place.index]

    def read(self, facts: FileFacts | None) -> Reading:
        """How the path is read in the file with these facts."""
        found = self.find(facts)
        if found is None:
            return _native(NO_STATISTICS)
        place, own = found
        if place.if_clean is not None and own.clean:
            return place.if_clean
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
        return PhysicalColumn(self._steps, stored, exact, _pushable(stored, own))

    def absence(self, place: Place, own: PathFacts) -> NullColumn | None:
        """A NullColumn when the facts prove that the path is NULL, as a scalar, in every row.

        `own` are the facts of the deepest node on the way. A twin by case proves nothing.
        """
        if place.twin or not own.clean:
            return None
        node = place.node
        if isinstance(node, Untyped):
            return _JOINABLE_NULL
        if not place.rest:
            # A leaf without values is read as a column while its type can be, to stay in the group.
            return _NULL if own.typed == 0 and not isinstance(node, Leaf) else None
        if isinstance(node, Object):
            return _JOINABLE_NULL if isinstance(place.rest[0], str) else _NULL
        if isinstance(node, Leaf) or isinstance(place.rest[0], str) or own.typed == 0:
            return _NULL  # a scalar has no parts, an array no keys
        return None


def find_place(schema: ShreddingSchema, path: Path) -> Place:
    """Where `path` leads in `schema`; keys are compared by exact text."""
    node, own = schema.find(path)
    index = next(i for i, (at, _) in enumerate(schema.nodes()) if at == own)
    rest = path.steps[len(own.steps) :]
    twin = False
    if rest and isinstance(rest[0], str) and isinstance(node, Object):
        folded = fold_key(rest[0])
        twin = any(fold_key(name) == folded for name, _ in node.fields)
    return Place(index, node, rest, twin)


def _no_column(place: Place) -> str:
    if place.rest:
        return IN_ARRAY if isinstance(place.node, Array) else IN_RESIDUAL
    return IN_RESIDUAL if isinstance(place.node, Untyped) else NOT_A_SCALAR


def not_clean(own: PathFacts) -> str:
    """Why a path that is not clean is not, for people."""
    return MIXED if own.residuals > 0 else UNCHECKED


def readable_by_spark(variant: VariantFacts) -> bool:
    """Whether Spark's own Variant reader takes the file: it fails on types that it lacks."""
    return _all_in_spark(variant.schema.root)


def _all_in_spark(node: Node) -> bool:
    match node:
        case Leaf(type_):
            return type_.info.spark
        case Object(fields):
            return all(_all_in_spark(child) for _, child in fields)
        case Array(element):
            return _all_in_spark(element)
        case Untyped():
            return True


def _physical_steps(path: Path) -> tuple[str, ...]:
    steps = ["typed_value"]
    for key in path.steps:
        steps += (str(key), "typed_value")
    return tuple(steps)


def _pushable(stored: ShreddedType, own: PathFacts) -> bool:
    return stored.kind not in (Kind.FLOAT, Kind.DOUBLE) or own.plain_floats or own.typed == 0
