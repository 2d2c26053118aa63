"""The test data of the checkout names its sources; the corpora outside of it are looked up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import corpora


def test_the_readme_of_the_test_data_says_where_each_part_comes_from() -> None:
    readme = (corpora.DATA / "README.md").read_text(encoding="utf-8")
    table = [line.split("|")[1] for line in readme.splitlines() if line.startswith("| `")]
    parts = {path.name for path in corpora.DATA.iterdir()} - {
        "README.md",
        "github_webhooks.LICENSE",
    }
    assert {part for part in parts if not any(part in places for places in table)} == set()


def test_a_corpus_is_looked_up_where_the_variable_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "suites" / "golden").mkdir(parents=True)
    monkeypatch.setenv("VARIANTLAKE_CORPORA", str(tmp_path))
    assert corpora.place("suites/golden") == tmp_path / "suites" / "golden"
    assert corpora.place("suites/other") == tmp_path / "suites" / "other"
    monkeypatch.setenv("VARIANTLAKE_CORPORA", str(tmp_path / "suites"))
    assert corpora.place("suites/golden") == tmp_path / "suites" / "golden"


def test_a_corpus_is_looked_up_beside_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shared" / "suites" / "golden").mkdir(parents=True)
    monkeypatch.delenv("VARIANTLAKE_CORPORA", raising=False)
    for checkout in (tmp_path / "clone", tmp_path / "worktrees" / "branch"):
        monkeypatch.setattr(corpora, "REPOSITORY", checkout)
        assert corpora.place("suites/golden") == tmp_path / "shared" / "suites" / "golden"


def test_a_test_without_its_corpus_skips_and_fails_in_ci(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpora.require(tmp_path)
    monkeypatch.setenv("CI", "")
    with pytest.raises(pytest.skip.Exception, match=r"absent .* is not available here"):
        corpora.require(tmp_path / "absent")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="CI must have it"):
        corpora.require(tmp_path / "absent")


def test_a_copy_of_a_corpus_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "a" / "log").mkdir(parents=True)
    (tmp_path / "a" / "log" / "f").touch(mode=0o444)
    (tmp_path / "a" / "log").chmod(0o555)
    copy = corpora.copy_writable(tmp_path / "a", tmp_path / "b")
    assert (copy / "log").stat().st_mode & 0o777 == 0o755
    assert (copy / "log" / "f").stat().st_mode & 0o777 == 0o644
