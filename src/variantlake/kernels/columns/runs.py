"""Find the runs of a page of dictionary codes without a word for each row.

A column that the rows are sorted by has a few runs, however many rows there are. pyarrow reads
whatever is unusual or wrong. Spec: Parquet, "Run Length Encoding / Bit-Packing Hybrid".
"""

from __future__ import annotations

from variantlake.kernels.columns.hybrid import packed, varint
from variantlake.kernels.native.declared import (
    Bytes,
    BytesIn,
    Int32s,
    Int64s,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import entry, helper
from variantlake.kernels.tape.words import load8

NULL_CODE = -1
"""The code of a run of rows without a value."""
TOO_MANY = -2
"""There is no room for all runs."""

_AT, _INNER, _BIT, _VALUE, _LENGTH = 0, 1, 2, 3, 4
"""The state of each of two streams: the offset of its next run, how many packed numbers of this run
are left and the bit of the next one, its current number, and how often that repeats yet."""
_STREAM = 5
RUN_STATE = 2 * _STREAM
"""How many words of state `find_runs` needs."""


@helper
def _next(data: Bytes, width: int, state: Int64s, base: int) -> int:
    """Advance a stream of numbers of `width` bits, 0 to 31, to its next run; returns 0, or -1."""
    if state[uint64(base + _INNER)] == 0:
        at = varint(data, state[uint64(base + _AT)], state, base + _VALUE)
        if at < 0:
            return -1
        header, left = state[uint64(base + _VALUE)], int64(data.size) - at
        if header & 1 == 0:
            size = (width + 7) // 8
            if header == 0 or size > left:
                return -1
            state[uint64(base + _AT)] = at + size
            state[uint64(base + _VALUE)] = packed(data, at * 8, size * 8)
            state[uint64(base + _LENGTH)] = header >> 1
            return 0
        groups = header >> 1
        if groups == 0 or groups > 1 << 31 or groups * width > left:
            return -1
        state[uint64(base + _INNER)] = groups * 8
        state[uint64(base + _BIT)] = at * 8
        state[uint64(base + _AT)] = at + groups * width
    bit = state[uint64(base + _BIT)]
    state[uint64(base + _VALUE)] = packed(data, bit, width)
    state[uint64(base + _BIT)] = bit + width
    state[uint64(base + _INNER)] -= 1
    state[uint64(base + _LENGTH)] = 1
    return 0


@entry
def find_runs(
    levels: BytesIn,
    most: int,
    values: BytesIn,
    entries: int,
    rows: int,
    codes: Int32s,
    ends: Int64s,
    count: int,
    place: int,
    state: Int64s,
) -> int:
    """Append the runs of a page of `rows` rows to `count` runs; returns the new number of runs.

    levels: uint8, its definition levels. most: the level of a value; 0 if it has no levels. values:
    uint8, the width of its codes and the codes, of a dictionary of `entries`. codes: int32, the
    code of each run, or NULL_CODE. ends: int64, the row after each run; the page's rows begin at
    `place`. state: int64, RUN_STATE words. Adjacent runs have different codes. -1 for a malformed
    page, TOO_MANY if codes or ends are full. Allocates nothing, never raises.
    Twin: tests.kernels.columns.test_runs.
    """
    if rows < 0 or count < 0 or place < 0 or most < 0 or state.size < RUN_STATE:
        return -1
    for k in range(RUN_STATE):
        state[uint64(k)] = 0
    levels_width = int64(0)
    while most >> levels_width:
        levels_width += 1
    width = int64(0)
    if values.size > 0:
        width = load8(values, int64(0))
    if levels_width > 31 or width > 31:
        return -1
    # Without levels, all rows have a value: one run of level 0.
    if most == 0:
        state[uint64(_LENGTH)] = rows
    own = values[1:]
    done = int64(0)
    while done < rows:
        if state[uint64(_LENGTH)] == 0:
            if _next(levels, levels_width, state, int64(0)) < 0:
                return -1
            if state[uint64(_VALUE)] > most:
                return -1
        # Levels and codes have runs of their own; a run of the column ends with the shorter one.
        length = min(state[uint64(_LENGTH)], rows - done)
        code = int64(NULL_CODE)
        if state[uint64(_VALUE)] == most:
            if state[uint64(_STREAM + _LENGTH)] == 0:
                if values.size == 0 or _next(own, width, state, int64(_STREAM)) < 0:
                    return -1
                if state[uint64(_STREAM + _VALUE)] >= entries:
                    return -1
            length = min(length, state[uint64(_STREAM + _LENGTH)])
            state[uint64(_STREAM + _LENGTH)] -= length
            code = state[uint64(_STREAM + _VALUE)]
        state[uint64(_LENGTH)] -= length
        done += length
        # Runs that were cut by the other stream, or by the end of a page, are joined again.
        if count > 0 and count <= codes.size and int64(codes[uint64(count - 1)]) == code:
            ends[uint64(count - 1)] = place + done
        elif count >= codes.size or count >= ends.size:
            return TOO_MANY
        else:
            codes[uint64(count)] = code
            ends[uint64(count)] = place + done
            count += 1
    return count
