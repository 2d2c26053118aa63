"""A type checker finds nothing in the Python of the README and of docs/."""

from __future__ import annotations

from pathlib import Path

import pytest
from mypy import api

from tests.corpora import REPOSITORY
from tests.test_docs import PAGES, blocks

PRELUDE = """\
# mypy: allow-redefinition, disable-error-code="no-untyped-def"
from pyspark.sql import SparkSession
spark: SparkSession
"""
"""What `test_docs` gives to every page. Examples may use a name again for something else."""


def test_types_of_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = []
    for page in PAGES:
        code = "\n".join(blocks(page))
        if not code:
            continue
        name = page.relative_to(REPOSITORY).with_suffix("").as_posix()
        file = tmp_path / f"{name.replace('/', '_').replace('-', '_')}.py"
        given = "" if "\ntable = " in f"\n{code}" else "table: str\n"
        file.write_text(PRELUDE + given + code, encoding="utf-8")
        files.append(str(file))
    assert len(files) > 20
    # With the settings and the cache of `make lint`: what that has checked is not checked again.
    monkeypatch.chdir(REPOSITORY)
    found, _, code_of_exit = api.run(["--config-file", "pyproject.toml", *files])
    assert code_of_exit == 0, found
