from __future__ import annotations

from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.batches import read
from tests.kernels.fuzz import Documents
from tests.strategies import MORE, json_texts
from variantlake.encoding.json import parse_json_tree
from variantlake.encoding.scalar import Scalar, decimal_parts
from variantlake.encoding.tree import Tree
from variantlake.kernels.variant.profiler import profile
from variantlake.shredding.inference.profile import MAX_PROFILE_DEPTH, Profile
from variantlake.types import PRIMITIVES, Family


def look(tree: Tree, at: Profile) -> None:
    """The twin: count one value."""
    at.rows += 1
    if isinstance(tree, dict):
        at.objects += 1
        for name, child in tree.items():
            look(child, at.fields.setdefault(name, Profile()))
    elif isinstance(tree, list):
        at.arrays += 1
        for child in tree:
            at.element = at.element or Profile()
            look(child, at.element)
    else:
        at.primitives[tree.type] = at.primitives.get(tree.type, 0) + 1
        if PRIMITIVES[tree.type].family is Family.EXACT_NUMERIC:
            digits, scale = exact_digits(tree)
            at.integer_digits = max(at.integer_digits, digits - scale)
            at.scale = max(at.scale, scale)


def exact_digits(scalar: Scalar) -> tuple[int, int]:
    if isinstance(scalar.value, Decimal):
        unscaled, scale = decimal_parts(scalar.value)
        return len(str(abs(unscaled)).lstrip("0")), scale
    return len(str(scalar.value).lstrip("-").lstrip("0")), 0


@settings(max_examples=50 * MORE, deadline=None)
@given(st.lists(json_texts, max_size=6))
def test_counts_agree_with_twin(texts: list[str]) -> None:
    expected = Profile()
    for text in texts:
        look(parse_json_tree(text), expected)
    assert profile(read([text.encode() for text in texts])) == expected


def test_many_paths() -> None:
    documents = [
        document for document in Documents(9)(300) if read([document]).status.tolist() == [0]
    ]
    expected = Profile()
    for document in documents:
        look(parse_json_tree(document), expected)
    assert profile(read([*documents, b"{", b"["])) == expected


def test_deep_documents_are_described_down_to_a_limit() -> None:
    found = profile(read([b"[" * 200 + b"1" + b"]" * 200]))
    depth = 0
    at: Profile | None = found
    while at is not None:
        assert at.arrays == 1
        at, depth = at.element, depth + 1
    assert depth == MAX_PROFILE_DEPTH + 1
