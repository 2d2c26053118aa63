"""docs/maintainers/decisions: each record is listed, and at most a page."""

from __future__ import annotations

import re

from tests.corpora import REPOSITORY

FOLDER = REPOSITORY / "docs" / "maintainers" / "decisions"
A_PAGE = 45
"""Lines."""


def test_every_decision_is_listed_and_at_most_a_page() -> None:
    listed = re.findall(r"^\| \[.*?\]\((.*?)\)", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(f.name for f in FOLDER.glob("*.md") if f.name != "README.md")
    for name in listed:
        assert len((FOLDER / name).read_text().splitlines()) <= A_PAGE, name
