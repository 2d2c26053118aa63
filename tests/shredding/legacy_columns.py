"""Columns of the older layout, made by hand from the text of its specification.

Nothing here uses our writer. A group is described by its members:

    {"untyped_value": None, "object": {"a": {...}}, "array": {...}, "typed_value": ShreddedType}
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tests.parquet.shredded import restored, storage_of, typed_values
from tests.shredding.strategies import keys, leaf_types
from variantlake.encoding.tree import Tree, encode
from variantlake.encoding.variant import Variant
from variantlake.types import ShreddedType

Group = dict[str, Any]


def untyped(value: object) -> bytes:
    """An `untyped_value`: metadata and value in one binary."""
    variant = Variant.of(value)
    return variant.metadata + variant.value


def untyped_tree(tree: Tree) -> bytes:
    return b"".join(encode(tree))


def leaf(arrow: pa.DataType) -> pa.DataType:
    """A leaf as the specification's examples have it."""
    return pa.struct([("untyped_value", pa.binary()), ("typed_value", arrow)])


EXAMPLE = pa.struct(
    [
        ("untyped_value", pa.binary()),
        (
            "object",
            pa.struct(
                [
                    ("a", leaf(pa.int64())),
                    (
                        "b",
                        pa.struct(
                            [
                                ("untyped_value", pa.binary()),
                                ("object", pa.struct([("c", leaf(pa.string()))])),
                            ]
                        ),
                    ),
                ]
            ),
        ),
    ]
)
"""The schema of the specification's first example."""

NESTED = pa.struct(
    [
        ("untyped_value", pa.binary()),
        (
            "array",
            pa.list_(
                pa.field(
                    "element",
                    pa.struct(
                        [
                            ("untyped_value", pa.binary()),
                            (
                                "object",
                                pa.struct(
                                    [
                                        (
                                            "a",
                                            pa.struct(
                                                [
                                                    ("untyped_value", pa.binary()),
                                                    (
                                                        "array",
                                                        pa.list_(
                                                            pa.field("element", leaf(pa.int64()))
                                                        ),
                                                    ),
                                                ]
                                            ),
                                        ),
                                        ("b", leaf(pa.int64())),
                                    ]
                                ),
                            ),
                        ]
                    ),
                )
            ),
        ),
    ]
)
"""The schema of the specification's array example."""


def groups() -> st.SearchStrategy[Group]:
    """Any group, with one or more of the four members."""
    optional = st.just(None)
    leaves = st.one_of(
        st.fixed_dictionaries({"untyped_value": optional, "typed_value": leaf_types}),
        st.fixed_dictionaries({"untyped_value": optional}),
        st.fixed_dictionaries({"typed_value": leaf_types}),
    )
    return st.recursive(leaves, _around, max_leaves=5)


def _around(children: st.SearchStrategy[Group]) -> st.SearchStrategy[Group]:
    objects = st.dictionaries(keys, children, min_size=1, max_size=3)
    one = st.one_of(
        st.fixed_dictionaries({"object": objects}, optional={"untyped_value": st.just(None)}),
        st.fixed_dictionaries({"array": children}, optional={"untyped_value": st.just(None)}),
    )
    several = st.fixed_dictionaries(
        {"array": children},
        optional={"untyped_value": st.just(None), "object": objects, "typed_value": leaf_types},
    )
    return one | one | several


def type_of(group: Group) -> pa.DataType:
    fields: list[tuple[str, pa.DataType]] = []
    for name, member in group.items():
        match name:
            case "untyped_value":
                fields.append((name, pa.binary()))
            case "typed_value":
                fields.append((name, member.arrow))
            case "array":
                fields.append((name, pa.list_(pa.field("element", type_of(member)))))
            case _:
                fields.append((name, pa.struct([(n, type_of(c)) for n, c in member.items()])))
    return pa.struct(fields)


def rows_of(
    group: Group, values: st.SearchStrategy[bytes], *, valid: bool
) -> st.SearchStrategy[dict[str, Any] | None]:
    """The group in one row: valid by its members, or any combination of them."""
    members = {
        name: values if name == "untyped_value" else _member(name, member, values, valid=valid)
        for name, member in group.items()
    }
    alone = [st.fixed_dictionaries({name: value}) for name, value in members.items()]
    chosen: st.SearchStrategy[dict[str, Any] | None] = st.one_of(*alone, st.none())
    if not valid:
        chosen |= st.fixed_dictionaries({}, optional=members)
    elif {"object", "untyped_value"} <= group.keys():
        chosen |= st.fixed_dictionaries(
            {"object": members["object"], "untyped_value": _leftovers(group)}
        )
    return chosen


def _leftovers(group: Group) -> st.SearchStrategy[bytes]:
    rest = st.dictionaries(keys, st.integers(0, 9) | st.text(max_size=3), max_size=3)
    return rest.map(
        lambda fields: untyped({k: v for k, v in fields.items() if k not in group["object"]})
    )


def _member(
    name: str, member: Any, values: st.SearchStrategy[bytes], *, valid: bool
) -> st.SearchStrategy[Any]:
    if isinstance(member, ShreddedType):
        return typed_values(member)
    if name == "array":
        element = rows_of(member, values, valid=valid)
        return st.lists(element.filter(bool) if valid else element, max_size=3)
    return st.fixed_dictionaries(
        {n: rows_of(child, values, valid=valid) for n, child in member.items()}
    )


def column(arrow: pa.DataType, rows: list[Any]) -> pa.StructArray:
    """The rows as Arrow; times and dates are given as integers."""
    array: pa.StructArray = restored(pa.array(rows, storage_of(arrow)), arrow)
    return array
