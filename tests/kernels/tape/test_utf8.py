"""Names and strings are UTF-8 exactly if Python's strict decoder takes them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.batches import read
from tests.strategies import MORE

# Each first byte of the Unicode standard's table 3-7, at both ends of what may follow it.
EDGES = [
    "00", "7f", "80", "bf", "c0 80", "c1 bf", "c2 80", "df bf", "c2 7f", "c2 c0", "e0 9f bf",
    "e0 a0 80", "e1 80 80", "ec bf bf", "ed 9f bf", "ed a0 80", "ee 80 80", "ef bf bf", "ef bf c0",
    "f0 8f bf bf", "f0 90 80 80", "f3 bf bf bf", "f4 8f bf bf", "f4 90 80 80", "f5 80 80 80",
    "ff", "e1 80", "f1 80 80", "c2",
]  # fmt: skip


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def check(data: bytes) -> None:
    """As a string, as a name, and behind ASCII that the kernel skips by the word."""
    plain = bytes(byte for byte in data if byte >= 32 and byte not in b'"\\')
    for before in (b"", b"abcdefg", b"abcdefghijklmnop"):
        content = before + plain
        documents = [b'"' + content + b'"', b'{"' + content + b'":1}']
        assert read(documents).bad.tolist() == [not is_utf8(content)] * 2


@pytest.mark.parametrize("edge", EDGES)
def test_an_edge_of_the_table(edge: str) -> None:
    check(bytes.fromhex(edge))


@settings(max_examples=100 * MORE, deadline=None)
@given(
    st.binary(max_size=12)
    | st.text(max_size=6).map(lambda text: text.encode("utf-8", "surrogatepass"))
)
def test_any_bytes(data: bytes) -> None:
    check(data)
