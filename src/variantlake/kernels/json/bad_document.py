"""What is wrong with a document that JsonReader refused: the plain parser's own error, at once.

The reader knows the byte where it stopped. A kernel walks up to there and says which containers are
open; the plain parser goes on behind the last whole value before it, and meets the mistake with its
next token.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from variantlake.encoding.json import OpenContainer, error_behind, parse_json, unescaped
from variantlake.encoding.limits import MAX_DEPTH, MAX_VALUE_BYTES
from variantlake.errors import InvalidJson, LimitExceeded, VariantLakeError
from variantlake.kernels.json.json_reader import TOO_LARGE, JsonReader
from variantlake.kernels.json.open_containers import FRAME, find_open
from variantlake.kernels.native.declared import Int64s

_SHORT = 256
"""Bytes that the plain parser reads from their start as fast."""


def json_error(
    text: bytes, status: int | None = None, position: int | None = None
) -> VariantLakeError:
    """The error that `parse_json` raises for a document that JsonReader refused.

    `status` and `position` are what the reader said of it, None where nobody knows any more.
    """
    found: VariantLakeError | None = None
    if len(text) > _SHORT:
        if status is None or position is None:
            array = np.frombuffer(text, np.uint8)
            tape = JsonReader().read(array, np.zeros(1, np.int64), np.array([len(text)]))
            status, position = int(tape.status[0]), int(tape.position[0])
        if status == TOO_LARGE:  # which plain Python has no limit for
            return LimitExceeded(f"its Variant would have more than {MAX_VALUE_BYTES:,} bytes")
        found = _error_at(text, position)
    if found is None:
        try:
            parse_json(text)
        except VariantLakeError as error:
            return error
        return InvalidJson("the document was refused", hint="internal error; please report it")
    return found


def _error_at(data: bytes, position: int) -> VariantLakeError | None:
    """The error at a position; None where the plain parser has to read all of the document."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None  # which the plain parser says at once
    frames: Int64s = np.empty(FRAME * (MAX_DEPTH + 1), np.int64)
    keys: Int64s = np.empty(2 * (position // 4 + 2), np.int64)
    state: Int64s = np.zeros(3, np.int64)
    array = np.frombuffer(data, np.uint8)
    depth = find_open(array, min(position, len(data)), frames, keys, state)
    behind, count, is_root_done = state.tolist()
    if not depth and not is_root_done:
        return None  # the first token is the bad one
    frame_rows = frames[: FRAME * depth].reshape(depth, FRAME).tolist()
    places = keys[:count].reshape(-1, 2).tolist()
    ends = [*(base // 2 for _, base, _ in frame_rows[1:]), count // 2]
    containers: list[OpenContainer] = []
    repeats: list[tuple[int, str, list[OpenContainer]]] = []
    for number, (bracket, base, values) in enumerate(frame_rows):
        is_last = number == depth - 1
        if data[bracket] == ord("["):
            step: str | int | None = values if not is_last else values - 1 if values else None
            containers.append(OpenContainer(step, is_object=False, values=values))
            continue
        names = places[base // 2 : ends[number]]
        twice = _first_repeat(data, names)
        if twice is not None:
            before = OpenContainer(_key(data, names[twice - 1]), is_object=True)
            repeats.append((names[twice][0], _key(data, names[twice]), [*containers, before]))
        children = values if is_last else values + 1  # the open one is the last
        step = _key(data, names[children - 1]) if children else None
        containers.append(OpenContainer(step, is_object=True))
    if repeats:
        place, key, above = min(repeats, key=lambda each: each[0])
        return error_behind(text, len(data[:place].decode()), above, key)
    return error_behind(text, len(data[:behind].decode()), containers)


def _first_repeat(data: bytes, places: Sequence[Sequence[int]]) -> int | None:
    """Which of the keys of one object is the first that was there before; None where none is."""
    if len(places) < 2:
        return None
    keys = [data[start:end] for start, end in places]
    if data.find(b"\\", places[0][0], places[-1][1]) >= 0:
        keys = [b'"%b"' % _key(key, (0, len(key))).encode() for key in keys]
    if len(set(keys)) == len(keys):
        return None
    seen: set[bytes] = set()
    for number, key in enumerate(keys):
        if key in seen:
            return number
        seen.add(key)
    return None


def _key(data: bytes, place: Sequence[int]) -> str:
    """The text of a key between its quotes."""
    start, end = place
    return unescaped(data[start:end].decode())
