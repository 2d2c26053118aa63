"""Hypothesis strategies for shredding schemas and for documents that fit them more or less."""

from __future__ import annotations

import string

from hypothesis import strategies as st

from variantlake.shredding.folding import folded_twins
from variantlake.shredding.schema import Array, Leaf, Node, Object, ShreddingSchema, Untyped
from variantlake.types import Kind, ShreddedType

ODD_KEYS = (
    "",
    "value",
    "typed_value",
    "metadata",
    "list",
    "element",
    "a.b",
    "a`b",
    "_x",
    "\U0001f600",
)
"""Keys that look like parts of the layout, or that a careless reader would take apart."""

keys = st.sampled_from(["a", "b", "c", "d", *ODD_KEYS]) | st.text(
    string.ascii_letters + "\uffff\U00010000é", min_size=1, max_size=3
)


@st.composite
def _decimals(draw: st.DrawFn) -> ShreddedType:
    precision = draw(st.sampled_from([1, 9, 10, 18, 19, 38]))
    return ShreddedType(Kind.DECIMAL, precision, draw(st.integers(0, precision)))


leaf_types = _decimals() | st.sampled_from([k for k in Kind if k is not Kind.DECIMAL]).map(
    ShreddedType
)


def _objects(children: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    fields = st.dictionaries(keys, children, min_size=1, max_size=4)
    return fields.filter(lambda names: not folded_twins(names)).map(
        lambda fields: Object(tuple(fields.items()))
    )


nodes: st.SearchStrategy[Node] = st.recursive(
    leaf_types.map(Leaf) | st.just(Untyped()),
    lambda children: _objects(children) | children.map(Array),
    max_leaves=6,
)


def schemas() -> st.SearchStrategy[ShreddingSchema]:
    """Any schema that may be written."""
    return nodes.map(ShreddingSchema)
