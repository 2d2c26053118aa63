"""What all readers of sqlglot's nodes share."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from variantlake.expressions.functions.signatures import call
from variantlake.expressions.tree import Expression
from variantlake.expressions.typing import refused

Read = Callable[..., list[Expression]]
"""Reads nodes as expressions."""


def only(node: exp.Expression, *parts: str) -> None:
    """Raise UnsupportedFeature for parts of a node other than these."""
    more = [name for name, value in node.args.items() if value and name not in parts]
    if more:
        raise refused(f"{type(node).__name__.upper()} with {more[0].strip('_').upper()}")


def read_args(function: str, *names: str) -> Callable[[exp.Expression, Read], Expression]:
    """Make a reader of nodes that have exactly these arguments."""

    def read_node(node: exp.Expression, read: Read) -> Expression:
        only(node, *names)
        return call(function, *read(*(node.args[name] for name in names)))

    return read_node
