"""Which containers a JSON document has open at some place."""

from __future__ import annotations

from variantlake.kernels.native.declared import BytesIn, Int64s, int64, uint64
from variantlake.kernels.native.jit import entry
from variantlake.kernels.tape.words import load8

FRAME = 3
"""Words of an open container: where its bracket is, the keys before its own, its whole values."""

BEHIND, KEYS, ROOT_DONE = 0, 1, 2
"""Places in the state array: behind the last whole value or open bracket, how many keys there are,
and whether the document is whole."""


@entry
def find_open(text: BytesIn, stop: int, frames: Int64s, keys: Int64s, state: Int64s) -> int:
    """Walk over a document that is well-formed up to `stop`; returns how many containers are open.

    text: uint8, any bytes, from the document's start. frames: int64, 3 for each of MAX_DEPTH + 1.
    keys: int64, 2 for each 4 bytes and 4 more, filled: where keys of open containers start and end,
    quotes included. state: int64, 3 zeros, filled. Allocates nothing, never raises.
    """
    depth = count = p = int64(0)
    wants_key = int64(0)
    while p < stop:
        byte = int64(load8(text, p))
        is_value = int64(0)
        if byte == 34:
            q = p + 1
            while q < stop:
                inner = int64(load8(text, q))
                if inner == 34:
                    break
                q += 2 if inner == 92 else 1
            if q >= stop:
                break
            if wants_key != 0:
                if count + 2 > keys.size:
                    break
                keys[uint64(count)] = p
                keys[uint64(count + 1)] = q + 1
                count += 2
                wants_key = int64(0)
            else:
                is_value = int64(1)
            p = q + 1
        elif byte == 123 or byte == 91:
            if depth + FRAME > frames.size:
                break
            frames[uint64(depth)] = p
            frames[uint64(depth + 1)] = count
            frames[uint64(depth + 2)] = 0
            depth += FRAME
            wants_key = int64(1) if byte == 123 else int64(0)
            p += 1
            state[BEHIND] = p
        elif byte == 125 or byte == 93:
            if depth == 0:
                break
            depth -= FRAME
            count = frames[uint64(depth + 1)]
            wants_key = int64(0)
            is_value = int64(1)
            p += 1
        elif byte == 44:
            if depth == 0:
                break
            wants_key = int64(0)
            if load8(text, frames[uint64(depth - FRAME)]) == 123:
                wants_key = int64(1)
            p += 1
        elif byte == 58 or byte == 32 or byte == 10 or byte == 13 or byte == 9:
            p += 1
        else:
            q = p + 1
            while q < stop:
                inner = int64(load8(text, q))
                if inner <= 32 or inner == 44 or inner == 58 or inner == 93 or inner == 125:
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
                frames[uint64(depth - 1)] += 1
    state[KEYS] = count
    return depth // FRAME
