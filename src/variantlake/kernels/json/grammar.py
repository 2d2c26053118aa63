"""Bytes of JSON's grammar, and the states and frames of a reader. Spec: RFC 8259, section 2."""

from __future__ import annotations

from variantlake.kernels.native.jit import tiny

TAB, NEWLINE, RETURN, SPACE = 9, 10, 13, 32
QUOTE, COMMA, COLON, MINUS, ZERO, NINE = 34, 44, 58, 45, 48, 57
OPEN_ARRAY, OPEN_OBJECT, CLOSE_OBJECT = 91, 123, 125
TO_CLOSE = 2
"""The difference between a closing bracket and its opening one."""
SMALL_F = 102
NULL_WORD, TRUE_WORD, ALSE_WORD = 0x6C6C756E, 0x65757274, 0x65736C61
"""`null`, `true` and `false` without its f, as little-endian words."""

VALUE, AFTER, KEY = 0, 1, 2
"""What may come next: a value; after a value, a comma or the end of the container; the name of a
field."""

FRAME = 6
"""Words that a reader keeps for each open container."""
PARENT, COUNT, CONTENT, BLOOM, SUSPECT, CLOSE = 0, 1, 2, 3, 4, 5
"""Words that keep the state of the surrounding container: its node; its number of children so far,
and their bytes; a bit for each of its keys, and the bits that came twice; the byte that closes
it."""


@tiny
def is_blank(byte: int) -> bool:
    """Whether JSON allows the byte between its tokens."""
    return byte == SPACE or byte == NEWLINE or byte == RETURN or byte == TAB
