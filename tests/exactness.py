"""The column of tests in docs/maintainers/exactness.md, made of the marks `@pytest.mark.rule(n)`.

`python -m tests.exactness` writes the page anew; its prose is kept.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

from tests.corpora import REPOSITORY

PAGE = REPOSITORY / "docs" / "maintainers" / "exactness.md"
TESTS = REPOSITORY / "tests"
RULES = (*range(1, 28), 29, *range(31, 43))
ROW = re.compile(r"^\| (\d+) \| (.+?) \| (.+?) \|$", re.MULTILINE)


@cache
def rules() -> dict[int, list[tuple[str, str]]]:
    """For each rule its tests, as file and function, in the order of the files."""
    marked: dict[int, list[tuple[str, str]]] = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            for rule in _rules_of(node):
                name = getattr(node, "name", "")
                marked.setdefault(rule, []).append((file.relative_to(TESTS).as_posix(), name))
    return marked


def _rules_of(node: ast.stmt) -> Iterator[int]:
    """The numbers in the marks of a function."""
    for decorator in getattr(node, "decorator_list", ()):
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.rule":
            yield from (ast.literal_eval(argument) for argument in decorator.args)


def with_tests(page: str) -> str:
    """The page with its column of tests made anew."""

    def row(match: re.Match[str]) -> str:
        named = rules().get(int(match[1]), [])
        tests = ", ".join(f"`{file}::{name}`" for file, name in named)
        return f"| {match[1]} | {match[2]} | {tests} |"

    return ROW.sub(row, page)


if __name__ == "__main__":
    PAGE.write_text(with_tests(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
