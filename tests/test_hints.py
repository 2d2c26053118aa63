"""Hints are in the words of the surface that the user is at."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_imports import MODULES, PACKAGE, part_of

# Calls, keywords with values, our own names: what only somebody who writes Python can use.
PYTHON = re.compile(r"\w\(|\b\w+=|\bvl\.|\blake\.|\bTable\.|\b[a-z]+_[a-z_]+s?\b(?!_)")
SHELL = re.compile(r"(?<!\w)--\w|`variantlake ")
# Names of formats and of SQL, which every surface shares.
SHARED = re.compile(
    r"typed_value|try_cast|(?:try_)?variant_get|ALTER TABLE.*|REORG TABLE.*|PYSPARK_[A-Z_]+"
    r"|JAVA_HOME|SKIP_SIGNATURE|_delta_log|VARIANTLAKE_\w+|AWS_\w+|spark\.[\w.]+=?|\{[^}]*\}"
)
# What no command calls.
PYTHON_ALONE = {
    # Staged loads have no command.
    "ingest/stage.py", "writing/staged_files.py",
    "delta/protocol/properties.py", "delta/transaction/alter.py", "encoding/arrow_values.py",
    "encoding/json.py", "ingest/append.py", "parquet/read/path_values.py",
    "parquet/read/reader.py", "parquet/read/single_paths.py", "parquet/write/table_writer.py",
    "spark/lake/change_feed.py", "spark/lake/lake.py", "spark/lake/statements.py",
    "spark/load/append_target.py", "spark/query/table_locations.py", "spark/scan/data_source.py",
    "spark/scan/source_options.py", "table/table.py", "table/alterations.py",
    "table/loads.py",
}  # fmt: skip


def _hints(module: Path) -> Iterator[tuple[str, str, str | None]]:
    """Each place that gives a hint, with it and with that of the command line."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            given = {each.arg: each.value for each in node.keywords}
            if "hint" in given:
                place = f"{module.relative_to(PACKAGE)}:{node.lineno}"
                cli = given.get("cli_hint")
                yield place, _text(given["hint"]), None if cli is None else _text(cli)


def _text(node: ast.expr) -> str:
    """What of a text stands in the source; names of values are left out."""
    return "".join(
        part.value
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    )


@pytest.mark.parametrize(
    "module",
    [each for each in MODULES if "hint=" in each.read_text(encoding="utf-8")],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_hints_are_in_the_words_of_their_surface(module: Path) -> None:
    name = module.relative_to(PACKAGE).as_posix()
    for place, hint, cli_hint in _hints(module):
        assert not SHELL.search(hint), place
        if part_of(module) == "cli":
            assert not PYTHON.search(SHARED.sub("", hint).replace("--", "")), place
        elif cli_hint is None and name not in PYTHON_ALONE:
            assert not PYTHON.search(SHARED.sub("", hint)), f"{place}: give a cli_hint too"
        elif cli_hint is not None:
            assert not PYTHON.search(SHARED.sub("", cli_hint)), place
