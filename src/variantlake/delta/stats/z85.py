"""Z85: encode bytes as text without JSON escapes, five characters for four bytes.

Spec: ZeroMQ RFC 32, which has whole groups only. The protocol's example strings end within a group,
so decoding also accepts a last group of n characters for n - 1 bytes, as Ascii85 does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.errors import LimitExceeded, MalformedLog

ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
MAX_CHARACTERS = 16 << 20
"""Our limit on the length of a text to decode."""

_CHARACTERS = np.frombuffer(ALPHABET.encode(), dtype=np.uint8)
_FOREIGN = 255
_DIGITS = np.full(256, _FOREIGN, dtype=np.uint8)
_DIGITS[_CHARACTERS] = np.arange(85)
_WEIGHTS = np.array([85**4, 85**3, 85**2, 85, 1], dtype=np.uint64)
_PAIRS = np.stack([np.repeat(_CHARACTERS, 85), np.tile(_CHARACTERS, 85)], axis=1).view(np.uint16)
"""For each number below 85^2, its two characters as one uint16."""
_SQUARE = np.uint32(85 * 85)
_BLOCK = 1 << 14
"""Groups of a column to encode at once, so that they stay in the processor's cache."""


def encode(data: bytes) -> str:
    """Encode `data`, zero-padded to a multiple of four bytes."""
    padded = data + bytes(-len(data) % 4)
    numbers = np.frombuffer(padded, dtype=">u4").astype(np.uint64)
    digits = numbers[:, None] // _WEIGHTS % np.uint64(85)
    text: bytes = _CHARACTERS[digits].tobytes()
    return text.decode("ascii")


def encode_column(array: Any) -> Any:
    """Encode a binary Arrow array whose values all consist of whole groups; null stays null.

    Twin: `encode`.
    """
    _, offsets, data = array.buffers()
    places = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    first, last = int(places[0]), int(places[-1])
    numbers = np.frombuffer(data or b"", ">u4", (last - first) // 4, first).astype(np.uint32)
    text = np.empty((len(numbers), 5), np.uint8)
    for begin in range(0, len(numbers), _BLOCK):
        block, out = numbers[begin : begin + _BLOCK], text[begin : begin + _BLOCK]
        # NumPy divides by a constant fast, and has no fast remainder.
        upper = block // _SQUARE
        top = upper // _SQUARE
        out[:, 0] = _CHARACTERS.take(top)
        out[:, 1:3] = _PAIRS.take(upper - top * _SQUARE).view(np.uint8).reshape(-1, 2)
        out[:, 3:5] = _PAIRS.take(block - upper * _SQUARE).view(np.uint8).reshape(-1, 2)
    starts = ((places - first) // 4 * 5).astype(np.int32)
    valid = array.is_valid().buffers()[1] if array.null_count else None
    buffers = [valid, pa.py_buffer(starts.data), pa.py_buffer(text.data)]
    return pa.Array.from_buffers(pa.string(), len(array), buffers)


def decode(text: str) -> bytes:
    """Decode a text.

    Raises MalformedLog for a foreign character, a group above 2^32 - 1 or a single character at the
    end, LimitExceeded beyond our limit.
    """
    if len(text) > MAX_CHARACTERS:
        raise LimitExceeded(f"a Z85 text of {len(text)} characters is over {MAX_CHARACTERS}")
    if len(text) % 5 == 1:
        raise MalformedLog("a Z85 text ends with a group of one character")
    missing = -len(text) % 5
    try:
        raw = text.encode("ascii")
    except UnicodeEncodeError as error:
        raise MalformedLog("not Z85: a character outside of ASCII", offset=error.start) from error
    # A missing character counts as the highest digit, so that the bytes kept are never too low.
    digits = _DIGITS[np.frombuffer(raw + ALPHABET[-1].encode() * missing, dtype=np.uint8)]
    if digits.size and int(digits.max()) == _FOREIGN:
        raise MalformedLog("not Z85: a foreign character", offset=int(digits.argmax()))
    numbers = digits.reshape(-1, 5).astype(np.uint64) @ _WEIGHTS
    if numbers.size and int(numbers.max()) >= 1 << 32:
        raise MalformedLog("not Z85: a group is above 32 bits", offset=int(numbers.argmax()) * 5)
    data = numbers.astype(">u4").tobytes()
    return data[: len(data) - missing]
