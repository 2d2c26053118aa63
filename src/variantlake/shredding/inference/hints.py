"""Hints name paths that become columns, whatever a sample shows, and their types.

`user.id BIGINT, output.* DOUBLE, note`: a path from the root of the Variant, then an optional type.
The step `*` matches every key. Commas and blanks in quotes and backticks are part of a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from variantlake.errors import InvalidPath, InvalidSchema
from variantlake.paths import ColumnPath
from variantlake.shredding.ddl import MAX_SCHEMA_DEPTH
from variantlake.shredding.folding import fold_key
from variantlake.shredding.schema import Leaf, Node, Object, ShreddingSchema, Untyped
from variantlake.types import ShreddedType

ANY = "*"
"""The step that matches every key."""

MAX_HINTS = 300
"""Our limit, since each hint may be a column."""

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)*`"""
_HINT = re.compile(rf"""(?:{_QUOTED}|\([^()]*\)|[^,'"`()])+""")
_PATH = re.compile(rf"""(?:{_QUOTED}|[^\s'"`])+""")


@dataclass(frozen=True, slots=True)
class Hint:
    """One hint; without `type`, the sample decides on it."""

    steps: tuple[str, ...]
    type: ShreddedType | None = None

    @property
    def is_pattern(self) -> bool:
        """Whether the hint may match several paths."""
        return ANY in self.steps


@dataclass(slots=True)
class HintNode:
    """A node in the tree of all hints by steps: `hint` ends here, those in `below` go on."""

    hint: Hint | None = None
    below: dict[str, HintNode] = field(default_factory=dict)


def parse_hints(text: str) -> tuple[Hint, ...]:
    """Parse hints; an empty text has none.

    Raises InvalidSchema for an invalid path or type, for a path into an array, for a path that is
    named twice, and beyond our limits.
    """
    found: dict[tuple[str, ...], Hint] = {}
    position = 0
    while position < len(text) and text.strip():
        match = _HINT.match(text, position)
        if match is None:
            raise InvalidSchema(
                f"hints {text!r}: a path is empty, or a quote is not closed", offset=position
            )
        hint = _hint(match[0].strip())
        if hint.steps in found:
            raise InvalidSchema(f"hints {text!r}: {match[0].strip()!r} is named twice")
        found[hint.steps] = hint
        position = match.end() + 1
        if position == len(text):
            raise InvalidSchema(f"hints {text!r}: a path is empty", offset=position)
    if len(found) > MAX_HINTS:
        raise InvalidSchema(f"{len(found)} hints; at most {MAX_HINTS} are allowed")
    return tuple(found.values())


def _hint(text: str) -> Hint:
    match = _PATH.match(text)
    if match is None:
        raise InvalidSchema("a hint is empty", hint="as in 'user.id BIGINT, output.* DOUBLE'")
    written, kind = match[0], text[match.end() :].strip()
    written = written.removeprefix("$").removeprefix(".")
    try:
        path = ColumnPath.parse(f"v:{written}")
    except InvalidPath as error:
        raise InvalidSchema(
            f"hint {text!r}: {error.message}", hint="as in 'user.id BIGINT, output.* DOUBLE'"
        ) from None
    steps = tuple(step for step in path.path.steps if isinstance(step, str))
    if not steps or len(steps) < len(path.path.steps):
        raise InvalidSchema(f"hint {text!r} leads into an array", hint="name keys of objects alone")
    if len(steps) > MAX_SCHEMA_DEPTH:
        raise InvalidSchema(f"hint {text!r:.100} is deeper than {MAX_SCHEMA_DEPTH} steps")
    kind = path.type or kind
    return Hint(steps, ShreddedType.parse(kind) if kind else None)


def hint_tree(hints: Iterable[Hint]) -> HintNode:
    """Build the tree of hints by their steps."""
    root = HintNode()
    for hint in hints:
        node = root
        for step in hint.steps:
            node = node.below.setdefault(step, HintNode())
        node.hint = hint
    return root


def next_nodes(nodes: Iterable[HintNode], key: str) -> tuple[HintNode, ...]:
    """Return the nodes below these for a key, exact names before `*`."""
    if not nodes:
        return ()
    below = (node.below.get(step) for step in (key, ANY) for node in nodes)
    return tuple(node for node in below if node is not None)


def with_hints(schema: ShreddingSchema, hints: Iterable[Hint]) -> ShreddingSchema:
    """Add a column for each hint with a type and a single path; patterns are ignored.

    The column replaces conflicting nodes, also keys that differ only by case.
    """
    root = schema.root
    fixed = [hint for hint in hints if hint.type is not None and not hint.is_pattern]
    for hint in sorted(fixed, key=lambda hint: len(hint.steps)):
        if hint.type is not None:
            root = with_leaf(root, hint.steps, Leaf(hint.type))
    return ShreddingSchema(root)


def with_leaf(node: Node, steps: tuple[str | int, ...], leaf: Leaf) -> Node:
    """Add a column at these steps, which replaces conflicting nodes."""
    if not steps:
        return leaf
    first, rest = str(steps[0]), steps[1:]
    fields = dict(node.fields) if isinstance(node, Object) else {}
    below = with_leaf(fields.get(first, Untyped()), rest, leaf)
    folded = fold_key(first)
    kept = {name: each for name, each in fields.items() if fold_key(name) != folded}
    return Object(tuple(sorted({**kept, first: below}.items(), key=lambda item: item[0].encode())))
