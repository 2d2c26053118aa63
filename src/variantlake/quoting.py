"""Names and texts as SQL writes them."""

from __future__ import annotations

import re

Parts = tuple[str, ...]
"""The parts of a name, without quotes."""

PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
"""A name that needs no quotes."""


def identifier(name: str) -> str:
    """The name as an SQL identifier, quoted if necessary."""
    return name if PLAIN_NAME.fullmatch(name) else quote_identifier(name)


def quote_identifier(name: str) -> str:
    """The name as a quoted SQL identifier."""
    return f"`{name.replace('`', '``')}`"


def quote_string(text: str) -> str:
    """The text as an SQL string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def unquoted(name: str) -> str:
    """The name without its backticks; a text that is not quoted stays as it is."""
    inner = name[1:-1]
    is_quoted = len(name) > 2 and name[0] == name[-1] == "`" and "`" not in inner.replace("``", "")
    return inner.replace("``", "`") if is_quoted else name
