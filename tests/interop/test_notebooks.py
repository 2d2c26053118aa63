"""The notebooks of engines: their cells run, show what they end with, and give the right answer."""

from __future__ import annotations

import ast
import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.corpora import REPOSITORY

NOTEBOOKS = ["duckdb", "polars", "datafusion", "pandas"]


def run(notebook: Path) -> tuple[dict[str, Any], list[str]]:
    """Run the cells one after another; their names, and what the last lines of cells show."""
    document = json.loads(notebook.read_text(encoding="utf-8"))
    cells = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells)
    names: dict[str, Any] = {"__name__": notebook.stem}
    shown = []
    for cell in cells:
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, cell["id"], "exec"), names)  # noqa: S102 - running the notebook is the point
        if isinstance(last, ast.Expr):
            code = compile(ast.Expression(last.value), cell["id"], "eval")
            value = eval(code, names)  # noqa: S307 - as above
            html = getattr(value, "_repr_html_", None)
            shown.append(str(html() if html is not None else repr(value)))
    return names, shown


def expected() -> list[tuple[str, int, float]]:
    """The strong earthquakes of each network, by plain Python."""
    found: dict[str, list[float]] = {}
    with gzip.open(REPOSITORY / "examples" / "earthquakes.ndjson.gz", "rt") as file:
        for line in file:
            properties = json.loads(line)["properties"]
            if (mag := properties["mag"]) is not None and mag >= 4:
                found.setdefault(properties["net"], []).append(float(mag))
    return [(net, len(mags), max(mags)) for net, mags in sorted(found.items())]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_twice_and_gives_the_answer(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(name)
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path / "examples")
    for _ in range(2):
        names, shown = run(Path(f"{name}.ipynb"))
        assert names["answer"] == expected()
        assert all(shown)


def test_every_notebook_of_an_engine_is_tested() -> None:
    there = {file.stem for file in (REPOSITORY / "examples").glob("*.ipynb")}
    assert there == {*NOTEBOOKS, "spark_jobs"}
