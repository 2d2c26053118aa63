"""Run one Python function per task on Spark's executors, classic or Connect, and watch it.

Spark only starts the tasks: each gets a number, does its work itself, and returns a few small
payloads. No data passes through the JVM. Classic Spark starts such tasks as an RDD: planning,
compiling and running a DataFrame of numbers takes 50 to 100 ms more.
"""

from __future__ import annotations

import contextlib
import gc
import re
import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import requires
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.types import StructType

from variantlake.errors import MissingDependency
from variantlake.spark.session.jvm import clone_of, frame_of, is_connect, plan_of
from variantlake.spark.session.stores import reaching_stores

if TYPE_CHECKING:
    from variantlake.jobs.tasks import Runner, Tasks  # loads the kernels
    from variantlake.planning.kept_files import KeepFiles, Run

Task = Callable[[int], Iterable[bytes]]
"""A function that runs on an executor: a task's number in, payloads out. Spark pickles it."""

_Run = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_BATCHES = {
    # Limits batches by bytes, not by rows: rows of 30 bytes come by the hundred thousand, rows of
    # 10 KB a few hundred at a time, so that Spark reads the next ones while a task writes these.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "4m",
}
_PYTHON_EXEC = threading.Lock()
"""Held while a context's `pythonExec`, which threads share, is not the user's."""

_POLL_SECONDS = 0.2
_CANCEL_SECONDS = 10.0


def run_tasks(
    spark: SparkSession,
    task: Task,
    count: int,
    *,
    description: str,
    watch: Callable[[int], None] | None = None,
) -> list[bytes]:
    """Run `task(0)` … `task(count - 1)`, each as one Spark task, and return all payloads.

    Args:
        spark: The session, classic or Connect.
        task: Runs on the executors, where `variantlake` must be importable.
        count: How many tasks.
        description: The name of the job in Spark's web UI.
        watch: Called in this thread, a few times a second, with the number of finished tasks.

    Raises:
        MissingDependency: The executors' Python has no `variantlake`.
        KeyboardInterrupt: Ctrl-C; the job is cancelled, but Spark may let Python workers go on, so
            tasks need another way to learn of it.
    """
    if not is_connect(spark):
        job = _ClassicJob(spark)
        return _watched(job, lambda: job.run(task, count, description), watch)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
        for batch in batches:
            for number in np.asarray(batch.column(0)):
                yield from task(int(number))

    return _run_over(spark, spark.range(0, count, 1, count), run, description, watch)


def task_runner(spark: SparkSession, doing: str) -> Runner:
    """Return a runner of a load's or rewrite's tasks on executors; `doing` describes them."""

    def run(task: Tasks, watch: Callable[[int], None]) -> Iterable[bytes]:
        description = f"variantlake: {doing}"
        return run_tasks(spark, task, len(task.groups), description=description, watch=watch)

    return run


def planning_job(spark: SparkSession) -> Run:
    """Return a runner for the tasks that find files of a very large table, on Spark's executors."""

    def run(task: KeepFiles) -> Iterable[bytes]:
        description = f"variantlake: find files of {task.bare.store.uri}"
        return run_tasks(spark, task, len(task.shares), description=description)

    return run


def run_over(
    spark: SparkSession,
    frame: DataFrame,
    task: Callable[[Iterator[pa.RecordBatch]], Iterable[bytes]],
    *,
    description: str,
) -> list[bytes]:
    """Run `task` over the Arrow batches of each partition of a DataFrame; return all payloads.

    Arguments and errors are those of `run_tasks`; a VARIANT column is struct<value, metadata>.
    """
    if not is_connect(spark):
        frame = _in_large_batches(frame)
    names = frame.columns

    def run(batches: Iterator[pa.RecordBatch]) -> Iterable[bytes]:
        return task(batch.rename_columns(names) for batch in batches)

    # PySpark looks columns up by name, and would take one with a dot for a field of a struct.
    frame = frame.toDF(*(f"c{place}" for place in range(len(names))))
    return _run_over(spark, frame, run, description, None)


def _in_large_batches(frame: DataFrame) -> DataFrame:
    """Return the frame in a clone of its session, whose own settings stay as they are."""
    session = clone_of(frame.sparkSession)
    for name, value in _BATCHES.items():
        session.conf.set(name, value)
    return frame_of(session, plan_of(frame))


def _run_over(
    spark: SparkSession,
    frame: DataFrame,
    task: Callable[[Iterator[pa.RecordBatch]], Iterable[bytes]],
    description: str,
    watch: Callable[[int], None] | None,
) -> list[bytes]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for payload in task(batches):
            yield pa.record_batch({"payload": pa.array([payload], pa.binary())})

    job: _Job = _ConnectJob(spark) if is_connect(spark) else _ClassicJob(spark)
    mapped = map_in_arrow(frame, run, "payload binary")

    def collect() -> list[bytes]:
        return [bytes(row.payload) for row in job.collect(mapped, description)]

    return _watched(job, collect, watch)


def _watched(
    job: _Job, collect: Callable[[], list[bytes]], watch: Callable[[int], None] | None
) -> list[bytes]:
    """Run `collect` in another thread while this one watches the job; Ctrl-C cancels it."""
    payloads: list[bytes] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            payloads.extend(collect())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            failures.append(error)

    thread = threading.Thread(target=run, name="variantlake-job", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_POLL_SECONDS)
            if watch is not None and thread.is_alive():
                watch(job.finished_tasks())
    except BaseException:
        job.cancel()
        thread.join(_CANCEL_SECONDS)
        raise
    if failures:
        raise _explained(failures[0])
    return payloads


def functions_of(spark: SparkSession) -> Any:
    """Return `pyspark.sql.functions` for a session; one process may have sessions of both kinds."""
    if is_connect(spark):
        from pyspark.sql.connect import functions as remote_functions

        return remote_functions
    return functions


def map_in_arrow(frame: DataFrame, run: _Run, schema: StructType | str) -> DataFrame:
    """Call `mapInArrow`; workers get the stores' options and, if possible, this Python."""
    run = reaching_stores(run)
    if is_connect(frame.sparkSession):
        return frame.mapInArrow(run, schema)
    with own_python(frame.sparkSession.sparkContext):
        return frame.mapInArrow(run, schema)


@contextlib.contextmanager
def own_python(context: Any) -> Iterator[None]:
    """Let plans that are made in the block run this Python in their workers, if it is local.

    Spark starts `python3` from PATH unless PYSPARK_PYTHON is set, which lacks the package if that
    is in a virtual environment. On this machine our Python is right; elsewhere only the user knows.
    """
    with _PYTHON_EXEC:
        chosen = context.pythonExec
        if chosen == "python3" and str(context.master).startswith("local"):
            context.pythonExec = sys.executable
        try:
            yield
        finally:
            context.pythonExec = chosen


class _Job(Protocol):
    """A job of classic Spark or of Spark Connect."""

    def collect(self, frame: DataFrame, description: str) -> list[Any]: ...
    def finished_tasks(self) -> int: ...
    def cancel(self) -> None: ...


class _ClassicJob:
    """A job group of the SparkContext."""

    def __init__(self, spark: SparkSession) -> None:
        self._context: Any = spark.sparkContext
        self._group = f"variantlake-{uuid.uuid4()}"

    def run(self, task: Task, count: int, description: str) -> list[bytes]:
        def run(number: int, rows: Iterator[Any]) -> Iterator[bytes]:
            # Numbers as rows would come 40 ms later: the JVM sends rows in a separate packet, which
            # TCP holds back until the packet before it is acknowledged.
            yield from task(number)
            for _ in rows:  # none; but Spark reuses a worker only if it has read to the end
                pass
            # PySpark collects garbage after every task. Over all modules that takes 50 ms on each
            # core, just when Spark needs the cores to end the job. Freezing leaves them out.
            if not gc.get_freeze_count():
                gc.freeze()

        tasks: Any = self._context.parallelize((), count).mapPartitionsWithIndex(
            reaching_stores(run)
        )
        with own_python(self._context):
            tasks._jrdd  # noqa: B018, SLF001 - lazy: made here, while `pythonExec` is ours
        self._context.setJobGroup(self._group, description)  # see collect
        return list(tasks.collect())

    def collect(self, frame: DataFrame, description: str) -> list[Any]:
        # The job group belongs to this thread, which ends after the job.
        self._context.setJobGroup(self._group, description)
        return frame.collect()

    def finished_tasks(self) -> int:
        return sum(stage.numCompletedTasks for stage in self._stages())

    def cancel(self) -> None:
        self._context.cancelJobGroup(self._group)

    def _stages(self) -> Iterator[Any]:
        tracker = self._context.statusTracker()
        for job in tracker.getJobIdsForGroup(self._group):
            info = tracker.getJobInfo(job)
            for stage in info.stageIds if info is not None else ():
                found = tracker.getStageInfo(stage)
                if found is not None:
                    yield found


class _ConnectJob:
    """An operation with its own tag."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._tag = f"variantlake-{uuid.uuid4()}"
        self._finished: Mapping[int, int] = {}
        self._handler = cast("Any", self._progress)

    def collect(self, frame: DataFrame, description: str) -> list[Any]:
        del description  # Connect has no name for an operation
        self._spark.addTag(self._tag)
        self._spark.registerProgressHandler(self._handler)
        try:
            return frame.collect()
        finally:
            self._spark.removeProgressHandler(self._handler)
            self._spark.removeTag(self._tag)

    def finished_tasks(self) -> int:
        return sum(self._finished.values())

    def cancel(self) -> None:
        self._spark.interruptTag(self._tag)

    def _progress(self, stages: Iterable[Any] | None, **_: Any) -> None:
        self._finished = {stage.stage_id: stage.num_completed_tasks for stage in stages or ()}


def _explained(error: BaseException) -> BaseException:
    """Return MissingDependency if executors lack our package or one it needs, else the error."""
    found = re.search(r"No module named '(\w+)", str(error))
    if found is None or found[1] not in _needed():
        return error
    explained = MissingDependency(
        f"Spark's Python workers cannot import {found[1]}",
        hint="before Spark starts set PYSPARK_PYTHON to a Python that has variantlake on every "
        f"executor (on this machine {sys.executable}), or send its packages by spark.archives and "
        "name their folder in spark.executorEnv.PYTHONPATH (docs/deploying.md)",
    )
    explained.__cause__ = error
    return explained


def _needed() -> set[str]:
    """Return the modules that our tasks need; those of dependencies by the distributions' names."""
    required = (each for each in requires("variantlake") or () if "extra ==" not in each)
    return {"variantlake", *(re.split(r"[^\w.-]", each)[0] for each in required)}
