"""Stretches of rows: what the rows hold, each column by itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import variantlake as vl
from variantlake.errors import InvalidValue
from variantlake.expressions.arrays import Values
from variantlake.expressions.tree import Ref, refs
from variantlake.scan.files.chosen_rows import chosen_alike
from variantlake.scan.files.stretches import Runs, Stretches

columns = st.lists(
    st.lists(st.sampled_from("ab") | st.none(), min_size=30, max_size=30), max_size=3
)


def runs_of(rows: list[str | None]) -> Runs:
    ends = [at for at in range(1, len(rows) + 1) if at == len(rows) or rows[at] != rows[at - 1]]
    values = pa.array([rows[end - 1] for end in ends], pa.string())
    return Runs(Values(values), np.array(ends, np.int64))


@pytest.mark.rule(38)
@given(columns=columns, kept=st.lists(st.booleans(), min_size=30, max_size=30))
def test_rule_38_stretches_hold_what_their_rows_hold(
    columns: list[list[str | None]], kept: list[bool]
) -> None:
    refs = [Ref((f"c{at}",), None, "string") for at in range(len(columns))]
    found = Stretches.of({ref: runs_of(rows) for ref, rows in zip(refs, columns, strict=True)}, 30)
    sizes = (found.ends - found.starts).tolist()
    assert min(sizes) > 0
    for ref, rows in zip(refs, columns, strict=True):
        texts = found.columns[ref].array.to_pylist()
        assert [text for text, size in zip(texts, sizes, strict=True) for _ in range(size)] == rows
        places = np.flatnonzero(kept)
        assert runs_of(rows).in_rows(places).array.to_pylist() == [rows[at] for at in places]
    spans = zip(found.starts.tolist(), found.ends.tolist(), strict=True)
    counts = found.rows(np.array(kept)).tolist()
    assert counts == [sum(kept[start:end]) for start, end in spans]


@pytest.mark.rule(38)
def test_rule_38_an_error_counts_only_in_a_stretch_with_a_row_that_is_left(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT")
    scan = table.scan(where="event:w::int = 7")
    (ref,) = refs(scan.predicate)
    failed = Values(pa.array([7, None, 8], pa.int32()), np.array([False, True, False]))
    found = Stretches(np.array([10, 20, 30], np.int64), {ref: failed})
    kept = np.ones(30, np.bool_)
    with pytest.raises(InvalidValue, match="cannot be cast"):
        chosen_alike(scan.predicate, found, kept)
    kept[10:20] = False
    assert chosen_alike(scan.predicate, found, kept).tolist() == [True, False, False]
