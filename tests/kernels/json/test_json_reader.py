from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.kernels.batches import expected, read, same, trees
from tests.kernels.fuzz import Documents
from tests.strategies import MORE, json_numbers, json_texts
from variantlake.encoding.json import DuplicateKeys
from variantlake.encoding.limits import MAX_DEPTH, MAX_NUMBER_DIGITS
from variantlake.encoding.scalar import Scalar
from variantlake.encoding.tree import Tree
from variantlake.kernels.json import json_rows
from variantlake.kernels.json.json_reader import JsonReader
from variantlake.kernels.variant.variant_writer import write_variant
from variantlake.types import Primitive

REFUSED = {
    "empty": (b"", json_rows.INCOMPLETE),
    "blank": (b" \n", json_rows.INCOMPLETE),
    "unclosed": (b"[1", json_rows.INCOMPLETE),
    "byte-order-mark": (b"\xef\xbb\xbf1", json_rows.UNEXPECTED),
    "two-documents": (b"1 2", json_rows.UNEXPECTED),
    "nul-after": (b"1\x00", json_rows.UNEXPECTED),
    "comma-in-object": (b'{"a":1,}', json_rows.UNEXPECTED),
    "comma-in-array": (b"[1,]", json_rows.UNEXPECTED),
    "wrong-bracket": (b'{"a":1]', json_rows.UNEXPECTED),
    "word": (b"nul", json_rows.UNEXPECTED),
    "nan": (b"NaN", json_rows.UNEXPECTED),
    "plus": (b"+1", json_rows.UNEXPECTED),
    "leading-zero": (b"01", json_rows.BAD_NUMBER),
    "minus": (b"-", json_rows.BAD_NUMBER),
    "no-fraction": (b"1.", json_rows.BAD_NUMBER),
    "no-exponent": (b"1e+", json_rows.BAD_NUMBER),
    "digits": (b"1" * (MAX_NUMBER_DIGITS + 1), json_rows.BAD_NUMBER),
    "control-character": (b'"\t"', json_rows.BAD_STRING),
    "open-string": (b'"abc', json_rows.BAD_STRING),
    "escape": (b'"\\x"', json_rows.BAD_STRING),
    "lone-surrogate": (b'"\\ud800"', json_rows.BAD_STRING),
    "low-surrogate": (b'"\\udc00\\ud800"', json_rows.BAD_STRING),
    "overlong": (b'"\xc0\x80"', json_rows.BAD_STRING),
    "encoded-surrogate": (b'"\xed\xa0\x80"', json_rows.BAD_STRING),
    "beyond-unicode": (b'"\xf4\x90\x80\x80"', json_rows.BAD_STRING),
    "cut-utf8": (b'"\xe2\x82"', json_rows.BAD_STRING),
    "bad-key": (b'{"\xff":1}', json_rows.BAD_STRING),
    "too-deep": (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), json_rows.TOO_DEEP),
    "never-closed": (b"[" * 5000, json_rows.TOO_DEEP),
    "duplicate": (b'{"a":1,"b":2,"a":3}', json_rows.DUPLICATE_KEY),
    "escaped-duplicate": (b'{"a":1,"\\u0061":3}', json_rows.DUPLICATE_KEY),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_json_is_refused(case: str) -> None:
    document, status = REFUSED[case]
    assert expected(document) is None
    tape = read([b"0", document, b"1"])
    assert tape.status.tolist() == [0, status, 0]
    assert 0 <= tape.position[1] <= len(document)
    assert tape.first.tolist() == [0, 1, 1, 2]


# The key `a"b` is known by then: it must not be recognised without its escape.
@pytest.mark.parametrize("bad", [b'{"a"b":1}', b'{"a\nb":1}', b'{"":1}'[:3] + b'x":1}'])
def test_keys_that_need_escapes_are_not_guessed(bad: bytes) -> None:
    good = [b'{"a\\"b":1}', b'{"a\\nb":1}', b'{"":1}']
    tape = read([*good, bad, *good])
    assert (tape.status != 0).tolist() == [False, False, False, expected(bad) is None, *[False] * 3]


def test_depth_up_to_the_limit() -> None:
    document = b'{"a":' * MAX_DEPTH + b"1" + b"}" * MAX_DEPTH
    assert read([document]).status.tolist() == [0]


@settings(max_examples=75 * MORE, deadline=None)
@given(st.lists(json_texts, max_size=5), st.sampled_from(["error", "last"]))
@example(['{"a":[1,{"x":1}],"b":2,"a":3,"b":{"c":1}}', '{"k":{"a":1,"a":[1e999]},"k":0}'], "last")
@example(['{"":1,"":2}'], "last")
def test_documents_agree_with_twin(texts: list[str], duplicate_keys: DuplicateKeys) -> None:
    documents = [text.encode() for text in texts]
    tape = read(documents, JsonReader(duplicate_keys=duplicate_keys))
    for document, tree in zip(documents, trees(write_variant(tape)), strict=True):
        assert same(expected(document, duplicate_keys), tree)


@settings(max_examples=75 * MORE, deadline=None)
@given(st.lists(st.binary(max_size=12) | st.text('{}[]",:\\u0eE+-.tfnaé1 ').map(str.encode)))
def test_noise_agrees_with_twin(documents: list[bytes]) -> None:
    tape = read(documents)
    for document, tree in zip(documents, trees(write_variant(tape)), strict=True):
        assert same(expected(document), tree)


@settings(max_examples=100 * MORE, deadline=None)
@given(st.lists(json_numbers | st.floats(allow_nan=False, allow_infinity=False).map(repr)))
@example(["9007199254740993e0", "-0e0", "1e400", "4.9e-324", "2.2250738585072011e-308"])
@example(["0." + "0" * 38, "0." + "0" * 39, "1" * 38 + ".0", "1" * 37 + ".0", "9" * 19, "-0.0"])
def test_numbers_agree_with_twin(texts: list[str]) -> None:
    documents = [text.encode() for text in texts]
    for document, tree in zip(documents, trees(write_variant(read(documents))), strict=True):
        assert same(expected(document), tree)


@settings(deadline=None)
@given(st.integers(0, 10**25), st.integers(-345, 310))
@example(2**53 + 1, 0)  # half-way: to even
@example(22250738585072011, -324)
@example(17976931348623159, 292)  # rounds to infinity
def test_doubles_are_rounded_to_the_nearest(digits: int, exponent: int) -> None:
    text = f"{digits}e{exponent}"
    (tree,) = trees(write_variant(read([text.encode()])))
    assert isinstance(tree, Scalar)
    assert struct.pack("<d", tree.value) == struct.pack("<d", float(text))


@pytest.mark.parametrize("size", [64, 1 << 12, 1 << 20])
def test_results_do_not_depend_on_the_batches(size: int) -> None:
    documents = Documents(7)(200)
    reader = JsonReader()
    found: list[Tree | None] = []
    start = 0
    while start < len(documents):
        end = start + 1
        while end < len(documents) and sum(map(len, documents[start:end])) < size:
            end += 1
        found.extend(trees(write_variant(read(documents[start:end], reader))))
        start = end
    for document, tree in zip(documents, found, strict=True):
        assert same(expected(document), tree)


def test_a_tape_in_use_keeps_its_buffers() -> None:
    reader = JsonReader()
    first = read([b'{"a":"\\n one"}'], reader)
    second = read([b'{"b":"\\n two"}'], reader)
    assert list(trees(write_variant(first))) == [{"a": Scalar(Primitive.STRING, "\n one")}]
    assert list(trees(write_variant(second))) == [{"b": Scalar(Primitive.STRING, "\n two")}]


def test_text_is_copied_only_without_padding() -> None:
    padded = np.frombuffer(b"[1]" + b"\xff" * 64, np.uint8)
    starts, ends = np.array([0]), np.array([3])
    assert JsonReader().read(padded, starts, ends).text is padded
    assert JsonReader().read(padded[:3], starts, ends).status.tolist() == [0]


def test_rows_may_leave_text_out_and_overlap() -> None:
    text = np.frombuffer(b"xx[1]2[", np.uint8)
    tape = JsonReader().read(text, np.array([2, 3, 5, 2]), np.array([5, 4, 6, 4]))
    assert tape.status.tolist() == [0, 0, 0, json_rows.INCOMPLETE]


def test_many_keys_and_nodes_grow_their_tables() -> None:
    documents = [
        ("{" + ",".join(f'"key {row} {i}":[{i}]' for i in range(500)) + "}").encode()
        for row in range(10)
    ]
    tape = read(documents)
    assert tape.key_count == 5001
    for document, tree in zip(documents, trees(write_variant(tape)), strict=True):
        assert same(expected(document), tree)
