"""What a user's program does on a cluster, as JSON says; a driver in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped] # ships no types
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import variantlake as vl
from tests.spark.layouts import rows
from variantlake.ingest.commit_load import LoadResult
from variantlake.progress import Progress


class Driver:
    """A session on the cluster, and the folder that it shares with the workers."""

    def __init__(self, work: dict[str, Any]) -> None:
        builder = SparkSession.builder
        for name, value in work["settings"].items():
            builder = builder.config(name, value)
        self.spark = builder.getOrCreate()
        self.lake = vl.spark.connect(self.spark)
        self.work = work
        self.folder = Path(work["folder"])
        self.table = str(self.folder / "table")
        self.sources = sorted(map(str, self.folder.glob("*.ndjson")))

    def everything(self) -> dict[str, Any]:
        """Load, query, by a client of Connect and on S3 too; lose workers in loads and rewrites."""
        return {
            "seen": self.seen_by_workers(),
            "ingested": said(lambda: self.lake.ingest(self.table, self.sources[:1])),
            "appended": said(lambda: self.lake.append(self.table, self.spark.sql(MORE))),
            "queries": {name: self.queried(query) for name, query in self.work["queries"].items()},
            "odd": said(self.rebuilt),
            "source": said(self.data_source),
            "connect": self.by_connect(),
            "stored": said(self.on_s3),
            "crashed": self.losing(self.end_python_workers, "crashed"),
            "lost": self.losing(lambda: self.end_a_node("two"), "lost"),
            "delete crashed": self.changing(self.deleted),
            "delete again": said(self.deleted),
            "optimize crashed": self.changing(self.optimized),
            "optimize lost": self.optimizing(),
        }

    def queried(self, query: str) -> Any:
        """The answer to a query."""
        return said(lambda: answer(self.lake.sql(query)))

    def missing(self) -> dict[str, Any]:
        """The same in a cluster without the package."""
        native = self.work["queries"]["paths"]
        return {
            "ingested": said(lambda: self.lake.ingest(f"{self.table}-none", self.sources[:1])),
            "appended": said(lambda: self.lake.append(self.table, self.spark.sql(MORE))),
            "queries": {"paths": self.queried(native)},
            "odd": said(self.rebuilt),
        }

    def seen_by_workers(self) -> list[list[Any]]:
        """Of each of two tasks: which package, which Python, which of our modules there are."""

        def look(_: Iterable[int]) -> Iterator[list[Any]]:
            import importlib.util

            import variantlake as theirs

            foreign = [
                name for name in ("numba", "pytest", "tests") if importlib.util.find_spec(name)
            ]
            yield [theirs.__file__, sys.executable, str(Path.cwd()), foreign]

        return list(self.spark.sparkContext.parallelize(range(2), 2).mapPartitions(look).collect())

    def rebuilt(self) -> Any:
        """Rows whose Variants Spark itself cannot read."""
        frame = self.lake.sql(f"SELECT * FROM delta.`{self.work['odd']}`")
        return answer(frame.selectExpr(*ODD))

    def data_source(self) -> Any:
        """The table as a data source, whose plan Spark makes in a Python on the driver."""
        vl.spark.register(self.spark)
        frame = self.spark.read.format("variantlake").load(self.table)
        return answer(frame.selectExpr("count(*) AS n"))

    def by_connect(self) -> Any:
        """What a client of the Spark Connect server in this driver loads and finds."""
        remote = f"sc://127.0.0.1:{self.work['settings'][PORT]}"
        texts = {name: {"sql": query} for name, query in self.work["queries"].items()}
        texts |= {"odd": {"read": self.work["odd"], "select": ODD}}
        append = {"query": MORE, "table": self.table, "options": {}}
        done = subprocess.run(
            [sys.executable, "-m", "tests.spark.connect_client"],
            input=json.dumps({"remote": remote, "appends": [append], "texts": texts}),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return json.loads(done.stdout)

    def on_s3(self) -> list[Any]:
        """Rows that tasks write to S3, and read there by Spark's reader and by ours."""
        table = f"{self.work['bucket']}/table"
        vl.Table.create(table, "event VARIANT", shredding={"event": "n INT, kind STRING"})
        appended = self.lake.append(table, self.spark.sql(MORE))
        vl.spark.register(self.spark)
        source = self.spark.read.format("variantlake").load(table)
        return [
            [appended.version, appended.rows_written],
            self.queried(f"SELECT sum(event:n::int) AS n FROM delta.`{table}`"),
            answer(source.selectExpr("sum(event:n::int) AS n")),
            sorted(name for name in os.environ if name.startswith("AWS_")),
        ]

    def losing(self, kill: Callable[[], bool], name: str) -> dict[str, Any]:
        """A load in which something is killed once it has written a file; then what there is."""
        killed: list[int] = []

        def watch(progress: Progress) -> None:
            if progress.files_written and kill():
                killed.append(progress.files_written)

        before, rows_before = self.state()
        done = said(
            lambda: self.lake.ingest(
                self.table, self.sources, load_id=name, max_rows_per_file=5_000, progress=watch
            )
        )
        after, rows = self.state()
        return {
            "killed": killed,
            "rows_before": rows_before,
            "done": done,
            "versions": [before, after],
            "rows": rows,
            "again": said(lambda: self.lake.ingest(self.table, self.sources, load_id=name)),
            "rows_again": self.state()[1],
        }

    def state(self) -> tuple[int, int]:
        """The newest version, and the rows of it that Spark counts.

        Where Python was killed, an executor's next tasks fail once for each process that it misses.
        """
        version = vl.Table.open(self.table).version
        frame = self.lake.sql(f"SELECT event FROM delta.`{self.table}`")
        for _ in range(3):
            with contextlib.suppress(PySparkException, Py4JError):
                return version, frame.count()
        return version, frame.count()

    def changing(self, change: Callable[[], Any]) -> dict[str, Any]:
        """What comes of a change while no Python worker lives for long."""
        before = self.state()
        ended = threading.Event()

        def end_all() -> None:
            while not ended.wait(0.05):
                self.end_python_workers()

        killer = threading.Thread(target=end_all)
        killer.start()
        try:
            done = said(change)
        finally:
            ended.set()
            killer.join()
        return {"states": [before, self.state()], "done": done}

    def optimizing(self) -> dict[str, Any]:
        """A rewrite in which a node dies once a group of files is written."""
        killed: list[int] = []

        def watch(progress: Progress) -> None:
            if progress.files_written and self.end_a_node("three"):
                killed.append(progress.files_written)

        before = self.state()
        done = said(lambda: self.optimized(watch))
        return {"killed": killed, "states": [before, self.state()], "done": done}

    def optimized(self, watch: Callable[[Progress], None] | None = None) -> tuple[int, ...]:
        """The versions that a rewrite of many groups makes."""
        done = self.lake.optimize(self.table, target_file_size=20_000, progress=watch)
        return done.versions

    def deleted(self) -> int:
        """The rows that a DELETE takes which Spark alone can decide."""
        where = "soundex(event:kind::string) = soundex('more') AND event:n::int > 7"
        return self.lake.delete(self.table, where).rows_deleted

    def end_python_workers(self) -> bool:
        """Kill the Python processes of all executors, each time that they are there."""
        found = False
        for node in self.work["nodes"].values():
            for process in _of_group(node):
                found |= _kill_pythons_below(process)
        return found

    def end_a_node(self, name: str) -> bool:
        """Kill a worker with its executor; once."""
        node = self.work["nodes"].pop(name, None)
        if node is not None:
            os.killpg(node, signal.SIGKILL)
        return node is not None


PORT = "spark.connect.grpc.binding.port"
ODD = ["event:id::int AS i", "event:kind::string AS kind", "k"]
MORE = 'SELECT parse_json(concat(\'{"n": \', id, \', "kind": "more"}\')) AS event FROM range(10)'


def _of_group(group: int) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if os.getpgid(process.pid) == group:
                found.append(process)
        except ProcessLookupError:
            continue
    return found


def _kill_pythons_below(process: psutil.Process) -> bool:
    """Kill the Python processes that a process started; any of them may end by itself meanwhile."""
    found = False
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in process.children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if "python" in child.name():
                    child.kill()
                    found = True
    return found


def answer(frame: Any) -> list[Any]:
    """The rows of a DataFrame, sorted, as JSON can hold them."""
    return sorted([str(row), count] for row, count in dict(rows(frame)).items())


def said(do: Callable[[], Any]) -> Any:
    """What came of it: version and rows of a load, an answer, or the error."""
    try:
        done = do()
    except vl.VariantLakeError as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 - Spark's own, which the test looks at
        return f"{type(error).__module__}.{type(error).__name__}: {error}"
    finally:
        sys.stderr.write(f"{do}\n")
    return [done.version, done.rows_written] if isinstance(done, LoadResult) else done


def main() -> None:
    """Work from stdin, what came of it to stdout."""
    work = json.load(sys.stdin)
    driver = Driver(work)
    found = getattr(driver, work["do"])()
    sys.stdout.write(json.dumps(found))
    driver.spark.stop()


if __name__ == "__main__":
    main()
