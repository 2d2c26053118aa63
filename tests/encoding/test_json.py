"""JSON text to a Variant: the types of Spark's `parse_json`, and errors that say where."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, cast

import pytest
from hypothesis import example, given

from tests.encoding.spark_json import LENIENT, OBJECTS, PARSED, REFUSED
from tests.strategies import json_texts
from variantlake.encoding.json import parse_json, parse_json_tree
from variantlake.encoding.json_text import to_json
from variantlake.encoding.limits import MAX_DEPTH, MAX_NUMBER_DIGITS
from variantlake.encoding.scalar import INTEGER_BITS, Scalar, decimal_parts
from variantlake.encoding.tree import Tree, logical_key
from variantlake.errors import InvalidJson, InvalidValue, LimitExceeded
from variantlake.types import PRIMITIVES


def short(text: str) -> str:
    return ascii(text[:40])


@pytest.mark.parametrize(("text", "value", "as_json"), PARSED, ids=[short(p[0]) for p in PARSED])
def test_values_are_those_of_spark(text: str, value: str, as_json: str) -> None:
    variant = parse_json(text)
    assert variant.value.hex() == value
    assert to_json(variant.metadata, variant.value) == as_json


@pytest.mark.parametrize(("text", "as_json"), OBJECTS, ids=[short(p[0]) for p in OBJECTS])
def test_objects_are_those_of_spark(text: str, as_json: str) -> None:
    assert parse_json(text).to_json() == as_json


@pytest.mark.parametrize("text", [*REFUSED, *LENIENT], ids=map(short, [*REFUSED, *LENIENT]))
@pytest.mark.parametrize("form", ["str", "bytes"])
def test_what_is_not_json_is_refused(text: str, form: str) -> None:
    with pytest.raises((InvalidJson, LimitExceeded)) as caught:
        parse_json(text if form == "str" else text.encode())
    assert caught.value.offset is not None
    assert caught.value.offset <= len(text.encode())
    assert caught.value.line is not None
    assert caught.value.column is not None


@pytest.mark.parametrize(
    ("text", "message", "where"),
    [
        ('{"a":\n {"b": [1, 02]}}', "leading zero", (18, 2, 13, "$['a']['b'][1]")),
        ('{"é": tru}', "expected a value, found 't'", (7, 1, 7, "$['é']")),
        ('["a\tb"]', "control character", (3, 1, 4, "$[0]")),
        ("[1, 2", "expected ',' or ']', found the end", (5, 1, 6, "$[1]")),
        ('{"a": 1', "expected ',' or '}', found the end", (7, 1, 8, "$['a']")),
        ('{"a": 1,}', "expected a key", (8, 1, 9, "$['a']")),
        ('{"a" 1}', "expected ':'", (5, 1, 6, "$['a']")),
        ('["\\ud83d"]', "lone surrogate", (2, 1, 3, "$[0]")),
        ('["\\q"]', "unknown escape", (2, 1, 3, "$[0]")),
        ('["abc', "ends inside of a string", (1, 1, 2, "$[0]")),
        ('{"a": 1, "b', "ends inside of a string", (9, 1, 10, "$['a']")),
        ("{} 1", "after the end of the document", (3, 1, 4, "$")),
        ("\ufeff{}", "byte order mark", (0, 1, 1, "$")),
        ("", "found the end of the text", (0, 1, 1, "$")),
        ("-", "expected digits", (0, 1, 1, "$")),
    ],
)
def test_errors_say_where_and_what(
    text: str, message: str, where: tuple[int, int, int, str]
) -> None:
    for form in (text, text.encode()):
        with pytest.raises(InvalidJson, match=message) as caught:
            parse_json(form)
        error = caught.value
        assert (error.offset, error.line, error.column, error.path) == where


@pytest.mark.parametrize("blanks", ["\n", " \r\n", "\t"])
@pytest.mark.parametrize(
    "text", ['["é", "abc', '{"a": "x\\', '["\\u12', '["\\ud83d\\u', '{"a": 1', '{"a":', "[1,", ""]
)
def test_white_space_behind_a_cut_document_moves_no_error(text: str, blanks: str) -> None:
    said = []
    for each in (text, text + blanks):
        with pytest.raises(InvalidJson) as caught:
            parse_json(each)
        error = caught.value
        said.append((error.message, error.offset, error.line, error.column, error.path))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("data", "offset"),
    [
        (b'{"a": "\xff"}', 7),
        (b'"\xc3\xa9\xed\xa0\x80"', 3),  # a surrogate in UTF-8
        (b'"\xc0\x80"', 1),  # an overlong NUL
        (b'"\xf4\x90\x80\x80"', 1),  # beyond U+10FFFF
        (b'"\xc3', 1),
    ],
)
def test_bytes_that_are_not_utf8_are_refused(data: bytes, offset: int) -> None:
    with pytest.raises(InvalidJson, match="UTF-8") as caught:
        parse_json(data)
    assert caught.value.offset == offset


def test_a_str_with_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(InvalidJson, match="surrogate") as caught:
        parse_json('"\n é\ud800"')
    assert (caught.value.offset, caught.value.line, caught.value.column) == (5, 2, 3)


def test_duplicate_keys_are_an_error_that_names_the_second() -> None:
    with pytest.raises(InvalidJson, match="'a' occurs twice") as caught:
        parse_json('{"a": 1, "b": {"a": 2}, "a": 3}')
    assert caught.value.offset == 24


def test_the_last_of_duplicate_keys_wins_on_request() -> None:
    text = '{"a": 1, "a": {"x": [], "x": 2}, "b": 0, "a": 3}'
    assert parse_json(text, duplicate_keys="last").to_json() == '{"a":3,"b":0}'
    text = '{"a": 3, "a": {"x": [], "x": 2}}'
    assert parse_json(text, duplicate_keys="last").to_json() == '{"a":{"x":2}}'


def test_fields_are_ordered_by_utf8_bytes() -> None:
    # Spark gives U+1F600 before U+FFFF, by UTF-16 code units.
    variant = parse_json('{"\U0001f600": 1, "\uffff": 2, "z": 3, "é": 4}')
    assert list(variant.to_python()) == ["z", "é", "\uffff", "\U0001f600"]
    variant.validate()


@pytest.mark.parametrize(
    "text", ["[" * MAX_DEPTH + "]" * MAX_DEPTH, '{"a":' * 1000 + "1" + "}" * 1000]
)
def test_nesting_up_to_the_limit(text: str) -> None:
    variant = parse_json(text)
    assert variant.to_json() == text
    variant.validate()
    assert variant == parse_json(text)
    assert hash(variant) == hash(parse_json(text))
    assert variant.to_python() is not None
    with pytest.raises(LimitExceeded, match="containers"):
        parse_json(f"[{text}]")


def test_deep_nesting_is_refused_before_it_costs_anything() -> None:
    with pytest.raises(LimitExceeded) as caught:
        parse_json("[" * 1_000_000)
    assert caught.value.offset == MAX_DEPTH


def test_number_of_digits_up_to_the_limit() -> None:
    for text in ("1" * MAX_NUMBER_DIGITS, "0." + "1" * MAX_NUMBER_DIGITS, "1e" + "0" * 998 + "1"):
        assert parse_json(f"[{text}]").get("$[0]").type == "double"  # type: ignore[union-attr] # it is there
    with pytest.raises(LimitExceeded, match="digits") as caught:
        parse_json("[ " + "1" * (MAX_NUMBER_DIGITS + 1) + "]")
    assert caught.value.offset == 2


def number_of(text: str) -> str:
    """The type and value that the rules give a number: Python's equality is too loose for that."""
    whole, _, fraction = text.lstrip("-").partition(".")
    if "e" in text.lower() or len((whole + fraction).lstrip("0")) > 38 or len(fraction) > 38:
        return f"double {float(text)!r}"
    if fraction or not -(1 << 63) <= int(text) < 1 << 63:
        unscaled = int(text.replace(".", ""))
        return f"decimal {unscaled} {len(fraction)}"
    return f"integer {int(text)}"


def described(tree: Tree) -> Any:
    """A tree in the same terms."""
    if isinstance(tree, dict):
        return {key: described(child) for key, child in tree.items()}
    if isinstance(tree, list):
        return [described(child) for child in tree]
    match tree.value:
        case Decimal() as value:
            unscaled, scale = decimal_parts(value)
            return f"decimal {unscaled} {scale}"
        case float() as value:
            return f"double {value!r}"
        case int() as value if tree.type in INTEGER_BITS:
            return f"integer {value}"
        case value:
            return value


@given(json_texts)
@example("-0.0")
def test_agrees_with_pythons_own_parser(text: str) -> None:
    expected = json.loads(text, parse_int=number_of, parse_float=number_of)
    assert described(parse_json_tree(text)) == expected


@given(json_texts)
def test_json_text_parses_back_to_an_equal_variant(text: str) -> None:
    """Decimals may lose trailing zeros; infinite doubles become strings, and 1.0 a decimal."""
    tree = parse_json_tree(text)
    again = parse_json_tree(parse_json(text).to_json())
    if all(PRIMITIVES[leaf.type].name != "double" for leaf in leaves(tree)):
        assert logical_key(again) == logical_key(tree)


def leaves(tree: Any) -> list[Scalar]:
    if isinstance(tree, Scalar):
        return [tree]
    children = tree.values() if isinstance(tree, dict) else tree
    return [leaf for child in children for leaf in leaves(child)]


@pytest.mark.parametrize("text", [5, True, None, object()])
def test_what_is_no_text_is_refused(text: Any) -> None:
    with pytest.raises(InvalidValue, match="not text or bytes"):
        parse_json(text)


def test_an_unknown_way_with_duplicate_keys_is_refused() -> None:
    with pytest.raises(InvalidValue, match="'error' and 'last'"):
        parse_json("{}", duplicate_keys=cast("Any", "first"))
