"""The rules of "Value encoding" for objects and arrays, a test for each."""

from __future__ import annotations

import pytest

from tests.encoding.layouts import Layouts
from variantlake.encoding.metadata import encode_dictionary
from variantlake.encoding.scalar import FALSE, NULL, TRUE, Scalar
from variantlake.encoding.tree import Tree, decode, encode, logical_key
from variantlake.encoding.value import type_name, validate, value_size
from variantlake.errors import LimitExceeded, MalformedVariant, UnknownVariantType
from variantlake.types import EMPTY_METADATA, Primitive

ABC = encode_dictionary([b"a", b"b", b"c"], sorted_strings=True)
OBJECT: Tree = {"a": Scalar(Primitive.INT8, 1), "b": [TRUE, {}], "c": NULL}


def bytes_of(hexadecimal: str) -> bytes:
    return bytes.fromhex(hexadecimal)


@pytest.mark.parametrize("offset_size", [1, 2, 3, 4])
@pytest.mark.parametrize("id_size", [1, 2, 3, 4])
@pytest.mark.parametrize("is_large", [False, True])
def test_every_size_of_ids_offsets_and_num_elements(
    offset_size: int, id_size: int, is_large: bool
) -> None:
    layout = Layouts(offset_size=offset_size, id_size=id_size, is_large=is_large)
    metadata, value = layout.encode(OBJECT)
    assert value[0] == 2 | (offset_size - 1 | (id_size - 1) << 2 | is_large << 4) << 2
    assert decode(metadata, value) == OBJECT
    assert value_size(value + b"more") == len(value)
    validate(metadata, value)
    metadata, value = layout.encode([NULL, OBJECT])
    assert value[0] == 3 | (offset_size - 1 | is_large << 2) << 2
    assert decode(metadata, value) == [NULL, OBJECT]
    assert value_size(value + b"more") == len(value)
    validate(metadata, value)


@pytest.mark.parametrize("size", [0, 1, 255, 256, 300])
def test_more_than_255_elements_are_large(size: int) -> None:
    array: Tree = [NULL] * size
    metadata, value = encode(array)
    assert bool(value[0] & 0x10) == (size > 255)
    assert decode(metadata, value) == array
    fields: Tree = {f"k{i}": FALSE for i in range(size)}
    metadata, value = encode(fields)
    assert bool(value[0] & 0x40) == (size > 255)
    assert decode(metadata, value) == fields


def test_reserved_bits_are_ignored() -> None:
    metadata, value = Layouts(reserved_bits=True).encode([OBJECT])
    assert value[0] & 0xE0 == 0xE0
    assert decode(metadata, value) == [OBJECT]
    validate(metadata, value)


def test_values_may_stand_in_any_order() -> None:
    # {"a": 1, "b": 2, "c": 3}, values 3, 2, 1 in the data: the specification's own example.
    value = bytes_of("02 03 000102 04020006 0c03 0c02 0c01")
    assert decode(ABC, value) == {k: Scalar(Primitive.INT8, i) for i, k in enumerate("abc", 1)}
    validate(ABC, value)
    # An array's as well.
    value = bytes_of("03 02 020004 0c01 0c02")
    assert decode(ABC, value) == [Scalar(Primitive.INT8, 2), Scalar(Primitive.INT8, 1)]


def test_unused_and_repeated_keys_of_an_unsorted_dictionary() -> None:
    metadata, value = Layouts(
        sorted_strings=False, repeat_keys=True, unused_keys=("zz", "0")
    ).encode(OBJECT)
    assert decode(metadata, value) == OBJECT
    validate(metadata, value)


def test_a_value_inside_is_a_variant_with_the_same_metadata() -> None:
    metadata, value = encode(OBJECT)
    start = value.index(b"\x0c\x01")
    assert decode(metadata, value[start : start + 2]) == Scalar(Primitive.INT8, 1)


def test_short_and_long_strings_are_the_same() -> None:
    for layout in (Layouts(), Layouts(short_strings=False)):
        metadata, value = layout.encode(Scalar(Primitive.STRING, "hello"))
        assert decode(metadata, value) == Scalar(Primitive.STRING, "hello")
        assert type_name(value) == "string"


MALFORMED = {
    "empty value": ("", 0),
    "bytes after a scalar": ("0c 01 00", 0),
    "bytes after an array": ("03 00 00 00", 3),
    "bytes after an object": ("02 00 00 00", 3),
    "no num_elements": ("03", 1),
    "num_elements of 4 bytes is cut": ("13 000000", 4),
    "offsets are cut": ("03 02 00 01", 1),
    "field ids are cut": ("02 03 00 01", 1),
    "4 billion elements": ("13 ffffffff 00", 1),
    "4 billion fields": ("7e ffffffff 00", 1),
    "last offset passes the end": ("03 01 00 02 00", 3),
    "last offset is short of the end": ("03 01 00 01 00 00", 5),
    "more elements than bytes": ("03 03 00 01 02 02 00 00", 1),
    "two elements share bytes": ("03 02 00 00 02 0c01", 2),
    "an element starts at the end": ("03 02 00 02 02 0c01", 3),
    "an element starts beyond the end": ("03 02 00 05 02 0c01", 3),
    "a gap before the first element": ("03 01 01 02 00 00", 4),
    "a gap after an element": ("03 02 00 02 03 00 00 00", 5),
    "an element is cut": ("03 01 00 01 0c", 4),
    "field id outside of the dictionary": ("02 01 03 00 01 00", 2),
    "two fields of one id": ("02 02 00 00 00 01 02 00 00", 2),
    "an array in an array passes its own end": ("03 01 00 05 03 01 00 02 00", 7),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_breaks_the_layout_is_refused_with_its_offset(name: str) -> None:
    hexadecimal, offset = MALFORMED[name]
    for check in (decode, validate):
        with pytest.raises(MalformedVariant) as caught:
            check(ABC, bytes_of(hexadecimal))
        assert caught.value.offset == offset


def test_errors_say_the_path() -> None:
    metadata = encode_dictionary([b"a", b"it's"], sorted_strings=True)
    inner = bytes_of("02 01 01 00 01") + b"\x05"  # {"it's": a short string that is cut}
    value = bytes_of("02 01 00 00 0c 03 02 00 01 07 00") + inner  # {"a": [null, inner]}
    for check in (decode, validate):
        with pytest.raises(MalformedVariant) as caught:
            check(metadata, value)
        assert caught.value.path == r"$['a'][1]['it\'s']"
        assert caught.value.offset == len(value) - 1


def test_two_fields_of_one_name_with_two_ids_are_refused() -> None:
    metadata = encode_dictionary([b"a", b"a"], sorted_strings=False)
    with pytest.raises(MalformedVariant, match="one name"):
        decode(metadata, bytes_of("02 02 00 01 00 01 02 00 00"))


def test_fields_in_another_order_are_read_and_found_by_validate() -> None:
    value = bytes_of("02 02 01 00 00 01 02 04 08")  # b before a
    assert decode(ABC, value) == {"a": FALSE, "b": TRUE}
    with pytest.raises(MalformedVariant, match="UTF-8 bytes"):
        validate(ABC, value)


def test_fields_in_sparks_order_are_read_and_found_by_validate() -> None:
    tree: Tree = {"\uffff": TRUE, "\U00010000": FALSE}
    metadata, value = Layouts(utf16_order=True).encode(tree)
    assert logical_key(decode(metadata, value)) == logical_key(tree)
    with pytest.raises(MalformedVariant, match="UTF-8 bytes"):
        validate(metadata, value)


def test_an_unknown_type_fails_only_when_it_is_touched() -> None:
    # {"a": (type 21, 2 bytes), "b": true, "c": (type 63, none)}: sizes come from the offsets.
    value = bytes_of("02 03 00 01 02 01 00 04 06 04 54 ff ff fc fc")
    with pytest.raises(UnknownVariantType) as caught:
        decode(ABC, value)
    assert (caught.value.path, caught.value.offset) == ("$['a']", 10)
    with pytest.raises(UnknownVariantType):
        validate(ABC, value)


def test_depth_up_to_the_limit() -> None:
    tree: Tree = NULL
    for i in range(1000):
        tree = [tree] if i % 2 else {"a": tree}
    metadata, value = encode(tree)
    assert logical_key(decode(metadata, value)) == logical_key(tree)
    validate(metadata, value)
    deeper = b"\x0f" + b"\x01" + bytes(4) + len(value).to_bytes(4, "little") + value
    for check in (decode, validate):
        with pytest.raises(LimitExceeded, match="containers"):
            check(metadata, deeper)
    with pytest.raises(LimitExceeded, match="containers"):
        encode([tree])


def test_hostile_depth_is_no_recursion() -> None:
    value = b"\x00"
    for _ in range(3000):
        value = b"\x0f\x01" + bytes(4) + len(value).to_bytes(4, "little") + value
    with pytest.raises(LimitExceeded):
        decode(EMPTY_METADATA, value)


def test_values_beyond_the_limit_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    metadata, value = encode(OBJECT)
    monkeypatch.setattr("variantlake.encoding.value.MAX_VALUE_BYTES", len(value) - 1)
    for check in (decode, validate):
        with pytest.raises(LimitExceeded, match="bytes"):
            check(metadata, value)
    with pytest.raises(LimitExceeded, match="bytes"):
        encode(OBJECT)


def test_value_size_is_checked_against_the_buffer() -> None:
    for hexadecimal in ("0c", "40 05000000 61", "03 01 00 02 00", "09 61", "50 00", "13", ""):
        with pytest.raises(MalformedVariant):
            value_size(bytes_of(hexadecimal))
    assert value_size(bytes_of("ff 0c01"), 1) == 2
