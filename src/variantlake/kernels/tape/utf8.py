"""Check UTF-8 as Python's strict decoder does: no surrogates or overlong forms, to U+10FFFF."""

from __future__ import annotations

from variantlake.kernels.native.declared import Bytes, int64
from variantlake.kernels.native.jit import helper, tiny
from variantlake.kernels.tape.words import load8, load64

_HIGH_BITS = -0x7F7F7F7F7F7F7F80  # 0x80 in each byte, as an int64


@tiny
def valid_utf8(source: Bytes, start: int, end: int) -> bool:
    """Whether source[start:end] is well-formed UTF-8; `source` is padded after `end`."""
    return utf8_end(source, start, end) >= end


@helper
def utf8_end(source: Bytes, start: int, end: int) -> int:
    """Return where the first ill-formed character of source[start:end] begins, else `end`."""
    p = int64(start)
    while p < end:
        if p + 8 <= end and load64(source, p) & _HIGH_BITS == 0:
            p += 8
            continue
        byte = load8(source, p)
        if byte < 0x80:
            p += 1
            continue
        # The Unicode standard's table 3-7: the first byte limits the second.
        low, high, more = int64(0x80), int64(0xBF), int64(1)
        if 0xC2 <= byte <= 0xDF:
            pass
        elif 0xE0 <= byte <= 0xEF:
            more = int64(2)
            if byte == 0xE0:
                low = int64(0xA0)
            elif byte == 0xED:
                high = int64(0x9F)
        elif 0xF0 <= byte <= 0xF4:
            more = int64(3)
            if byte == 0xF0:
                low = int64(0x90)
            elif byte == 0xF4:
                high = int64(0x8F)
        else:
            return p
        if p + more >= end:
            return p
        second = load8(source, p + 1)
        if second < low or second > high:
            return p
        for k in range(2, more + 1):
            if load8(source, p + k) & 0xC0 != 0x80:
                return p
        p += more + 1
    return int64(end)
