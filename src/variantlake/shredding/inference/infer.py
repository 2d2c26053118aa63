"""Choose the paths that become columns from a profile of a sample, with the reason for each.

A path becomes a column if enough rows hold it with one kind of value. Integers and decimals are one
kind (JSON often mixes them in one field), doubles are another: in the encoding's equivalence
classes, a double never equals an exact number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from variantlake.encoding.scalar import DECIMAL_DIGITS, INTEGER_BITS
from variantlake.errors import InvalidSchema
from variantlake.paths import Path
from variantlake.shredding.ddl import MAX_SCHEMA_DEPTH
from variantlake.shredding.folding import fold_key
from variantlake.shredding.inference.hints import Hint, HintNode, hint_tree, next_nodes, with_hints
from variantlake.shredding.inference.profile import Profile
from variantlake.shredding.schema import Array, Leaf, Node, Object, ShreddingSchema, Untyped
from variantlake.types import (
    INT64,
    KINDS,
    MAX_PRECISION,
    PRIMITIVES,
    Family,
    Kind,
    Primitive,
    ShreddedType,
)


@dataclass(frozen=True, slots=True)
class InferenceOptions:
    """Thresholds of the inference.

    `min_share` is the share of the sample's rows (inside arrays: of the elements) that must hold a
    path with the chosen kind of value. `min_purity` is the share of that kind among a leaf's
    non-null values, since a column of mixed types helps no query. `max_columns` bounds the typed
    leaves; the most frequent are kept. `max_depth` bounds the steps of a path. `arrays` shreds
    arrays too. `spark` makes no column of a type whose files Spark 4.2 cannot read. `hints` become
    columns whatever the sample shows: those of a single path before all others, and the most
    frequent paths that only a pattern matches if `max_columns` leaves room.

    Raises InvalidSchema for a threshold outside its range.
    """

    min_share: float = 0.05
    min_purity: float = 0.5
    max_columns: int = 300
    max_depth: int = 32
    arrays: bool = False
    spark: bool = True
    hints: tuple[Hint, ...] = ()

    def __post_init__(self) -> None:
        for name in ("min_share", "min_purity"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidSchema(f"{name} is a share between 0 and 1")
        if self.max_columns < 0:
            raise InvalidSchema("max_columns is a number of columns, 0 or more")
        if not 0 <= self.max_depth <= MAX_SCHEMA_DEPTH:
            raise InvalidSchema(f"max_depth is between 0 and {MAX_SCHEMA_DEPTH}")


@dataclass(frozen=True, slots=True)
class Inference:
    """The schema, and `(path, is_column, why)` for the paths of the profile, parents first.

    In a path, the step 0 after an array means all its elements. Most paths below a rejected one
    are not examined; `why` returns the reason of the path above them.
    """

    schema: ShreddingSchema
    reasons: tuple[tuple[Path, bool, str], ...]

    def why(self, path: Path) -> tuple[Path, bool, str]:
        """Return the reason for `path`: its own, or that of the deepest path above it."""
        known = {reason[0]: reason for reason in self.reasons}
        while path not in known and path.steps:
            path = path.parent
        return known[path]


def infer(profile: Profile, options: InferenceOptions | None = None) -> Inference:
    """Infer the shredding schema for documents like those of the profile.

    The fields of an object are ordered by their UTF-8 bytes, so equal profiles yield equal schemas.
    """
    options = options or InferenceOptions()
    inferrer = _Inferrer(options)
    candidate = inferrer.consider(profile, Path(), profile.rows, (hint_tree(options.hints),))
    inferrer.keep_most_frequent(candidate)
    node = candidate.node()
    reasons = tuple((c.path, c.stands(), c.why()) for c in candidate.walk())
    schema = ShreddingSchema(Untyped() if node is None else node)
    return Inference(with_hints(schema, options.hints), reasons)


_HINTED, _FREQUENT, _BY_PATTERN = range(3)


@dataclass(slots=True)
class _Candidate:
    """A path that may become a column. `rows` counts the rows that hold it with the chosen kind.

    `rank` orders candidates before `rows` does: hinted paths, frequent paths, paths that only a
    pattern matches. `left` is the reason why it is not a column, empty if it is a `leaf`, an object
    (`fields`) or an array (`element`). Objects and arrays need a column below them.
    """

    path: Path
    rows: int = 0
    rank: int = _FREQUENT
    reason: str = ""
    left: str = ""
    leaf: Leaf | None = None
    fields: dict[str, _Candidate] = field(default_factory=dict)
    element: _Candidate | None = None

    def node(self) -> Node | None:
        """Return the schema's node, None if it has no column."""
        if self.left:
            return None
        if self.leaf is not None:
            return self.leaf
        if self.element is not None:
            element = self.element.node()
            return None if element is None else Array(element)
        children = ((name, child.node()) for name, child in self.fields.items())
        fields = tuple((name, node) for name, node in children if node is not None)
        return Object(fields) if fields else None

    def stands(self) -> bool:
        """Whether `node` returns one, found without making nodes."""
        if self.left:
            return False
        below = self.fields.values() if self.element is None else (self.element,)
        return self.leaf is not None or any(child.stands() for child in below)

    def why(self) -> str:
        """Return the reason as one sentence for `inspect --why`."""
        if self.left:
            return self.left
        if not self.stands():
            return "nothing inside it becomes a column"
        return self.reason

    def leave(self, why: str) -> None:
        """Reject this path and all below it."""
        for candidate in self.walk():
            candidate.left = candidate.left or f"inside {self.path}, which is not a column"
        self.left = why

    def walk(self) -> Iterator[_Candidate]:
        """Yield this candidate and all below it, parents first."""
        yield self
        for child in self.fields.values():
            yield from child.walk()
        if self.element is not None:
            yield from self.element.walk()


class _Inferrer:
    """Applies the thresholds from the root down."""

    def __init__(self, options: InferenceOptions) -> None:
        self._options = options

    def consider(
        self, profile: Profile, path: Path, base: int, hints: tuple[HintNode, ...] = ()
    ) -> _Candidate:
        """Make the candidate of a path; `base` is the number of rows that shares refer to.

        `hints` are the nodes of the tree of hints that match the path.
        """
        candidate = _Candidate(path)
        counts = _counts(profile)
        hint = next((node.hint for node in hints if node.hint is not None), None)
        leads_on = any(node.below for node in hints)
        if not counts:
            candidate.left = "null in every row" if profile.rows else "not seen"
            return candidate
        kind, rows = max(counts.items(), key=lambda item: item[1])
        # Other kinds of values at the path do not make the fields of an object unclean, so it needs
        # only frequency, not purity.
        if profile.objects and (leads_on or self._frequent(profile.objects, base)):
            kind, rows = _OBJECT, profile.objects
        candidate.rows = rows
        if hint is not None and (hint.type is not None or kind not in (_OBJECT, _ARRAY)):
            self._take_hint(candidate, profile, hint, kind, base)
            return candidate
        share = rows / base if base else 0.0
        described = f"{kind} in {share:.1%} of the rows"
        if not (self._frequent(rows, base) or leads_on or hint is not None):
            candidate.left = f"{described}, fewer than {self._options.min_share:.1%}"
        elif len(path.steps) > self._options.max_depth:
            candidate.left = f"deeper than {self._options.max_depth} steps"
        elif kind == _OBJECT:
            candidate.reason = described
            self._consider_fields(candidate, profile, base, hints)
        elif kind == _ARRAY:
            candidate.reason = described
            self._consider_elements(candidate, profile)
        elif rows < self._options.min_purity * sum(counts.values()):
            mix = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
            candidate.left = f"no kind of value prevails ({mix})"
        else:
            self._choose_leaf(candidate, profile, kind, described)
        return candidate

    def keep_most_frequent(self, root: _Candidate) -> None:
        """Reject the least frequent leaves beyond `max_columns`."""
        leaves = [c for c in root.walk() if c.leaf is not None and c.stands()]
        leaves.sort(key=lambda c: (c.rank, -c.rows, len(c.path.steps), c.path.normalized()))
        # Typed hints of a single path get their columns even if the sample does not hold them.
        hinted = {h.steps for h in self._options.hints if h.type is not None and not h.is_pattern}
        unseen = len(hinted - {c.path.steps for c in leaves})
        for candidate in leaves[max(self._options.max_columns - unseen, 0) :]:
            candidate.left = f"{self._options.max_columns} more frequent paths fill the columns"

    def _frequent(self, rows: int, base: int) -> bool:
        return rows > 0 and rows >= self._options.min_share * base

    def _take_hint(
        self, candidate: _Candidate, profile: Profile, hint: Hint, kind: str, base: int
    ) -> None:
        """Make a column of a hinted path, with the hint's type or that of the most values."""
        candidate.rank = _BY_PATTERN if hint.is_pattern else _HINTED
        if hint.is_pattern and self._frequent(candidate.rows, base):
            candidate.rank = _FREQUENT
        described = f"{kind} in {candidate.rows / base if base else 0:.1%} of the rows"
        if hint.type is None:
            self._choose_leaf(candidate, profile, kind, described)
        else:
            candidate.leaf = Leaf(hint.type)
        if candidate.leaf is not None:
            candidate.reason = f"a hint asks for it; {described}"

    def _consider_fields(
        self, candidate: _Candidate, profile: Profile, base: int, hints: tuple[HintNode, ...]
    ) -> None:
        twins: dict[str, _Candidate] = {}
        for name in sorted(profile.fields, key=str.encode):
            below = next_nodes(hints, name)
            child = self.consider(profile.fields[name], candidate.path.child(name), base, below)
            candidate.fields[name] = child
            if not child.stands():
                continue
            twin = twins.setdefault(fold_key(name), child)
            if twin is not child:
                first = (twin.rank, -twin.rows) <= (child.rank, -child.rows)
                kept, dropped = (twin, child) if first else (child, twin)
                twins[fold_key(name)] = kept
                dropped.leave(
                    f"equal, except for case, to {kept.path.steps[-1]!r}, which is more frequent"
                )

    def _consider_elements(self, candidate: _Candidate, profile: Profile) -> None:
        if not self._options.arrays:
            candidate.left = "arrays stay whole"
        elif profile.element is None:
            candidate.left = "the arrays are empty"
        else:
            path = candidate.path.child(0)
            candidate.element = self.consider(profile.element, path, profile.element.rows)

    def _choose_leaf(
        self, candidate: _Candidate, profile: Profile, kind: str, described: str
    ) -> None:
        shredded = _number_type(profile) if kind == _NUMBER else _LEAVES[kind]
        if shredded is None:
            candidate.left = (
                f"{profile.integer_digits} digits before and {profile.scale} after the decimal "
                f"point do not fit {MAX_PRECISION}"
            )
        elif self._options.spark and not shredded.info.spark:
            candidate.left = f"Spark cannot read files with a column of type {shredded}"
        else:
            candidate.leaf = Leaf(shredded)
            candidate.reason = described


_NUMBER = Family.EXACT_NUMERIC.value
_OBJECT = "object"
_ARRAY = "array"

_APART = {
    Primitive.TIMESTAMP_NANOS: Kind.TIMESTAMP_NANOS.value,
    Primitive.TIMESTAMP_NTZ_NANOS: Kind.TIMESTAMP_NTZ_NANOS.value,
}
"""Types that do not share a column with their family: micros and nanos would lose digits."""


def _kind_of(primitive: Primitive) -> str:
    return _APART.get(primitive, PRIMITIVES[primitive].family.value)


_LEAVES = {
    _kind_of(info.primitives[0]): ShreddedType(info.kind)
    for info in KINDS.values()
    if PRIMITIVES[info.primitives[0]].family is not Family.EXACT_NUMERIC
}
"""The column type of each kind of value, except for exact numbers, where it depends on digits."""


def _counts(profile: Profile) -> dict[str, int]:
    """Count the values of each kind, without nulls; objects first, then arrays."""
    counts: dict[str, int] = {}
    if profile.objects:
        counts[_OBJECT] = profile.objects
    if profile.arrays:
        counts[_ARRAY] = profile.arrays
    for primitive, count in sorted(profile.primitives.items()):
        if primitive is not Primitive.NULL and count:
            kind = _kind_of(primitive)
            counts[kind] = counts.get(kind, 0) + count
    return counts


def _number_type(profile: Profile) -> ShreddedType | None:
    """Return one column type for integers and decimals, None if 38 digits cannot hold them all."""
    seen = {primitive for primitive, count in profile.primitives.items() if count}
    exact = {p for p in seen if PRIMITIVES[p].family is Family.EXACT_NUMERIC}
    if exact <= INTEGER_BITS.keys():
        return INT64
    digits = profile.integer_digits + profile.scale
    short = DECIMAL_DIGITS[Primitive.DECIMAL8]
    if digits <= short:
        return ShreddedType(Kind.DECIMAL, short, profile.scale)
    if digits <= MAX_PRECISION:
        return ShreddedType(Kind.DECIMAL, MAX_PRECISION, profile.scale)
    return None
