"""The changelog, its fragments, and the notes of a release."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import variantlake as vl
from tests import corpora
from tests.corpora import REPOSITORY

SETTINGS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
KINDS = {each["directory"]: each["name"] for each in SETTINGS["tool"]["towncrier"]["type"]}
FRAGMENTS = sorted((REPOSITORY / "changes").glob("*.*.md"))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What the changelog is made of, without the fragments of now."""
    for name in (
        "CHANGELOG.md",
        "pyproject.toml",
        "scripts/release_notes.py",
        "changes/template.md",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(REPOSITORY / name, tmp_path / name)
    return tmp_path


def release_notes(checkout: Path, version: str) -> subprocess.CompletedProcess[str]:
    script = checkout / "scripts" / "release_notes.py"
    return subprocess.run(
        [sys.executable, str(script), version], capture_output=True, text=True, check=False
    )


def test_fragments_have_a_kind_and_say_something() -> None:
    assert set(KINDS) == {"feature", "bugfix", "doc", "removal", "misc"}
    for file in FRAGMENTS:
        match = re.fullmatch(r"(?:\+[\w-]+|\d+)\.(\w+)\.md", file.name)
        assert match, f"{file.name}: its name is not +slug.kind.md"
        assert match[1] in KINDS, f"{file.name}: the kinds are {', '.join(KINDS)}"
        text = file.read_text(encoding="utf-8").strip()
        assert 20 < len(text) < 600, f"{file.name}: one to three sentences"
        assert "\n\n" not in text, f"{file.name}: one paragraph"


def test_release_notes_are_those_of_the_version(checkout: Path) -> None:
    done = release_notes(checkout, vl.__version__)
    assert done.returncode == 0, done.stderr
    assert "docs/queries.md" in done.stdout
    assert "## " + vl.__version__ not in done.stdout
    assert "towncrier" not in done.stdout
    absent = release_notes(checkout, "0.0.99")
    assert absent.returncode == 1
    assert "no section 0.0.99" in absent.stderr


def test_no_release_leaves_a_fragment_behind(checkout: Path) -> None:
    (checkout / "changes" / "+slow.bugfix.md").write_text("Loads are no longer slow.\n")
    done = release_notes(checkout, vl.__version__)
    assert done.returncode == 1
    assert "+slow.bugfix.md" in done.stderr


def test_fragments_become_the_newest_section(checkout: Path) -> None:
    if importlib.util.find_spec("towncrier") is None:
        corpora.missing("towncrier")
    (checkout / "changes" / "+slow.bugfix.md").write_text("Loads are no longer\nslow.\n")
    (checkout / "changes" / "+new.feature.md").write_text("Loads are new.\n")
    command = [sys.executable, "-m", "towncrier", "build", "--yes", "--version", vl.__version__]
    subprocess.run(command, cwd=checkout, check=True, capture_output=True)
    assert [each.name for each in (checkout / "changes").iterdir()] == ["template.md"]
    notes = release_notes(checkout, vl.__version__).stdout
    assert (
        "\n\n### Features\n\n- Loads are new.\n\n### Fixed\n\n- Loads are no longer\n  slow.\n"
        in notes
    )
