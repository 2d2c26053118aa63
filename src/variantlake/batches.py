"""Cut a stream into batches by the number of items or by their total size, or after some rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

import pyarrow as pa

T = TypeVar("T")
Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)


def batched(items: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    """Yield tuples of `size` items, as `itertools.batched` of Python 3.12 does."""
    iterator = iter(items)
    while batch := tuple(islice(iterator, size)):
        yield batch


def packed(
    items: Iterable[T], size: Callable[[T], int], limit: int, most: int = sys.maxsize
) -> Iterator[tuple[T, ...]]:
    """Yield runs of at most `most` items with a total size of at most `limit`.

    An item larger than `limit` is alone.
    """
    batch: list[T] = []
    total = 0
    for item in items:
        if batch and (total + size(item) > limit or len(batch) >= most):
            yield tuple(batch)
            batch, total = [], 0
        batch.append(item)
        total += size(item)
    if batch:
        yield tuple(batch)


def first_rows(pieces: Iterable[Rows], limit: int) -> Iterator[Rows]:
    """Yield the first `limit` rows of some pieces, and read no piece beyond them."""
    for piece in pieces if limit else ():
        yield piece.slice(0, limit)
        limit -= piece.num_rows
        if limit <= 0:
            return
