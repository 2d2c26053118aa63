"""Runs of column chunks of texts: those of the rows, and none where there are too many."""

from __future__ import annotations

import io
import itertools
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parquet.read.test_chunk_values import TEXTS, written
from variantlake.parquet.metadata.footer import Footer, parse_footer, read_tail
from variantlake.parquet.read.chunk_pages import ChunkPlace
from variantlake.parquet.read.chunk_runs import CodeRuns, read_runs
from variantlake.storage.opening import open_file


def runs_of(data: bytes, footer: Footer | None = None) -> CodeRuns | None:
    """The runs of the column of the first row group."""
    with open_file(io.BytesIO(data)) as file:
        if footer is None:
            tail = read_tail(file)
            footer = parse_footer(tail.footer, tail.offset)
        group = footer.row_groups[0]
        return read_runs(ChunkPlace(file, footer.leaves[0], group.columns[0], group))


@pytest.mark.rule(38)
@settings(deadline=None)
@given(
    runs=st.lists(
        st.tuples(st.sampled_from(TEXTS) | st.none(), st.integers(5000, 9000)),
        min_size=1,
        max_size=6,
    ),
    version=st.sampled_from(["1.0", "2.0"]),
    page_rows=st.sampled_from([4097, 20000]),
)
def test_runs_are_those_that_pyarrow_reads(
    runs: list[tuple[str | None, int]], version: str, page_rows: int
) -> None:
    values = [text for text, rows in runs for _ in range(rows)]
    form: dict[str, Any] = {"data_page_version": version, "max_rows_per_page": page_rows}
    found = runs_of(written(pa.array(values, pa.string()), compression="zstd", **form))
    assert found is not None
    found.values.validate(full=True)
    wanted = [(text, len(list(rows))) for text, rows in itertools.groupby(values)]
    sizes = np.diff(found.ends, prepend=0).tolist()
    assert list(zip(found.values.to_pylist(), sizes, strict=True)) == wanted


@pytest.mark.rule(21)
@pytest.mark.parametrize("most", [100, 4])
def test_rule_21_texts_between_equal_bounds_are_one_run_that_is_not_read(most: int) -> None:
    """Whether the bounds were cut does not matter: they enclose."""
    same, other = "abcd", "abce"
    for values, wanted in (
        ([same] * 9, [same]),
        ([None] * 9, [None]),
        ([same] * 8 + [None], None),
        ([same] * 8 + [other], None),
        ([""] * 9, [""]),
    ):
        data = written(pa.array(values, pa.string()))
        tail = read_tail(io.BytesIO(data))
        footer = parse_footer(tail.footer, tail.offset)
        group = footer.row_groups[0]
        chunk = group.columns[0]
        changed = replace(
            chunk,
            min_value=chunk.min_value and chunk.min_value[:most],
            max_value=chunk.max_value and chunk.max_value[:most],
            min_exact=most > 4,
            max_exact=most > 4,
        )
        with open_file(io.BytesIO(b"")) as file:  # there is nothing to read
            for own in (changed, replace(changed, null_count=None)):
                found = read_runs(ChunkPlace(file, footer.leaves[0], own, group))
                if wanted is None or own.null_count is None:
                    assert found is None
                    continue
                assert found is not None
                assert (found.values.to_pylist(), found.ends.tolist()) == (wanted, [9])


def test_rows_without_runs_are_no_runs() -> None:
    chance = random.Random(1)
    assert runs_of(written(pa.array([chance.choice(TEXTS) for _ in range(20_000)]))) is None
    assert runs_of(written(pa.array(range(20_000)))) is None
    # It compresses well, and yet each row differs from the one before.
    assert runs_of(written(pa.array(["a", "b"] * 20_000), compression="zstd")) is None


@pytest.mark.rule(38)
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_changed_bytes_give_sound_runs_or_none(compression: str) -> None:
    chance = random.Random(compression)
    values = ["a"] * 9000 + [None] * 9000 + ["b"] * 9000
    data = written(pa.array(values), max_rows_per_page=5000, compression=compression)
    tail = read_tail(io.BytesIO(data))
    footer = parse_footer(tail.footer, tail.offset)
    assert runs_of(data, footer) is not None
    refused = 0
    for _ in range(1000):
        changed = bytearray(data)
        changed[chance.randrange(4, tail.offset)] ^= 1 << chance.randrange(8)
        found = runs_of(bytes(changed), footer)
        if found is None:
            refused += 1
            continue
        assert found.ends[-1] == len(values)
        assert (np.diff(found.ends, prepend=0) > 0).all()
        codes = found.values.indices.drop_null().to_numpy()
        assert not len(codes) or 0 <= codes.min() <= codes.max() < len(found.values.dictionary)
    assert refused > 100
