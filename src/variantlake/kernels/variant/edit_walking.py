"""Find the place that an edit changes, from a row's outermost container to the innermost one.

Each container on the path gets a frame, from which `edit_writing` writes it anew. The containers on
the path may hold any bytes and are checked; the values beside the path are never read.
"""

from __future__ import annotations

from variantlake.encoding.edit import Change
from variantlake.kernels.native.declared import (
    Bytes,
    Int32s,
    Int64s,
    Records,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import helper
from variantlake.kernels.tape.containers import EXTENT, read_extents, read_header
from variantlake.kernels.tape.keys import compare_bytes
from variantlake.kernels.tape.words import load8, load_unsigned
from variantlake.kernels.variant.variant_reader import MALFORMED, KeyArrays, read_ids

MISMATCH = 20
"""Status of a row in which a step meets a value of another type."""
DUPLICATE = 21
"""Status of a row that already has the field to insert."""

WORDS = 14
"""Words of a frame."""
IS_OBJECT, COUNT, IDS, ID_WIDTH, BASE, TOP, PLACE, FOUND = 0, 1, 2, 3, 4, 5, 6, 7
"""Words about the container as read: 1 for an object; the number of children; where the ids begin,
and their width, 0 for an array; where the children begin; the place of their extents in `work`; the
index of the step's child, or where it would go; 1 if that child exists."""
BEGIN, START, ENTRIES, WRITTEN, LARGEST, LAST = 8, 9, 10, 11, 12, 13
"""Words about the container as written: where its header and its children begin; its first entry in
`entries`; the number of entries and their largest id; in a new value, the node after it."""

SET, INSERT, DELETE, APPEND = (int(each) for each in Change)


@helper
def _open(
    data: Bytes,
    start: int,
    end: int,
    frames: Int64s,
    at: int,
    top: int,
    work: Int64s,
    seen: Int64s,
    local: Int32s,
    state: Int64s,
) -> bool:
    """Describe the container data[start:end] in its frame; return False if it is malformed."""
    count, ids, id_width, width, base = read_header(data, start, end)
    if count < 0:
        return False
    if not read_extents(data, ids + count * id_width, count, width, end - base, work, top):
        return False
    if id_width > 0 and not read_ids(data, ids, count, id_width, seen, local, state):
        return False
    frames[uint64(at + IS_OBJECT)] = 1 if id_width > 0 else 0
    frames[uint64(at + COUNT)] = count
    frames[uint64(at + IDS)] = ids
    frames[uint64(at + ID_WIDTH)] = id_width
    frames[uint64(at + BASE)] = base
    frames[uint64(at + TOP)] = top
    return True


@helper
def is_less(keys: Records, key_bytes: Bytes, one: int, two: int) -> bool:
    """Whether the name of key `one` sorts before that of `two`, by bytes."""
    first, second = keys[uint64(one)], keys[uint64(two)]
    order = compare_bytes(
        key_bytes, int64(first.start), int64(first.length),
        key_bytes, int64(second.start), int64(second.length),
    )  # fmt: skip
    return order < 0


@helper
def _locate(
    data: Bytes,
    frames: Int64s,
    at: int,
    kind: int,
    step: int,
    local: Int32s,
    keys: Records,
    key_bytes: Bytes,
) -> None:
    """Find the index of the step's child in the container, or the index where it would go."""
    count = frames[uint64(at + COUNT)]
    found, place = int64(0), int64(step)
    if kind == 1:
        found = int64(1) if step < count else int64(0)
    else:
        ids, width = frames[uint64(at + IDS)], frames[uint64(at + ID_WIDTH)]
        place = int64(-1)
        for index in range(count):
            key = int64(local[uint64(load_unsigned(data, ids + index * width, width))])
            if key == step:
                found = int64(1)
                place = int64(index)
                break
        if found == 0:
            place = count
            for index in range(count):
                key = int64(local[uint64(load_unsigned(data, ids + index * width, width))])
                if is_less(keys, key_bytes, step, key):
                    place = int64(index)
                    break
    frames[uint64(at + PLACE)] = place
    frames[uint64(at + FOUND)] = found


@helper
def walk(
    data: Bytes,
    start: int,
    end: int,
    steps: Int64s,
    change: int,
    creates: int,
    frames: Int64s,
    work: Int64s,
    table: KeyArrays,
) -> int:
    """Open the containers on the path down to the one that changes.

    Returns their number, 0 if nothing changes, or -status.
    """
    keys, key_bytes, _, seen, local, state = table
    depth, top = int64(0), int64(0)
    count = int64(steps.size) // 2
    for number in range(count + 1):
        if number == count and change != APPEND:
            break
        if start >= end:
            return int64(-MALFORMED)
        kind = steps[uint64(2 * number)] if number < count else int64(1)
        header = load8(data, start) & 3
        if (kind == 0 and header != 2) or (kind == 1 and header != 3):
            return int64(0) if change == DELETE else int64(-MISMATCH)
        at = depth * WORDS
        if not _open(data, start, end, frames, at, top, work, seen, local, state):
            return int64(-MALFORMED)
        depth += 1
        children = frames[uint64(at + COUNT)]
        top += children
        if number == count:  # the array to append to
            frames[uint64(at + PLACE)] = children
            frames[uint64(at + FOUND)] = 0
            return depth
        step = steps[uint64(2 * number + 1)]
        _locate(data, frames, at, kind, step, local, keys, key_bytes)
        if frames[uint64(at + FOUND)] == 0:
            if (change == SET and creates == 1) or change == INSERT:
                return depth
            return int64(0)
        extent = work[uint64(frames[uint64(at + TOP)] + frames[uint64(at + PLACE)])]
        end = frames[uint64(at + BASE)] + (extent & EXTENT)
        start = frames[uint64(at + BASE)] + (extent >> int64(32))
    last = (depth - 1) * WORDS
    if change == INSERT and frames[uint64(last + IS_OBJECT)] == 1:
        return int64(-DUPLICATE)
    return depth
