"""Paths of legacy files, and what their footers tell, against the rebuilt rows."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

import variantlake as vl
from tests.shredding.legacy_columns import column, groups, rows_of, type_of, untyped_tree
from tests.shredding.strategies import trees
from tests.strategies import MORE
from variantlake.encoding.variant import Variant
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.stats.facts import UNKNOWN, facts_of
from variantlake.parquet.variant.variant_group import variant_groups
from variantlake.paths import Path
from variantlake.shredding.legacy.unshred import unshred_legacy_plain
from variantlake.shredding.schema import Leaf


@st.composite
def columns(draw: st.DrawFn) -> pa.StructArray:
    group = draw(groups())
    rows = rows_of(group, trees.map(untyped_tree), valid=True)
    return column(type_of(group), draw(st.lists(rows, max_size=6)))


def variants_of(array: pa.StructArray) -> list[Variant | None]:
    return vl.parquet.variants(unshred_legacy_plain(array))


def at(variant: Variant | None, path: Path) -> str | None:
    """The value at a path as text of exact types; a Variant null is as good as nothing."""
    found = None if variant is None else variant.get(path)
    return None if found is None or found.type == "null" else repr(found.tree())


@settings(max_examples=30 * MORE, deadline=None)
@given(columns(), st.sampled_from(["$.a", "$.b.c", "$[0]", "$[0].a", "$.zz"]))
def test_a_path_is_what_the_rebuilt_rows_have_there(array: pa.StructArray, other: str) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"v": array}), sink)
    footer = read_footer(io.BytesIO(sink.getvalue()))
    (group,) = variant_groups(footer, [("v",)])
    rows = variants_of(array)
    paths = [*(path for path, _ in group.nodes() if path.steps), Path.parse(other)][:4]
    requested = {str(i): f"v:{str(path)[1:]}::variant" for i, path in enumerate(paths)}
    found = vl.parquet.read_paths(io.BytesIO(sink.getvalue()), requested)
    for i, path in enumerate(paths):
        got = vl.parquet.variants(found.column(str(i)))
        values = [None if one is None else repr(one.tree()) for one in got]
        assert values == [at(row, path) for row in rows], path


@settings(max_examples=30 * MORE, deadline=None)
@given(columns())
def test_facts_of_clean_paths_hold_for_the_rebuilt_rows(array: pa.StructArray) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"v": array}), sink)
    (facts,) = facts_of(read_footer(io.BytesIO(sink.getvalue())), 0, [("v",)]).variants
    rows = variants_of(array)
    for path in facts.paths:
        if not path.clean:
            assert (path.nulls, path.residuals) == (UNKNOWN, UNKNOWN)
            continue
        present: list[Any] = [
            row for row in rows if row is not None and row.get(path.path) is not None
        ]
        if path.typed != UNKNOWN:
            assert len(present) == path.typed
        if isinstance(path.node, Leaf):
            assert len({row.get(path.path).type for row in present}) <= 1
