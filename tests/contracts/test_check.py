import datetime as dt
import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.corpora import library
from tests.strategies import MORE, json_numbers
from variantlake.contracts.contract import Contract
from variantlake.contracts.rules import TYPES
from variantlake.encoding.scalar import Scalar
from variantlake.encoding.variant import Variant
from variantlake.kernels.json.json_reader import JsonReader
from variantlake.kernels.tape.tape import Tape
from variantlake.kernels.tape.words import PADDING
from variantlake.kernels.variant.arrow_variants import variant_column
from variantlake.kernels.variant.variant_reader import VariantReader
from variantlake.types import Primitive

KEYS = ["a", "b", "é", "k.\n"]
STRINGS = [
    "",
    "a",
    "ab",
    "é",
    "ab\n",
    "x" * 70,
    "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
]
NUMBERS = [
    "0", "1", "-1", "1.0", "0.1", "0.25", "2.5e-1", "1e0", "1e300", "0.10", "100e-2",
    "9223372036854775807", "-9223372036854775809", "123456789012345678901234567890.5",
]  # fmt: skip

scalars = (
    st.sampled_from(["null", "true", "false", *NUMBERS])
    | json_numbers
    | st.sampled_from(STRINGS).map(json.dumps)
    | st.sampled_from(STRINGS).map(lambda text: json.dumps(text, ensure_ascii=False))
)
documents = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda each: f"[{','.join(each)}]")
        | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4).map(
            lambda each: "{" + ",".join(f"{json.dumps(k)}:{v}" for k, v in each.items()) + "}"
        )
    ),
    max_leaves=12,
)

numbers = st.sampled_from([0, 1, -1, 0.1, 0.25, 1.5, 2**63 - 1, -(2**63)])
lengths = st.integers(0, 3)
_KEYWORDS = {
    "minimum": numbers,
    "maximum": numbers,
    "exclusiveMinimum": numbers,
    "exclusiveMaximum": numbers,
    "minLength": lengths,
    "maxLength": lengths,
    "minItems": lengths,
    "maxItems": lengths,
    "pattern": st.sampled_from(["^a", "b$", "[a-z]+", "é", "^$", "x{3,}", "."]),
    "required": st.lists(st.sampled_from(KEYS), max_size=2, unique=True),
    "additionalProperties": st.booleans(),
    "type": st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1, unique=True),
    "enum": st.lists(
        st.sampled_from([None, True, False, 0, 1, 0.1, 1.0, 0.25, "", "a", "é"]), max_size=4
    ),
    "const": st.sampled_from([None, True, 0, 1, "ab"]),
    "title": st.just("no rule"),
    "format": st.just("date"),
}


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    nested = {
        "properties": st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
        "items": inner,
        "anyOf": st.lists(inner, min_size=1, max_size=3),
    }
    return st.fixed_dictionaries({}, optional={**_KEYWORDS, **nested}).map(_without_both)


def _without_both(schema: dict[str, Any]) -> dict[str, Any]:
    if "enum" in schema:
        schema.pop("const", None)
    return schema


_some = st.sampled_from(list(_KEYWORDS)).flatmap(
    lambda name: _KEYWORDS[name].map(lambda value: {name: value})
)
schemas = st.recursive(st.just({}) | st.just(True) | _some, _schemas, max_leaves=8).filter(
    lambda schema: isinstance(schema, dict)
)


def read(texts: list[str]) -> Tape:
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([len(text) for text in encoded])
    joined = np.frombuffer(b"".join(encoded) + bytes(PADDING), np.uint8)
    return JsonReader().read(joined, ends - [len(text) for text in encoded], ends)


def _number(text: str) -> float | Decimal:
    """As the reader takes it: a double if it has an exponent or more than 38 digits."""
    found = Decimal(text)
    digits = text.lstrip("-").replace(".", "").lstrip("0")
    scale = len(text.partition(".")[2])
    return float(text) if "e" in text.lower() or len(digits) > 38 or scale > 38 else found


def _is_valid(schema: dict[str, Any], text: str) -> bool:
    """By the library; doubles count as the decimals that are nearest, as everywhere."""
    jsonschema = library("jsonschema")
    checker = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
        "integer",
        lambda _, value: (
            not isinstance(value, bool)
            and isinstance(value, int | float | Decimal)
            and math.isfinite(value)
            and Fraction(value).denominator == 1
        ),
    )
    validator = jsonschema.validators.extend(jsonschema.Draft202012Validator, type_checker=checker)
    document = json.loads(text, parse_float=_number)
    known = json.loads(json.dumps(schema), parse_float=_number)
    return bool(validator(known).is_valid(document))


@given(st.lists(documents, min_size=1, max_size=8), schemas)
@settings(max_examples=150 * MORE, deadline=None)
def test_rows_that_break_a_contract_are_those_of_the_jsonschema_library(
    texts: list[str], schema: dict[str, Any]
) -> None:
    tape = read(texts)
    good = [text for text, status in zip(texts, tape.status, strict=True) if status == 0]
    found = Contract.of(schema).breaches(tape := read(good)) if good else None
    broken = [] if found is None else found.rows.tolist()
    assert broken == [row for row, text in enumerate(good) if not _is_valid(schema, text)]
    for place in range(len(broken)):
        assert found is not None
        breach = found.breach(place)
        assert breach.path.startswith("$")
        assert len(breach.value) <= 60


def test_values_that_json_writes_as_text_are_strings() -> None:
    day = Variant.of(dt.date(2026, 11, 26))
    tape = VariantReader().read(variant_column([day, Variant.of("2026-11-26"), None]))
    cases: list[tuple[dict[str, Any], list[int] | None]] = [
        ({"type": "string"}, None),
        ({"type": "integer"}, [0, 1]),
        ({"pattern": "^2026-11-26$"}, None),
        ({"enum": ["2026-11-27"]}, [0, 1]),
    ]
    for schema, rows in cases:
        found = Contract.of(schema).breaches(tape)
        assert (None if found is None else found.rows.tolist()) == rows
    assert found is not None
    assert found.breach(0).value == '"2026-11-26"'


def test_doubles_and_floats_have_the_bound_that_is_nearest() -> None:
    values = [Scalar(Primitive.FLOAT, float(np.float32(0.1))), Scalar(Primitive.DOUBLE, 0.1)]
    values += [Scalar(Primitive.DOUBLE, math.nan), Scalar(Primitive.DOUBLE, math.inf)]
    tape = VariantReader().read(variant_column([Variant.of_tree(each) for each in values]))
    found = Contract.of({"minimum": 0.1, "maximum": 0.1}).breaches(tape)
    assert found is not None
    assert found.rows.tolist() == [2, 3]
