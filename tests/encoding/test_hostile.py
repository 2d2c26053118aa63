"""Bytes from outside: whatever they are, the answer is a value or an error of ours."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.encoding.layouts import Layouts
from tests.strategies import MORE, json_texts, layouts, trees
from variantlake.encoding.json import parse_json
from variantlake.encoding.limits import MEMORY_MULTIPLE
from variantlake.encoding.metadata import decode_metadata, metadata_size
from variantlake.encoding.tree import Tree, decode
from variantlake.encoding.value import validate, value_size
from variantlake.encoding.variant import Variant
from variantlake.errors import VariantLakeError
from variantlake.types import EMPTY_METADATA

# VARIANTLAKE_EXAMPLES makes the same tests run longer.
fuzz = settings(
    max_examples=100 * MORE,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def survives(call: Callable[[], object]) -> object:
    """Run it: a value or None after an error of ours. Any other exception fails the test."""
    try:
        return call()
    except VariantLakeError as error:
        return None if str(error) else pytest.fail("an error without a message")


def attack(metadata: bytes, value: bytes) -> None:
    survives(lambda: metadata_size(metadata))
    survives(lambda: value_size(value))
    survives(lambda: validate(metadata, value))
    tree = survives(lambda: decode(metadata, value))
    variant = survives(lambda: Variant(metadata, value))
    if isinstance(variant, Variant):
        repr(variant)
        survives(lambda: variant.get("$['a'][0]"))
        survives(variant.to_python)
        survives(variant.to_json)
        if tree is not None:
            assert variant == variant
            again = Variant.of_tree(variant.tree())
            assert again == variant
            again.validate()


mutations = st.lists(
    st.tuples(
        st.sampled_from(["set", "flip", "cut", "insert"]), st.integers(0), st.integers(0, 255)
    ),
    min_size=1,
    max_size=4,
)


def mutated(data: bytes, changes: list[tuple[str, int, int]]) -> bytes:
    result = bytearray(data)
    for kind, place, byte in changes:
        i = place % (len(result) + 1)
        if kind == "cut":
            del result[i : i + 1 + byte % 4]
        elif kind == "insert" or i == len(result):
            result.insert(i, byte)
        else:
            result[i] = byte if kind == "set" else result[i] ^ (1 << byte % 8)
    return bytes(result)


@fuzz
@given(st.binary(max_size=60), st.binary(max_size=80))
@example(b"", b"")
@example(b"\x01\x00\x00", b"\x7e\xff\xff\xff\xff")
def test_random_bytes(metadata: bytes, value: bytes) -> None:
    attack(metadata, value)
    attack(b"\x01\x02\x00\x01\x02ab", value)


@fuzz
@given(trees, layouts, mutations)
def test_mutated_values(tree: Tree, layout: Layouts, changes: list[tuple[str, int, int]]) -> None:
    metadata, value = layout.encode(tree)
    attack(metadata, mutated(value, changes))


@fuzz
@given(trees, layouts, mutations)
def test_mutated_metadata(tree: Tree, layout: Layouts, changes: list[tuple[str, int, int]]) -> None:
    metadata, value = layout.encode(tree)
    attack(mutated(metadata, changes), value)


@fuzz
@given(st.binary(max_size=60))
def test_random_json_bytes(data: bytes) -> None:
    survives(lambda: parse_json(data))


@fuzz
@given(json_texts, mutations)
def test_mutated_json(text: str, changes: list[tuple[str, int, int]]) -> None:
    data = mutated(text.encode(), changes)
    variant = survives(lambda: parse_json(data))
    if isinstance(variant, Variant):
        variant.validate()


def bomb(levels: int) -> bytes:
    """Arrays whose 255 elements are all the same bytes: 255^levels values, were they followed."""
    value = b"\x00"
    for _ in range(levels):
        size = len(value).to_bytes(4, "little")
        value = b"\x0f\xff" + bytes(4 * 255) + size + value
    return value


@pytest.mark.parametrize(
    ("metadata", "value"),
    [
        (EMPTY_METADATA, b"\x13\xff\xff\xff\xff" + bytes(40)),
        (EMPTY_METADATA, b"\x7e\xff\xff\xff\xff" + bytes(40)),
        (EMPTY_METADATA, b"\x40\xff\xff\xff\xff" + bytes(40)),
        (b"\xc1\xff\xff\xff\xff" + bytes(40), b"\x00"),
        (EMPTY_METADATA, bomb(8)),
        (EMPTY_METADATA, b"\x03\x01\x00" * 100_000),
    ],
)
def test_claims_of_size_cost_no_memory_or_time(metadata: bytes, value: bytes) -> None:
    tracemalloc.start()
    start = time.monotonic()
    attack(metadata, value)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * 1024 + MEMORY_MULTIPLE * (len(metadata) + len(value))
    assert time.monotonic() - start < 10


DENSE: dict[str, object] = {
    "nulls": [None] * 10_000,
    "few nulls": [None] * 200,
    "short strings": [f"{i:x}" for i in range(10_000)],
    "small integers": [i % 2000 for i in range(10_000)],
    "empty arrays": [[]] * 10_000,
    "empty objects": [{}] * 10_000,
    "arrays of one": [[None]] * 10_000,
    "objects of one": [{"a": None}] * 10_000,
    "one wide object": {f"{i:x}": None for i in range(10_000)},
    "decimals": [Decimal(i).scaleb(-2) for i in range(10_000)],
}


@pytest.mark.parametrize("shape", DENSE)
def test_memory_is_a_small_multiple_of_the_input(shape: str) -> None:
    variant = Variant.of(DENSE[shape])
    tracemalloc.start()
    tree = variant.tree()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert tree
    assert peak < MEMORY_MULTIPLE * (len(variant.metadata) + len(variant.value))


def test_memory_of_a_dictionary_of_empty_keys() -> None:
    metadata = b"\x81" + (7_000).to_bytes(3, "little") + bytes(3 * 7_001)
    tracemalloc.start()
    decode_metadata(metadata)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MEMORY_MULTIPLE * len(metadata)
