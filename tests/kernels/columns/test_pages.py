"""Pages of a chunk: numbers of every width, packed and in runs."""

from __future__ import annotations

import random

import numpy as np
import pytest

from variantlake.kernels.columns.pages import (
    COUNT,
    END_AT,
    ENTRIES,
    FIRST_ENTRY,
    LEVELS_AT,
    PLACE,
    ROWS,
    SPAN,
    VALUES_AT,
    decode_codes,
)


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def hybrid(numbers: list[int], width: int, chance: random.Random) -> bytes:
    """The numbers in runs of like ones and in packed groups of eight."""
    found, at = b"", 0
    while at < len(numbers):
        run = next((k for k in range(at, len(numbers)) if numbers[k] != numbers[at]), len(numbers))
        if run - at > 8 or chance.random() < 0.1:
            value = numbers[at].to_bytes((width + 7) // 8, "little")
            found += varint((run - at) << 1) + value
            at = run
            continue
        groups = chance.randrange(1, 9)
        own = numbers[at : at + 8 * groups]
        word = sum(number << (width * k) for k, number in enumerate(own))
        found += varint(groups << 1 | 1) + word.to_bytes(groups * width, "little")
        at += len(own)
    return found


def decoded(levels: bytes, values: bytes, most: int, rows: int, entries: range) -> list[int] | None:
    """The codes of one page, whose dictionary has those of all `entries`; -1 if there is none."""
    data = np.frombuffer(levels + values, np.uint8)
    page = np.zeros(SPAN, np.int64)
    page[[LEVELS_AT, VALUES_AT, END_AT, PLACE, ROWS]] = 0, len(levels), data.size, 0, rows
    page[[FIRST_ENTRY, ENTRIES]] = entries.start, len(entries)
    valid, codes = np.zeros(rows, np.uint8), np.full(rows, 7, np.int32)
    room, word = np.empty(rows, np.int32), np.empty(1, np.int64)
    found = decode_codes(data, page, most, valid, room, word, codes)
    if found < 0:
        return None
    assert found == valid.sum() == page[COUNT]
    assert not codes[valid == 0].any()
    numbers: list[int] = np.where(valid, codes, -1).tolist()
    return numbers


@pytest.mark.rule(36)
@pytest.mark.parametrize("width", range(32))
def test_codes_of_every_width_are_what_was_packed(width: int) -> None:
    chance = random.Random(width)
    entries = 1 << width
    for rows in (1, 7, 8, 9, 63, 300):
        for most in (0, 1, 5):
            levels = [
                most if chance.random() < 0.7 else chance.randrange(most + 1) for _ in range(rows)
            ]
            some = [chance.randrange(entries) for _ in range(3)]
            given = [
                chance.choice(some) if chance.random() < 0.5 else chance.randrange(entries)
                for level in levels
                if level == most
            ]
            marks = hybrid(levels, most.bit_length(), chance) if most else b""
            values = bytes([width]) + hybrid(given, width, chance)
            left = iter(given)
            wanted = [next(left) if level == most else -1 for level in levels]
            assert decoded(marks, values, most, rows, range(entries)) == wanted
            if width < 31:
                later = [code + 1000 if code >= 0 else -1 for code in wanted]
                assert decoded(marks, values, most, rows, range(1000, 1000 + entries)) == later
            if given:
                assert decoded(marks, values, most, rows, range(max(given))) is None


@pytest.mark.rule(36)
@pytest.mark.parametrize("most", [1, 2, 3, 4, 7, 20, 100, 127, 128, 300])
@pytest.mark.parametrize("share", [0.5, 0.98])
def test_levels_of_every_width_say_which_rows_have_a_value(most: int, share: float) -> None:
    chance = random.Random(most)
    width = most.bit_length()
    for rows in (1, 8, 9, 64, 500, 501):
        levels = [
            most if chance.random() < share else chance.randrange(most + 1) for _ in range(rows)
        ]
        numbers = [chance.randrange(1000) for level in levels if level == most]
        left = iter(numbers)
        wanted = [next(left) if level == most else -1 for level in levels]
        values = bytes([10]) + hybrid(numbers, 10, chance)
        assert decoded(hybrid(levels, width, chance), values, most, rows, range(1000)) == wanted
        if most + 1 < 1 << width:
            levels[chance.randrange(rows)] = most + 1
            assert decoded(hybrid(levels, width, chance), values, most, rows, range(1000)) is None
