"""Every field of every node, as the layout of NODE says, for tapes of both readers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.batches import expected, read
from tests.kernels.variant.test_variant_reader import array_of
from tests.strategies import MORE, json_texts, variants
from variantlake.encoding.scalar import Scalar, encode_scalar
from variantlake.encoding.tree import Tree, encode_value, keys_of
from variantlake.encoding.variant import Variant
from variantlake.kernels.tape.nodes import ARRAY, BINARY, NODE, OBJECT, STRING
from variantlake.kernels.tape.tape import SQL_NULL, Tape
from variantlake.kernels.variant.variant_reader import VariantReader
from variantlake.types import Primitive

IN_BYTES = (Primitive.BINARY, Primitive.DECIMAL16, Primitive.STRING, Primitive.UUID)


def check_node(tape: Tape, at: int, tree: Tree, key: str) -> int:
    """Compare nodes[at] and all below it with a tree; returns where the next node stands."""
    node: Any = tape.nodes[at]
    assert tape.keys.names()[node.key].decode() == key
    if isinstance(tree, Scalar):
        assert (node.tag, node.span) == (tree.type, 1)
        assert node.length == len(encode_scalar(tree))
        check_bytes(tape, node, tree)
        return at + 1
    assert node.tag == (OBJECT if isinstance(tree, dict) else ARRAY)
    assert node.extra == len(tree)
    pairs = list(tree.items()) if isinstance(tree, dict) else [("", item) for item in tree]
    by_key = dict(pairs)
    child, content = at + 1, 0
    for number in range(len(pairs)):
        name, item = pairs[number]
        if isinstance(tree, dict):  # in the order of the document
            name = tape.keys.names()[tape.nodes[child].key].decode()
            item = by_key.pop(name)
        content += int(tape.nodes[child].length)
        child = check_node(tape, child, item, name)
    assert (node.span, node.content) == (child - at, content)
    ids = dict.fromkeys(keys_of(tree), 0)
    assert node.length == len(encode_value(tree, ids))  # ids of one byte
    return child


def check_bytes(tape: Tape, node: Any, scalar: Scalar) -> None:
    """What a node refers to: p in the text, ~p in the arena."""
    if scalar.type not in IN_BYTES:
        return
    encoded = encode_scalar(scalar)
    size = int(node.extra) if node.tag in (STRING, BINARY) else 16
    place = int(node.value)
    source = tape.text if place >= 0 else tape.arena
    start = place if place >= 0 else ~place
    assert source[start : start + size].tobytes() == encoded[len(encoded) - size :]


def check_tape(tape: Tape, trees: list[Tree | None]) -> None:
    assert tape.rows == len(trees)
    assert tape.nodes.dtype.itemsize == NODE.itemsize == 32
    at = 0
    for row, tree in enumerate(trees):
        assert tape.first[row] == at
        if tree is not None:
            at = check_node(tape, at, tree, "")
        assert (tape.status[row] == 0) == (tree is not None)
    assert tape.node_count == at


@settings(max_examples=50 * MORE, deadline=None)
@given(st.lists(json_texts, max_size=4))
def test_a_tape_of_documents(texts: list[str]) -> None:
    documents = [text.encode("utf-8", "surrogatepass") for text in texts]
    check_tape(read(documents), [expected(document) for document in documents])


@settings(max_examples=50 * MORE, deadline=None)
@given(st.lists(st.none() | variants, max_size=4))
def test_a_tape_of_variants(values: list[Variant | None]) -> None:
    rows = [None if value is None else (value.metadata, value.value) for value in values]
    tape = VariantReader().read(array_of(rows))
    check_tape(tape, [None if value is None else value.tree() for value in values])
    assert [code == SQL_NULL for code in tape.status] == [value is None for value in values]
    assert not tape.bad.any()


@pytest.mark.parametrize("bad", [b"{", b'{"a":1,"a":2}', b"[1,]", b'"\xff"', b"", b"tru"])
def test_a_bad_row_has_no_nodes_and_says_where(bad: bytes) -> None:
    tape = read([b'{"k":[1]}', bad, b"2"])
    assert tape.bad.tolist() == [False, True, False]
    assert tape.first.tolist() == [0, 3, 3, 4]
    assert 0 <= tape.position[1] <= len(bad)


def test_the_bounds_of_a_size() -> None:
    """Lengths where the head of a string, an array or an object grows."""
    for size in (63, 64, 255, 256):
        text = b'"' + b"x" * size + b'"'
        for document in (text, b"[" + text + b"]", b'{"a":' + text + b"}"):
            check_tape(read([document]), [expected(document)])
    for count in (255, 256):
        array = b"[" + b",".join([b"1"] * count) + b"]"
        fields = b"{" + b",".join(b'"%d":1' % number for number in range(count)) + b"}"
        check_tape(read([array, fields]), [expected(array), expected(fields)])
