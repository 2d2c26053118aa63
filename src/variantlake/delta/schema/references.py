"""Find the columns that an SQL expression in the log may reference, from its tokens alone.

The log holds constraints, generated columns and invariants as text. Every token that looks like a
column counts as one, so the result may hold too many columns, but never too few.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from variantlake.delta.schema.columns_by_path import FieldPath
from variantlake.quoting import unquoted

_TOKEN = re.compile(
    r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|(?P<name>`(?:[^`]|``)+`|[^\W\d]\w*)|\S""",
    re.DOTALL,
)


def references(expression: str) -> Iterator[FieldPath]:
    """Yield the dotted names as paths in lower case, without functions and Variant keys."""
    tokens = list(_TOKEN.finditer(expression))
    texts = ["", *(token[0] for token in tokens), "", ""]
    at = 0
    while at < len(tokens):
        start = at
        parts = list[str]()
        while at < len(tokens) and tokens[at]["name"]:
            parts.append(unquoted(tokens[at]["name"]).lower())
            at += 1
            if texts[at + 1] != "." or at + 1 >= len(tokens) or not tokens[at + 1]["name"]:
                break
            at += 1
        if parts and texts[start] not in (".", ":") and texts[at + 1] != "(":
            yield tuple(parts)
        at = max(at, start + 1)


def speaks_of(expression: str, path: FieldPath) -> bool:
    """Whether an expression may reference the field at a path, one in it, or one around it."""
    wanted = tuple(part.lower() for part in path)
    return any(
        found[: len(wanted)] == wanted or wanted[: len(found)] == found
        for found in references(expression)
    )
