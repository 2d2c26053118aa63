"""Quote and unquote names and texts for SQL."""

from __future__ import annotations

import re

Parts = tuple[str, ...]
"""The parts of a name, without quotes."""

PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
"""A name that needs no quotes."""


def identifier(name: str) -> str:
    """Write a name as an SQL identifier, quoted if necessary."""
    return name if PLAIN_NAME.fullmatch(name) else quote_identifier(name)


def quote_identifier(name: str) -> str:
    """Write a name as a quoted SQL identifier."""
    return f"`{name.replace('`', '``')}`"


def quote_string(text: str) -> str:
    """Write a text as an SQL string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def unquoted(name: str) -> str:
    """Remove the backticks of a name; returns a text that is not quoted as it is."""
    inner = name[1:-1]
    is_quoted = len(name) > 2 and name[0] == name[-1] == "`" and "`" not in inner.replace("``", "")
    return inner.replace("``", "`") if is_quoted else name
