"""The examples for other programs, each run with the wheel in an environment of its own.

`python -m tests.examples [dbt] [dbt_spark] [airflow]` installs the built wheel and the example's
requirements under `.work/examples`, and runs what the example's README says. It needs a package
index.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path

from tests import wheel
from tests.corpora import REPOSITORY
from tests.interop.conftest import OF_EXAMPLES

PLACE = REPOSITORY / ".work" / "examples"
EXAMPLES = REPOSITORY / "examples"

_LOOK_AT_DUCKDB = """import duckdb
assert duckdb.connect("strong.duckdb").sql("FROM by_network").fetchall()"""
_COUNT = """import variantlake as vl
assert vl.Table.open("table").scan("event:id::string AS id").to_arrow().num_rows == 1707"""


class Example:
    """A copy of an example, and the programs of its environment."""

    def __init__(self, name: str, package: Path) -> None:
        self.bin = PLACE / name / "bin"
        self.folder = Path(tempfile.mkdtemp(prefix=f"variantlake-{name}-"))
        shutil.copytree(EXAMPLES / name, self.folder, dirs_exist_ok=True)
        self.environment = {"PATH": f"{self.bin}:{os.defpath}", "HOME": str(self.folder)}
        if not self.bin.exists():
            venv.create(self.bin.parent, with_pip=True)
        pip = ("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        self.run(*pip, "-r", "requirements.txt", str(package), outside=True)
        self.run(*pip, "--force-reinstall", "--no-deps", str(package), outside=True)

    def run(self, program: str, *arguments: str, outside: bool = False) -> None:
        """Run a program; what it prints is shown if it fails. `outside`: with this environment."""
        done = subprocess.run(
            [str(self.bin / program), *arguments],
            env={**os.environ, **self.environment} if outside else self.environment,
            cwd=self.folder,
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            sys.exit(f"{program} {' '.join(arguments)}:\n{done.stdout}{done.stderr}")


def dbt(example: Example) -> None:
    """Load the earthquakes, build the models, look at the result.

    Then the tests of the plugin, and of what fits beside it: Ibis, dlt and Dagster.
    """
    source = str(EXAMPLES / "earthquakes.ndjson.gz")
    example.run("variantlake", "ingest", source, "quakes")
    example.run("dbt", "build")
    example.run("python", "-c", _LOOK_AT_DUCKDB)
    pip = ("python", "-m", "pip", "install", "--quiet", "pytest", "pandas", "dlt", "dagster")
    example.run(*pip, "ibis-framework[duckdb]", outside=True)
    tests = [str(REPOSITORY / "tests" / "interop" / name) for name in OF_EXAMPLES]
    example.run("python", "-m", "pytest", "--noconftest", "-c", os.devnull, *tests, outside=True)


def dbt_spark(example: Example) -> None:
    """Load the earthquakes, build the model in a Spark session with the rule."""
    if "JAVA_HOME" in os.environ:
        example.environment["JAVA_HOME"] = os.environ["JAVA_HOME"]
    example.run("variantlake", "ingest", str(EXAMPLES / "earthquakes.ndjson.gz"), "quakes")
    example.run("python", "run.py", "quakes")


def airflow(example: Example) -> None:
    """Run the DAG twice over one file: it is loaded once."""
    (example.folder / "incoming").mkdir()
    shutil.copy(EXAMPLES / "earthquakes.ndjson.gz", example.folder / "incoming/a.ndjson.gz")
    example.environment |= {
        "AIRFLOW_HOME": str(example.folder / "home"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(example.folder),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "EVENTS_SOURCE": str(example.folder / "incoming"),
        "EVENTS_TABLE": str(example.folder / "table"),
    }
    example.run("airflow", "db", "migrate")
    for _ in range(2):
        example.run("python", "events_dag.py")
    example.run("python", "-c", _COUNT)


RUNS: dict[str, Callable[[Example], None]] = {
    "dbt": dbt,
    "dbt_spark": dbt_spark,
    "airflow": airflow,
}


def main() -> None:
    """See above."""
    PLACE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="variantlake-dist-") as dist:
        wheel.build(Path(dist))
        (package,) = Path(dist).glob("*.whl")
        for name in sys.argv[1:] or RUNS:
            sys.stdout.write(f"{name}: installing\n")
            example = Example(name, package)
            RUNS[name](example)
            shutil.rmtree(example.folder)
            sys.stdout.write(f"{name}: runs\n")


if __name__ == "__main__":
    main()
