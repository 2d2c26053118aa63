"""The package runs with its run-time dependencies alone."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.corpora import REPOSITORY


def plain(name: str) -> str:
    """A distribution's name as names are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(name: str) -> set[str]:
    """A distribution and what it needs, without extras."""
    found: set[str] = set()
    todo = [name]
    while todo:
        name = plain(todo.pop())
        if name in found:
            continue
        try:
            requires = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:  # for another platform
            continue
        found.add(name)
        todo += [re.split(r"[^\w.-]", each)[0] for each in requires if "extra ==" not in each]
    return found


def test_it_loads_writes_and_reads_without_the_development_dependencies(tmp_path: Path) -> None:
    """All else that is installed is hidden. `make test-runtime` does it in a real environment."""
    kept = closure("variantlake")
    hidden = {
        module
        for module, owners in importlib.metadata.packages_distributions().items()
        if kept.isdisjoint(map(plain, owners))
    }
    assert {"pytest", "numba", "pyspark", "pandas", "duckdb", "hypothesis"} <= hidden
    assert {"pyarrow", "numpy", "orjson", "sqlglot", "typer"}.isdisjoint(hidden)
    script = str(REPOSITORY / "tests" / "runtime_smoke.py")
    done = subprocess.run(
        [sys.executable, "-P", script, str(tmp_path), json.dumps(sorted(hidden))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


LOAD_KERNELS = """
import importlib, pathlib, sys
from variantlake import kernels
root = pathlib.Path(kernels.__file__).parent
for path in root.rglob("[!_]*.py"):
    if "compile" not in path.parts:
        parts = path.relative_to(root).with_suffix("").parts
        importlib.import_module(".".join((kernels.__name__, *parts)))
print(" ".join({name.partition(".")[0] for name in sys.modules}))
"""


def test_the_build_requires_what_the_modules_with_kernels_import() -> None:
    """They are imported to be compiled, if nothing but the build's requirements is installed."""
    build = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["build-system"]["requires"]
    there = set().union(*(closure(re.split(r"[^\w.-]", each)[0]) for each in build))
    done = subprocess.run(
        [sys.executable, "-P", "-c", LOAD_KERNELS], capture_output=True, text=True, check=True
    )
    owners = importlib.metadata.packages_distributions()
    loaded = {plain(owner) for name in done.stdout.split() for owner in owners.get(name, ())}
    assert loaded - there - {"variantlake", "cloudpickle"} == set()  # pyarrow takes that along
