"""Imports point one way, heavy parts stay in their folders, `import variantlake` stays light."""

from __future__ import annotations

import ast
import functools
import gc
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pyarrow as pa
import pytest

from variantlake.loading import load
from variantlake.table import Table

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "variantlake"

# Top to bottom: a module may import from its own part and from those before it.
LAYERS = [
    "loading",
    "shown",
    "errors",
    "familiar_names",
    "extras",
    "units",
    "logs",
    "batches",
    "progress",
    "quoting",
    "paths",
    "types",
    "arrays",
    "storage",
    "telemetry",
    "parallel",
    "encoding",
    "shredding",
    "shredding.inference",
    "shredding.legacy",
    "kernels",
    "kernels.native",
    "kernels.tape",
    "kernels.json",
    "kernels.variant",
    "kernels.shredded",
    "kernels.digest",
    "kernels.log",
    "kernels.columns",
    "kernels.compile",
    "parquet.metadata",
    "parquet.variant",
    "parquet.stats",
    "parquet.read",
    "parquet.write",
    "parquet",
    "export",
    "delta",
    "delta.actions",
    "delta.schema",
    "delta.protocol",
    "delta.stats",
    "delta.log.files",
    "delta.log",
    "delta.checkpoint",
    "delta.transaction",
    "telemetry.lineage",
    "planning.files",
    "expressions",
    "planning.exact",
    "planning.stats",
    "planning",
    "sql",
    "scan.files",
    "scan",
    "engine",
    "contracts",
    "writing.options",
    "writing",
    "jobs",
    "ingest.sources",
    "ingest.records",
    "ingest.encode",
    "ingest.learning",
    "ingest.frames",
    "ingest.row_values",
    "ingest.inputs",
    "ingest.overwrite",
    "maintenance",
    "dml",
    "ingest",
    "ingest.conversion",
    "autoloading",
    "ddl",
    "feed",
    "erase",
    "report",
    "table",
    "spark.session",
    "spark.scan",
    "spark.query.plans",
    "spark.rule",
    "spark.query",
    "spark.load",
    "spark.dml",
    "spark.streaming",
    "spark.lake",
    "spark",
    "functions",
    "interop",
    "mirroring",
    "duckdb",
    "datafusion",
    "dbt",
    "dlt",
    "dagster",
    "cli.terminal",
    "cli.loads",
    "cli.tables",
    "cli.maintenance",
    "cli.changes",
    "cli",
]

# A heavy library, and the parts that may import it.
HEAVY = {
    "numba": {"kernels.compile"},
    "llvmlite": {"kernels.compile"},
    "pyspark": {"spark"},
    "py4j": {"spark"},
    "duckdb": {"duckdb", "engine", "interop"},
    "datafusion": {"datafusion", "interop"},
    "polars": {"interop"},
    "typer": {"cli"},
    "rich": {"cli"},
}

MODULES = sorted(PACKAGE.rglob("*.py"))


def floor_of(dotted: str) -> int:
    """The place in LAYERS of the deepest folder or module that has one."""
    while dotted not in LAYERS:
        parent = dotted.rpartition(".")[0]
        assert parent, f"{dotted} has no place in LAYERS"
        dotted = parent
    return LAYERS.index(dotted)


def part_of(module: Path) -> str:
    """The layer of a module; the package's own `__init__` stands above all of them."""
    first = module.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "cli" if first in {"__init__", "__main__"} else first


def rooms_of(module: Path) -> set[str]:
    """The layer of a module, and the folder in it."""
    folder = ".".join(module.relative_to(PACKAGE).parent.parts)
    return {part_of(module), folder}


class AtRunTime(ast.NodeTransformer):
    """Leaves out what only type checkers import."""

    def visit_If(self, node: ast.If) -> ast.AST:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = [ast.Pass()]
        return self.generic_visit(node)


@functools.cache
def imported(module: Path, *, at_run_time: bool = False) -> set[str]:
    """Absolute dotted names that a module imports anywhere, inside functions as well."""
    names: set[str] = set()
    tree: ast.AST = ast.parse(module.read_text(encoding="utf-8"))
    if at_run_time:
        tree = AtRunTime().visit(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            names.add(node.module or "")
            if node.module == "variantlake":
                names.update(f"variantlake.{alias.name}" for alias in node.names)
    return names


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(module: Path) -> None:
    dotted = ".".join(module.relative_to(PACKAGE).with_suffix("").parts)
    own = floor_of(dotted if part_of(module) == dotted.split(".")[0] else part_of(module))
    for name in imported(module):
        parts = name.split(".")
        if parts[0] == "variantlake" and len(parts) > 1 and parts[1] in LAYERS:
            above = floor_of(".".join(parts[1:])) > own
            assert not above, f"{module.name} imports {name}, which is above it"


def test_no_modules_import_each_other_in_a_circle() -> None:
    names = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in MODULES}
    graph = {
        name: imported(PACKAGE.parent / f"{name.replace('.', '/')}.py") & names for name in names
    }
    assert len(list(TopologicalSorter(graph).static_order())) == len(names)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_heavy_libraries_stay_in_their_folders(module: Path) -> None:
    for name in imported(module, at_run_time=True):
        allowed = HEAVY.get(name.split(".")[0])
        assert allowed is None or allowed & rooms_of(module), f"{module.name} imports {name}"


def test_every_part_has_a_layer() -> None:
    parts = {part_of(module) for module in MODULES}
    assert parts <= set(LAYERS)


def test_the_package_and_its_commands_start_light() -> None:
    """Arrow loads pandas with the first array that it makes of Python values: 0.4 s."""
    heavy = "[m for m in ('pyspark', 'pandas') if m in sys.modules]"
    code = "import sys; from variantlake.cli.commands import COMMANDS, load_command; "
    code += f"list(map(load_command, COMMANDS)); print({heavy})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


_SAID = "import sys, atexit; atexit.register(lambda: print([m for m in {} if m in sys.modules])); "
_QUERY = "SELECT n FROM t WHERE n > 1 ORDER BY n"
_OF_QUERIES = "sqlglot,variantlake.engine.run,variantlake.planning.explain"
_OF_WRITES = "variantlake.writing.files,variantlake.maintenance.optimize,variantlake.ingest.load"


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import variantlake", "numpy,pyarrow"),
        ("import variantlake; variantlake.Table", f"pandas,{_OF_QUERIES},{_OF_WRITES}"),
        (
            "import variantlake; variantlake.Table.open(sys.argv[1])",
            f"pandas,{_OF_QUERIES},{_OF_WRITES}",
        ),
        (
            f"import variantlake; variantlake.Table.open(sys.argv[1]).sql({_QUERY!r}).to_arrow()",
            f"pandas,duckdb,pyarrow.dataset,{_OF_WRITES}",
        ),
        *(
            (
                f"sys.argv.insert(1, {command!r}); from variantlake.cli.main import main; main()",
                f"pandas,{_OF_QUERIES},{_OF_WRITES}",
            )
            for command in ("history", "info")
        ),
    ],
)
def test_light_work_does_not_import_what_other_work_needs(
    tmp_path: Path, code: str, heavy: str
) -> None:
    Table.create(tmp_path / "t", "n BIGINT").append(pa.table({"n": [1, 2, 3]}))
    said = _SAID.format(heavy.split(","))
    command = [sys.executable, "-c", said + code, str(tmp_path / "t")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


def test_pandas_can_be_used_where_it_was_left_out() -> None:
    code = "import sys, pyarrow as pa; "
    code += "from variantlake.cli.terminal.without_pandas import leave_pandas_out; "
    code += "leave_pandas_out(); pa.array([1]); assert 'pandas' not in sys.modules; "
    code += "import pandas; print(pa.table({'n': [1]}).to_pandas().n.sum())"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "1"


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_what_runs_does_not_import_the_compiler(module: Path) -> None:
    compiler = "variantlake.kernels.compile"
    if "compile" not in module.relative_to(PACKAGE).parts:
        assert not {name for name in imported(module) if name.startswith(compiler)}


def test_a_query_of_local_files_loads_no_clients_and_no_writer(tmp_path: Path) -> None:
    """They take some 30 ms of the first query of a process."""
    Table.create(tmp_path / "t", "k INT").append(pa.table({"k": pa.array([1], pa.int32())}))
    code = (
        "import sys, variantlake as vl\n"
        f"vl.Table.open({str(tmp_path / 't')!r}).sql('SELECT count(*) FROM t').to_arrow()\n"
        "heavy = ('obstore', 'pyarrow.parquet', 'pyarrow.fs', 'subprocess', 'configparser')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_garbage_is_looked_for_again_once_modules_are_loaded() -> None:
    gc.collect()
    assert load("json", "decimal").__name__ == "decimal"
    assert gc.isenabled()
    gc.disable()
    try:
        load("decimal")
        assert not gc.isenabled()
        with pytest.raises(ModuleNotFoundError):
            load("nothing_of_this_name")
    finally:
        gc.enable()
