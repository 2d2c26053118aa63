"""Every Python block in the README and in docs/ runs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.corpora import REPOSITORY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGES = sorted([REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    """(page and number, code) of each Python block."""
    return [
        (f"{page.stem}-{number}", match[1])
        for page in PAGES
        for number, match in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8")))
    ]


@pytest.mark.spark
@pytest.mark.parametrize(("name", "code"), blocks(), ids=[name for name, _ in blocks()])
def test_python_blocks_run(
    spark: SparkSession, name: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block may use `table` (a folder of its own) and the files under examples/."""
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    # The running session serves every block: getOrCreate finds it.
    namespace = {"table": str(tmp_path / "table"), "spark": spark, "__name__": name}
    exec(compile(code, name, "exec"), namespace)  # noqa: S102 - running the docs is the point


def test_readme_stays_short() -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    for target in ("make demo", "make test"):
        assert target in text


def test_links_of_the_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
