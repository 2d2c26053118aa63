"""A stream in pieces, as Python 3.12's `itertools.batched` cuts it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def batched(items: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    """Tuples of `size` items each, the last one perhaps shorter."""
    following = iter(items)
    while batch := tuple(islice(following, size)):
        yield batch
