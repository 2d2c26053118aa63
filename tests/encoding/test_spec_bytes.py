"""Every row of the tables of Parquet's VariantEncoding, byte by byte, both ways."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from variantlake.encoding.variant import Variant

EMPTY = "01 00 00"
AB = "11 02 00 01 02 61 62"  # version 1, sorted, the keys a and b
UTC = dt.UTC
ROWS = [
    # The header of a primitive is its type id << 2.
    ("null", EMPTY, "00", None),
    ("boolean", EMPTY, "04", True),
    ("boolean", EMPTY, "08", False),
    ("int8", EMPTY, "0c 80", -128),
    ("int16", EMPTY, "10 d2 04", 1234),
    ("int32", EMPTY, "14 40 e2 01 00", 123456),
    ("int64", EMPTY, "18 15 81 e9 7d f4 10 22 11", 1234567890123456789),
    ("double", EMPTY, "1c 00 00 00 00 00 00 f8 3f", 1.5),
    ("decimal4", EMPTY, "20 02 d2 04 00 00", Decimal("12.34")),
    ("decimal8", EMPTY, "24 02 d2 02 96 49 00 00 00 00", Decimal("12345678.90")),
    ("decimal16", EMPTY, "28 01" + "ff" * 16, Decimal("-0.1")),
    ("date", EMPTY, "2c ff ff ff ff", dt.date(1969, 12, 31)),
    (
        "timestamp",
        EMPTY,
        "30 40 42 0f 00 00 00 00 00",
        dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
    ),
    ("timestamp_ntz", EMPTY, "34 01 00 00 00 00 00 00 00", dt.datetime(1970, 1, 1, 0, 0, 0, 1)),  # noqa: DTZ001 - it has none
    ("float", EMPTY, "38 00 00 c0 3f", 1.5),
    ("binary", EMPTY, "3c 02 00 00 00 03 13", b"\x03\x13"),
    ("string", EMPTY, "40 40 00 00 00" + "78" * 64, "x" * 64),
    ("time", EMPTY, "44 01 00 00 00 00 00 00 00", dt.time(0, 0, 0, 1)),
    ("timestamp_nanos", EMPTY, "48 05 00 00 00 00 00 00 00", np.datetime64(5, "ns")),
    ("timestamp_ntz_nanos", EMPTY, "4c 05 00 00 00 00 00 00 00", np.datetime64(5, "ns")),
    ("uuid", EMPTY, "50 000102030405060708090a0b0c0d0e0f", UUID(bytes=bytes(range(16)))),
    # A short string: its size << 2 | 1.
    ("string", EMPTY, "01", ""),
    ("string", EMPTY, "09 c3 a9", "é"),
    ("string", EMPTY, "fd" + "78" * 63, "x" * 63),
    # An object: header, number of fields, ids, offsets, values.
    ("object", EMPTY, "02 00 00", {}),
    ("object", AB, "02 02 00 01 00 01 03 04 0c 07", {"a": True, "b": 7}),
    ("object", AB, "02 01 01 00 05 03 01 00 01 00", {"b": [None]}),
    # An array: header, number of elements, offsets, values.
    ("array", EMPTY, "03 00 00", []),
    ("array", EMPTY, "03 02 00 02 03 0c 02 08", [2, False]),
    ("array", AB, "03 01 00 06 02 01 00 00 01 00", [{"a": None}]),
]


@pytest.mark.parametrize(("kind", "metadata", "value", "meaning"), ROWS)
def test_a_row(kind: str, metadata: str, value: str, meaning: Any) -> None:
    variant = Variant(bytes.fromhex(metadata), bytes.fromhex(value))
    variant.validate()
    assert variant.type == kind
    assert variant.to_python() == meaning
    assert type(variant.to_python()) is type(meaning)
    assert Variant.of_tree(variant.tree()) == variant
    assert bytes(Variant.of_tree(variant.tree()).value) == bytes.fromhex(value).replace(
        b"\x02\x01\x01\x00", b"\x02\x01\x00\x00"
    )  # of_tree keeps only the keys that the value has: b becomes the first


@pytest.mark.parametrize(
    ("metadata", "value"),
    [
        # Offsets of 2, 3 and 4 bytes in the metadata: the upper two bits of its header.
        ("51 0200 0000 0100 0200 6162", "02 02 00 01 00 01 03 04 0c 07"),
        ("91 020000 000000 010000 020000 6162", "02 02 00 01 00 01 03 04 0c 07"),
        ("d1 02000000 00000000 01000000 02000000 6162", "02 02 00 01 00 01 03 04 0c 07"),
        # Keys that are not sorted: bit 4 is 0, and the ids follow the order of the names.
        ("01 02 00 01 02 6261", "02 02 01 00 00 01 03 04 0c 07"),
        # Offsets of 2 bytes (01), ids of 2 bytes (0100), a large count (10000) in the header.
        (AB, "06 02 00 01 0000 0100 0300 04 0c 07"),
        (AB, "12 02 0000 0100 00 01 03 04 0c 07"),
        (AB, "42 02000000 00 01 00 01 03 04 0c 07"),
        # Values in another order than their fields.
        (AB, "02 02 00 01 02 00 03 0c 07 04"),
    ],
)
def test_other_spellings_of_one_object(metadata: str, value: str) -> None:
    variant = Variant(bytes.fromhex(metadata), bytes.fromhex(value))
    variant.validate()
    assert variant.to_python() == {"a": True, "b": 7}
