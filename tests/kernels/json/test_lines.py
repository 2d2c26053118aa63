from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from variantlake.kernels.json.lines import find_places, split_lines


def lines_of(text: bytes) -> list[tuple[int, bytes]]:
    found = split_lines(np.frombuffer(text, np.uint8))
    spans = zip(found.numbers.tolist(), found.starts.tolist(), found.ends.tolist(), strict=True)
    return [(number, text[start:end]) for number, start, end in spans]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", []),
        (b"\n\r\n \t\n", []),
        (b"{}", [(0, b"{}")]),
        (b"{}\n", [(0, b"{}")]),
        (b"1\r\n\r\n 2 \n3", [(0, b"1"), (2, b"2"), (3, b"3")]),
        (b"a\x00b\n\xff", [(0, b"a\x00b"), (1, b"\xff")]),
    ],
)
def test_blank_lines_count_but_are_left_out(text: bytes, expected: list[tuple[int, bytes]]) -> None:
    assert lines_of(text) == expected


@settings(deadline=None)
@given(st.lists(st.sampled_from([b"\n", b"\r\n", b" ", b"x" * 63, b"ab", b"\t", b"\n" * 70])))
def test_lines_are_those_of_a_plain_split(parts: list[bytes]) -> None:
    text = b"".join(parts)
    stripped = [line.strip(b" \t\r") for line in text.split(b"\n")]
    assert lines_of(text) == [(i, line) for i, line in enumerate(stripped) if line]


def test_more_lines_than_first_guessed() -> None:
    assert len(lines_of(b"1\n" * 5000)) == 5000


@settings(deadline=None)
@given(st.text(st.sampled_from("a\né😀\r"), max_size=30), st.data())
def test_places_are_those_of_the_text_before_them(text: str, data: st.DataObject) -> None:
    numbers = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    offsets = np.array([len(text[:number].encode()) for number in numbers], np.int64)
    lines, columns = np.empty_like(offsets), np.empty_like(offsets)
    place = np.array([0, 1, 1])
    find_places(np.frombuffer(text.encode(), np.uint8), offsets, lines, columns, place)
    for number, line, column in zip(numbers, lines.tolist(), columns.tolist(), strict=True):
        before = text[:number].split("\n")
        assert (line, column) == (len(before), len(before[-1]) + 1)
    if numbers:
        assert place.tolist() == [offsets[-1], lines[-1], columns[-1]]
