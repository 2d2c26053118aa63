"""The rules of "Metadata encoding", a test for each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import keys
from variantlake.encoding.metadata import (
    check_sorted,
    decode_metadata,
    decode_metadata_header,
    encode_dictionary,
    encode_metadata,
    metadata_size,
    sorted_keys,
)
from variantlake.errors import InvalidValue, LimitExceeded, MalformedVariant


def test_empty_metadata_is_three_bytes() -> None:
    assert encode_metadata([]) == b"\x01\x00\x00"
    assert decode_metadata(b"\x01\x00\x00").keys == ()


def test_an_empty_buffer_is_refused() -> None:
    with pytest.raises(MalformedVariant, match="empty"):
        decode_metadata(b"")


@pytest.mark.parametrize("version", [0, 2, 15])
def test_the_version_is_one(version: int) -> None:
    with pytest.raises(MalformedVariant, match="version") as caught:
        decode_metadata(bytes([version, 0, 0]))
    assert caught.value.offset == 0


def test_the_reserved_bit_is_ignored() -> None:
    plain = decode_metadata(b"\x01\x01\x00\x01a")
    assert decode_metadata(b"\x21\x01\x00\x01a") == plain


@pytest.mark.parametrize("offset_size", [1, 2, 3, 4])
@pytest.mark.parametrize("is_sorted", [False, True])
def test_every_offset_size(offset_size: int, is_sorted: bool) -> None:
    data = encode_dictionary([b"a", b"", "é".encode()][::1], sorted_strings=False)
    assert decode_metadata(data).keys == ("a", "", "é")
    texts = [b"", b"a", "é".encode()]
    data = encode_dictionary(texts, sorted_strings=is_sorted, offset_size=offset_size)
    assert data[0] == 1 | is_sorted << 4 | (offset_size - 1) << 6
    assert len(data) == 1 + 5 * offset_size + 3
    metadata = decode_metadata(data)
    assert metadata.keys == ("", "a", "é")
    assert metadata.sorted_strings == is_sorted
    assert decode_metadata_header(data) == (is_sorted, offset_size)
    assert metadata_size(data + b"more") == len(data)


@pytest.mark.parametrize(
    ("data", "offset"),
    [
        (b"\x01", 1),  # no dictionary_size
        (b"\xc1\x01\x00\x00", 4),  # dictionary_size of 4 bytes is cut
        (b"\x01\x01", 1),  # no offsets
        (b"\x01\x01\x00", 1),  # one offset of two
        (b"\x01\x02\x00\x01", 1),  # two offsets of three
        (b"\x01\xff\x00\x01\x02", 1),  # many more keys than bytes
        (b"\xc1\xff\xff\xff\xff\x00\x00", 1),  # 4 billion keys: refused before they are allocated
        (b"\x01\x01\x01\x01a", 2),  # the first offset is not 0
        (b"\x01\x02\x00\x02\x01ab", 4),  # offsets fall
        (b"\x01\x01\x00\x02a", 3),  # the last offset passes the end
        (b"\x01\x01\x00\x01ab", 5),  # a byte is left over
        (b"\x01\x00\x00\x00", 3),  # the same without keys
        (b"\x01\x01\x00\x01\xff", 4),  # not UTF-8
        (b"\x01\x01\x00\x03\xed\xa0\x80", 4),  # a surrogate is not UTF-8
        (b"\x01\x02\x00\x01\x02\xc3\xa9", 5),  # a character cut in two by offsets
        (b"\x11\x02\x00\x01\x02aa", 5),  # sorted strings are unique
    ],
)
def test_what_breaks_the_layout_is_refused_with_its_offset(data: bytes, offset: int) -> None:
    with pytest.raises(MalformedVariant) as caught:
        decode_metadata(data)
    assert caught.value.offset == offset


def test_unsorted_dictionaries_may_repeat_keys() -> None:
    data = encode_dictionary([b"b", b"a", b"b"], sorted_strings=False)
    assert decode_metadata(data).keys == ("b", "a", "b")
    check_sorted(decode_metadata(data))


def test_a_false_sorted_flag_is_tolerated_by_reading_and_found_by_checking() -> None:
    # In the order of UTF-16, as writers in Java sort: U+10000 before U+FFFF.
    texts = ["\U00010000".encode(), "\uffff".encode()]
    metadata = decode_metadata(encode_dictionary(texts, sorted_strings=True))
    assert metadata.keys == ("\U00010000", "\uffff")
    with pytest.raises(MalformedVariant, match="sorted_strings"):
        check_sorted(metadata)


def test_keys_are_sorted_by_utf8_bytes() -> None:
    names = ["\U00010000", "\uffff", "é", "z", "a", "a"]
    assert sorted_keys(names) == ("a", "z", "é", "\uffff", "\U00010000")
    assert encode_metadata(sorted_keys(names))[0] & 0x10
    assert not encode_metadata(["b", "a"])[0] & 0x10
    assert not encode_metadata(["a", "a"])[0] & 0x10


@pytest.mark.parametrize(("bytes_", "offset_size"), [(255, 1), (256, 2), (65535, 2), (65536, 3)])
def test_the_narrowest_offset_size_that_fits(bytes_: int, offset_size: int) -> None:
    data = encode_metadata(["k" * bytes_])
    assert decode_metadata_header(data)[1] == offset_size
    # Many empty keys: dictionary_size needs the bytes, not the offsets.
    empty = encode_dictionary([b""] * bytes_, sorted_strings=False)
    assert decode_metadata_header(empty)[1] == offset_size


def test_limits_are_errors_before_memory_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("variantlake.encoding.metadata.MAX_KEYS", 2)
    three = b"\x01\x03\x00\x00\x00\x00"
    with pytest.raises(LimitExceeded, match="keys"):
        decode_metadata(three)
    with pytest.raises(LimitExceeded, match="keys"):
        encode_metadata(["a", "b", "c"])
    monkeypatch.setattr("variantlake.encoding.metadata.MAX_VALUE_BYTES", 5)
    with pytest.raises(LimitExceeded, match="bytes"):
        decode_metadata(three)
    with pytest.raises(LimitExceeded, match="bytes"):
        encode_metadata(["aa"])


def test_a_key_with_a_lone_surrogate_cannot_be_written() -> None:
    with pytest.raises(InvalidValue, match="surrogate"):
        encode_metadata(["\ud800"])


@given(st.lists(keys))
def test_decode_of_encode_is_the_same(names: list[str]) -> None:
    metadata = decode_metadata(encode_metadata(names))
    assert metadata.keys == tuple(names)
    check_sorted(metadata)


@given(st.lists(st.integers(0, 40), min_size=1), st.integers(0, 40))
def test_offsets_start_with_zero_never_fall_and_stay_within(offsets: list[int], size: int) -> None:
    data = bytes([1, len(offsets) - 1, *offsets]) + b"x" * size
    bad = next(
        (
            i
            for i, offset in enumerate(offsets)
            if offset > size or (offset < offsets[i - 1] if i else offset > 0)
        ),
        None,
    )
    if bad is None:
        assert metadata_size(data) == 2 + len(offsets) + offsets[-1]
    else:
        with pytest.raises(MalformedVariant, match=f"dictionary offset {bad} is") as caught:
            metadata_size(data)
        assert caught.value.offset == 2 + bad
