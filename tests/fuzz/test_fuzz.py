"""A short run of each fuzzer; `make fuzz` runs them for longer."""

from __future__ import annotations

from importlib import import_module

import pytest

from tests.fuzz.runner import run


@pytest.mark.parametrize("name", ["values", "columns", "logs", "texts"])
def test_hostile_bytes_give_an_answer_or_our_error(name: str) -> None:
    fuzzer = import_module(f"tests.fuzz.{name}")  # makes what it starts from: seconds
    assert run(fuzzer.case, fuzzer.MEMORY_MULTIPLE, ["--seconds", "3"]) == 0
