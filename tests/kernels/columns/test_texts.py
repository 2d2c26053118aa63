"""Texts of a chunk: with shared beginnings, and those of a dictionary."""

from __future__ import annotations

import random
from itertools import pairwise, takewhile

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from variantlake.kernels.columns.texts import join_texts, plain_texts


def joined(texts: list[bytes], valid: np.ndarray, change: int = 0) -> list[bytes] | None:
    """The texts by what they share with those before them; one length may be changed."""
    shared = [
        len(list(takewhile(lambda both: both[0] == both[1], zip(one, other, strict=False))))
        for one, other in pairwise([b"", *texts])
    ]
    own = [text[size:] for text, size in zip(texts, shared, strict=True)]
    lengths = np.array([*shared, *map(len, own)], np.int64)
    if change:
        lengths[change % len(lengths)] += 1 + change % 40
    offsets = np.zeros(len(valid) + 1, np.int32)
    room = np.empty(sum(map(len, texts)), np.uint8)
    page = np.frombuffer(b"".join(own), np.uint8)
    if join_texts(page, 0, lengths, valid, offsets, room) < 0:
        return None
    ends = offsets.tolist()
    data = room.tobytes()
    return [data[start:end] for start, end in pairwise(ends)]


texts_ = st.lists(st.text("ab", max_size=12).map(str.encode) | st.binary(max_size=70), max_size=60)


@given(texts=texts_, rows=st.randoms(use_true_random=False), in_order=st.booleans())
def test_texts_that_share_their_beginnings_are_joined(
    texts: list[bytes], rows: random.Random, in_order: bool
) -> None:
    texts = sorted(texts) if in_order else texts
    there = [each for _ in texts for each in (*([0] * rows.randrange(2)), 1)]
    left = iter(texts)
    wanted = [next(left) if each else b"" for each in there]
    assert joined(texts, np.array(there, np.uint8)) == wanted


@given(texts=texts_.filter(len), change=st.integers(1, 10_000))
def test_texts_of_wrong_lengths_are_refused(texts: list[bytes], change: int) -> None:
    found = joined(texts, np.ones(len(texts), np.uint8), change)
    # What is longer does not fit into the room, which is that of all texts.
    assert found is None


@given(texts=texts_)
def test_texts_of_a_dictionary_are_taken_apart(texts: list[bytes]) -> None:
    page = b"".join(len(text).to_bytes(4, "little") + text for text in texts)
    offsets, room = np.zeros(len(texts) + 1, np.int32), np.empty(len(page), np.uint8)
    size = plain_texts(np.frombuffer(page, np.uint8), len(texts), offsets, room)
    assert room[:size].tobytes() == b"".join(texts)
    assert offsets.tolist() == np.cumsum([0, *map(len, texts)]).tolist()
