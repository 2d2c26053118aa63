"""Changing values inside of many Variants by one path. Twin: encoding.edit.

A row's containers on the way are taken apart from the outside in, written with the bytes of their
other children as they are, and closed from the inside out. Nothing is assumed of the bytes on the
way; what is beside it is copied and never looked at.
"""

from __future__ import annotations

from variantlake.encoding.edit import Change
from variantlake.encoding.limits import MAX_DEPTH, MAX_KEYS, MAX_VALUE_BYTES
from variantlake.kernels.native.declared import (
    Bytes,
    Int32s,
    Int64s,
    Records,
    bytes_in,
    i64,
    int32s,
    int32s_in,
    int64,
    int64s,
    int64s_in,
    records,
    uint8s,
    uint64,
)
from variantlake.kernels.native.jit import entry, helper
from variantlake.kernels.tape.containers import EXTENT, MARGIN, close_container, read_extents
from variantlake.kernels.tape.emit import emit_scalar, put_number
from variantlake.kernels.tape.keys import KEY, KEY_BYTES, KEY_COUNT, equal_bytes
from variantlake.kernels.tape.nodes import NODE, OBJECT, width_of
from variantlake.kernels.tape.tape import SQL_NULL
from variantlake.kernels.tape.words import (
    PADDING,
    copy_bytes,
    load8,
    load32,
    load_unsigned,
    store8,
)
from variantlake.kernels.variant.variant_reader import (
    DICTIONARY,
    GOOD,
    MALFORMED,
    TOO_DEEP,
    TOO_LARGE,
    read_ids,
    read_metadata,
)

MISMATCH = 20
"""Status of a row in which a step meets a value of another type."""
DUPLICATE = 21
"""Status of a row that has the field already which shall be inserted."""

WORDS = 14
"""Words of a frame: what `_open` found, and how far the container is written."""
_OBJECT, _COUNT, _IDS, _ID_WIDTH, _BASE, _TOP, _PLACE, _FOUND = 0, 1, 2, 3, 4, 5, 6, 7
_BEGIN, _START, _ENTRIES, _WRITTEN, _LARGEST, _LAST = 8, 9, 10, 11, 12, 13

# Places in the state of the edit.
SIZE, ADDED, STAMP, NEED, NEED_METADATA = 0, 1, 2, 3, 4
"""Keys of the row's dictionary, keys that are added to it, the mark of both; room that is needed
for the row's value and for its metadata."""
STATE_WORDS = 8

_SET, _INSERT, _DELETE, _APPEND = (int(each) for each in Change)
_VALUE_LIMIT, _DEPTH_LIMIT, _KEYS_LIMIT = MAX_VALUE_BYTES, MAX_DEPTH, MAX_KEYS
_LAST_OFFSET = (1 << 31) - 1
_VERSION, _SORTED = 1, 0x10


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
    """Take the container that fills data[start:end] apart; False where it is malformed."""
    header = load8(data, start)
    offset_width = (header >> 2 & 3) + 1
    is_object = header & 3 == 2
    id_width = int64(0)
    large = header >> 4 & 1
    if is_object:
        id_width = (header >> 4 & 3) + 1
        large = header >> 6 & 1
    ids = start + 2 + 3 * large
    if ids > end:
        return False
    count = load8(data, start + 1) if large == 0 else load32(data, start + 1)
    offsets = ids + count * id_width
    base = offsets + (count + 1) * offset_width
    if base > end:
        return False
    size = load_unsigned(data, base - offset_width, offset_width)
    if base + size != end or count > size or (count == 0 and size != 0):
        return False
    if not read_extents(data, offsets, count, offset_width, size, work, top):
        return False
    if is_object and not read_ids(data, ids, count, id_width, seen, local, state):
        return False
    frames[uint64(at + _OBJECT)] = 1 if is_object else 0
    frames[uint64(at + _COUNT)] = count
    frames[uint64(at + _IDS)] = ids
    frames[uint64(at + _ID_WIDTH)] = id_width
    frames[uint64(at + _BASE)] = base
    frames[uint64(at + _TOP)] = top
    return True


@helper
def _is_less(keys: Records, key_bytes: Bytes, one: int, two: int) -> bool:
    """Whether the name of key `one` comes before that of `two`, by their bytes."""
    first, second = keys[uint64(one)], keys[uint64(two)]
    a, b = int64(first.start), int64(second.start)
    shorter = min(int64(first.length), int64(second.length))
    for k in range(shorter):
        x, y = load8(key_bytes, a + k), load8(key_bytes, b + k)
        if x != y:
            return x < y
    return int64(first.length) < int64(second.length)


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
    """Find where the step's child is in the container, or where it belongs."""
    count = frames[uint64(at + _COUNT)]
    found, place = int64(0), int64(step)
    if kind == 1:
        found = int64(1) if step < count else int64(0)
    else:
        ids, width = frames[uint64(at + _IDS)], frames[uint64(at + _ID_WIDTH)]
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
                if _is_less(keys, key_bytes, step, key):
                    place = int64(index)
                    break
    frames[uint64(at + _PLACE)] = place
    frames[uint64(at + _FOUND)] = found


@helper
def _id_of(key: int, stamps: Int64s, places: Int32s, added: Int64s, edit: Int64s) -> int:
    """The id of a key in the row's dictionary, a new one if need be."""
    if stamps[uint64(key)] != edit[uint64(STAMP)]:
        number = edit[uint64(ADDED)]
        stamps[uint64(key)] = edit[uint64(STAMP)]
        places[uint64(key)] = edit[uint64(SIZE)] + number
        added[uint64(number)] = key
        edit[uint64(ADDED)] = number + 1
    return int64(places[uint64(key)])


@helper
def _begin(frames: Int64s, at: int, to: int, head: int, entries: int) -> int:
    """Begin to write a container at out[to:], with room for a header; returns where children go."""
    frames[uint64(at + _BEGIN)] = to
    frames[uint64(at + _START)] = to + head
    frames[uint64(at + _ENTRIES)] = entries
    frames[uint64(at + _WRITTEN)] = 0
    frames[uint64(at + _LARGEST)] = 0
    return to + head


@helper
def _enter(frames: Int64s, at: int, entries: Int64s, field: int, to: int) -> None:
    """Say that the container's next child begins at out[to:]."""
    written = frames[uint64(at + _WRITTEN)]
    place = frames[uint64(at + _ENTRIES)] + written
    entries[uint64(place)] = field << 32 | (to - frames[uint64(at + _START)])
    frames[uint64(at + _WRITTEN)] = written + 1
    frames[uint64(at + _LARGEST)] = max(frames[uint64(at + _LARGEST)], field)


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
    """Copy the children first ... last - 1 of the container that was read."""
    base, top = frames[uint64(at + _BASE)], frames[uint64(at + _TOP)]
    ids, width = frames[uint64(at + _IDS)], frames[uint64(at + _ID_WIDTH)]
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
    """Write the header of the container; returns its end, or what `close_container` says."""
    return close_container(
        frames[uint64(at + _OBJECT)] == 1,
        entries,
        frames[uint64(at + _ENTRIES)],
        frames[uint64(at + _WRITTEN)],
        frames[uint64(at + _LARGEST)],
        out,
        frames[uint64(at + _BEGIN)],
        frames[uint64(at + _START)],
        to,
    )


@helper
def _emit(
    text: Bytes,
    arena: Bytes,
    nodes: Records,
    t: int,
    frames: Int64s,
    at: int,
    entries: Int64s,
    top: int,
    out: Bytes,
    to: int,
    stamps: Int64s,
    places: Int32s,
    added: Int64s,
    edit: Int64s,
) -> int:
    """Write the value of nodes[t] with ids of the row's dictionary; its frames are from `at` on.

    Returns where it ends, or -TOO_DEEP, -TOO_LARGE.
    """
    bottom = at
    end = t + int64(nodes[uint64(t)].span)
    while t < end:
        node = nodes[uint64(t)]
        if at > bottom:
            field = int64(0)
            if frames[uint64(at - WORDS + _OBJECT)] == 1:
                field = _id_of(int64(node.key), stamps, places, added, edit)
            _enter(frames, at - WORDS, entries, field, to)
        if int64(node.tag) < OBJECT:
            to = emit_scalar(text, arena, node, out, to)
            t += 1
        else:
            if at >= _DEPTH_LIMIT * WORDS:
                return int64(-TOO_DEEP)
            frames[uint64(at + _OBJECT)] = 1 if int64(node.tag) == OBJECT else 0
            frames[uint64(at + _LAST)] = t + int64(node.span)
            to = _begin(frames, at, to, int64(node.length) - int64(node.content), top)
            top += int64(node.extra)
            at += WORDS
            t += 1
        while at > bottom and frames[uint64(at - WORDS + _LAST)] == t:
            at -= WORDS
            to = _close(frames, at, entries, out, to)
            if to < 0:
                return int64(-TOO_LARGE)
            top = frames[uint64(at + _ENTRIES)]
    return to


@helper
def _write_metadata(
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
    """Write the row's dictionary with the keys that are added; returns its end.

    -1 where there is no room, edit[NEED_METADATA] set; -TOO_LARGE beyond our limits.
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
    in_order = header & _SORTED != 0 or size == 0
    previous = int64(local[uint64(size - 1)]) if size > 0 else int64(0)
    for number in range(more):
        key = added[uint64(number)]
        total += int64(keys[uint64(key)].length)
        if previous != 0 and not _is_less(keys, key_bytes, previous, key):
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
def _walk(
    data: Bytes,
    start: int,
    end: int,
    steps: Int64s,
    change: int,
    creates: int,
    frames: Int64s,
    work: Int64s,
    seen: Int64s,
    local: Int32s,
    keys: Records,
    key_bytes: Bytes,
    state: Int64s,
) -> int:
    """Open the containers down to the one that changes.

    Returns how many, 0 where nothing changes, or -status.
    """
    depth, top = int64(0), int64(0)
    count = int64(steps.size) // 2
    for number in range(count + 1):
        if number == count and change != _APPEND:
            break
        if start >= end:
            return int64(-MALFORMED)
        kind = steps[uint64(2 * number)] if number < count else int64(1)
        header = load8(data, start) & 3
        if (kind == 0 and header != 2) or (kind == 1 and header != 3):
            return int64(0) if change == _DELETE else int64(-MISMATCH)
        at = depth * WORDS
        if not _open(data, start, end, frames, at, top, work, seen, local, state):
            return int64(-MALFORMED)
        depth += 1
        held = frames[uint64(at + _COUNT)]
        top += held
        if number == count:  # the array that is appended to
            frames[uint64(at + _PLACE)] = held
            frames[uint64(at + _FOUND)] = 0
            return depth
        step = steps[uint64(2 * number + 1)]
        _locate(data, frames, at, kind, step, local, keys, key_bytes)
        if frames[uint64(at + _FOUND)] == 0:
            if (change == _SET and creates == 1) or change == _INSERT:
                return depth
            return int64(0)
        extent = work[uint64(frames[uint64(at + _TOP)] + frames[uint64(at + _PLACE)])]
        end = frames[uint64(at + _BASE)] + (extent & EXTENT)
        start = frames[uint64(at + _BASE)] + (extent >> int64(32))
    last = (depth - 1) * WORDS
    if change == _INSERT and frames[uint64(last + _OBJECT)] == 1:
        return int64(-DUPLICATE)
    return depth


@helper
def _room(
    frames: Int64s, depth: int, steps: Int64s, change: int, length: int, nodes: Records, t: int
) -> int:
    """Bytes that the row's new value takes at most."""
    need = length + 2 * MARGIN
    for number in range(depth):
        need += 8 * frames[uint64(number * WORDS + _COUNT)] + 64
    last = (depth - 1) * WORDS
    if frames[uint64(last + _OBJECT)] == 0 and frames[uint64(last + _FOUND)] == 0:
        need += 5 * (frames[uint64(last + _PLACE)] - frames[uint64(last + _COUNT)])
    for number in range(depth, int64(steps.size) // 2):
        need += 64
        if steps[uint64(2 * number)] == 1:
            need += 5 * steps[uint64(2 * number + 1)]
    if change != _DELETE:
        node = nodes[uint64(t)]
        more: int = int64(node.length) + 12 * int64(node.span)
        need += more
    return need


@helper
def _write(
    data: Bytes,
    frames: Int64s,
    depth: int,
    steps: Int64s,
    change: int,
    text: Bytes,
    arena: Bytes,
    nodes: Records,
    t: int,
    work: Int64s,
    entries: Int64s,
    out: Bytes,
    to: int,
    stamps: Int64s,
    places: Int32s,
    added: Int64s,
    edit: Int64s,
) -> int:
    """Write the changed value of a row; returns its end, or -status."""
    top = int64(0)
    count = int64(steps.size) // 2
    padding = int64(0)
    for number in range(depth):
        at = number * WORDS
        held, place = frames[uint64(at + _COUNT)], frames[uint64(at + _PLACE)]
        # Most often what is changed takes as much of a header as it did.
        head = 2 + (held + 1) * (frames[uint64(at + _ID_WIDTH)] + 1)
        to = _begin(frames, at, to, head, top)
        to = _copy_children(data, frames, at, 0, min(place, held), work, entries, out, to)
        found = frames[uint64(at + _FOUND)] == 1
        is_last = number == depth - 1
        top += held + 1
        if is_last and change == _DELETE:
            break
        field = int64(0)
        if frames[uint64(at + _OBJECT)] == 1:
            if found:
                width = frames[uint64(at + _ID_WIDTH)]
                field = load_unsigned(data, frames[uint64(at + _IDS)] + place * width, width)
            else:
                step = steps[uint64(2 * number + 1)]
                field = _id_of(step, stamps, places, added, edit)
        elif not found:
            padding = place - held
            for _ in range(padding):
                _enter(frames, at, entries, int64(0), to)
                store8(out, to, 0)
                to += 1
            top += padding
        _enter(frames, at, entries, field, to)
    if change != _DELETE:
        whole = depth
        if max(depth, count) > _DEPTH_LIMIT:
            return int64(-TOO_DEEP)
        for number in range(depth, count):
            at = number * WORDS
            step = steps[uint64(2 * number + 1)]
            is_object = steps[uint64(2 * number)] == 0
            frames[uint64(at + _OBJECT)] = 1 if is_object else 0
            to = _begin(frames, at, to, int64(5), top)
            field = int64(0)
            if is_object:
                field = _id_of(step, stamps, places, added, edit)
            else:
                for _ in range(step):
                    _enter(frames, at, entries, int64(0), to)
                    store8(out, to, 0)
                    to += 1
                top += step
            top += 1
            _enter(frames, at, entries, field, to)
            whole += 1
        to = _emit(
            text, arena, nodes, t, frames, whole * WORDS, entries, top, out, to, stamps, places,
            added, edit,
        )  # fmt: skip
        if to < 0:
            return to
        for back in range(whole - depth):
            to = _close(frames, (whole - 1 - back) * WORDS, entries, out, to)
            if to < 0:
                return int64(-TOO_LARGE)
    for back in range(depth):
        at = (depth - 1 - back) * WORDS
        held, place = frames[uint64(at + _COUNT)], frames[uint64(at + _PLACE)]
        after = place
        inserted = back == 0 and change == _INSERT
        if frames[uint64(at + _FOUND)] == 1 and not inserted:
            after += 1
        to = _copy_children(data, frames, at, after, held, work, entries, out, to)
        to = _close(frames, at, entries, out, to)
        if to < 0:
            return int64(-TOO_LARGE)
    return to


@entry(
    i64(
        bytes_in,
        int32s_in,
        bytes_in,
        int32s_in,
        bytes_in,
        i64,
        int64s_in,
        i64,
        i64,
        bytes_in,
        bytes_in,
        records(NODE),
        int64s_in,
        int64s_in,
        records(KEY),
        uint8s,
        int32s,
        int64s,
        int32s,
        int64s,
        int64s,
        int32s,
        int64s,
        int64s,
        int64s,
        int64s,
        int64s,
        uint8s,
        int32s,
        uint8s,
        int32s,
        int64s,
    )
)
def edit_rows(
    metadata: Bytes,
    metadata_offsets: Int32s,
    data: Bytes,
    offsets: Int32s,
    valid: Bytes,
    row: int,
    steps: Int64s,
    change: int,
    creates: int,
    text: Bytes,
    arena: Bytes,
    nodes: Records,
    first: Int64s,
    value_status: Int64s,
    keys: Records,
    key_bytes: Bytes,
    slots: Int32s,
    seen: Int64s,
    local: Int32s,
    state: Int64s,
    stamps: Int64s,
    places: Int32s,
    added: Int64s,
    work: Int64s,
    entries: Int64s,
    frames: Int64s,
    edit: Int64s,
    out: Bytes,
    out_offsets: Int32s,
    out_metadata: Bytes,
    out_metadata_offsets: Int32s,
    status: Int64s,
) -> int:
    """Change the Variants of rows >= row, as many as there is room for.

    metadata, metadata_offsets, data, offsets, valid, keys, key_bytes, slots, seen, local, state: as
    for `read_variants`. steps: for each step 0 and a key id, or 1 and an index. change: a Change;
    creates: 1 for create_if_missing. text, arena, nodes, first, value_status: the tape of the new
    values, one row for all or one for each; its keys are those of the KeyTable. stamps: int64,
    zero, and places: int32, one a key. added: int64, one a key. work: int64, as long as the longest
    value and 2 * MAX_DEPTH. entries: int64, as long as the longest value, the longest new value in
    nodes and all padding that the steps ask for. frames: int64, WORDS * 2 * MAX_DEPTH. edit: int64,
    STATE_WORDS. out, out_metadata: uint8. out_offsets, out_metadata_offsets: int32, rows + 1; those
    of `row` say where it begins. status: int64, rows. Returns the first row that was not changed:
    all, or one that needs a larger KeyTable, or edit[NEED] and edit[NEED_METADATA] bytes more, or
    that ends beyond int32 offsets. Allocates nothing, never raises.
    """
    rows = int64(offsets.size) - 1
    known, known_size = int64(-1), int64(-1)
    single = int64(value_status.size) == 1
    while row < rows:
        start, end = int64(offsets[uint64(row)]), int64(offsets[uint64(row + 1)])
        from_ = int64(metadata_offsets[uint64(row)])
        upto = int64(metadata_offsets[uint64(row + 1)])
        size = upto - from_
        edit[uint64(NEED)] = 0
        edit[uint64(NEED_METADATA)] = 0
        if (
            state[uint64(KEY_COUNT)] + size // 2 + 2 > keys.size
            or state[uint64(KEY_BYTES)] + 2 * size + PADDING > key_bytes.size
        ):
            break
        given = int64(0) if single else row
        to = int64(out_offsets[uint64(row)])
        to_metadata = int64(out_metadata_offsets[uint64(row)])
        result = int64(GOOD)
        depth = int64(0)
        if valid[uint64(row)] == 0 or value_status[uint64(given)] == SQL_NULL:
            result = int64(SQL_NULL)
        elif value_status[uint64(given)] != GOOD:
            result = value_status[uint64(given)]
        elif end - start > _VALUE_LIMIT:
            result = int64(TOO_LARGE)
        elif size != known_size or not equal_bytes(metadata, from_, metadata, known, size):
            known, known_size = from_, size
            result = read_metadata(
                metadata, from_, upto, keys, key_bytes, slots, seen, local, state
            )
            if result != GOOD:
                known_size = int64(-1)
            else:
                held = state[uint64(DICTIONARY)]
                edit[uint64(SIZE)] = held
                stamp = edit[uint64(STAMP)] + 1
                edit[uint64(STAMP)] = stamp
                for index in range(held):
                    key = uint64(int64(local[uint64(index)]))
                    if stamps[key] != stamp:
                        stamps[key] = stamp
                        places[key] = index
        if result == GOOD:
            depth = _walk(
                data, start, end, steps, change, creates, frames, work, seen, local, keys,
                key_bytes, state,
            )  # fmt: skip
            if depth < 0:
                result = -depth
        ended, ended_metadata = to, to_metadata
        if result == GOOD:
            t = first[uint64(given)]
            edit[uint64(ADDED)] = 0
            need = end - start + 2 * MARGIN
            if depth > 0:
                need = _room(frames, depth, steps, change, end - start, nodes, t)
            edit[uint64(NEED)] = need
            if to + need > out.size:
                break
            if depth == 0:
                copy_bytes(out, to, data, start, end - start)
                ended = to + end - start
            else:
                ended = _write(
                    data, frames, depth, steps, change, text, arena, nodes, t, work, entries, out,
                    to, stamps, places, added, edit,
                )  # fmt: skip
            if ended < 0:
                result = -ended
            elif ended - to > _VALUE_LIMIT:
                result = int64(TOO_LARGE)
            else:
                ended_metadata = _write_metadata(
                    metadata, from_, upto, keys, key_bytes, local, added, edit, out_metadata,
                    to_metadata,
                )  # fmt: skip
                if ended_metadata < -1:
                    result = -ended_metadata
            # The next row may have the same dictionary.
            for number in range(edit[uint64(ADDED)]):
                stamps[uint64(added[uint64(number)])] = 0
            if ended_metadata == -1:
                break
            if ended > _LAST_OFFSET or ended_metadata > _LAST_OFFSET:
                break
        if result != GOOD:
            ended, ended_metadata = to, to_metadata
        status[uint64(row)] = result
        out_offsets[uint64(row + 1)] = ended
        out_metadata_offsets[uint64(row + 1)] = ended_metadata
        row += 1
    return row
