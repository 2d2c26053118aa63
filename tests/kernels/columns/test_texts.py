"""Texts of a chunk: with shared beginnings, and those of a dictionary."""

from __future__ import annotations

import random
from itertools import pairwise, takewhile

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.kernels.columns.test_pages import varint
from variantlake.kernels.columns.pages import (
    COUNT,
    END_AT,
    LEVELS_AT,
    PLACE,
    ROWS,
    SPAN,
    VALUES_AT,
)
from variantlake.kernels.columns.texts import join_texts, plain_texts, text_lengths

Page = tuple[list[bytes], list[int]]
"""The texts of a page, and which of its rows have one."""


def differences(numbers: list[int]) -> bytes:
    """The numbers as DELTA_BINARY_PACKED, in one block, as wide as the widest difference."""
    found = varint(128) + varint(4) + varint(len(numbers)) + zigzag(numbers[0] if numbers else 0)
    steps = [one - other for other, one in pairwise(numbers)]
    for at in range(0, len(steps), 128):
        block = steps[at : at + 128]
        least = min(block)
        block = [step - least for step in block] + [0] * (128 - len(block))
        parts = [block[part : part + 32] for part in range(0, 128, 32)]
        widths = [max(part).bit_length() for part in parts]
        found += zigzag(least) + bytes(widths)
        for part, width in zip(parts, widths, strict=True):
            word = sum(step << (width * k) for k, step in enumerate(part))
            found += word.to_bytes(4 * width, "little")
    return found


def zigzag(number: int) -> bytes:
    return varint(2 * number if number >= 0 else -2 * number - 1)


def encoded(texts: list[bytes]) -> bytes:
    """The texts as DELTA_BYTE_ARRAY."""
    shared = [
        len(list(takewhile(lambda both: both[0] == both[1], zip(one, other, strict=False))))
        for one, other in pairwise([b"", *texts])
    ]
    own = [text[size:] for text, size in zip(texts, shared, strict=True)]
    return differences(shared) + differences(list(map(len, own))) + b"".join(own)


def decoded(pages: list[Page], gap: int = 0, data: bytes | None = None) -> list[bytes] | None:
    """The texts of all rows, with `gap` rows of no page before each page and behind the last."""
    valid: list[int] = []
    spans = np.zeros((len(pages), SPAN), np.int64)
    start = 0
    bodies = [encoded(texts) for texts, _ in pages]
    for span, body, (texts, there) in zip(spans, bodies, pages, strict=True):
        valid += [0] * gap
        span[[LEVELS_AT, VALUES_AT, END_AT]] = start, start, start + len(body)
        span[[PLACE, ROWS, COUNT]] = len(valid), len(there), len(texts)
        valid += there
        start += len(body)
    valid += [0] * gap
    every = np.frombuffer(b"".join(bodies) if data is None else data, np.uint8)
    lengths = np.empty(2 * sum(len(texts) for texts, _ in pages), np.int64)
    size = text_lengths(every, spans.reshape(-1), lengths, np.empty(1, np.int64))
    if size < 0:
        return None
    offsets, text = np.zeros(len(valid) + 1, np.int32), np.empty(size, np.uint8)
    rows = np.array(valid, np.uint8)
    if join_texts(every, spans.reshape(-1), lengths, rows, offsets, text) < 0:
        return None
    return [text.tobytes()[start:end] for start, end in pairwise(offsets.tolist())]


texts_ = st.lists(st.text("ab", max_size=12).map(str.encode) | st.binary(max_size=70), max_size=60)


@given(
    parts=st.lists(texts_, min_size=1, max_size=4),
    rows=st.randoms(use_true_random=False),
    in_order=st.booleans(),
    gap=st.integers(0, 3),
)
def test_texts_that_share_their_beginnings_are_joined(
    parts: list[list[bytes]], rows: random.Random, in_order: bool, gap: int
) -> None:
    pages, wanted = [], [b""] * gap
    for part in parts:
        texts = sorted(part) if in_order else part
        there = [each for _ in texts for each in (*([0] * rows.randrange(2)), 1)]
        left = iter(texts)
        wanted += [next(left) if each else b"" for each in there] + [b""] * gap
        pages.append((texts, there))
    assert decoded(pages, gap) == wanted


@given(texts=texts_.filter(len), place=st.integers(0), byte=st.integers(1, 255))
def test_changed_bytes_give_texts_or_nothing(texts: list[bytes], place: int, byte: int) -> None:
    data = bytearray(encoded(texts))
    data[place % len(data)] ^= byte
    found = decoded([(texts, [1] * len(texts))], data=bytes(data))
    assert found is None or len(found) == len(texts)


@given(texts=texts_.filter(len), there=st.integers(-3, 3).filter(bool))
def test_other_rows_than_texts_are_refused(texts: list[bytes], there: int) -> None:
    rows = [1] * max(len(texts) + there, 0)
    assert decoded([(texts, rows)]) is None


@given(texts=texts_)
def test_texts_of_a_dictionary_are_taken_apart(texts: list[bytes]) -> None:
    page = b"".join(len(text).to_bytes(4, "little") + text for text in texts)
    offsets, room = np.zeros(len(texts) + 1, np.int32), np.empty(len(page), np.uint8)
    size = plain_texts(np.frombuffer(page, np.uint8), len(texts), offsets, room)
    assert room[:size].tobytes() == b"".join(texts)
    assert offsets.tolist() == np.cumsum([0, *map(len, texts)]).tolist()
