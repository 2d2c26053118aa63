"""The kernel of unshred: writes the rows of a batch one after the other to their final places.

It writes a row's values in the order of the result. The size of a container's header is known only
afterwards: the kernel leaves as much room as the last header of the group took, and moves the
values if that was wrong.
"""

from __future__ import annotations

from variantlake.encoding.limits import MAX_VALUE_BYTES
from variantlake.kernels.native.declared import (
    Bytes,
    BytesIn,
    Int32s,
    Int32sIn,
    Int64s,
    Int64sIn,
    Records,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import entry, helper, tiny
from variantlake.kernels.shredded.unshred_plan import (
    ALL_SET,
    ARRAY,
    BINARY,
    BOOLEAN,
    DECIMAL,
    NOTHING,
    OBJECT,
    STRING,
    Groups,
)
from variantlake.kernels.tape.containers import (
    EXTENT,
    MARGIN,
    NO_ROOM,
    TOO_LONG,
    close_container,
    read_extents,
    read_header,
)
from variantlake.kernels.tape.emit import sort_words
from variantlake.kernels.tape.nodes import LONGEST_SHORT_STRING, integer_size, integer_tag
from variantlake.kernels.tape.utf8 import valid_utf8
from variantlake.kernels.tape.words import (
    copy_block,
    copy_bytes,
    load8,
    load32,
    load64,
    load_unsigned,
    store8,
    store32,
    store64,
)
from variantlake.shredding.values import AS_STORED, INTEGERS

_SHORT_STRING, _OBJECT, _ARRAY = 1, 2, 3
"""Basic types, the low two bits of a value's first byte."""

_LIMIT = MAX_VALUE_BYTES
_FALSE_HEADER = 4
"""The difference between the headers of false and of true."""

# Why a row was not written.
_LEFT_TO_TWIN, _NO_WORK = TOO_LONG, -3

FRAME = 12
"""Words of the stack for each open container."""


@tiny
def _is_set(data: Bytes, bits: int, slot: int) -> bool:
    """The bit of a slot; see GROUP."""
    if bits < 0:
        return bits == ALL_SET
    bit = bits + slot
    return load8(data, bit >> 3) >> (bit & 7) & 1 != 0


@tiny
def _put_number(value: int, head: int, width: int, form: int, out: Bytes, to: int) -> int:
    """Write a decimal without zeros at the end of its fraction, an integer if none is left of it.

    If only integers are to come back as such, a decimal with a fraction keeps its zeros. head,
    form: as in GROUP; width: bytes of the decimal, 16 at most. Returns the end.
    """
    stored = value
    scale = head >> 8
    while scale > 0 and value % 10 == 0:
        value //= 10
        scale -= 1
    if form == INTEGERS and scale > 0:
        value, scale = stored, head >> 8
    if scale == 0:
        tag = integer_tag(value)
        store8(out, to, tag << 2)
        store64(out, to + 1, value)
        return to + integer_size(tag)
    store8(out, to, head)
    store8(out, to + 1, scale)
    store64(out, to + 2, value)
    store64(out, to + 10, value >> int64(63))
    return to + 2 + width


@helper
def _put_leaf(data: Bytes, group: Records, slot: int, out: Bytes, to: int) -> int:
    """Write the typed value of a slot that is set; returns its end, or why there is none."""
    kind = int64(group.kind)
    head = int64(group.head)
    if kind == STRING or kind == BINARY:
        place = int64(group.typed_ends) + 4 * slot
        start, end = load32(data, place), load32(data, place + 4)
        count = end - start
        start += int64(group.typed)
        end += int64(group.typed)
        if count < 0 or start < int64(group.typed_low) or end > int64(group.typed_high):
            return int64(_LEFT_TO_TWIN)
        if count > _LIMIT or (kind == STRING and not valid_utf8(data, start, end)):
            return int64(_LEFT_TO_TWIN)
        if to + count + MARGIN > out.size:
            return int64(NO_ROOM)
        if kind == STRING and count <= LONGEST_SHORT_STRING:
            store8(out, to, count << 2 | _SHORT_STRING)
            to += 1
        else:
            store8(out, to, head)
            store32(out, to + 1, count)
            to += 5
        copy_bytes(out, to, data, start, count)
        return to + count
    if kind == BOOLEAN:
        store8(out, to, head if _is_set(data, int64(group.typed), slot) else head + _FALSE_HEADER)
        return to + 1
    stride, width = int64(group.stride), int64(group.width)
    place = int64(group.typed) + slot * stride
    store8(out, to, head)
    to += 1
    if kind == DECIMAL:
        store8(out, to, head >> 8)
        to += 1
        limit = int64(group.limit)
        low = load64(data, place)
        if stride == 4:
            low = (low << int64(32)) >> int64(32)
        high = load64(data, place + 8) if stride == 16 else low >> int64(63)
        if width <= 8:
            fits = high == low >> int64(63) and -limit < low < limit
        else:  # a close call is not a fit
            fits = high == low >> int64(63) or -limit < high < limit
        if not fits:
            return int64(_LEFT_TO_TWIN)
        if group.form != AS_STORED:
            if high != low >> int64(63):
                return int64(_LEFT_TO_TWIN)
            return _put_number(low, head, width, int64(group.form), out, to - 2)
    copy_block(out, to, data, place)
    return to + width


@helper
def _open_residual(
    data: Bytes, start: int, end: int, ranks: Int32s, first: int, keys: int, work: Int64s, top: int
) -> int:
    """Put the fields of the object that fills data[start:end] in order; returns how many, or why.

    work[top:top + count] become words of rank << 32 | index; behind them come `count` words of
    start << 32 | end in the data by index, then as many ids. The ranks of its dictionary's `keys`
    keys start at ranks[first].
    """
    if load8(data, start) & 3 != _OBJECT:
        return int64(_LEFT_TO_TWIN)
    count, id_place, id_width, width, base = read_header(data, start, end)
    if count < 0:
        return int64(_LEFT_TO_TWIN)
    extents, ids = top + count, top + 2 * count
    if ids + count > work.size:
        return int64(_NO_WORK)
    offsets = id_place + count * id_width
    if not read_extents(data, offsets, count, width, end - base, work, extents):
        return int64(_LEFT_TO_TWIN)
    previous = int64(-1)
    ascending = True
    for index in range(count):
        field = load_unsigned(data, id_place, id_width)
        id_place += id_width
        if field >= keys:
            return int64(_LEFT_TO_TWIN)
        rank = int64(ranks[uint64(first + field)])
        ascending = ascending and rank > previous
        previous = rank
        work[uint64(top + index)] = rank << int64(32) | index
        work[uint64(extents + index)] += base << int64(32) | base
        work[uint64(ids + index)] = field
    if not ascending:
        sort_words(work, top, count)
        for index in range(1, count):
            if work[uint64(top + index)] >> 32 == work[uint64(top + index - 1)] >> 32:
                return int64(_LEFT_TO_TWIN)
    return count


@helper
def _put_row(
    data: Bytes,
    groups: Records,
    row: int,
    ids: Int64s,
    names: int,
    ranks: Int32s,
    first: int,
    keys: int,
    stack: Int64s,
    work: Int64s,
    out: Bytes,
    to: int,
) -> int:
    """Write the value of a row, nothing if it is missing; returns its end, or why there is none.

    names: where the ids of the column's names start in `ids`, -1 for a row without a dictionary;
    first, keys: where the ranks of its keys start, and how many they are.
    """
    # The open container: its group, where its header and its values start, what is known of its
    # fields or elements, those that a residual has, and where the records or elements end.
    node = int64(-1)
    begin = base = entries = count = largest = parts = cursor = last = stop = int64(0)
    depth = top = int64(0)
    # Whose value comes next.
    p, slot = int64(0), row
    while True:
        group = groups[uint64(p)]
        start = to
        is_open = False
        if _is_set(data, int64(group.is_there), slot):
            value = size = int64(0)
            if _is_set(data, int64(group.value_set), slot):
                place = int64(group.value_ends) + 4 * slot
                value, end = load32(data, place), load32(data, place + 4)
                size = end - value
                value += int64(group.value)
                # Not even a Variant null is empty.
                if size <= 0 or value < group.value_low or value + size > group.value_high:
                    return int64(_LEFT_TO_TWIN)
            kind = int64(group.kind)
            if kind != NOTHING and _is_set(data, int64(group.typed_set), slot):
                if names < 0 or (size > 0 and kind != OBJECT):
                    return int64(_LEFT_TO_TWIN)
                gap = int64(group.gap)
                if to + gap + MARGIN > out.size:
                    return int64(NO_ROOM)
                if kind < OBJECT:
                    to = _put_leaf(data, group, slot, out, to)
                    if to < 0:
                        return to
                else:
                    stack[uint64(depth)] = node
                    stack[uint64(depth + 1)] = slot
                    stack[uint64(depth + 2)] = begin
                    stack[uint64(depth + 3)] = base
                    stack[uint64(depth + 4)] = entries
                    stack[uint64(depth + 5)] = count
                    stack[uint64(depth + 6)] = largest
                    stack[uint64(depth + 7)] = parts
                    stack[uint64(depth + 8)] = cursor
                    stack[uint64(depth + 9)] = last
                    stack[uint64(depth + 10)] = stop
                    stack[uint64(depth + 11)] = top
                    depth += FRAME
                    is_open = True
                    node = p
                    begin, base = to, to + gap
                    to = base
                    count = largest = cursor = last = int64(0)
                    parts = top
                    if kind == OBJECT:
                        if size > 0:
                            end = value + size
                            last = _open_residual(data, value, end, ranks, first, keys, work, top)
                            if last < 0:
                                return last
                        entries = top + 3 * last
                        top = entries + last + int64(group.children)
                        stop = int64(group.after)
                    else:
                        place = int64(group.typed_ends) + 4 * slot
                        slot, stop = load32(data, place), load32(data, place + 4)
                        if slot > stop or stop > group.typed_high:
                            return int64(_LEFT_TO_TWIN)
                        entries = top
                        top += stop - slot
                    if top > work.size:
                        return int64(_NO_WORK)
            elif size > 0:
                basic = load8(data, value) & 3
                if (kind == OBJECT and basic == _OBJECT) or (kind == ARRAY and basic == _ARRAY):
                    return int64(_LEFT_TO_TWIN)
                if to + size + MARGIN > out.size:
                    return int64(NO_ROOM)
                copy_bytes(out, to, data, value, size)
                to += size
        # The value of p is out[start:to]; or its container was opened, or is closed here.
        while True:
            if node < 0:
                return to
            kind = int64(groups[uint64(node)].kind)
            if kind == OBJECT:
                if is_open:
                    p = node + 1
                else:
                    if to > start:
                        field = ids[uint64(names + int64(groups[uint64(p)].name))]
                        if field < 0:
                            return int64(_LEFT_TO_TWIN)
                        work[uint64(entries + count)] = field << int64(32) | (start - base)
                        count += 1
                        largest = max(largest, field)
                    p = int64(groups[uint64(p)].after)
                if cursor < last:
                    limit = int64(EXTENT)
                    if p < stop:
                        field = ids[uint64(names + int64(groups[uint64(p)].name))]
                        limit = int64(ranks[uint64(first + field)]) if field >= 0 else int64(-1)
                    while cursor < last and work[uint64(parts + cursor)] >> int64(32) <= limit:
                        word = work[uint64(parts + cursor)]
                        # A missing field is still a name that the residual must not have.
                        if word >> int64(32) == limit:
                            return int64(_LEFT_TO_TWIN)
                        index = parts + last + (word & EXTENT)
                        extent = work[uint64(index)]
                        field = work[uint64(index + last)]
                        size = (extent & EXTENT) - (extent >> int64(32))
                        if to + size + MARGIN > out.size:
                            return int64(NO_ROOM)
                        copy_bytes(out, to, data, extent >> int64(32), size)
                        work[uint64(entries + count)] = field << int64(32) | (to - base)
                        count += 1
                        largest = max(largest, field)
                        to += size
                        cursor += 1
                if p < stop:
                    break
            else:
                p = node + 1
                if not is_open:
                    work[uint64(entries + count)] = start - base
                    count += 1
                    slot += 1
                    if to == start:  # a missing element is Variant null
                        if to + MARGIN > out.size:
                            return int64(NO_ROOM)
                        store8(out, to, 0)
                        to += 1
                if slot < stop:
                    break
            is_open = False
            start = begin
            content = to - base
            is_object = kind == OBJECT
            to = close_container(is_object, work, entries, count, largest, out, begin, base, to)
            if to < 0:
                return to
            groups[uint64(node)].gap = to - begin - content
            p = node
            depth -= FRAME
            node = stack[uint64(depth)]
            slot = stack[uint64(depth + 1)]
            begin = stack[uint64(depth + 2)]
            base = stack[uint64(depth + 3)]
            entries = stack[uint64(depth + 4)]
            count = stack[uint64(depth + 5)]
            largest = stack[uint64(depth + 6)]
            parts = stack[uint64(depth + 7)]
            cursor = stack[uint64(depth + 8)]
            last = stack[uint64(depth + 9)]
            stop = stack[uint64(depth + 10)]
            top = stack[uint64(depth + 11)]


@entry
def unshred_rows(
    data: BytesIn,
    groups: Groups,
    dictionaries: Int64sIn,
    ids: Int64sIn,
    ranks: Int32sIn,
    firsts: Int64sIn,
    row: int,
    marked: Bytes,
    stack: Int64s,
    work: Int64s,
    out: Bytes,
    offsets: Int32s,
) -> int:
    """Write the values of rows from `row` on, as many as there is room for.

    data, groups: of `plan_of`, any bytes, less than 2**31. dictionaries: int64, for each row one of
    those whose keys' ranks are ranks[firsts[d]:firsts[d + 1]] and in which the column's names have
    the ids ids[d * names:][:names], -1 for none; -1 for a row without one. marked: uint8, one a
    row: rows that are not written, and are set for those that must not be. stack: int64, FRAME for
    each level of containers; work: int64, room to work. out: uint8, less than 2**31. offsets:
    int32, rows + 1: up to `row` of a former call, filled further.

    Returns the rows when all are done, the next row when `out` is too small, ~row when `work` is.
    A missing value is Variant null; SQL NULL and marked rows have no bytes. Allocates nothing,
    never raises.
    """
    rows = int64(dictionaries.size)
    count = ids.size // max(int64(firsts.size) - 1, int64(1))
    to = int64(offsets[uint64(row)])
    while row < rows:
        # Marked rows are left to the plain twin, which says what is wrong with them.
        if marked[uint64(row)] == 0 and _is_set(data, int64(groups[uint64(0)].is_there), row):
            d = dictionaries[uint64(row)]
            names, first, keys = int64(-1), int64(0), int64(0)
            if d >= 0:
                names = d * count
                first = firsts[uint64(d)]
                keys = firsts[uint64(d + 1)] - first
            end = _put_row(data, groups, row, ids, names, ranks, first, keys, stack, work, out, to)
            if end == NO_ROOM or to + MARGIN > out.size:
                return row
            if end == _NO_WORK:
                return ~row
            if end < 0 or end - to > _LIMIT or (end == to and d < 0):
                marked[uint64(row)] = 1
            elif end == to:
                # Nothing was written: the value is missing, which reads as a Variant null.
                store8(out, to, 0)
                to += 1
            else:
                to = end
        row += 1
        offsets[uint64(row)] = to
    return row
