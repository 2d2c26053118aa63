"""Give documents that JsonReader refused the errors of the plain parser, many at a time.

A kernel finds the mistakes; this module words them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from variantlake.encoding.json import (
    CONTROL_HINT,
    LAST_KEY_HINT,
    MARK_HINT,
    OPEN_STRING,
    parse_json,
    unescaped,
)
from variantlake.encoding.limits import MAX_DEPTH, MAX_NUMBER_DIGITS, MAX_VALUE_BYTES
from variantlake.errors import InvalidJson, LimitExceeded, VariantLakeError
from variantlake.kernels.json import mistakes
from variantlake.kernels.json.json_reader import TOO_LARGE, JsonReader
from variantlake.kernels.json.mistakes import AT_END, Mistakes, find_mistakes
from variantlake.kernels.json.open_containers import CONTAINER, NAME, REPEATED_IN, Memory
from variantlake.kernels.native.declared import Bytes, Int64s
from variantlake.kernels.tape.keys import KEY_SEED, new_seed
from variantlake.kernels.tape.tape import Tape
from variantlake.kernels.tape.words import PADDING
from variantlake.paths import Path

_MESSAGES = {
    mistakes.UNKNOWN: "the document was refused",
    mistakes.NOT_UTF8: "text is not UTF-8",
    mistakes.BYTE_ORDER_MARK: "text starts with a byte order mark",
    mistakes.BEHIND_END: "unexpected {} after the end of the document",
    mistakes.NO_VALUE: "expected a value, found {}",
    mistakes.NO_COMMA_OR_BRACE: "expected ',' or '}}', found {}",
    mistakes.NO_COMMA_OR_BRACKET: "expected ',' or ']', found {}",
    mistakes.NO_KEY: "expected a key in double quotes, found {}",
    mistakes.NO_COLON: "expected ':', found {}",
    mistakes.OPEN_STRING: OPEN_STRING,
    mistakes.CONTROL_CHARACTER: "control character {} in a string",
    mistakes.UNKNOWN_ESCAPE: "unknown escape {}",
    mistakes.NO_DIGITS: "expected digits after {}",
    mistakes.NUMBER_GOES_ON: "number is cut off or has a leading zero before {}",
    mistakes.MANY_DIGITS: f"number of more than {MAX_NUMBER_DIGITS} digits",
    mistakes.TOO_DEEP: f"more than {MAX_DEPTH} containers around one another",
}
"""The message of each mistake, as in `encoding.json`; {} is the unexpected character."""

_HINTS = {
    mistakes.BYTE_ORDER_MARK: MARK_HINT,
    mistakes.REPEATED_KEY: LAST_KEY_HINT,
    mistakes.CONTROL_CHARACTER: CONTROL_HINT,
}
_WITH_PIECE = (mistakes.REPEATED_KEY, mistakes.NO_HEX_DIGITS, mistakes.LONE_SURROGATE)
"""Mistakes whose message quotes a piece of the document."""


def json_error(
    text: bytes, status: int | None = None, position: int | None = None
) -> VariantLakeError:
    """Return the error that `parse_json` raises for a document that JsonReader refused.

    `status` and `position` are those of the reader's tape; without them it reads the text again.
    """
    padded = np.frombuffer(text + bytes(PADDING), np.uint8)
    starts, ends = np.zeros(1, np.int64), np.array([len(text)])
    if status is None or position is None:
        tape = JsonReader().read(padded, starts, ends)
        status, position = int(tape.status[0]), int(tape.position[0])
    if status == TOO_LARGE:  # the text need not have a mistake
        return LimitExceeded(f"its Variant would have more than {MAX_VALUE_BYTES:,} bytes")
    found, memory = _find(padded, starts, ends, np.array([position]))
    what, mark, at = int(found.what[0]), int(found.mark[0]), int(found.at[0])
    if what == mistakes.UNKNOWN:
        return _plain_error(text)
    kind = LimitExceeded if what in (mistakes.MANY_DIGITS, mistakes.TOO_DEEP) else InvalidJson
    return kind(
        _message(what, mark, text[at : at + max(mark, 0)]),
        offset=at,
        line=int(found.line[0]),
        column=int(found.column[0]),
        path="" if what == mistakes.NOT_UTF8 else _path(text, what, memory),
        hint=_HINTS.get(what, ""),
    )


def mistakes_of(text: Bytes, starts: Int64s, ends: Int64s, stops: Int64s) -> Mistakes:
    """Find the mistakes in documents that JsonReader refused at the bytes `stops` of each.

    `text` is as the reader takes it, with PADDING bytes after the last document.
    """
    return _find(text, starts, ends, stops)[0]


def reasons(text: Bytes, starts: Int64s, ends: Int64s, found: Mistakes) -> tuple[list[str], Int64s]:
    """Return the distinct messages of the documents' errors, and the index of each document's."""
    messages: dict[str, int] = {}
    has_piece = np.isin(found.what, _WITH_PIECE)
    kinds, numbers = np.unique(found.what << 32 | found.mark + 1, return_inverse=True)
    of_kinds = np.zeros(len(kinds), np.int64)
    for number, kind in enumerate(kinds.tolist()):
        what, mark = kind >> 32, (kind & 0xFFFFFFFF) - 1
        if what not in _WITH_PIECE:
            of_kinds[number] = messages.setdefault(_message(what, mark, b""), len(messages))
    numbers = of_kinds[numbers]
    rows = np.flatnonzero(has_piece)
    places = starts[rows] + found.at[rows]
    spans = (found.what[rows], places, np.minimum(places + found.mark[rows], ends[rows]))
    of_pieces: dict[tuple[int, bytes], int] = {}
    for row, what, start, end in zip(rows.tolist(), *(s.tolist() for s in spans), strict=True):
        piece = what, text[start:end].tobytes()
        if piece not in of_pieces:
            message = _message(what, AT_END, piece[1])
            of_pieces[piece] = messages.setdefault(message, len(messages))
        numbers[row] = of_pieces[piece]
    return list(messages), numbers


def bad_places(
    tape: Tape, starts: Int64s, ends: Int64s
) -> Iterator[tuple[str, int | None, int | None]]:
    """Yield message, line and column of each document's error; JsonReader refused them all."""
    found = mistakes_of(tape.text, starts, ends, tape.position)
    messages, numbers = reasons(tape.text, starts, ends, found)
    by_itself = (tape.status == TOO_LARGE) | (found.what == mistakes.UNKNOWN)
    columns = (starts, ends, by_itself, numbers, found.line, found.column)
    for start, end, alone, number, line, column in zip(*(c.tolist() for c in columns), strict=True):
        if alone:
            error = json_error(tape.text[start:end].tobytes())
            yield error.message, error.line, error.column
        else:
            yield messages[number], line, column


def _find(text: Bytes, starts: Int64s, ends: Int64s, stops: Int64s) -> tuple[Mistakes, Memory]:
    """Find the mistakes; also return the kernel's memory of the last document."""
    longest = int((ends - starts).max(initial=0))
    names = longest // 4 + 2
    memory = Memory(
        np.empty(CONTAINER * (MAX_DEPTH + 1), np.int64),
        np.empty(NAME * names, np.int64),
        np.empty(2 << names.bit_length(), np.int64),
        np.empty(longest + 2 * PADDING, np.uint8),
        np.zeros(32, np.int64),
    )
    memory.state[KEY_SEED] = new_seed()
    found = Mistakes(*(np.empty(len(starts), np.int64) for _ in Mistakes._fields))
    find_mistakes(text, starts, ends, stops, memory, found)
    return found, memory


def _message(what: int, mark: int, piece: bytes) -> str:
    """Return the message of a mistake; `piece` is the part to quote for those in _WITH_PIECE."""
    if what == mistakes.REPEATED_KEY:
        return f"key {unescaped(piece.decode())[:100]!r} occurs twice in one object"
    if what == mistakes.NO_HEX_DIGITS:
        digits = piece[2:].decode(errors="ignore")[:4]
        return f"expected four hexadecimal digits, found {digits!r}"
    if what == mistakes.LONE_SURROGATE:
        return f"\\u{int(piece[2:6], 16):04x} is a lone surrogate"
    if mark == AT_END:
        return _MESSAGES[what].format("the end of the text")
    escape = "\\" if what == mistakes.UNKNOWN_ESCAPE else ""
    return _MESSAGES[what].format(repr(escape + chr(mark)))


def _path(text: bytes, what: int, memory: Memory) -> str:
    """Return the path of the mistake: the child that it is in, or the one that it follows."""
    state = memory.state.tolist()
    words = memory.containers[: state[mistakes.OPEN]].reshape(-1, CONTAINER).tolist()
    steps: list[str | int] = []

    def name(word: int) -> str:
        start, end = memory.names[word : word + 2].tolist()
        return unescaped(text[start:end].decode())

    def step(first: int, child: int, bracket: int) -> str | int:
        return child if text[bracket] == ord("[") else name(first + NAME * child)

    is_repeated = what == mistakes.REPEATED_KEY
    last = state[REPEATED_IN] if is_repeated else len(words) - 1
    for bracket, first, values in words[: max(last, 0)]:
        steps.append(step(first, values, bracket))
    if is_repeated:
        steps.append(name(state[mistakes.REPEATED] - NAME))
    elif words:
        bracket, first, values = words[-1]
        if state[mistakes.ENTERED] and text[bracket] == ord("{"):
            steps.append(unescaped(text[state[mistakes.KEY] : state[mistakes.KEY_END]].decode()))
        elif state[mistakes.ENTERED] or values:
            steps.append(step(first, values if state[mistakes.ENTERED] else values - 1, bracket))
    return Path(tuple(steps)).normalized()


def _plain_error(text: bytes) -> VariantLakeError:
    try:
        parse_json(text)
    except VariantLakeError as error:
        return error
    return InvalidJson("the document was refused", hint="internal error; please report it")
