"""Keeps the classes that Spark and Delta Spark load, for all JVMs that tests start later."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from tests.jvm import KEPT, PLAIN


def begin() -> None:
    """Make the archive beside the first tests, in a process of its own, unless there is one."""
    if KEPT is None or KEPT.exists():
        return
    environment = os.environ | {"SPARK_SUBMIT_OPTS": PLAIN}  # no archive, for it makes one
    maker = subprocess.Popen(
        [sys.executable, "-m", __name__],
        cwd=Path(__file__).parents[1],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    threading.Thread(target=maker.wait, daemon=True).start()


def make(kept: Path) -> None:
    """Load what most sessions load, and let the JVM keep it; older archives are removed."""
    from tests.sessions import delta_session

    with tempfile.TemporaryDirectory(dir=kept.parent) as name:
        folder = Path(name)
        session = delta_session(folder, f"{PLAIN} -XX:ArchiveClassesAtExit={folder / kept.name}")
        table = f"delta.`{folder / 'table'}`"
        numbers = session.range(100).selectExpr("id", "string(id) AS s")
        numbers.write.format("delta").save(str(folder / "table"))
        session.sql(
            f"MERGE INTO {table} t USING (SELECT 5L AS id, 'x' AS s) u ON t.id = u.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        session.sql(f"SELECT count(*), max(s) FROM {table} WHERE id > 5").collect()
        gateway = session.sparkContext._gateway
        assert gateway is not None
        jvm = gateway.proc  # it writes the file when it ends
        session.stop()
        jvm.stdin.close()
        jvm.wait(120)
        for old in kept.parent.glob("spark-*.jsa"):
            old.unlink()
        (folder / kept.name).replace(kept)


if __name__ == "__main__" and KEPT is not None:
    make(KEPT)
