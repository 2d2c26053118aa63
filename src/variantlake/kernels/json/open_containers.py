"""Find the containers of a JSON document that are open at a place, and the first repeated key."""

from __future__ import annotations

from typing import NamedTuple

from variantlake.kernels.json.grammar import (
    CLOSE_OBJECT,
    COLON,
    COMMA,
    OPEN_ARRAY,
    OPEN_OBJECT,
    QUOTE,
    SPACE,
    TO_CLOSE,
    is_blank,
)
from variantlake.kernels.json.numbers import ARENA
from variantlake.kernels.json.strings import unescape
from variantlake.kernels.native.declared import Bytes, Int64s, int64, uint64
from variantlake.kernels.native.jit import helper
from variantlake.kernels.tape.keys import KEY_SEED, hash_bytes
from variantlake.kernels.tape.words import load8

BACKSLASH = 92

CONTAINER = 3
"""Words of an open container: the place of its bracket; the words of keys before its own; its
number of whole values."""

NAME = 4
"""Words of a key: the start and end of its quoted text; the place of its unescaped bytes (p >= 0 in
the text, else ~p in the arena), and their number."""

# Further places in the state array, next to those of the arena and the seed.
BEHIND, NAMES, ROOT_DONE, REPEATED_IN = 8, 9, 10, 11
"""The place after the last whole value or open bracket; the words of keys; 1 if the document is
whole; the number of the container with a repeated key."""


class Memory(NamedTuple):
    """Working memory to walk over a document of n bytes; all but the seed is overwritten.

    containers: int64, CONTAINER for each of MAX_DEPTH + 1. names: int64, NAME for each of n // 4 +
    2. slots: int64, twice the names or more, as a power of 2. arena: uint8, n and PADDING. state:
    int64, 32, with a seed at KEY_SEED.
    """

    containers: Int64s
    names: Int64s
    slots: Int64s
    arena: Bytes
    state: Int64s


@helper
def find_open(text: Bytes, start: int, stop: int, memory: Memory) -> int:
    """Walk over a document that is well-formed up to `stop`; return the words of open containers.

    Leaves these containers and the keys of their fields in `memory`.
    """
    containers, names, _, arena, state = memory
    depth = count = int64(0)
    p = int64(start)
    wants_key = int64(0)
    state[ARENA] = state[ROOT_DONE] = 0
    state[BEHIND] = p
    while p < stop:
        byte = int64(load8(text, p))
        is_value = int64(0)
        if byte == QUOTE:
            q = p + 1
            escapes = int64(0)
            while q < stop:
                inner = int64(load8(text, q))
                if inner == QUOTE:
                    break
                escapes |= int64(1) if inner == BACKSLASH else int64(0)
                q += 2 if inner == BACKSLASH else 1
            # `stop` is inside this string.
            if q >= stop:
                break
            # Keep keys unescaped, to find repeated ones in any spelling.
            if wants_key != 0:
                if count + NAME > names.size:
                    break
                names[uint64(count)] = p
                names[uint64(count + 1)] = q + 1
                names[uint64(count + 2)] = p + 1
                names[uint64(count + 3)] = q - p - 1
                if escapes != 0:
                    begin = state[ARENA]
                    unescape(text, p + 1, stop, arena, state)
                    names[uint64(count + 2)] = ~begin
                    names[uint64(count + 3)] = state[ARENA] - begin
                count += NAME
                wants_key = int64(0)
            else:
                is_value = int64(1)
            p = q + 1
        elif byte == OPEN_OBJECT or byte == OPEN_ARRAY:
            if depth + CONTAINER > containers.size:
                break
            containers[uint64(depth)] = p
            containers[uint64(depth + 1)] = count
            containers[uint64(depth + 2)] = 0
            depth += CONTAINER
            wants_key = int64(1) if byte == OPEN_OBJECT else int64(0)
            p += 1
            state[BEHIND] = p
        elif byte == CLOSE_OBJECT or byte == OPEN_ARRAY + TO_CLOSE:
            if depth == 0:
                break
            depth -= CONTAINER
            # A closed container's keys cannot be repeated any more.
            count = containers[uint64(depth + 1)]
            wants_key = int64(0)
            is_value = int64(1)
            p += 1
        elif byte == COMMA:
            if depth == 0:
                break
            wants_key = int64(0)
            if load8(text, containers[uint64(depth - CONTAINER)]) == OPEN_OBJECT:
                wants_key = int64(1)
            p += 1
        elif byte == COLON or is_blank(byte):
            p += 1
        else:
            # Numbers, true, false and null are well-formed up to `stop`: only their ends count.
            q = p + 1
            while q < stop:
                inner = int64(load8(text, q))
                if (
                    inner <= SPACE
                    or inner == COMMA
                    or inner == COLON
                    or inner == CLOSE_OBJECT
                    or inner == OPEN_ARRAY + TO_CLOSE
                ):
                    break
                q += 1
            if q >= stop:
                break
            is_value = int64(1)
            p = q
        if is_value != 0:
            state[BEHIND] = p
            if depth == 0:
                state[ROOT_DONE] = 1
            else:
                containers[uint64(depth - 1)] += 1
    state[NAMES] = count
    return depth


@helper
def _name_byte(text: Bytes, arena: Bytes, place: int, number: int) -> int:
    """Return one byte of a key."""
    if place >= 0:
        return load8(text, place + number)
    return load8(arena, ~place + number)


@helper
def _same_name(text: Bytes, memory: Memory, one: int, other: int) -> bool:
    """Whether two keys are equal."""
    _, names, _, arena, _ = memory
    size = names[uint64(one + 3)]
    if names[uint64(other + 3)] != size:
        return False
    first, second = names[uint64(one + 2)], names[uint64(other + 2)]
    for k in range(size):
        if _name_byte(text, arena, first, k) != _name_byte(text, arena, second, k):
            return False
    return True


@helper
def _repeat_in(text: Bytes, memory: Memory, first: int, behind: int) -> int:
    """Return the first of the keys names[first:behind] that repeats an earlier one, or -1."""
    _, names, slots, arena, state = memory
    size = int64(2)
    while size < 2 * ((behind - first) // NAME):
        size *= 2
    for slot in range(size):
        slots[uint64(slot)] = -1
    for name in range(first, behind, NAME):
        place, length = names[uint64(name + 2)], names[uint64(name + 3)]
        if place >= 0:
            slot = hash_bytes(text, place, length, state[KEY_SEED]) & (size - 1)
        else:
            slot = hash_bytes(arena, ~place, length, state[KEY_SEED]) & (size - 1)
        while slots[uint64(slot)] >= 0:
            if _same_name(text, memory, slots[uint64(slot)], name):
                return int64(name)
            slot = (slot + 1) & (size - 1)
        slots[uint64(slot)] = name
    return int64(-1)


@helper
def first_repeat(text: Bytes, memory: Memory, depth: int) -> int:
    """Return the first key in the text that repeats a key of its open object, -1 if none does.

    Takes what `find_open` leaves in `memory`, and sets state[REPEATED_IN].
    """
    containers, names, _, _, state = memory
    found = int64(-1)
    for each in range(0, depth, CONTAINER):
        behind = state[NAMES]
        if each + CONTAINER < depth:
            behind = containers[uint64(each + CONTAINER + 1)]
        first = containers[uint64(each + 1)]
        if behind - first < 2 * NAME:
            continue
        name = _repeat_in(text, memory, first, behind)
        if name >= 0 and (found < 0 or names[uint64(name)] < names[uint64(found)]):
            found = name
            state[REPEATED_IN] = each // CONTAINER
    return found
