"""Loads, writes and reads, for a Python that has the run-time dependencies alone.

`python runtime_smoke.py FOLDER [MODULES]`: MODULES, a JSON list, are taken for missing.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class Missing(importlib.abc.MetaPathFinder):
    """Hides modules that are installed."""

    def __init__(self, modules: Sequence[str]) -> None:
        self.modules = frozenset(modules)

    def find_spec(self, fullname: str, _path: Any = None, _target: Any = None) -> None:
        if fullname.partition(".")[0] in self.modules:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def check(folder: Path) -> None:
    import variantlake as vl

    assert vl.parse_json('{"a": 1.5}').to_json() == '{"a":1.5}'
    table, source, file = folder / "table", folder / "lines.ndjson", folder / "file.parquet"
    source.write_text("".join(f'{{"a": {i}, "b": {{"c": "x{i}"}}}}\n' for i in range(100)))
    vl.Table.create(str(table), "event VARIANT").append(vl.ndjson(str(source)))
    found = vl.Table.open(str(table)).scan("event:b.c::string AS c", "event:a::int > 97")
    assert set(found.to_arrow().column("c").to_pylist()) == {"x98", "x99"}
    variants = vl.parquet.variant_array([vl.parse_json("[1]"), None])
    vl.parquet.write_table(vl.parquet.read_table(next(table.glob("*.parquet"))), str(file))
    assert vl.to_json(variants).to_pylist() == ["[1]", None]
    for command in (["check", str(table)], ["inspect", str(file)]):
        assert run(command)[0] == 0, command
    check_without_pyspark(str(table), str(source), str(file))


def check_without_pyspark(table: str, source: str, file: str) -> None:
    """What needs PySpark says what to install, in Python and on the command line."""
    import variantlake as vl
    from variantlake.errors import MissingDependency

    wanted = "pip install 'variantlake[spark]'"
    for _ in range(2):  # a module that failed to load is tried again
        said = ""
        try:
            said = f"{vl.spark} is there"
        except MissingDependency as error:
            said = str(error)
        assert "pyspark" in said, said
        assert wanted in said, said
    for command in (
        ["query", table, "SELECT exp(event:a::double) AS x FROM t"],
        ["query", table, "SELECT event FROM t", "--engine", "spark"],
        ["ingest", source, table, "--engine", "spark"],
        ["convert", file, f"{table}-2", "--engine", "spark"],
    ):
        code, said = run(command)
        assert code == 1, (command, said)
        assert wanted in said, (command, said)


def run(command: Sequence[str]) -> tuple[int, str]:
    """The exit code of a command, and what it says on stderr."""
    from variantlake.cli.main import main

    sys.argv = ["variantlake", *command]
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            main()
    except SystemExit as end:
        return int(end.code or 0), said.getvalue()
    return 0, said.getvalue()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.meta_path.insert(0, Missing(json.loads(sys.argv[2])))
    check(Path(sys.argv[1]))
