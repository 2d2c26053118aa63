"""The error of a refused document is the plain parser's own, without reading it from its start."""

from __future__ import annotations

import json
import random
import sys
from types import FrameType

import pytest

from tests.kernels.batches import read
from tests.kernels.fuzz import check_errors, facts
from tests.strategies import MORE
from variantlake.encoding import json as plain_parser
from variantlake.encoding.json import parse_json
from variantlake.errors import LimitExceeded, VariantLakeError
from variantlake.kernels.json.bad_document import json_error
from variantlake.kernels.json.json_reader import TOO_LARGE

SCALARS = (1, -2.5, True, None, "x", "é😀", 'a\\"\n', "", 1e5)
KEYS = ("a", "b", 'k"q', "é", "", "\\", "a1")
PIECES = (
    b'"', b",", b":", b"{", b"}", b"[", b"]", b"x", b"1", b"\\", b" ", b"\n", b"\x01", b"\xff",
    b"\\u12", b"\\ud800", b"01", b'"a":1,', b'"\\u0061":', b"\xef\xbb\xbf",
)  # fmt: skip


def refused(text: bytes) -> VariantLakeError | None:
    try:
        parse_json(text)
    except VariantLakeError as error:
        return error
    return None


def any_value(rnd: random.Random, depth: int) -> object:
    kind = rnd.random()
    if depth > 4 or kind < 0.35:
        return rnd.choice(SCALARS)
    if kind < 0.7:
        return {rnd.choice(KEYS): any_value(rnd, depth + 1) for _ in range(rnd.randrange(4))}
    return [any_value(rnd, depth + 1) for _ in range(rnd.randrange(4))]


def damaged(rnd: random.Random) -> bytes:
    value = any_value(rnd, 0)
    layout = rnd.choice([None, None, 1])
    data = json.dumps(value, ensure_ascii=rnd.random() < 0.5, indent=layout).encode()
    for _ in range(rnd.randrange(1, 4)):
        at = rnd.randrange(len(data) + 1)
        change = rnd.randrange(4)
        if change == 0:
            data = data[:at]
        elif change == 1:
            data = data[:at] + rnd.choice(PIECES) + data[at:]
        elif change == 2:
            data = data[:at] + data[at + 1 :]
        else:
            data = data.replace(b'"b"', b'"a"', 1)
    return data


def test_damaged_documents_have_the_error_of_the_plain_parser() -> None:
    rnd, compared = random.Random(7), 0
    while compared < 1500 * MORE:
        data = damaged(rnd)
        if (wanted := refused(data)) is not None:
            assert facts(json_error(data)) == facts(wanted), data
            compared += 1


def test_many_documents_at_once_have_the_same_errors() -> None:
    rnd = random.Random(8)
    for size in (0, 1, 2, 300, 1000 * MORE):
        batch = [damaged(rnd) for _ in range(size)]
        check_errors(batch, read(batch))


@pytest.mark.parametrize(
    "data",
    [
        b'{"a": {"b": 1, "b": 2}, "a": 1}',
        b'{"a": 1, "a": {"b": 1, "b": 2}}',
        b'{"a": 1, "\\u0061": 2',
        b'{"x": [1, {"a": 1, "b": [], "a": tru}]}',
        b'[1, [2, {"a": [3, 4',
        b'{"a": [1, "x\\u12 \n',
        b'{"a": [1, {"b',
        b'[{"a": 1}] x',
        b"[1, 2,, 3]",
        b'{"a": 1,}',
        b'{"a" 1}',
        b"[" * 1001,
        b'{"a":' * 1001,
        b'["' + b"\\u00e9\\n" * 9 + b"\\ud800" + b'"]',
        b"",
        b" \n",
        b"\xef\xbb\xbf[1,",
        b"\xef\xbb",
        b'[1, 2 \n "\xed\xa0\x80"',
        b'{"a": 1} \n {}',
        b"1 2",
        b"1x",
        b"-",
        b"-x",
        b"[01]",
        b"[1.]",
        b"[1.e5]",
        b"[1e]",
        b"[1E+]",
        b"[1.5.2]",
        b"[" + b"1" * 1001 + b"]",
        b"[0." + b"0" * 1000 + b"1e5]",
        b"[1e" + b"0" * 1000 + b"]",
        b"[nul",
        b"[truefalse]",
        b"[fals]",
        b"{1: 2}",
        b'{"a":}',
        b'{"a": 1 "b": 2}',
        b'{"a": 1]',
        b'{"\xc3\xa9": 1, "\\u00e9": 2, "\\u00E9": 3}',
        b'{"a": {"c": 1, "b": {"x": 1, "x": 2}}, "d": 1, "a": 3}',
        b'["\t"]',
        b'["\xf0\x9f\x98\x80\\q"]',
        b'["\\\xf0\x9f\x98\x80"]',
        b'["\\u1\xf0\x9f\x98\x80\xf0\x9f\x98\x80x"]',
        b'["\\ud800\\u12"]',
        b'["\\ud800\\ud800"]',
        b'["\\udc00"]',
        b'["\\u12  ',
        b'["\\  ',
        b'["\\ud83d\\ude00\\ud83d',
    ],
)
def test_places_that_are_easily_missed(data: bytes) -> None:
    plain = refused(data)
    assert plain is not None
    assert facts(json_error(data)) == facts(plain)


@pytest.mark.parametrize("kind", ["cut", "repeated key", "wide", "escapes"])
def test_large_documents_are_not_read_by_the_plain_parser(kind: str) -> None:
    rows = [{"id": i, "name": f"name {i}", "ok": True} for i in range(20_000)]
    data = {
        "cut": json.dumps(rows)[:-10],
        "repeated key": '{"x":' + json.dumps(rows) + ',"x":1}',
        "wide": json.dumps({f"k{i}": i for i in range(60_000)})[:-1] + ',"k77":1}',
        "escapes": '["' + '\\n\\"' * 250_000,
    }[kind].encode()
    error, calls = plain_calls(data)
    assert error.message.split("'")[0] in (
        "expected ", "key ", "text ends inside of a string"
    )  # fmt: skip
    assert calls < 3


def plain_calls(data: bytes) -> tuple[VariantLakeError, int]:
    """The error, and how many functions of the plain parser were called until it was there."""
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename == plain_parser.__file__

    sys.setprofile(count)
    try:
        error = json_error(data)
    finally:
        sys.setprofile(None)
    return error, calls


def test_short_documents_are_not_read_by_it_either() -> None:
    fields = ", ".join(f'"field {i}": "{i}"' for i in range(10))
    error, calls = plain_calls(f"{{{fields}".encode())
    assert error.message == "expected ',' or '}', found the end of the text"
    assert calls < 3


def test_a_variant_that_would_be_too_large_is_said_without_reading_it() -> None:
    error = json_error(b"[" + b"1," * 1000, TOO_LARGE, 5)
    assert isinstance(error, LimitExceeded)
    assert "134,217,728 bytes" in error.message
    assert error.offset is None
