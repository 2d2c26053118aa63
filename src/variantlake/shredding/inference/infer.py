"""Which paths become columns, from a profile of a sample, with the reason for each.

A path is taken when enough rows hold it with one kind of value. Integers and decimals are one kind
(JSON mixes them in one field all the time), doubles are another: a double is never equal to an
exact number by the encoding's classes.
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
    path with the chosen kind of value; `min_purity` the share of that kind among a leaf's values
    that are not null, as a column of mixed types serves no query; `max_columns` bounds the typed
    leaves, the most frequent stay; `max_depth` bounds the steps of a path; `arrays` shreds arrays
    too; `spark` leaves the types whose files Spark 4.2 cannot read. `hints` are columns whatever
    the sample says, those of one path before all others; of the paths that only a pattern asks for,
    the most frequent fill what `max_columns` leaves.

    Raises InvalidSchema for a threshold outside of its range.
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
    """The schema, and for every path of the profile `(path, taken, why)`, parents first.

    In a path, the step 0 behind an array stands for all of its elements. Paths below one that is
    left have no entry of their own: `why` gives them that of the path above.
    """

    schema: ShreddingSchema
    reasons: tuple[tuple[Path, bool, str], ...]

    def why(self, path: Path) -> tuple[Path, bool, str]:
        """The reason that holds for `path`: its own, or that of the deepest path above it."""
        known = {reason[0]: reason for reason in self.reasons}
        while path not in known and path.steps:
            path = path.parent
        return known[path]


def infer(profile: Profile, options: InferenceOptions | None = None) -> Inference:
    """The shredding schema for documents like those of the profile.

    The fields of an object are ordered by their UTF-8 bytes, so equal profiles give equal schemas.
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
    """A path under consideration. `rows` hold it with the kind chosen for it.

    `rank` orders candidates before their rows do: a path that is hinted at, the paths that rows
    speak for, those that only a pattern asks for.
    `left` says why it cannot be a column; else it is a `leaf`, an object (`fields`) or an array
    (`element`). Objects and arrays stand as long as something below them does.
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
        """The schema's node, None when nothing is left of it."""
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
        """Whether `node` gives one: found at the first leaf below, without making any."""
        if self.left:
            return False
        below = self.fields.values() if self.element is None else (self.element,)
        return self.leaf is not None or any(child.stands() for child in below)

    def why(self) -> str:
        """One sentence for `inspect --why`."""
        if self.left:
            return self.left
        if not self.stands():
            return "nothing inside it becomes a column"
        return self.reason

    def leave(self, why: str) -> None:
        """Make no column of this path, nor of anything below it."""
        for candidate in self.walk():
            candidate.left = candidate.left or f"inside {self.path}, which is not a column"
        self.left = why

    def walk(self) -> Iterator[_Candidate]:
        """This candidate and all below it, parents first."""
        yield self
        for child in self.fields.values():
            yield from child.walk()
        if self.element is not None:
            yield from self.element.walk()


class _Inferrer:
    """The thresholds, applied from the root down."""

    def __init__(self, options: InferenceOptions) -> None:
        self._options = options

    def consider(
        self, profile: Profile, path: Path, base: int, hints: tuple[HintNode, ...] = ()
    ) -> _Candidate:
        """What could become of a path; `base` is the number of rows that shares refer to.

        `hints` are the places of the tree of hints that the path leads to.
        """
        candidate = _Candidate(path)
        counts = _counts(profile)
        hint = next((node.hint for node in hints if node.hint is not None), None)
        leads_on = any(node.below for node in hints)
        if not counts:
            candidate.left = "null in every row" if profile.rows else "not seen"
            return candidate
        kind, rows = max(counts.items(), key=lambda item: item[1])
        # What is below an object stays clean whatever other values stand beside it, so it needs
        # frequency only, not purity.
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
        """Leave the least frequent leaves beyond `max_columns`."""
        leaves = [c for c in root.walk() if c.leaf is not None and c.stands()]
        leaves.sort(key=lambda c: (c.rank, -c.rows, len(c.path.steps), c.path.normalized()))
        # Hints of one path have their columns whether the sample holds them or not.
        hinted = {h.steps for h in self._options.hints if h.type is not None and not h.is_pattern}
        unseen = len(hinted - {c.path.steps for c in leaves})
        for candidate in leaves[max(self._options.max_columns - unseen, 0) :]:
            candidate.left = f"{self._options.max_columns} more frequent paths fill the columns"

    def _frequent(self, rows: int, base: int) -> bool:
        return rows > 0 and rows >= self._options.min_share * base

    def _take_hint(
        self, candidate: _Candidate, profile: Profile, hint: Hint, kind: str, base: int
    ) -> None:
        """Make a column of what a hint names, of its type or that of the most values."""
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
"""Where a family holds two column types: micros and nanos do not share one without loss."""


def _kind_of(primitive: Primitive) -> str:
    return _APART.get(primitive, PRIMITIVES[primitive].family.value)


_LEAVES = {
    _kind_of(info.primitives[0]): ShreddedType(info.kind)
    for info in KINDS.values()
    if PRIMITIVES[info.primitives[0]].family is not Family.EXACT_NUMERIC
}
"""The column type of each kind of value; that of exact numbers depends on their digits."""


def _counts(profile: Profile) -> dict[str, int]:
    """How often each kind of value was seen; nulls are no kind. Most general kinds first."""
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
    """The one column for integers and decimals, None when 38 digits cannot hold them all."""
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
