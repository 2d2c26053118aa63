"""Write an edited Variant: the containers on the path, closed from the inside out.

Their other children are copied unchanged; a new value comes from a tape. Each container has a frame
with what `edit_walking` read.
"""

from __future__ import annotations

from typing import NamedTuple

from variantlake.encoding.limits import MAX_DEPTH, MAX_KEYS, MAX_VALUE_BYTES
from variantlake.kernels.native.declared import (
    Bytes,
    BytesIn,
    Int32s,
    Int64s,
    Int64sIn,
    Records,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import helper
from variantlake.kernels.tape.containers import EXTENT, MARGIN, close_container
from variantlake.kernels.tape.emit import emit_scalar, put_number
from variantlake.kernels.tape.nodes import OBJECT, Nodes, width_of
from variantlake.kernels.tape.words import copy_bytes, load8, load_unsigned, store8
from variantlake.kernels.variant.edit_walking import (
    BASE,
    BEGIN,
    COUNT,
    DELETE,
    ENTRIES,
    FOUND,
    ID_WIDTH,
    IDS,
    INSERT,
    IS_OBJECT,
    LARGEST,
    LAST,
    PLACE,
    START,
    TOP,
    WORDS,
    WRITTEN,
    is_less,
)
from variantlake.kernels.variant.variant_reader import TOO_DEEP, TOO_LARGE

# Places in the state of the edit.
SIZE, ADDED, STAMP, NEED, NEED_METADATA = 0, 1, 2, 3, 4
"""The number of keys in the row's dictionary; the number added to it; the stamp of both; the bytes
of room that the row's value and its metadata need."""
STATE_WORDS = 8

_VALUE_LIMIT, _DEPTH_LIMIT, _KEYS_LIMIT = MAX_VALUE_BYTES, MAX_DEPTH, MAX_KEYS
_VERSION, _SORTED = 1, 0x10


class EditValues(NamedTuple):
    """The tape of the new values, one for all rows or one for each; it shares the KeyTable."""

    text: BytesIn
    arena: BytesIn
    nodes: Nodes
    first: Int64sIn
    status: Int64sIn


class EditRoom(NamedTuple):
    """Working memory of an edit.

    frames: int64, WORDS * 2 * MAX_DEPTH. work: int64, as long as the longest value and 2 *
    MAX_DEPTH. entries: int64, as long as the longest value, the longest new value in nodes and the
    padding of all steps that are indexes. stamps: int64, zero; places: int32; added: int64: one a
    key. edit: int64, STATE_WORDS.
    """

    frames: Int64s
    work: Int64s
    entries: Int64s
    stamps: Int64s
    places: Int32s
    added: Int64s
    edit: Int64s


@helper
def _id_of(key: int, room: EditRoom) -> int:
    """Return the id of a key in the row's dictionary; add the key if it is new."""
    _, _, _, stamps, places, added, edit = room
    if stamps[uint64(key)] != edit[uint64(STAMP)]:
        number = edit[uint64(ADDED)]
        stamps[uint64(key)] = edit[uint64(STAMP)]
        places[uint64(key)] = edit[uint64(SIZE)] + number
        added[uint64(number)] = key
        edit[uint64(ADDED)] = number + 1
    return int64(places[uint64(key)])


@helper
def _begin(frames: Int64s, at: int, to: int, head: int, entries: int) -> int:
    """Begin a container at out[to:], with `head` bytes of header; return where its children go."""
    frames[uint64(at + BEGIN)] = to
    frames[uint64(at + START)] = to + head
    frames[uint64(at + ENTRIES)] = entries
    frames[uint64(at + WRITTEN)] = 0
    frames[uint64(at + LARGEST)] = 0
    return to + head


@helper
def _enter(frames: Int64s, at: int, entries: Int64s, field: int, to: int) -> None:
    """Enter the container's next child, which begins at out[to:]."""
    written = frames[uint64(at + WRITTEN)]
    place = frames[uint64(at + ENTRIES)] + written
    entries[uint64(place)] = field << 32 | (to - frames[uint64(at + START)])
    frames[uint64(at + WRITTEN)] = written + 1
    frames[uint64(at + LARGEST)] = max(frames[uint64(at + LARGEST)], field)


@helper
def _copy_children(
    data: Bytes,
    frames: Int64s,
    at: int,
    first: int,
    last: int,
    work: Int64s,
    entries: Int64s,
    out: Bytes,
    to: int,
) -> int:
    """Copy the children first ... last - 1 of the container as read; return where they end."""
    base, top = frames[uint64(at + BASE)], frames[uint64(at + TOP)]
    ids, width = frames[uint64(at + IDS)], frames[uint64(at + ID_WIDTH)]
    for index in range(first, last):
        extent = work[uint64(top + index)]
        start = base + (extent >> int64(32))
        size = base + (extent & EXTENT) - start
        field = int64(0)
        if width > 0:
            field = load_unsigned(data, ids + index * width, width)
        _enter(frames, at, entries, field, to)
        copy_bytes(out, to, data, start, size)
        to += size
    return to


@helper
def _close(frames: Int64s, at: int, entries: Int64s, out: Bytes, to: int) -> int:
    """Write the container's header; return what `close_container` does: its end or an error."""
    return close_container(
        frames[uint64(at + IS_OBJECT)] == 1,
        entries,
        frames[uint64(at + ENTRIES)],
        frames[uint64(at + WRITTEN)],
        frames[uint64(at + LARGEST)],
        out,
        frames[uint64(at + BEGIN)],
        frames[uint64(at + START)],
        to,
    )


@helper
def _emit(
    values: EditValues, t: int, at: int, top: int, room: EditRoom, out: Bytes, to: int
) -> int:
    """Write the value of nodes[t] with ids of the row's dictionary.

    Its frames begin at `at`, its entries at `top`. Returns where it ends, or -TOO_DEEP, -TOO_LARGE.
    """
    text, arena, nodes = values.text, values.arena, values.nodes
    frames, entries = room.frames, room.entries
    bottom = at
    end = t + int64(nodes[uint64(t)].span)
    while t < end:
        node = nodes[uint64(t)]
        if at > bottom:
            field = int64(0)
            if frames[uint64(at - WORDS + IS_OBJECT)] == 1:
                field = _id_of(int64(node.key), room)
            _enter(frames, at - WORDS, entries, field, to)
        if int64(node.tag) < OBJECT:
            to = emit_scalar(text, arena, node, out, to)
            t += 1
        else:
            if at >= _DEPTH_LIMIT * WORDS:
                return int64(-TOO_DEEP)
            frames[uint64(at + IS_OBJECT)] = 1 if int64(node.tag) == OBJECT else 0
            frames[uint64(at + LAST)] = t + int64(node.span)
            to = _begin(frames, at, to, int64(node.length) - int64(node.content), top)
            top += int64(node.extra)
            at += WORDS
            t += 1
        while at > bottom and frames[uint64(at - WORDS + LAST)] == t:
            at -= WORDS
            to = _close(frames, at, entries, out, to)
            if to < 0:
                return int64(-TOO_LARGE)
            top = frames[uint64(at + ENTRIES)]
    return to


@helper
def write_metadata(
    metadata: Bytes,
    start: int,
    end: int,
    keys: Records,
    key_bytes: Bytes,
    local: Int32s,
    added: Int64s,
    edit: Int64s,
    out: Bytes,
    to: int,
) -> int:
    """Write the row's dictionary with the added keys; return its end.

    Returns -1, with edit[NEED_METADATA] set, if there is no room, -TOO_LARGE beyond our limits.
    """
    more, size = edit[uint64(ADDED)], edit[uint64(SIZE)]
    if more == 0:
        edit[uint64(NEED_METADATA)] = end - start + MARGIN
        if to + end - start + MARGIN > out.size:
            return int64(-1)
        copy_bytes(out, to, metadata, start, end - start)
        return to + end - start
    header = load8(metadata, start)
    width = (header >> 6) + 1
    offsets = start + 1 + width
    strings = offsets + (size + 1) * width
    total = end - strings
    # New keys go last, so that ids stay valid; this may leave the dictionary unsorted.
    in_order = header & _SORTED != 0 or size == 0
    previous = int64(local[uint64(size - 1)]) if size > 0 else int64(0)
    for number in range(more):
        key = added[uint64(number)]
        total += int64(keys[uint64(key)].length)
        if previous != 0 and not is_less(keys, key_bytes, previous, key):
            in_order = False
        previous = key
    count = size + more
    wide = width_of(max(total, count))
    place = to + 1 + wide
    string: int = place + (count + 1) * wide
    if count > _KEYS_LIMIT or string + total - to > _VALUE_LIMIT:
        return int64(-TOO_LARGE)
    edit[uint64(NEED_METADATA)] = string + total - to + MARGIN
    if string + total + MARGIN > out.size:
        return int64(-1)
    store8(out, to, _VERSION | (_SORTED if in_order else 0) | (wide - 1) << 6)
    put_number(out, to + 1, count, wide)
    offset = int64(0)
    # The old offsets keep their values, but may take more bytes.
    for index in range(size):
        put_number(out, place, load_unsigned(metadata, offsets + index * width, width), wide)
        place += wide
    offset = end - strings
    first = string
    copy_bytes(out, string, metadata, strings, offset)
    string += offset
    for number in range(more):
        put_number(out, place, string - first, wide)
        place += wide
        key = keys[uint64(added[uint64(number)])]
        copy_bytes(out, string, key_bytes, int64(key.start), int64(key.length))
        string += int64(key.length)
    put_number(out, place, string - first, wide)
    return string


@helper
def room_for(
    frames: Int64s, depth: int, steps: Int64s, change: int, length: int, nodes: Records, t: int
) -> int:
    """Return an upper bound for the bytes of the row's new value."""
    need = length + 2 * MARGIN
    for number in range(depth):
        need += 8 * frames[uint64(number * WORDS + COUNT)] + 64
    last = (depth - 1) * WORDS
    if frames[uint64(last + IS_OBJECT)] == 0 and frames[uint64(last + FOUND)] == 0:
        need += 5 * (frames[uint64(last + PLACE)] - frames[uint64(last + COUNT)])
    for number in range(depth, int64(steps.size) // 2):
        need += 64
        if steps[uint64(2 * number)] == 1:
            need += 5 * steps[uint64(2 * number + 1)]
    if change != DELETE:
        node = nodes[uint64(t)]
        more: int = int64(node.length) + 12 * int64(node.span)
        need += more
    return need


@helper
def write_value(
    data: Bytes,
    depth: int,
    steps: Int64s,
    change: int,
    values: EditValues,
    t: int,
    room: EditRoom,
    out: Bytes,
    to: int,
) -> int:
    """Write a row's changed value, with nodes[t] as the new one; return its end, or -status."""
    frames, work, entries = room.frames, room.work, room.entries
    top = int64(0)
    count = int64(steps.size) // 2
    padding = int64(0)
    for number in range(depth):
        at = number * WORDS
        children, place = frames[uint64(at + COUNT)], frames[uint64(at + PLACE)]
        # Reserve room for the header: its size seldom changes.
        head = 2 + (children + 1) * (frames[uint64(at + ID_WIDTH)] + 1)
        to = _begin(frames, at, to, head, top)
        to = _copy_children(data, frames, at, 0, min(place, children), work, entries, out, to)
        found = frames[uint64(at + FOUND)] == 1
        is_last = number == depth - 1
        top += children + 1
        if is_last and change == DELETE:
            break
        field = int64(0)
        if frames[uint64(at + IS_OBJECT)] == 1:
            if found:
                width = frames[uint64(at + ID_WIDTH)]
                field = load_unsigned(data, frames[uint64(at + IDS)] + place * width, width)
            else:
                step = steps[uint64(2 * number + 1)]
                field = _id_of(step, room)
        elif not found:
            padding = place - children
            for _ in range(padding):
                _enter(frames, at, entries, int64(0), to)
                store8(out, to, 0)
                to += 1
            top += padding
        _enter(frames, at, entries, field, to)
    if change != DELETE:
        whole = depth
        if max(depth, count) > _DEPTH_LIMIT:
            return int64(-TOO_DEEP)
        for number in range(depth, count):
            at = number * WORDS
            step = steps[uint64(2 * number + 1)]
            is_object = steps[uint64(2 * number)] == 0
            frames[uint64(at + IS_OBJECT)] = 1 if is_object else 0
            to = _begin(frames, at, to, int64(5), top)
            field = int64(0)
            if is_object:
                field = _id_of(step, room)
            else:
                for _ in range(step):
                    _enter(frames, at, entries, int64(0), to)
                    store8(out, to, 0)
                    to += 1
                top += step
            top += 1
            _enter(frames, at, entries, field, to)
            whole += 1
        to = _emit(values, t, whole * WORDS, top, room, out, to)
        if to < 0:
            return to
        for back in range(whole - depth):
            to = _close(frames, (whole - 1 - back) * WORDS, entries, out, to)
            if to < 0:
                return int64(-TOO_LARGE)
    for back in range(depth):
        at = (depth - 1 - back) * WORDS
        children, place = frames[uint64(at + COUNT)], frames[uint64(at + PLACE)]
        after = place
        inserted = back == 0 and change == INSERT
        if frames[uint64(at + FOUND)] == 1 and not inserted:
            after += 1
        to = _copy_children(data, frames, at, after, children, work, entries, out, to)
        to = _close(frames, at, entries, out, to)
        if to < 0:
            return int64(-TOO_LARGE)
    return to
