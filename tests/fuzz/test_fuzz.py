"""A short run of each fuzzer; `make fuzz` runs them for longer."""

from __future__ import annotations

import random
from importlib import import_module

import pytest

from tests.fuzz.guided import Drawn
from tests.fuzz.page import page
from tests.fuzz.runner import run
from tests.fuzz.targets import TARGETS, target


@pytest.mark.parametrize("name", ["footers", "values", "columns", "logs", "texts", "batches"])
def test_hostile_bytes_give_an_answer_or_our_error(name: str) -> None:
    fuzzer = import_module(f"tests.fuzz.{name}")  # makes what it starts from: seconds
    assert run(fuzzer.case, fuzzer.MEMORY_MULTIPLE, ["--seconds", "3"]) == 0


@pytest.mark.parametrize("name", TARGETS)
def test_bytes_choose_what_a_target_does(name: str) -> None:
    """As libFuzzer calls it: no bytes, and some, which decide first."""
    case, _ = target(name)
    assert all(case(Drawn(data)) >= 0 for data in (b"", bytes(range(40)), b"\xff" * 40))


def test_the_same_bytes_are_the_same_chance() -> None:
    first, second = (Drawn(b"some bytes") for _ in range(2))
    assert [first.random() for _ in range(9)] == [second.random() for _ in range(9)]
    assert Drawn(b"a").sample(range(1000), 5) != Drawn(b"b").sample(range(1000), 5)
    assert all(0 <= Drawn(bytes([byte])).random() < 1 for byte in range(256))
    assert isinstance(first, random.Random)


def test_the_page_counts_what_was_recorded() -> None:
    done = {"inputs": 1200, "seconds": 1800, "branches": 7, "until": "2026-11-26"}
    text = page({"json": done, "ddl": done})
    assert "| all | | 2,400 | 1.00 h | |" in text
