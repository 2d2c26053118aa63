"""The plain profile and the compiled one agree."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shredding.strategies import trees
from tests.twins.profile import profile_trees
from variantlake.encoding.scalar import Scalar
from variantlake.encoding.tree import Tree, encode
from variantlake.kernels.variant.profiler import profile
from variantlake.kernels.variant.variant_reader import VariantReader
from variantlake.shredding.inference.profile import MAX_PROFILE_DEPTH, Profile
from variantlake.shredding.layout import VARIANT_TYPE
from variantlake.types import Primitive


def compiled(sample: list[Tree]) -> Profile:
    rows = [dict(zip(("metadata", "value"), encode(tree), strict=True)) for tree in sample]
    array = pa.array(rows, VARIANT_TYPE)
    assert isinstance(array, pa.StructArray)
    return profile(VariantReader().read(array))


@given(st.lists(trees, max_size=5))
@settings(deadline=None)
def test_profiles_agree(sample: list[Tree]) -> None:
    assert profile_trees(sample) == compiled(sample)


def test_profiles_end_at_one_depth() -> None:
    deep: Tree = Scalar(Primitive.INT8, 1)
    for _ in range(MAX_PROFILE_DEPTH + 2):
        deep = [deep]
    assert profile_trees([deep]) == compiled([deep])
