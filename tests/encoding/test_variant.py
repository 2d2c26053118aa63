"""The class that users hold in their hands."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given

from tests.encoding.layouts import Layouts
from tests.strategies import layouts, objects, trees, variants
from variantlake.encoding.json import parse_json
from variantlake.encoding.metadata import encode_dictionary
from variantlake.encoding.tree import Tree, logical_key
from variantlake.encoding.variant import Variant
from variantlake.errors import (
    InvalidPath,
    InvalidValue,
    LimitExceeded,
    MalformedVariant,
    UnknownVariantType,
)
from variantlake.paths import Path

EVENT = parse_json(
    """{"kind": "commit", "odd key": 1, "it's": 2, "": 3, "a.b": 4, "null": null,
        "commit": {"langs": ["en", "pt"], "deep": [[{"x": 2.50}]]}, "\U0001f600": 5, "\uffff": 6}"""
)


@pytest.mark.parametrize(
    ("path", "json"),
    [
        ("$", None),
        ("$.kind", '"commit"'),
        ("$['odd key']", "1"),
        ('$["it\'s"]', "2"),
        (r"$['it\'s']", "2"),
        ("$['']", "3"),
        ("$['a.b']", "4"),
        ("$.null", "null"),
        ("$.commit.langs[1]", '"pt"'),
        ("$.commit.deep[0][0].x", "2.5"),
        ("$['\U0001f600']", "5"),
        ("$['\uffff']", "6"),
    ],
)
def test_get(path: str, json: str | None) -> None:
    found = EVENT.get(path)
    assert found is not None
    assert found.to_json() == (json if json is not None else EVENT.to_json())
    assert EVENT.get(Path.parse(path)) == found


@pytest.mark.parametrize(
    "path",
    ["$.none", "$.Kind", "$.kind.x", "$.kind[0]", "$[0]", "$.commit.langs[2]", "$.commit.langs.x",
     "$.null.x", "$.a.b", "$.commit['0']"],
)  # fmt: skip
def test_get_of_what_is_not_there(path: str) -> None:
    assert EVENT.get(path) is None


def test_get_with_a_negative_index_finds_nothing() -> None:
    assert EVENT.get(Path.of("commit", "langs", -1)) is None
    with pytest.raises(InvalidPath):
        EVENT.get("$.commit.langs[-1]")


def test_get_touches_only_what_is_on_the_way() -> None:
    metadata = encode_dictionary([b"a", b"b", b"c"], sorted_strings=True)
    # a is of an unknown type, b is true, c is an object that is cut.
    variant = Variant(metadata, bytes.fromhex("02 03 000102 01000406 04 54ffff 0205"))
    found = variant.get("$.b")
    assert found is not None
    assert found.to_python() is True
    unknown = variant.get("$.a")
    assert unknown is not None
    with pytest.raises(UnknownVariantType):
        unknown.to_python()
    with pytest.raises(UnknownVariantType):
        _ = unknown.type
    assert "unreadable" in repr(unknown)
    with pytest.raises(MalformedVariant) as caught:
        variant.get("$.c.x")
    assert caught.value.path == "$['c']"


@given(objects, layouts)
def test_get_finds_every_field_in_every_layout(tree: dict[str, Tree], layout: Layouts) -> None:
    variant = Variant(*layout.encode(tree))
    for name, child in tree.items():
        found = variant.get(Path.of(name))
        assert found is not None
        assert logical_key(found.tree()) == logical_key(child)
    assert variant.get(Path.of("not there, whatever")) is None


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("{}", "object"), ("[]", "array"), ('"x"', "string"), ("1", "int8"), ("1.5", "decimal4"),
        ("1e5", "double"), ("null", "null"), ("true", "boolean"), ("300", "int16"),
    ],
)  # fmt: skip
def test_type_is_the_specs_name(text: str, type_: str) -> None:
    assert parse_json(text).type == type_


def test_repr_is_readable_and_short() -> None:
    assert repr(parse_json('{"a": [1, "x"]}')) == 'Variant(object: {"a":[1,"x"]})'
    assert repr(parse_json("2.50")) == "Variant(decimal4: 2.5)"
    assert len(repr(Variant.of(["x" * 100] * 100))) < 250
    assert str(parse_json("[1, 2]")) == "[1,2]"
    assert "unreadable" in repr(Variant(b"\x01\x00\x00", b"\x03"))


@given(variants)
def test_pickle_and_copy(variant: Variant) -> None:
    for again in (pickle.loads(pickle.dumps(variant)), copy.copy(variant), copy.deepcopy(variant)):  # noqa: S301 - our own bytes
        assert (again.metadata, again.value) == (variant.metadata, variant.value)
        assert again == variant


def test_it_is_immutable() -> None:
    with pytest.raises(AttributeError):
        EVENT.value = b"\x00"  # type: ignore[misc] # what the test is about


@given(trees, layouts)
def test_equality_and_hash_ignore_the_layout(tree: Tree, layout: Layouts) -> None:
    plain, other = Variant.of_tree(tree), Variant(*layout.encode(tree))
    assert plain == other
    assert hash(plain) == hash(other)


def test_equality_with_other_things() -> None:
    assert Variant.of(1) != Variant.of(2)
    assert Variant.of(1) != 1
    assert Variant.of(1) == parse_json("1.000")
    assert len({Variant.of(1), parse_json("1.0"), Variant.of(1.0)}) == 2


@pytest.mark.parametrize(
    ("metadata", "value"), [(b"", b"\x00"), (b"\x02\x00\x00", b"\x00"), (b"\x01\x00\x00", b"")]
)
def test_headers_are_checked_when_it_is_made(metadata: bytes, value: bytes) -> None:
    with pytest.raises(MalformedVariant):
        Variant(metadata, value)


def test_parts_are_bytes() -> None:
    variant = Variant(bytearray(EVENT.metadata), memoryview(EVENT.value))  # type: ignore[arg-type] # what the test is about
    assert variant == EVENT
    assert isinstance(variant.value, bytes)
    with pytest.raises(InvalidValue):
        Variant(b"\x01\x00\x00", 3)  # type: ignore[arg-type] # the same
    assert parse_json(memoryview(b"[1]")) == parse_json(bytearray(b"[1]")) == parse_json("[1]")


def test_size_is_checked_when_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("variantlake.encoding.value.MAX_VALUE_BYTES", 3)
    with pytest.raises(LimitExceeded):
        Variant(b"\x01\x00\x00", bytes(4))


def test_validate_is_stricter_than_reading() -> None:
    variant = Variant(*Layouts(utf16_order=True).encode({"\uffff": [], "\U00010000": []}))
    assert len(variant.to_python()) == 2
    with pytest.raises(MalformedVariant):
        variant.validate()
    EVENT.validate()


@pytest.mark.parametrize("path", [5, None, b"$.a"])
def test_a_path_of_another_type_is_refused(path: Any) -> None:
    with pytest.raises(InvalidPath, match="a path is text"):
        Variant.of({"a": 1}).get(path)
