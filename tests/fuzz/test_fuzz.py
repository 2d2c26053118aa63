"""A short run of each fuzzer; `make fuzz` runs them for longer."""

from __future__ import annotations

import pytest

from tests.fuzz import columns, logs, values
from tests.fuzz.runner import Case, run


@pytest.mark.parametrize(
    ("case", "memory_multiple"),
    [
        (values.case, values.KERNEL_MULTIPLE),
        (columns.case, columns.MEMORY_MULTIPLE),
        (logs.case, logs.MEMORY_MULTIPLE),
    ],
    ids=["values", "columns", "logs"],
)
def test_hostile_bytes_give_an_answer_or_our_error(case: Case, memory_multiple: int) -> None:
    assert run(case, memory_multiple, ["--seconds", "3"]) == 0
