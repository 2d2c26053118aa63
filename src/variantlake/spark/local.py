"""Start a quiet Spark session in this process, for the command line."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import IO

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from variantlake.errors import MissingDependency


@contextlib.contextmanager
def local_session(
    cores: str = "*", settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Yield a local Spark session that prints nothing, and stop it at the end.

    The JVM's output goes to a temporary file; its last line is shown only if Spark does not start.

    Args:
        cores: How many cores Spark uses; `*` for all.
        settings: More settings of Spark, which override our defaults.

    Raises:
        MissingDependency: Spark does not start (most often: no Java 17).
    """
    # PySpark logs each error of a query, with its stack, before it raises the error.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    # Workers use this interpreter: `python3` from PATH would lack the package (TRAPS, Spark).
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with tempfile.TemporaryFile() as log:
        try:
            with _stderr_to(log):
                builder = (
                    SparkSession.builder.master(f"local[{cores}]")
                    .appName("variantlake")
                    .config("spark.ui.enabled", "false")
                    .config("spark.ui.showConsoleProgress", "false")
                    .config("spark.log.level", "ERROR")
                    .config("spark.sql.shuffle.partitions", str(os.cpu_count() or 2))
                )
                for name, value in (settings or {}).items():
                    builder = builder.config(name, value)
                session = builder.getOrCreate()
        except PySparkRuntimeError as error:
            log.seek(0)
            reason = log.read().decode(errors="replace").strip().splitlines()
            raise MissingDependency(
                f"Spark did not start: {reason[-1] if reason else error}",
                hint="Spark needs Java 17 or newer: set JAVA_HOME or put java on the PATH",
            ) from error
        try:
            yield session
        finally:
            session.stop()


@contextlib.contextmanager
def _stderr_to(log: IO[bytes]) -> Iterator[None]:
    """Redirect this process's standard error, and that of processes it starts, to `log`."""
    kept = os.dup(2)
    os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
