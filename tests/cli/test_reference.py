"""docs/cli.md is what the commands say of themselves."""

from __future__ import annotations

from tests import corpora
from variantlake.cli.reference import reference


def test_the_page_is_up_to_date() -> None:
    page = corpora.REPOSITORY / "docs" / "cli.md"
    assert page.read_text(encoding="utf-8") == reference(), "run `make docs`"


def test_every_command_gives_json() -> None:
    sections = reference().split("\n## ")[1:]
    assert len(sections) >= 6
    for section in sections:
        assert "`--json`" in section, section.splitlines()[0]
