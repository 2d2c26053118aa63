from __future__ import annotations

import json
from typing import Any, cast

import pytest

from tests.kernels.batches import expected, read, same, trees
from variantlake.encoding.metadata import check_sorted, decode_metadata
from variantlake.encoding.value import validate
from variantlake.kernels.json.json_reader import JsonReader
from variantlake.kernels.tape.dictionary import SHARED_BYTES, choose_dictionary
from variantlake.kernels.variant.variant_writer import write_variant
from variantlake.types import EMPTY_METADATA

WIDE = {
    "300-keys": {f"k{i}": i for i in range(300)},
    "256-keys": {f"k{i}": None for i in range(256)},
    "255-elements": [True] * 255,
    "256-elements": [True] * 256,
    "70000-elements": [0] * 70000,
    "65536-bytes": {"a": "x" * 65536, "b": 1},
    "17-megabytes": {"a": "x" * 17_000_000, "b": [1]},
    "63-byte-string": "é" * 31 + "x",
    "64-byte-string": "é" * 32,
    "nested": {"a": [{f"k{i}": {"x": i} for i in range(260)}, [{}], []]},
}


@pytest.mark.parametrize("name", WIDE)
def test_sizes_take_the_narrowest_width(name: str) -> None:
    document = json.dumps(WIDE[name], ensure_ascii=False).encode()
    variants = write_variant(read([document]))
    row: Any = variants[0].as_py()
    validate(row["metadata"], row["value"])
    (tree,) = trees(variants)
    assert same(expected(document), tree)


def metadata_of(documents: list[bytes], reader: JsonReader | None = None) -> list[bytes]:
    variants = write_variant(read(documents, reader))
    metadata: list[bytes] = cast("Any", variants.field("metadata")).to_pylist()
    return metadata


def test_rows_share_a_small_dictionary() -> None:
    one, two = metadata_of([b'{"b":1}', b'{"a":{"c":2}}'])
    assert one == two
    assert decode_metadata(one).keys == ("a", "b", "c")


def test_batches_of_a_reader_share_it_too() -> None:
    reader = JsonReader()
    metadata_of([b'{"b":1}'], reader)
    assert decode_metadata(metadata_of([b'{"a":1}'], reader)[0]).keys == ("a", "b")


def test_a_large_dictionary_of_rows_that_differ_is_not_shared() -> None:
    documents = [json.dumps({f"key {row} {i}": i for i in range(20)}).encode() for row in range(30)]
    tape = read(documents)
    assert choose_dictionary(tape).per_node
    for row, metadata in enumerate(metadata_of(documents)):
        dictionary = decode_metadata(metadata)
        check_sorted(dictionary)
        assert set(dictionary.keys) == {f"key {row} {i}" for i in range(20)}


def test_a_large_dictionary_of_rows_that_agree_is_shared() -> None:
    document = json.dumps({f"a rather long key {i}": i for i in range(100)}).encode()
    one, two = metadata_of([document, document])
    assert one == two
    assert len(one) > SHARED_BYTES


def test_keys_are_in_the_order_of_their_utf8_bytes() -> None:
    # In UTF-16, as Spark sorts, U+1F600 comes before U+FFFF.
    (metadata,) = metadata_of([json.dumps({"\U0001f600": 1, "\uffff": 2, "z": 3}).encode()])
    assert decode_metadata(metadata).keys == ("z", "\uffff", "\U0001f600")


def test_no_keys_are_the_empty_metadata() -> None:
    assert metadata_of([b"1", b"[{}]"]) == [EMPTY_METADATA, EMPTY_METADATA]


def test_a_row_without_keys_beside_rows_of_their_own() -> None:
    documents = [json.dumps({f"key {row} {i}": i for i in range(20)}).encode() for row in range(30)]
    assert metadata_of([*documents, b"7"])[-1] == EMPTY_METADATA


def test_a_bad_row_is_null_above_empty_bytes() -> None:
    variants = write_variant(read([b"1", b"{", b"2"]))
    variants.validate(full=True)
    assert variants.null_count == 1
    assert variants.field("value").null_count == 0
    assert cast("Any", variants.field("value")).to_pylist() == [b"\x0c\x01", b"", b"\x0c\x02"]
    assert metadata_of([b"1", b"{"]) == [EMPTY_METADATA, b""]


def test_no_rows() -> None:
    assert len(write_variant(read([]))) == 0
