"""docs/maintainers/exactness.md names a test for each rule, and those tests are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.corpora import REPOSITORY

PAGE = REPOSITORY / "docs" / "maintainers" / "exactness.md"
RULES = (*range(1, 28), 29, *range(31, 39))
ROW = re.compile(r"^\| (\d+) \| (.+?) \| (.+?) \|$", re.MULTILINE)
TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")


def rules() -> dict[int, list[tuple[str, str]]]:
    """For each rule its tests, as file and function."""
    text = PAGE.read_text(encoding="utf-8")
    return {int(number): TEST.findall(tests) for number, _, tests in ROW.findall(text)}


@cache
def functions(file: Path) -> frozenset[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_every_rule_is_in_the_table() -> None:
    assert tuple(rules()) == RULES


@pytest.mark.parametrize("number", RULES)
def test_the_tests_of_a_rule_exist(number: int) -> None:
    named = rules()[number]
    assert named
    for file, name in named:
        assert name in functions(REPOSITORY / "tests" / file), f"{file}::{name}"


def test_tests_that_carry_a_rule_are_in_its_row() -> None:
    listed = {(number, name) for number, named in rules().items() for _, name in named}
    for file in sorted((REPOSITORY / "tests").rglob("test_*.py")):
        for name in functions(file):
            match = re.match(r"test_rule_(\d+)_", name)
            assert match is None or (int(match[1]), name) in listed, f"{file.name}::{name}"


def test_every_rule_can_be_taken_out_of_the_sources() -> None:
    from tests.mutations import MUTATIONS, changed

    assert {each.rule for each in MUTATIONS} == set(RULES)
    for each in MUTATIONS:
        file, text = changed(REPOSITORY, each)  # raises where its place is not there once
        assert text != file.read_text(encoding="utf-8")
        if file.suffix == ".py":
            compile(text, file, "exec")
