"""The 29 values of the Variant value corpus: exact type and value of each."""

from __future__ import annotations

import base64
import datetime as dt
import json
import re
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from tests import corpora
from variantlake.encoding.tree import logical_key
from variantlake.encoding.variant import Variant

VALUES = corpora.VARIANT_VALUES
pytestmark = pytest.mark.corpus(VALUES)

# The corpus's dictionary says what a value is as JSON; its type and exact value stand here.
EXACT: dict[str, tuple[str, Any]] = {
    "primitive_null": ("null", None),
    "primitive_boolean_true": ("boolean", True),
    "primitive_boolean_false": ("boolean", False),
    "primitive_int8": ("int8", 42),
    "primitive_int16": ("int16", 1234),
    "primitive_int32": ("int32", 123456),
    "primitive_int64": ("int64", 1234567890123456789),
    "primitive_double": ("double", 1234567890.1234),
    "primitive_float": ("float", 1234567936.0),
    "primitive_decimal4": ("decimal4", Decimal("12.34")),
    "primitive_decimal8": ("decimal8", Decimal("12345678.90")),
    "primitive_decimal16": ("decimal16", Decimal("12345678912345678.90")),
    "primitive_date": ("date", dt.date(2025, 4, 16)),
    "primitive_timestamp": (
        "timestamp",
        dt.datetime(2025, 4, 16, 16, 34, 56, 780_000, tzinfo=dt.UTC),
    ),
    "primitive_timestampntz": (
        "timestamp_ntz",
        dt.datetime.fromisoformat("2025-04-16 12:34:56.780"),
    ),
    "primitive_timestamp_nanos": (
        "timestamp_nanos",
        np.datetime64("2024-11-07T12:33:54.123456789"),
    ),
    "primitive_timestampntz_nanos": (
        "timestamp_ntz_nanos",
        np.datetime64("2024-11-07T12:33:54.123456789"),
    ),
    "primitive_time": ("time", dt.time(12, 33, 54, 123_456)),
    "primitive_binary": ("binary", bytes.fromhex("031337deadbeefcafe")),
    "primitive_uuid": ("uuid", UUID("f24f9b64-81fa-49d1-b74e-8c09a6e31c56")),
    "primitive_string": ("string", None),
    "short_string": ("string", None),
    "long_string": ("string", None),
    "object_empty": ("object", {}),
    "object_primitive": (
        "object",
        {
            "boolean_false_field": False,
            "boolean_true_field": True,
            "double_field": Decimal("1.23456789"),
            "int_field": 1,
            "null_field": None,
            "string_field": "Apache Parquet",
            "timestamp_field": "2025-04-16T12:34:56.78",
        },
    ),
    "object_nested": ("object", None),
    "array_empty": ("array", []),
    "array_primitive": ("array", [2, 1, 5, 9]),
    "array_nested": ("array", None),
}


def load(name: str) -> Variant:
    metadata = (VALUES / f"{name}.metadata").read_bytes()
    return Variant(metadata, (VALUES / f"{name}.value").read_bytes())


def dictionary() -> dict[str, Any]:
    """What the corpus says of its values; its last entry ends with a comma that JSON has not."""
    text = (VALUES / "data_dictionary.json").read_text(encoding="utf-8")
    entries: dict[str, Any] = json.loads(re.sub(r",\s*}\s*$", "}", text))
    return entries


@pytest.mark.parametrize("name", EXACT)
def test_value_of_the_corpus(name: str) -> None:
    variant = load(name)
    type_, exact = EXACT[name]
    variant.validate()
    assert variant.type == type_
    found = variant.to_python()
    if exact is not None:
        assert found == exact
        assert type(found) is type(exact)
    assert Variant.of_tree(variant.tree()) == variant
    assert logical_key(variant.tree()) == logical_key(Variant.of_tree(variant.tree()).tree())


@pytest.mark.parametrize("name", EXACT)
def test_value_is_what_the_corpus_says(name: str) -> None:
    if name == "long_string":
        return  # the corpus's dictionary leaves it out
    expected, found = dictionary()[name], load(name).to_python()
    match name:
        case "primitive_binary":
            assert found == base64.b64decode(expected)
        case "primitive_decimal16" | "primitive_decimal8" | "primitive_decimal4":
            assert float(found) == expected
        case "primitive_float":
            assert np.float32(found) == np.float32(expected)
        case "primitive_date" | "primitive_uuid":
            assert str(found) == expected
        case "primitive_time":
            assert found == dt.time.fromisoformat(".".join(expected.rsplit(":", 1)))
        case "primitive_timestamp" | "primitive_timestampntz":
            assert found == dt.datetime.fromisoformat(expected)
        case "primitive_timestamp_nanos" | "primitive_timestampntz_nanos":
            assert found == np.datetime64(expected.removesuffix("+00:00"))
        case "object_primitive":
            assert {**found, "double_field": float(found["double_field"])} == expected
        case _:
            assert found == expected


def test_every_value_of_the_corpus_is_tested() -> None:
    files = {path.stem for path in VALUES.glob("*.value")}
    assert files == set(EXACT)
    assert len(files) == 29
