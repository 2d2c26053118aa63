"""Every rule of docs/maintainers/exactness.md has tests, which the page names, and mutations."""

from __future__ import annotations

import re

import pytest

from tests.corpora import REPOSITORY
from tests.exactness import PAGE, ROW, RULES, rules, with_tests


def test_every_rule_is_in_the_table() -> None:
    numbers = [int(number) for number, _, _ in ROW.findall(PAGE.read_text(encoding="utf-8"))]
    assert tuple(numbers) == RULES


@pytest.mark.parametrize("number", RULES)
def test_a_rule_has_tests(number: int) -> None:
    assert rules()[number]


def test_the_page_names_the_marked_tests() -> None:
    """If it does not: `python -m tests.exactness` writes its column of tests anew."""
    assert set(rules()) == set(RULES)
    page = PAGE.read_text(encoding="utf-8")
    assert with_tests(page) == page


def test_tests_that_carry_a_rule_are_marked_with_it() -> None:
    marked = {(file, name, number) for number, named in rules().items() for file, name in named}
    folder = REPOSITORY / "tests"
    for file in sorted(folder.rglob("test_*.py")):
        for name, number in re.findall(
            r"^def (test_rule_(\d+)_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE
        ):
            place = file.relative_to(folder).as_posix()
            assert (place, name, int(number)) in marked, f"{place}::{name}"


def test_every_rule_can_be_taken_out_of_the_sources() -> None:
    from tests.mutations import MUTATIONS, changed

    assert {each.rule for each in MUTATIONS} == set(RULES)
    for each in MUTATIONS:
        file, text = changed(REPOSITORY, each)  # raises where its place is not there once
        assert text != file.read_text(encoding="utf-8")
        if file.suffix == ".py":
            compile(text, file, "exec")
