"""Stretches of rows: what the rows hold, each column by itself."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from variantlake.planning.predicates import Ref
from variantlake.scan.casts import Values
from variantlake.scan.stretches import Runs, Stretches

columns = st.lists(
    st.lists(st.sampled_from("ab") | st.none(), min_size=30, max_size=30), max_size=3
)


def runs_of(rows: list[str | None]) -> Runs:
    ends = [at for at in range(1, len(rows) + 1) if at == len(rows) or rows[at] != rows[at - 1]]
    values = pa.array([rows[end - 1] for end in ends], pa.string())
    return Runs(Values(values), np.array(ends, np.int64))


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
