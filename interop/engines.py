"""The engines, each with a pinned version and its own environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

REPOSITORY = Path(__file__).resolve().parent.parent
PLACE = REPOSITORY / ".work" / "interop"
"""The folder of the environments, which later runs use again."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine: pip's requirements, the worker's module and arguments, and what it is asked.

    `tables` and `files` say what it reads; `writes` that it changes tables in turn with us, and
    `variants` that these may have a VARIANT column.
    """

    name: str
    product: str
    requirements: tuple[str, ...]
    worker: tuple[str, ...]
    tables: bool = True
    files: bool = True
    writes: bool = False
    variants: bool = False

    @property
    def title(self) -> str:
        """The product with its pinned version."""
        return f"{self.product} {self.requirements[0].partition('==')[2]}"


def _spark(version: str, package: str = "") -> Engine:
    return Engine(
        f"spark-{version.rpartition('.')[0]}",
        f"Delta Spark {package.rpartition(':')[2]}, Spark" if package else "Spark alone,",
        (f"pyspark=={version}",),
        ("interop.workers.spark", *([package] if package else [])),
        tables=bool(package),
        files=not package,
        writes=bool(package),
        variants=bool(package),
    )


def _other(
    product: str, *requirements: str, tables: bool = True, files: bool = True, writes: bool = False
) -> Engine:
    name = requirements[0].partition("==")[0]
    worker = ("interop.workers.others", name)
    variants = name == "pysail"
    return Engine(name, product, requirements, worker, tables, files, writes, variants)


_DELTALAKE, _PYARROW = "deltalake==1.6.6", "pyarrow==26.0.1"
ENGINES = (
    _spark("4.2.0", "io.delta:delta-spark_4.2_2.13:4.4.0"),
    _spark("4.1.4", "io.delta:delta-spark_4.1_2.13:4.4.0"),
    _spark("4.0.4", "io.delta:delta-spark_2.13:4.0.1"),
    _spark("4.3.0"),
    _other("Sail", "pysail==0.7.2", "pyspark[connect]==4.2.0", writes=True),
    _other("delta-rs", _DELTALAKE, _PYARROW, files=False, writes=True),
    _other("DataFusion", "datafusion==55.0.0", _DELTALAKE, _PYARROW),
    _other("Polars", "polars==2.1.0", _DELTALAKE, writes=True),
    _other("Daft", "daft==0.7.26", _DELTALAKE, "pyiceberg==0.12.0", writes=True),
    _other("DuckDB", "duckdb==2.0.0"),
    _other("chDB", "chdb==4.4.0", _PYARROW),
    _other("PyIceberg", "pyiceberg==0.12.0", _PYARROW, tables=False),
    _other("PyArrow", _PYARROW, tables=False),
)


class Refused(Exception):
    """The engine answered with an error."""


class Died(Exception):
    """The engine's process ended, or did not answer in time."""


def environment(engine: Engine) -> Path:
    """The Python of the engine's environment, which the first call creates.

    Raises Died with pip's last line if a package cannot be had.
    """
    home = PLACE / engine.name
    python = home / "bin" / "python"
    stamp = home / "requirements.txt"
    wanted = "\n".join(engine.requirements)
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run(
            [*pip, *engine.requirements], check=False, capture_output=True, text=True
        )
        if done.returncode:
            raise Died((done.stderr.strip().splitlines() or ["pip failed"])[-1])
        stamp.write_text(wanted, encoding="utf-8")
    return python


class Worker:
    """A running worker; after it died, the next request starts another."""

    def __init__(self, python: Path | str, command: Sequence[str], limit: int = 180) -> None:
        self.command = [str(python), "-m", *command]
        self.limit = limit
        self.process: subprocess.Popen[str] | None = None
        self.log: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed below

    def ask(self, action: str, **arguments: Any) -> Any:
        """The worker's answer. Raises Refused and Died."""
        if self.process is None or self.process.poll() is not None:
            if self.process is not None:
                self.process.communicate()
            self._start()
        assert self.process is not None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps({"action": action, **arguments}) + "\n")
            self.process.stdin.flush()
            line = self._line(self.process)
        except BrokenPipeError:
            line = ""
        if not line:
            raise Died(self._last_words())
        reply = json.loads(line)
        if "error" in reply:
            raise Refused(reply["error"])
        return reply["answer"]

    def _line(self, process: subprocess.Popen[str]) -> str:
        import threading

        assert process.stdout is not None
        timer = threading.Timer(self.limit, process.kill)
        timer.start()
        try:
            return process.stdout.readline()
        finally:
            timer.cancel()

    def _start(self) -> None:
        variables = os.environ | {"TZ": "UTC", "PYTHONPATH": str(REPOSITORY)}
        variables.pop("PYSPARK_PYTHON", None)
        self.process = subprocess.Popen(
            self.command,
            cwd=REPOSITORY,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )

    def _last_words(self) -> str:
        assert self.process is not None
        code = self.process.wait(30)
        self.log.seek(0)
        lines = [line.strip() for line in self.log if line.strip()]
        return f"the process ended with {code}: {(lines or ['no word'])[-1][:300]}"

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            try:
                self.process.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.communicate()
        self.log.close()
