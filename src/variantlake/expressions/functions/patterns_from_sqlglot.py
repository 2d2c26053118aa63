"""Read the functions of regular expressions in sqlglot's trees."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from variantlake.errors import InvalidQuery
from variantlake.expressions.functions.nodes import Read, only, read_args
from variantlake.expressions.functions.signatures import call
from variantlake.expressions.tree import Expression, Literal
from variantlake.expressions.typing import INT_LIMITS, compare, refused
from variantlake.types import Kind

_ZERO = Literal(0, "int")


def _group(node: exp.Expression, read: Read) -> Expression:
    only(node, "this", "expression", "group", "null_if_pos_overflow")
    return call("regexp_extract", *read(node.this, node.expression, node.args["group"]))


def _first_match(node: exp.Expression, read: Read) -> Expression:
    """Read REGEXP_SUBSTR, which is NULL instead of an empty text."""
    only(node, "this", "expression")
    nothing = Literal("", "string")
    found = call("regexp_extract", *read(node.this, node.expression), _ZERO)
    return call("case", compare("=", found, nothing), Literal(None, "string"), found)


def _replaced(node: exp.Expression, read: Read) -> Expression:
    only(node, "this", "expression", "replacement")
    return call("regexp_replace", *read(node.this, node.expression, node.args["replacement"]))


PARTS_FUNCTIONS = {"get": "get", "try_element_at": "try_element_at", "cardinality": "size"}
"""Functions of arrays that sqlglot does not know."""


def read_parts(
    array: exp.Expression, function: str, others: list[exp.Expression], read: Read
) -> Expression:
    """Read a function of `split(text, pattern)`; other arrays are refused."""
    if not isinstance(array, exp.RegexpSplit):
        raise refused(f"{function} of other than split(…)")
    only(array, "this", "expression")
    split, constants = read(array.this, array.expression), read(*others)
    if function == "size":
        return call("split_size", *split)
    (constant,) = constants
    if function == "contains":
        return call("split_contains", *split, constant)
    if not isinstance(constant, Literal) or type(constant.value) is not int:
        raise refused("a part of split(…) at other than a constant place")
    place = constant.value
    if "element_at" in function:
        if not place:
            raise InvalidQuery("the parts of element_at are counted from 1, not 0")
        place -= place > 0
    elif place < 0:  # as a place beyond the last
        place = INT_LIMITS[Kind.INT32] - 1
    is_error = function in ("[]", "element_at")
    return call("split_at", *split, Literal(place, "int"), Literal(is_error, "boolean"))


def _bracket(node: exp.Expression, read: Read) -> Expression:
    """Read `split(…)[n]`, and `element_at`, which counts from 1."""
    function = "element_at" if node.args.get("offset") == 1 else "[]"
    if node.args.get("safe"):
        function = f"try_{function}"
    return read_parts(node.this, function, node.expressions, read)


def _size(node: exp.Expression, read: Read) -> Expression:
    only(node, "this")
    return read_parts(node.this, "size", [], read)


def _array_contains(node: exp.Expression, read: Read) -> Expression:
    return read_parts(node.this, "contains", [node.expression], read)


PATTERN_READERS: dict[type[exp.Expression], Callable[[exp.Expression, Read], Expression]] = {
    exp.RegexpExtract: _group,
    exp.RegexpSubstr: _first_match,
    exp.RegexpReplace: _replaced,
    exp.RegexpCount: read_args("regexp_count", "this", "expression"),
    exp.Bracket: _bracket,
    exp.ArraySize: _size,
    exp.ArrayContains: _array_contains,
}
