"""Every Python block in the README and in docs/ runs."""

from __future__ import annotations

import json
import logging
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import variantlake as vl
from tests.corpora import REPOSITORY, library
from variantlake import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

PAGES = sorted([REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")])
LOGGERS = (logging.getLogger(), logging.getLogger("variantlake"))
NEEDED = {
    "streaming": ["prometheus_client"],
    "observability": ["opentelemetry.trace", "openlineage.client"],
}
"""Libraries of extras that the blocks of a page use."""
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[str]:
    """The code of each Python block."""
    return [match[1] for match in BLOCK.finditer(page.read_text(encoding="utf-8"))]


@pytest.fixture
def own_logging() -> Iterator[None]:
    """What a page says of logging ends with the page."""
    before = [(logger, logger.level, logger.handlers[:]) for logger in LOGGERS]
    yield
    for logger, level, handlers in before:
        logger.setLevel(level)
        logger.handlers[:] = [each for each in logger.handlers if each in handlers]


@pytest.mark.spark
@pytest.mark.usefixtures("own_logging")
@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem
)
def test_python_blocks_run(
    spark: SparkSession, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocks of a page run one after another, in a folder with the files under examples/.

    They may use `table`, a folder of their own.
    """
    for name in NEEDED.get(page.stem, ()):
        library(name)
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    # The running session serves every block: getOrCreate finds it.
    namespace = {"table": str(tmp_path / "table"), "spark": spark, "__name__": page.stem}
    for code in blocks(page):
        exec(compile(code, page.stem, "exec", dont_inherit=True), namespace)  # noqa: S102 - running the docs is the point


@pytest.mark.spark
def test_the_notebook_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cells run one after another, beside the other examples, in the session of the tests."""
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path / "examples")
    notebook = json.loads(Path("spark_jobs.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells)
    namespace: dict[str, Any] = {"__name__": "spark_jobs"}
    for cell in cells:
        code = compile("".join(cell["source"]), cell["id"], "exec", dont_inherit=True)
        exec(code, namespace)  # noqa: S102 - running the notebook is the point
    assert namespace["spark"] is spark
    assert namespace["after"] == namespace["before"]
    assert namespace["unchanged"]
    assert 0 < namespace["files"].read_files < namespace["files"].total_files


def test_every_error_is_on_its_page() -> None:
    page = (REPOSITORY / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    classes = [
        name
        for name, each in vars(errors).items()
        if isinstance(each, type) and issubclass(each, errors.VariantLakeError)
    ]
    assert len(classes) > 15
    for name in classes:
        assert f"`{name}`" in page or f"vl.{name}" in page, name


def test_every_variable_is_on_its_page() -> None:
    page = (REPOSITORY / "docs" / "reference" / "environment.md").read_text(encoding="utf-8")
    sources = (REPOSITORY / "src").rglob("*.py")
    named = {
        name
        for source in sources
        for name in re.findall(r"VARIANTLAKE_[A-Z_]+", source.read_text(encoding="utf-8"))
    }
    assert named
    assert named == set(re.findall(r"VARIANTLAKE_[A-Z_]+", page))


def test_every_page_has_a_place_on_the_site() -> None:
    site = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")
    for page in (REPOSITORY / "docs").rglob("*.md"):
        name = page.relative_to(REPOSITORY / "docs").as_posix()
        if "decisions" not in name or page.name == "README.md":
            assert f": {name}\n" in site, name


def test_every_public_name_is_in_the_reference() -> None:
    page = (REPOSITORY / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^::: [\w.]+\.(\w+)$", page, re.MULTILINE))
    names = {name for name in (*vl.__all__, *vl.parquet.__all__) if callable(_public(name))}
    text = (REPOSITORY / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    for name in names - listed:  # errors have a page of their own
        assert issubclass(getattr(vl, name), vl.VariantLakeError)
        assert f"`{name}`" in text or f"`vl.{name}`" in text


def _public(name: str) -> object:
    return getattr(vl, name, None) or getattr(vl.parquet, name)


def test_readme_stays_short() -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    for target in ("make demo", "make test"):
        assert target in text


def test_readme_names_every_folder() -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    folders = sorted(each.parent.name for each in REPOSITORY.glob("src/variantlake/*/__init__.py"))
    assert sorted(re.findall(r"^\| `src/variantlake/(\w+)` \|", text, re.MULTILINE)) == folders


def anchors(page: Path) -> set[str]:
    """What links may name of a page: its headings, as both the site and the repository's host."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each).strip().lower().replace(" ", "-") for each in headings}


def test_links_of_the_pages_lead_somewhere() -> None:
    for page in {*PAGES, *REPOSITORY.glob("*.md")}:
        for link in re.findall(r"\]\(([^):]+)\)", page.read_text(encoding="utf-8")):
            target, _, anchor = link.partition("#")
            found = page.parent / target if target else page
            assert found.exists(), f"{page.name}: {link}"
            if anchor:
                assert anchor in anchors(found), f"{page.name}: {link}"


def test_the_recipes_name_files_that_exist() -> None:
    text = (REPOSITORY / "docs" / "maintainers" / "recipes.md").read_text(encoding="utf-8")
    names = {name for name in re.findall(r"`([\w./-]+)`", text) if "/" in name}
    rooms = set(re.findall(r"`([a-z]+)`", text.partition("## From symptom to room")[2]))
    assert len(names) > 30
    for name in names | (rooms - {"explain"}):
        assert any((REPOSITORY / at / name).exists() for at in ("", "src/variantlake")), name


def test_what_contributing_names_exists() -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"make (?:clean )?([a-z][a-z-]*)", text))
    assert {"setup", "test", "lint", "changelog"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for name in re.findall(r"`((?:\.ci|\.github|docs|scripts|tests|changes)/[\w./-]*)`", text):
        assert (REPOSITORY / name).exists(), name
