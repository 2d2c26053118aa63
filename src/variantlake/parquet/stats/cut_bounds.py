"""Truncate bounds of long strings and binaries, for footers and for the log."""

from __future__ import annotations

from typing import TypeVar

Text = TypeVar("Text", str, bytes)

_MAX_CODE_POINT = 0x10FFFF


def cut_minimum(text: Text, length: int) -> Text:
    """Return a lower bound of at most `length` characters (for bytes: bytes)."""
    return text[:length]


def cut_maximum(text: Text, length: int) -> Text | None:
    """Return an upper bound of at most `length` characters (for bytes: bytes); None if impossible.

    It increments the last character that can be, so it also bounds everything else that starts with
    the same `length` characters. Strings are in the order of code points, which is that of their
    UTF-8 bytes.
    """
    if len(text) <= length:
        return text
    if isinstance(text, bytes):
        kept = text[:length].rstrip(b"\xff")
        return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
    kept = text[:length].rstrip(chr(_MAX_CODE_POINT))
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    # Surrogates are not characters.
    return kept[:-1] + chr(0xE000 if following == 0xD800 else following)
