"""Z85 by ZeroMQ RFC 32, and the partial groups of the protocol's examples."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from variantlake.delta.stats import z85
from variantlake.errors import LimitExceeded, MalformedLog

# RFC 32, "Test Case" and the 32-byte test key of its reference code.
VECTORS = [
    (bytes.fromhex("864fd26fb559f75b"), "HelloWorld"),
    (
        bytes.fromhex("8e0bdd697628b91d8f245587ee95c5b04d48963f79259877b49cd9063aead3b7"),
        "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6",
    ),
    (b"", ""),
]


@pytest.mark.parametrize(("data", "text"), VECTORS, ids=["hello", "key", "empty"])
def test_vectors_of_the_rfc(data: bytes, text: str) -> None:
    assert z85.encode(data) == text
    assert z85.decode(text) == data


@given(st.binary(max_size=60))
def test_decoding_gives_the_bytes_and_the_padding(data: bytes) -> None:
    assert z85.decode(z85.encode(data)) == data + bytes(-len(data) % 4)


@given(st.binary(min_size=4, max_size=40))
def test_a_last_group_of_n_characters_holds_n_minus_one_bytes(data: bytes) -> None:
    whole = data[: len(data) // 4 * 4]
    for extra in (1, 2, 3):
        rest = data[:extra]
        text = z85.encode(whole) + z85.encode(rest)[: extra + 1]
        assert z85.decode(text)[: len(whole)] == whole
        assert len(z85.decode(text)) == len(whole) + extra


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Hello Worl", "foreign"),
        ("HelloWorl~", "foreign"),
        ('Hell"', "foreign"),
        ("Hellö", "outside of ASCII"),
        ("#####", "above 32 bits"),
        ("HelloW", "one character"),
    ],
)
def test_what_is_not_z85_is_refused(text: str, message: str) -> None:
    with pytest.raises(MalformedLog, match=message):
        z85.decode(text)


def test_a_huge_text_is_refused_before_it_is_decoded() -> None:
    with pytest.raises(LimitExceeded):
        z85.decode("0" * (z85.MAX_CHARACTERS + 5))


@given(st.lists(st.none() | st.binary(max_size=24).filter(lambda data: len(data) % 4 == 0)))
def test_a_column_is_encoded_as_each_of_its_values(values: list[bytes | None]) -> None:
    expected = [None if data is None else z85.encode(data) for data in values]
    array = pa.array([b"skip", *values], pa.binary()).slice(1)
    assert z85.encode_column(array).to_pylist() == expected
