"""Profile a sample of Variants in plain Python: the reference for `kernels.variant.profiler`."""

from __future__ import annotations

from collections.abc import Iterable

from variantlake.encoding.scalar import Scalar, exact_parts
from variantlake.encoding.tree import Tree
from variantlake.shredding.inference.profile import MAX_PROFILE_DEPTH, Profile
from variantlake.types import PRIMITIVES, Family


def profile_trees(trees: Iterable[Tree]) -> Profile:
    """Count types, digits and fields at every path."""
    profile = Profile()
    for tree in trees:
        _count(profile, tree, 0)
    return profile


def _count(profile: Profile, tree: Tree, depth: int) -> None:
    profile.rows += 1
    if isinstance(tree, Scalar):
        profile.primitives[tree.type] = profile.primitives.get(tree.type, 0) + 1
        if PRIMITIVES[tree.type].family is Family.EXACT_NUMERIC:
            _count_digits(profile, tree)
    elif isinstance(tree, dict):
        profile.objects += 1
        if depth < MAX_PROFILE_DEPTH:
            for name, child in tree.items():
                _count(profile.fields.setdefault(name, Profile()), child, depth + 1)
    else:
        profile.arrays += 1
        if depth < MAX_PROFILE_DEPTH:
            for child in tree:
                profile.element = profile.element or Profile()
                _count(profile.element, child, depth + 1)


def _count_digits(profile: Profile, number: Scalar) -> None:
    unscaled, scale = exact_parts(number)
    digits = len(str(unscaled).lstrip("-")) if unscaled else 0
    profile.integer_digits = max(profile.integer_digits, digits - scale)
    profile.scale = max(profile.scale, scale)
