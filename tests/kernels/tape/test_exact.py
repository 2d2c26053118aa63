"""Numbers that a decimal column holds exactly, and no others, at the edges of 64 and 128 bits."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.kernels.variant.test_variant_reader import array_of
from tests.strategies import MORE
from variantlake.encoding.scalar import Scalar
from variantlake.encoding.variant import Variant
from variantlake.kernels.shredded.shredder import Shredder
from variantlake.kernels.variant.variant_reader import VariantReader
from variantlake.shredding.ddl import parse_ddl
from variantlake.types import Primitive

SHAPES = [(1, 0), (9, 2), (18, 0), (18, 18), (19, 1), (38, 0), (38, 10), (38, 38)]
SHREDDERS = {shape: Shredder(parse_ddl("DECIMAL({},{})".format(*shape))) for shape in SHAPES}
EDGES = sorted(
    {sign * (10**power + more) for power in range(38) for more in (-1, 0, 1) for sign in (-1, 1)}
    | {
        sign * 2**bits + more
        for bits in (31, 63, 64, 125)
        for more in (-1, 0, 1)
        for sign in (-1, 1)
    }
)


def written(unscaled: int, scale: int) -> Decimal:
    with localcontext(prec=80):
        return Decimal(unscaled).scaleb(-scale)


def fits(number: Decimal, precision: int, scale: int) -> bool:
    """By Python's own decimals."""
    with localcontext(prec=120):
        unscaled = number.scaleb(scale)
        return unscaled == unscaled.to_integral_value() and abs(unscaled) < 10**precision


def typed(shape: tuple[int, int], numbers: list[Decimal]) -> list[Decimal | None]:
    variants = [Variant.of_tree(Scalar(Primitive.DECIMAL16, number)) for number in numbers]
    tape = VariantReader().read(array_of([(each.metadata, each.value) for each in variants]))
    column: Any = SHREDDERS[shape].shred(tape)
    return [row["typed_value"] for row in column.to_pylist()]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_edges(shape: tuple[int, int]) -> None:
    numbers = [written(edge, scale) for edge in EDGES for scale in (0, 1, 18, 38)]
    expected = [number if fits(number, *shape) else None for number in numbers]
    assert typed(shape, numbers) == expected
    assert 0 < sum(each is None for each in expected) < len(expected)


@settings(max_examples=100 * MORE, deadline=None)
@given(st.integers(1 - 10**38, 10**38 - 1), st.integers(0, 38), st.sampled_from(SHAPES))
@example(10**37, 38, (38, 38))
def test_any_number(unscaled: int, scale: int, shape: tuple[int, int]) -> None:
    number = written(unscaled, scale)
    (found,) = typed(shape, [number])
    assert found == (number if fits(number, *shape) else None)
