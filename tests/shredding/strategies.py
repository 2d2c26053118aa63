"""Hypothesis strategies for shredding schemas and for documents that fit them more or less."""

from __future__ import annotations

import string

from hypothesis import strategies as st

from variantlake.encoding.scalar import DECIMAL_DIGITS, FALSE, NULL, TRUE, Scalar, decimal_of
from variantlake.encoding.tree import Tree
from variantlake.shredding.folding import folded_twins
from variantlake.shredding.schema import Array, Leaf, Node, Object, ShreddingSchema, Untyped
from variantlake.types import Kind, Primitive, ShreddedType

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


_INTEGERS = st.sampled_from(
    [(Primitive.INT8, 8), (Primitive.INT16, 16), (Primitive.INT32, 32), (Primitive.INT64, 64)]
).flatmap(
    lambda width: st.integers(-(1 << width[1] - 1), (1 << width[1] - 1) - 1).map(
        lambda number: Scalar(width[0], number)
    )
)
_DECIMALS = st.sampled_from(list(DECIMAL_DIGITS.items())).flatmap(
    lambda width: st.builds(
        lambda unscaled, scale: Scalar(width[0], decimal_of(unscaled, scale)),
        st.integers(-100, 100) | st.integers(1 - 10 ** width[1], 10 ** width[1] - 1),
        st.integers(0, 4) | st.integers(0, 38),
    )
)
_LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
scalars: st.SearchStrategy[Scalar] = st.one_of(
    st.sampled_from([NULL, TRUE, FALSE]),
    _INTEGERS,
    _DECIMALS,
    st.floats().map(lambda number: Scalar(Primitive.DOUBLE, number)),
    st.floats(width=32).map(lambda number: Scalar(Primitive.FLOAT, number)),
    st.text(max_size=70).map(lambda text: Scalar(Primitive.STRING, text)),
    st.binary(max_size=5).map(lambda data: Scalar(Primitive.BINARY, data)),
    st.uuids().map(lambda value: Scalar(Primitive.UUID, value)),
    st.integers(-(1 << 31), (1 << 31) - 1).map(lambda days: Scalar(Primitive.DATE, days)),
    st.builds(
        Scalar,
        st.sampled_from(
            [
                Primitive.TIMESTAMP,
                Primitive.TIMESTAMP_NTZ,
                Primitive.TIMESTAMP_NANOS,
                Primitive.TIMESTAMP_NTZ_NANOS,
                Primitive.TIME,
            ]
        ),
        _LONGS,
    ),
)
trees: st.SearchStrategy[Tree] = st.recursive(
    scalars,
    lambda children: st.dictionaries(keys, children, max_size=4) | st.lists(children, max_size=4),
    max_leaves=8,
)


def trees_for(node: Node) -> st.SearchStrategy[Tree]:
    """Trees that mostly fit a node, so that columns are filled and not only residuals."""
    match node:
        case Untyped():
            return trees
        case Leaf(type=shredded):
            fitting = scalars.filter(lambda scalar: scalar.type in shredded.info.primitives)
            return fitting | fitting | trees
        case Array(element=element):
            return st.lists(trees_for(element), max_size=3) | trees
        case Object(fields=fields):
            shredded_fields = st.fixed_dictionaries(
                {}, optional={name: trees_for(child) for name, child in fields}
            )
            return (
                st.builds(
                    lambda some, rest: {**rest, **some},
                    shredded_fields,
                    st.dictionaries(keys, scalars, max_size=2),
                )
                | trees
            )
