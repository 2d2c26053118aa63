"""Read JSON documents into nodes of a tape, row by row. Twin: encoding.json."""

from __future__ import annotations

from typing import NamedTuple

from variantlake.encoding.limits import MAX_DEPTH, MAX_VALUE_BYTES
from variantlake.kernels.json.grammar import (
    AFTER,
    ALSE_WORD,
    BLOOM,
    CLOSE,
    CLOSE_OBJECT,
    COLON,
    COMMA,
    CONTENT,
    COUNT,
    FRAME,
    KEY,
    MINUS,
    NINE,
    NULL_WORD,
    OPEN_ARRAY,
    OPEN_OBJECT,
    PARENT,
    QUOTE,
    SMALL_F,
    SPACE,
    SUSPECT,
    TO_CLOSE,
    TRUE_WORD,
    VALUE,
    ZERO,
    is_blank,
)
from variantlake.kernels.json.numbers import ARENA, UNDECIDED_COUNT, read_number
from variantlake.kernels.json.strings import unescape
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
from variantlake.kernels.native.jit import entry, tiny
from variantlake.kernels.tape.duplicate_keys import has_duplicate, keep_last
from variantlake.kernels.tape.keys import KEY_BYTES, KEY_COUNT, Keys, find_key
from variantlake.kernels.tape.nodes import (
    ARRAY,
    FALSE,
    NULL,
    OBJECT,
    STRING,
    TRUE,
    Nodes,
    array_size,
    object_size,
    string_size,
)
from variantlake.kernels.tape.utf8 import valid_utf8
from variantlake.kernels.tape.words import (
    PADDING,
    equal_block,
    load8,
    load32,
    scan_string,
    trailing_zeros,
)

# Values of `Tape.status` for a row that JsonReader read.
GOOD = 0
INCOMPLETE = 1
"""The text ends too early."""
UNEXPECTED = 2
"""A byte that the grammar does not allow there."""
BAD_STRING = 3
"""A string that is not closed, or holds a control character, a bad escape or bad UTF-8."""
BAD_NUMBER = 4
TOO_DEEP = 5
"""More than MAX_DEPTH nested containers."""
DUPLICATE_KEY = 6
TOO_LARGE = 7
"""Its Variant would have more than MAX_VALUE_BYTES bytes."""

# Further places in the reader's state array, next to those of keys and numbers.
NODES, POSITION, LAST_WINS = 4, 5, 7

_LIMIT = MAX_VALUE_BYTES
_LONGEST = 8 * MAX_VALUE_BYTES
"""Longer texts are TOO_LARGE unread: only white space lets a document shrink that much."""
DEPTH_WORDS = MAX_DEPTH * FRAME


@tiny
def _read_row(
    text: Bytes,
    p: int,
    end: int,
    t: int,
    nodes: Records,
    arena: Bytes,
    keys: Records,
    key_bytes: Bytes,
    slots: Int32s,
    seen: Int64s,
    stack: Int64s,
    state: Int64s,
) -> int:
    """Append the nodes of the document text[p:end] at nodes[t].

    Returns the new end of the nodes, or -status with state[POSITION] set.
    """
    depth = int64(0)  # in words of the stack
    parent = int64(-1)
    count = content = bloom = suspect = close = key = last = int64(0)
    state_of = int64(VALUE)
    status = int64(GOOD)
    while True:
        byte = load8(text, p)
        while byte <= SPACE and is_blank(byte) and p < end:
            p += 1
            byte = load8(text, p)
        # The text ends: that is right after a whole document, else too early.
        if p >= end:
            if parent < 0 and state_of == AFTER:
                break
            status = int64(INCOMPLETE)
            break
        # After a value: a comma continues the container, its closing byte ends it.
        if state_of == AFTER:
            if byte == COMMA and parent >= 0:  # another child
                p += 1
                state_of = int64(KEY) if close == CLOSE_OBJECT else int64(VALUE)
                continue
            # Nothing may follow a whole document, and a bracket closes only its own kind.
            if byte != close or parent < 0:
                status = int64(UNEXPECTED)
                break
            node = nodes[uint64(parent)]
            # `bloom` has 64 bits for all keys: compare the keys only if a bit came twice.
            if suspect != 0 and has_duplicate(nodes, parent, t, seen, state):
                if state[LAST_WINS] == 0:
                    status = int64(DUPLICATE_KEY)
                    break
                t = keep_last(nodes, parent, t, seen, state)
                count = int64(node.extra)
                content = int64(node.content)
            p += 1
            # Two statements, as Numba does not inline calls in conditional expressions.
            size = array_size(count, content)
            if close == CLOSE_OBJECT:
                size = object_size(count, content, int64(1))
            if size > _LIMIT:
                status = int64(TOO_LARGE)
                break
            node.extra = count
            node.content = content
            node.length = size
            node.span = t - parent
            # Return to the surrounding container, which has this one as a child.
            depth -= FRAME
            parent = stack[uint64(depth + PARENT)]
            count = stack[uint64(depth + COUNT)] + 1
            content = stack[uint64(depth + CONTENT)] + size
            bloom = stack[uint64(depth + BLOOM)]
            suspect = stack[uint64(depth + SUSPECT)]
            close = stack[uint64(depth + CLOSE)]
            key = int64(0)
            continue
        # In an object: a name and a colon.
        if state_of == KEY:
            if byte != QUOTE:
                status = int64(UNEXPECTED)
                break
            p += 1
            # The key that followed `last` the previous time will probably follow again.
            key = int64(keys[uint64(last)].next)
            guess = keys[uint64(key)]
            size = int64(guess.guess)
            if (
                size < 31
                and trailing_zeros(
                    equal_block(text, p, key_bytes, int64(guess.start)) ^ 0x1FFFFFFFF
                )
                > size
            ):
                p += size + 1
            else:
                # Another name: find its quote, look it up, and remember that it follows `last`.
                q = p
                marks = scan_string(text, q) & 0xFFFFFFFF
                while marks == 0 and q < end:
                    q += 32
                    marks = scan_string(text, q) & 0xFFFFFFFF
                q += trailing_zeros(marks)
                if q >= end:
                    status = int64(BAD_STRING)
                    break
                if load8(text, q) == QUOTE:  # no escapes: take the name from the text
                    key = find_key(text, p, q - p, keys, key_bytes, slots, state)
                    q += 1
                else:  # an escape, or a control character, which is an error
                    begin = state[ARENA]
                    q = unescape(text, p, end, arena, state)
                    if q < 0:
                        p = -1 - q
                        status = int64(BAD_STRING)
                        break
                    key = find_key(
                        arena, begin, state[ARENA] - begin, keys, key_bytes, slots, state
                    )
                if key < 0:
                    status = int64(BAD_STRING)
                    break
                p = q
                keys[uint64(last)].next = key
            last = key
            bit = int64(1) << (key & 63)
            suspect |= bloom & bit
            bloom |= bit
            byte = load8(text, p)
            while is_blank(byte) and p < end:
                p += 1
                byte = load8(text, p)
            if p >= end or byte != COLON:
                status = int64(UNEXPECTED)
                break
            p += 1
            state_of = int64(VALUE)
            continue
        # A value: a string, a container, a number, or one of three words.
        node = nodes[uint64(t)]
        node.key = key
        if byte == QUOTE:
            # Blocks of 32 bytes up to the first quote, backslash or control character.
            p += 1
            q = p
            marks = scan_string(text, q)
            high = marks
            while marks & 0xFFFFFFFF == 0 and q < end:
                q += 32
                marks = scan_string(text, q)
                high |= marks
            q += trailing_zeros(marks)
            if q >= end:
                status = int64(BAD_STRING)
                break
            if load8(text, q) == QUOTE:
                # The mark may come from bytes after this string: then the check is superfluous.
                if high >> 32 != 0 and not valid_utf8(text, p, q):
                    status = int64(BAD_STRING)
                    break
                size = q - p
                node.value = p
                p = q + 1
            else:  # with escapes: the string goes to the arena
                begin = state[ARENA]
                q = unescape(text, p, end, arena, state)
                if q < 0:
                    p = -1 - q
                    status = int64(BAD_STRING)
                    break
                p = q
                size = state[ARENA] - begin
                node.value = ~begin
            node.tag = STRING
            node.extra = size
            size = string_size(size)
            node.length = size
        elif byte == OPEN_OBJECT or byte == OPEN_ARRAY:
            # A container begins: push the surrounding one's state, and start anew.
            if depth >= DEPTH_WORDS:
                status = int64(TOO_DEEP)
                break
            stack[uint64(depth + PARENT)] = parent
            stack[uint64(depth + COUNT)] = count
            stack[uint64(depth + CONTENT)] = content
            stack[uint64(depth + BLOOM)] = bloom
            stack[uint64(depth + SUSPECT)] = suspect
            stack[uint64(depth + CLOSE)] = close
            depth += FRAME
            parent = t
            count = content = bloom = suspect = key = int64(0)
            close = byte + TO_CLOSE
            node.tag = OBJECT if byte == OPEN_OBJECT else ARRAY
            t += 1
            p += 1
            byte = load8(text, p)
            while is_blank(byte) and p < end:
                p += 1
                byte = load8(text, p)
            # Only here may it close without a value before: `[1,]` has a comma too many.
            if byte == close:
                state_of = int64(AFTER)
            else:
                state_of = int64(KEY) if close == CLOSE_OBJECT else int64(VALUE)
            continue
        elif byte == MINUS or ZERO <= byte <= NINE:
            # `finish_doubles` rounds the few undecided doubles after the batch.
            q = read_number(text, p, end, nodes, t, arena, state)
            if q < 0:
                p = -1 - q
                status = int64(BAD_NUMBER)
                break
            p = q
            size = int64(node.length)
        else:
            # The four bytes may reach beyond the row's end.
            word = load32(text, p)
            if word == NULL_WORD and p + 4 <= end:
                node.tag = NULL
                p += 4
            elif word == TRUE_WORD and p + 4 <= end:
                node.tag = TRUE
                p += 4
            elif byte == SMALL_F and load32(text, p + 1) == ALSE_WORD and p + 5 <= end:
                node.tag = FALSE
                p += 5
            else:
                status = int64(UNEXPECTED)
                break
            size = int64(1)
            node.length = 1
        # The scalar is one node, and a child of the open container.
        node.span = 1
        t += 1
        count += 1
        content += size
        state_of = int64(AFTER)
    state[POSITION] = p
    return t if status == GOOD else -status


class DocumentSpans(NamedTuple):
    """The documents text[starts[r]:ends[r]].

    text: uint8, any bytes, padded by PADDING after the largest end. starts, ends: int64, one a row.
    """

    text: BytesIn
    starts: Int64sIn
    ends: Int64sIn


class Outcome(NamedTuple):
    """The results for each row: first (rows + 1), status, position (rows), all int64, filled."""

    first: Int64s
    status: Int64s
    position: Int64s


@entry
def read_rows(
    documents: DocumentSpans,
    row: int,
    nodes: Nodes,
    arena: Bytes,
    keys: Keys,
    key_bytes: Bytes,
    slots: Int32s,
    seen: Int64s,
    stack: Int64s,
    state: Int64s,
    outcome: Outcome,
) -> int:
    """Read the documents from `row` on, as many as there is room for.

    nodes: NODE; arena: uint8, as long as all rows together, and padded; keys, key_bytes, slots,
    seen: of a KeyTable; stack: int64, MAX_DEPTH * 6; state: int64, the KeyTable's. Returns the
    first row that it did not read: the number of rows when it is done, else one that needs more
    nodes or a larger KeyTable. Allocates nothing, never raises. Twin: encoding.json.parse_json.
    """
    text, starts, ends = documents
    first, status, position = outcome
    rows = int64(starts.size)
    t = state[NODES]
    while row < rows:
        begin = starts[uint64(row)]
        end = ends[uint64(row)]
        length = end - begin
        if length > _LONGEST:
            first[uint64(row)] = t
            status[uint64(row)] = TOO_LARGE
            position[uint64(row)] = 0
            row += 1
            continue
        if (
            # A finished document has at most a node per two bytes, an unfinished one also a node
            # for each open container.
            t + length // 2 + MAX_DEPTH + 2 > nodes.size
            or state[KEY_COUNT] + length // 4 + 2 > keys.size
            or state[KEY_BYTES] + length + PADDING > key_bytes.size
        ):
            break
        first[uint64(row)] = t
        kept = state[ARENA]
        undecided = state[UNDECIDED_COUNT]
        result = _read_row(
            text, begin, end, t, nodes, arena, keys, key_bytes, slots, seen, stack, state
        )
        if result > 0 and int64(nodes[uint64(t)].length) > _LIMIT:
            result = int64(-TOO_LARGE)
        if result < 0:
            status[uint64(row)] = -result
            position[uint64(row)] = state[POSITION] - begin
            state[ARENA] = kept
            state[UNDECIDED_COUNT] = undecided
        else:
            status[uint64(row)] = 0
            position[uint64(row)] = 0
            t = result
        row += 1
    first[uint64(row)] = t
    state[NODES] = t
    return row
