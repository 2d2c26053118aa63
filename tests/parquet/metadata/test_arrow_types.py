"""The Arrow types of a schema are those that pyarrow gives its columns."""

from __future__ import annotations

import io

import pyarrow.parquet as pq
import pytest

from tests.parquet.metadata.test_footer import struct_list, text, thrift, zigzag
from variantlake.parquet.metadata.arrow_types import arrow_type_of
from variantlake.parquet.metadata.footer import read_footer

REQUIRED, OPTIONAL, REPEATED = range(3)
MAP, MAP_KEY_VALUE, LIST = range(1, 4)


def group(name: str, children: int, repetition: int, converted: int | None = None) -> bytes:
    kind = [] if converted is None else [(6, 5, zigzag(converted))]
    count = (5, 5, zigzag(children))
    return thrift((3, 5, zigzag(repetition)), (4, 8, text(name)), count, *kind)


def leaf(name: str, repetition: int) -> bytes:
    return thrift((1, 5, zigzag(1)), (3, 5, zigzag(repetition)), (4, 8, text(name)))


A_LIST = group("l", 1, OPTIONAL, LIST)


@pytest.mark.parametrize(
    "elements",
    [
        [A_LIST, group("list", 1, REPEATED), leaf("element", OPTIONAL)],
        [A_LIST, group("array", 1, REPEATED), leaf("x", OPTIONAL)],
        [A_LIST, group("l_tuple", 1, REPEATED), leaf("x", REQUIRED)],
        [A_LIST, group("other_tuple", 1, REPEATED), leaf("x", REQUIRED)],
        [A_LIST, group("bag", 2, REPEATED), leaf("x", OPTIONAL), leaf("y", REQUIRED)],
        [A_LIST, leaf("element", REPEATED)],
        [A_LIST, group("list", 1, REPEATED), leaf("x", REPEATED)],
        [A_LIST, group("list", 1, REPEATED), group("x", 1, REPEATED), leaf("y", OPTIONAL)],
        [group("m", 1, OPTIONAL, MAP), group("key_value", 2, REPEATED), leaf("key", REQUIRED),
         leaf("value", OPTIONAL)],
        [group("m", 1, REQUIRED, MAP_KEY_VALUE), group("map", 2, REPEATED), leaf("key", REQUIRED),
         leaf("value", REQUIRED)],
        [leaf("r", REPEATED)],
        [group("r", 1, REPEATED), leaf("x", OPTIONAL)],
        [group("s", 2, OPTIONAL), leaf("x", REPEATED), leaf("y", OPTIONAL)],
    ],
)  # fmt: skip
def test_lists_and_maps_are_those_of_pyarrow(elements: list[bytes]) -> None:
    schema = struct_list([group("schema", 1, REQUIRED), *elements])
    footer = thrift((1, 5, zigzag(1)), (2, 9, schema), (3, 6, zigzag(0)), (4, 9, b"\x0c"))
    data = b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    node = read_footer(io.BytesIO(data)).schema.children[0]
    assert arrow_type_of(node).equals(pq.read_schema(io.BytesIO(data)).field(0).type)
