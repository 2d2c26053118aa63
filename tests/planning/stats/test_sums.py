"""How far sums can go: by bounds of files, by the limits of types, and where it is not known."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from tests.planning.builders import ROWS, between, facts, file, path
from variantlake.parquet.stats.facts import FileFacts
from variantlake.planning.files import RecordFiles
from variantlake.planning.stats.sums import greatest_sum

KNOWN = {
    "bounds": (between("bigint", -3, 2), "bigint", 3 * ROWS),
    "below zero": (between("bigint", -9, -5), "bigint", 9 * ROWS),
    "the widest integer": (between("bigint", -(2**63), 0), "bigint", 2**63 * ROWS),
    "the limits of a type": (between("int", None, None), "int", 2**31 * ROWS),
    "a column as a wider type": (between("int", 1, 7), "bigint", 7 * ROWS),
    "decimals": (
        between("decimal(10,2)", Decimal("-1.25"), Decimal("0.5")), "decimal(10,2)", 2 * ROWS,
    ),
    "decimals of many digits": (
        between("decimal(38,2)", Decimal("0.01"), Decimal("9" * 36 + ".99")),
        "decimal(38,2)",
        10**36 * ROWS,
    ),
    "no path": (facts("b bigint"), "bigint", 0),
    "no numbers": (between("string", "a", "b"), "string", None),
    "doubles": (between("double", 0.0, 1.0), "double", None),
    "a file that nobody knows": (None, "bigint", None),
}  # fmt: skip


@pytest.mark.rule(35)
@pytest.mark.parametrize("name", KNOWN)
def test_sums_end_at_the_farthest_bound_in_every_row(name: str) -> None:
    known, type_, most = KNOWN[name]
    assert _greatest([known], type_) == most
    if most is not None:
        assert _greatest([known, between("bigint", 0, 5)], type_) == most + 5 * ROWS
        # A file that is not read adds nothing.
        assert _greatest([known, None], type_, read=1) == most


def _greatest(known: list[FileFacts | None], type_: str, read: int | None = None) -> int | None:
    files = RecordFiles([file(f"f{at}", each) for at, each in enumerate(known)])
    return greatest_sum(files, np.arange(read or len(known)), path("$.a", type_), {})
