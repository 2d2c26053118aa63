"""Changing a value inside of a Variant: the rules of Spark 4.3, case by case."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import MORE, trees, variants
from variantlake.encoding.edit import Change, Edit, edited
from variantlake.encoding.json import parse_json
from variantlake.encoding.limits import MAX_DEPTH, MAX_PADDING
from variantlake.encoding.metadata import decode_metadata, encode_metadata
from variantlake.encoding.scalar import NULL
from variantlake.encoding.tree import Tree, encode_value
from variantlake.encoding.variant import Variant
from variantlake.errors import (
    DuplicateKey,
    InvalidPath,
    InvalidValue,
    LimitExceeded,
    MalformedVariant,
    PathTypeMismatch,
    VariantLakeError,
)
from variantlake.paths import Path

SET, INSERT, DELETE, APPEND = Change


def change(
    what: Change, text: str, path: str, new: object = None, *, create_if_missing: bool = True
) -> str:
    variant = parse_json(text)
    tree = None if what is DELETE else Variant.of(new).tree()
    edit = Edit(what, Path.parse(path), create_if_missing)
    result = Variant(*edited(variant.metadata, variant.value, edit, tree))
    result.validate()
    return result.to_json()


CASES = [
    (SET, '{"a":1}', "$.a", 2, '{"a":2}'),
    (SET, '{"b":1}', "$.a", 2, '{"a":2,"b":1}'),
    (SET, '{"a":{"b":1}}', "$.a.b", 9, '{"a":{"b":9}}'),
    (SET, "{}", "$.a.b", 1, '{"a":{"b":1}}'),
    (SET, "{}", "$.a[2].c", 1, '{"a":[null,null,{"c":1}]}'),
    (SET, "[1,2,3]", "$[1]", "x", '[1,"x",3]'),
    (SET, "[1]", "$[1]", 2, "[1,2]"),
    (SET, "[1]", "$[3]", 2, "[1,null,null,2]"),
    (SET, '{"a":1}', "$.a", {"z": [1], "a": None}, '{"a":{"a":null,"z":[1]}}'),
    (SET, '{"a b":1}', "$['a b']", None, '{"a b":null}'),
    (SET, '{"":1}', "$['']", 2, '{"":2}'),
    (INSERT, '{"a":1}', "$.b", 2, '{"a":1,"b":2}'),
    (INSERT, "{}", "$.a.b.c", 99, '{"a":{"b":{"c":99}}}'),
    (INSERT, '["a","b","c"]', "$[1]", "z", '["a","z","b","c"]'),
    (INSERT, '["a"]', "$[0]", "z", '["z","a"]'),
    (INSERT, '["a"]', "$[1]", "z", '["a","z"]'),
    (INSERT, '["a"]', "$[3]", "z", '["a",null,null,"z"]'),
    (INSERT, '[{"b":1}]', "$[0].a", 2, '[{"a":2,"b":1}]'),
    (DELETE, '{"a":1,"b":2}', "$.a", None, '{"b":2}'),
    (DELETE, "[1,2,3]", "$[1]", None, "[1,3]"),
    (DELETE, '{"a":{"b":1}}', "$.a.b", None, '{"a":{}}'),
    (DELETE, '{"a":1}', "$.x", None, '{"a":1}'),
    (DELETE, '{"a":1}', "$.a.b[0]", None, '{"a":1}'),
    (DELETE, '{"a":[1]}', "$.a[7]", None, '{"a":[1]}'),
    (APPEND, "[1,2]", "$", 3, "[1,2,3]"),
    (APPEND, '{"a":[1]}', "$.a", [2, 3], '{"a":[1,[2,3]]}'),
    (APPEND, "[[1],2]", "$[0]", None, "[[1,null],2]"),
    (APPEND, '{"a":1}', "$.b", 2, '{"a":1}'),
    (APPEND, "[[1]]", "$[4]", 2, "[[1]]"),
]


@pytest.mark.parametrize(("what", "text", "path", "new", "expected"), CASES)
def test_what_is_put_and_removed(
    what: Change, text: str, path: str, new: object, expected: str
) -> None:
    assert change(what, text, path, new) == expected


@pytest.mark.parametrize(
    ("text", "path"), [('{"a":1}', "$.b"), ('{"a":1}', "$.b.c"), ("[1]", "$[1]"), ("[1]", "$[1].a")]
)
def test_nothing_is_made_where_it_must_not(text: str, path: str) -> None:
    assert change(SET, text, path, 2, create_if_missing=False) == text


def test_a_value_that_is_there_is_replaced_without_making_any() -> None:
    assert change(SET, '{"a":[1]}', "$.a[0]", 2, create_if_missing=False) == '{"a":[2]}'


@pytest.mark.parametrize("what", [SET, INSERT, APPEND])
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"a":1}', "$.a.b"),
        ('{"a":null}', "$.a.b"),
        ('{"a":{}}', "$.a[0]"),
        ("[1]", "$.a"),
        ("1", "$.a"),
        ('{"a":"x"}', "$.a[0].b"),
    ],
)
def test_a_path_through_another_type_is_an_error(what: Change, text: str, path: str) -> None:
    for create in (True, False):
        with pytest.raises(PathTypeMismatch, match=r"expected an (object|array), found"):
            change(what, text, path, 2, create_if_missing=create)


def test_only_arrays_are_appended_to() -> None:
    with pytest.raises(PathTypeMismatch, match="expected an array, found object"):
        change(APPEND, "{}", "$", 2)


def test_a_field_that_is_there_is_not_inserted() -> None:
    with pytest.raises(DuplicateKey, match="'b' is there already") as caught:
        change(INSERT, '{"a":{"b":1}}', "$.a.b", 2)
    assert caught.value.path == "$['a']['b']"


@pytest.mark.parametrize("what", [SET, INSERT, DELETE])
def test_the_root_is_no_place_to_change(what: Change) -> None:
    with pytest.raises(InvalidPath, match=r"the path \$ is the whole value"):
        Edit(what, Path())


def test_padding_and_depth_have_limits() -> None:
    with pytest.raises(LimitExceeded, match=f"over {MAX_PADDING}"):
        Edit(SET, Path((MAX_PADDING + 1,)))
    deep: Tree = []
    for _ in range(MAX_DEPTH - 1):
        deep = [deep]
    with pytest.raises(LimitExceeded, match="containers around one another"):
        edited(b"\x01\x00\x00", b"\x02\x00\x00", Edit(SET, Path(("a",))), deep)


def test_what_is_beside_the_path_keeps_its_bytes() -> None:
    """A long string that could be a short one, a wide offset: nobody makes them narrower."""
    odd = b"\x40\x01\x00\x00\x00x"  # a string of one byte in the long form
    value = b"\x02\x02\x00\x01\x00\x06\x08" + odd + b"\x0c\x01"
    metadata = encode_metadata(["a", "b"])
    found = edited(metadata, value, Edit(SET, Path(("b",))), Variant.of(7).tree())
    assert found == (metadata, value[:-1] + b"\x07")


def test_new_keys_go_behind_the_others_and_order_is_said_where_it_holds() -> None:
    variant = parse_json('{"b":1,"d":2}')
    for key, keys, ordered in (("e", ("b", "d", "e"), True), ("c", ("b", "d", "c"), False)):
        metadata, value = edited(
            variant.metadata, variant.value, Edit(SET, Path((key,))), Variant.of(1).tree()
        )
        dictionary = decode_metadata(metadata)
        assert (dictionary.keys, dictionary.sorted_strings) == (keys, ordered)
        Variant(metadata, value).validate()


def test_a_key_that_is_not_unicode_text_is_refused() -> None:
    variant = Variant.of({})
    with pytest.raises(InvalidValue, match="lone surrogate"):
        edited(variant.metadata, variant.value, Edit(SET, Path(("\ud800",))), NULL)


def test_a_container_on_the_way_is_checked() -> None:
    metadata = encode_metadata(["a"])
    with pytest.raises(MalformedVariant, match="outside a dictionary") as caught:
        edited(metadata, b"\x02\x01\x05\x00\x01\x00", Edit(SET, Path(("a",))), Variant.of(1).tree())
    assert caught.value.path == "$"


steps = st.lists(st.sampled_from(["a", "b", "id", "\U00010000"]) | st.integers(0, 3), max_size=3)


@settings(max_examples=40 * MORE, deadline=None)
@given(variants, steps, trees, st.booleans())
def test_what_was_set_is_found(
    variant: Variant, path: list[str | int], new: Tree, flag: bool
) -> None:
    """And whatever is not below the path is what it was."""
    if not path:
        return
    where = Path(tuple(path))
    try:
        result = Variant(*edited(variant.metadata, variant.value, Edit(SET, where, flag), new))
    except VariantLakeError:
        return
    keys = {key: i for i, key in enumerate(decode_metadata(result.metadata).keys)}
    there = result.get(where)
    if there is not None:
        assert there.value == encode_value(new, keys)
    else:
        assert not flag
        assert (result.metadata, result.value) == (variant.metadata, variant.value)
    removed = edited(result.metadata, result.value, Edit(DELETE, where), None)
    tree = Variant(*removed).tree()
    if variant.get(where) is None and isinstance(tree, dict) and len(path) == 1:
        assert Variant.of_tree(tree) == variant
