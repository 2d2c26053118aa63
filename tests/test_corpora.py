"""The test data is in the checkout, with its sources."""

from __future__ import annotations

from tests import corpora


def test_the_readme_of_the_test_data_says_where_each_part_comes_from() -> None:
    readme = (corpora.DATA / "README.md").read_text(encoding="utf-8")
    table = [line.split("|")[1] for line in readme.splitlines() if line.startswith("| `")]
    parts = {path.name for path in corpora.DATA.iterdir()} - {
        "README.md",
        "github_webhooks.LICENSE",
    }
    assert {part for part in parts if not any(part in places for places in table)} == set()
