"""Keys that come twice: refused, or all but the last dropped, at any depth."""

from __future__ import annotations

import pytest

from tests.kernels.batches import expected, read, same, trees
from variantlake.kernels.json.json_reader import JsonReader
from variantlake.kernels.variant.variant_writer import write_variant

TWICE = [
    b'{"a":1,"a":2}',
    b'{"a":{"b":1,"c":2},"x":[1,2],"a":"last"}',
    b'{"a":1,"b":{"c":1,"c":{"c":2,"d":[]}},"a":[{"c":1,"c":2}]}',
    b'[{"k":1,"k":2,"k":3},{"k":1}]',
    b'{"\\u0061":1,"a":2}',
    b"{" + b",".join(b'"k%d":%d' % (number % 70, number) for number in range(150)) + b"}",
]
ONCE = [b'{"a":{"a":1},"b":[{"a":1},{"a":2}]}', b'{"a":1,"A":2}', b'{"":0,"a":1}']


@pytest.mark.parametrize("document", TWICE)
def test_a_key_that_comes_twice(document: bytes) -> None:
    assert read([document]).bad.tolist() == [True]
    tape = read([b'{"a":1}', document, b'{"a":1}'], JsonReader(duplicate_keys="last"))
    assert not tape.bad.any()
    found = list(trees(write_variant(tape)))
    assert same(expected(document, "last"), found[1])
    # What was dropped is gone from the tape: the next row begins where the kept nodes end.
    assert [int(tape.nodes[at].span) for at in tape.first[:-1]] == [
        int(end - start) for start, end in zip(tape.first, tape.first[1:], strict=False)
    ]


@pytest.mark.parametrize("document", ONCE)
def test_the_same_key_in_other_objects_is_no_duplicate(document: bytes) -> None:
    for reader in (JsonReader(), JsonReader(duplicate_keys="last")):
        (found,) = trees(write_variant(read([document], reader)))
        assert same(expected(document), found)
