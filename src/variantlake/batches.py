"""A stream in pieces: of so many items, or of so much together."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def batched(items: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    """Tuples of `size` items each, the last one perhaps shorter, as Python 3.12 cuts them."""
    following = iter(items)
    while batch := tuple(islice(following, size)):
        yield batch


def packed(
    items: Iterable[T], size: Callable[[T], int], limit: int, most: int = sys.maxsize
) -> Iterator[tuple[T, ...]]:
    """Neighbours of at most `limit` together, and at most so many; a larger item is alone."""
    own: list[T] = []
    filled = 0
    for item in items:
        if own and (filled + size(item) > limit or len(own) >= most):
            yield tuple(own)
            own, filled = [], 0
        own.append(item)
        filled += size(item)
    if own:
        yield tuple(own)
