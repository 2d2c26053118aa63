"""Sizes as people write them."""

from __future__ import annotations

import pytest

from variantlake.cli.maintenance.optimize import bytes_of
from variantlake.errors import InvalidValue


@pytest.mark.parametrize(
    ("text", "size"), [("12", 12), ("64MB", 64 << 20), (" 2 gib ", 2 << 30), ("1k", 1 << 10)]
)
def test_a_size_has_a_unit_or_none(text: str, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize(
    "text", ["", "MB", "-1", "1.5GB", "9" * 5000], ids=lambda text: f"{text:.6}"
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="is no size"):
        bytes_of(text)
