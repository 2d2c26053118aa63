"""Deletion vectors that we write, read by our own reader."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import MORE
from variantlake.delta.log.deletion_vectors import deleted_rows
from variantlake.dml.files.deletion_vectors import MAX_INLINE_BYTES, write_vectors
from variantlake.storage.store import LocalStore

SIZE = 1 << 34

_rows = st.one_of(
    st.sets(st.integers(0, SIZE - 1), max_size=40),
    # Runs, dense containers, and places around the limits of containers and of 32 bits.
    st.builds(
        lambda start, count, step: set(range(start, start + count * step, step)),
        st.sampled_from([0, 65_530, (1 << 32) - 10, 1 << 33]),
        st.integers(1, 6_000),
        st.sampled_from([1, 2, 7, 65_536]),
    ),
)


@given(st.lists(_rows, max_size=4))
@settings(max_examples=40 * MORE)
def test_what_is_written_is_read(vectors: list[set[int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(LocalStore(Path(folder)), [np.array(sorted(each), np.int64) for each in vectors])


def check(store: LocalStore, arrays: list[Any]) -> None:
    found, path = write_vectors(store, arrays)
    for descriptor, rows in zip(found, arrays, strict=True):
        assert descriptor.cardinality == len(rows)
        assert (descriptor.storage_type == "i") == (descriptor.size_in_bytes <= MAX_INLINE_BYTES)
        np.testing.assert_array_equal(deleted_rows(store, descriptor, SIZE), rows)
    assert (path is not None) == any(each.storage_type == "u" for each in found)
