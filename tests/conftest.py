"""Fixtures that more than one part's tests use."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests import classes, corpora, turns
from tests.jvm import LAUNCHER, SHORT_LIVED
from tests.memory import place_in_memory
from tests.strategies import MORE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer

# A slow moment of the machine is not a failure; what takes time is measured in benchmarks/.
settings.register_profile("bounded", deadline=None, max_examples=50 * MORE)
settings.load_profile("bounded")

# A shell that runs the tests in the background ignores Ctrl-C, and so would all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What a test replaces in this process, a worker process would not have.
os.environ.setdefault("VARIANTLAKE_PROCESSES", "0")

# For the processes as well that tests start; those of `pytest -n` have it from the first one.
if memory := place_in_memory():
    os.environ.setdefault("TMPDIR", memory)
    os.environ.setdefault("SPARK_LOCAL_DIRS", memory)
    tempfile.tempdir = None  # asked for before

# For processes that start a Spark of their own.
os.environ.setdefault("SPARK_SUBMIT_OPTS", SHORT_LIVED)
os.environ.setdefault("SPARK_LAUNCHER_OPTS", LAUNCHER)

# What a process has written outlives the process; fsync matters where the machine loses power.
# Thousands of commits would wait for the disk. That it is called is the matter of test_durability.
os.fsync = lambda fd: None  # noqa: ARG005 - its own name


def pytest_collection(session: pytest.Session) -> None:
    turns.load(session.config)


@pytest.hookimpl(tryfirst=True)  # before xdist looks for the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    turns.group(items)


@pytest.hookimpl(tryfirst=True)  # before a test without parameters is skipped for that
def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("corpus"):
        corpora.require(*mark.args)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> turns.Turns:
    classes.begin()
    return turns.Turns(config, log)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fetch Kafka's jars while the first tests run: on a new machine that takes half a minute."""
    if any(item.path.name == "test_kafka.py" for item in session.items):
        threading.Thread(target=_fetch_kafka, daemon=True).start()


def _fetch_kafka() -> None:
    with contextlib.suppress(ImportError, OSError, RuntimeError):  # the test says it again
        from examples.kafka_broker import fetch

        fetch(f"{os.environ.get('JAVA_HOME', '/usr')}/bin/java")


@pytest.fixture(scope="session")
def delta_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The judge of what we write: a local Spark with Delta Spark. Tests put settings back.

    Without Java or PySpark, or when the package cannot be resolved, the test says so.
    """
    if importlib.util.find_spec("pyspark") is None:
        corpora.missing("PySpark")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        corpora.missing("Java")
    from pyspark.errors import PySparkRuntimeError

    from tests.sessions import DELTA_PACKAGE, delta_session

    try:
        session = delta_session(tmp_path_factory.mktemp("spark"))
    except PySparkRuntimeError as error:
        corpora.missing(f"a Spark session with {DELTA_PACKAGE} ({error})")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def spark(delta_spark: SparkSession) -> SparkSession:
    """The same session: one JVM holds one SparkContext."""
    return delta_spark


@pytest.fixture(scope="module")
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Spark compiles nothing in this module: a quarter of the time of statements that run once.

    It is for tests of what is written and of which files are read. Where our answers are judged
    Spark compiles, as at a user's; and where it reads shredded columns itself it has to, for some
    casts that it pushes into its scan can do nothing else.
    """
    from tests.spark.layouts import INTERPRETED, changed

    with changed(spark, INTERPRETED):
        yield
