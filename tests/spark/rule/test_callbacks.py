"""The way from the JVM to Python, cut: queries end all the same, and give their rows."""

from __future__ import annotations

import socket
import threading
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from py4j.java_gateway import JavaObject
from pyspark.java_gateway import ensure_callback_server_started

import variantlake as vl
from tests.spark.layouts import PUSHDOWN, changed
from tests.spark.rule.door import accelerated
from tests.spark.rule.test_faults import K1, ids, load
from tests.spark.rule.test_rule import make
from variantlake.spark.rule.accelerate import planner_of
from variantlake.spark.rule.planner import RulePlanner
from variantlake.spark.session import janino
from variantlake.spark.session.jvm import gateway_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted", "rule")]

WANTED = [*range(10, 17), 19]


@pytest.fixture(scope="module")
def rule(spark: SparkSession) -> Iterator[None]:
    with changed(spark, {PUSHDOWN: "false"}), accelerated(spark):
        yield


@pytest.fixture(scope="module")
def ev(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make(tmp_path_factory.mktemp("callbacks") / "ev")


@pytest.fixture
def gateway(spark: SparkSession) -> Iterator[Any]:
    """The gateway, whose server is known to the rule again at the end."""
    found = gateway_of(spark)
    yield found
    vl.spark.decelerate(spark)
    vl.spark.accelerate(spark)


def restart(gateway: Any) -> None:
    """A server for callbacks on another port, as PySpark begins one."""
    gateway._callback_server = None
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]


def planned(spark: SparkSession, location: str) -> int:
    """How many tables the rule reads for a query, whose rows have to be right."""
    planner = planner_of(spark)
    assert planner is not None
    with planner.explaining() as tables:
        assert ids(load(spark, location).where(K1)) == WANTED
    return len(tables)


@pytest.mark.rule(42)
@pytest.mark.filterwarnings("ignore:a query is left")
def test_queries_end_while_nobody_serves_callbacks(
    spark: SparkSession, ev: str, gateway: Any
) -> None:
    assert planned(spark, ev) == 1  # a thread of Python waits for the JVM's next question
    with pytest.warns(UserWarning, match="for callbacks of py4j is shut down") as said:
        gateway.shutdown_callback_server()
    assert len(said) == 1
    assert [planned(spark, ev) for _ in range(2)] == [0, 0]
    restart(gateway)
    assert planned(spark, ev) == 1


@pytest.mark.rule(42)
@pytest.mark.filterwarnings("ignore:a query is left")
def test_connections_that_are_closed_are_opened_again(
    spark: SparkSession, ev: str, gateway: Any
) -> None:
    assert planned(spark, ev) == 1
    gateway._callback_server.close()
    planned(spark, ev)  # left to Spark, if py4j has not noticed
    assert planned(spark, ev) == 1


@pytest.mark.rule(42)
def test_a_server_that_does_not_answer_is_not_waited_for(spark: SparkSession, ev: str) -> None:
    usual = janino.source_of

    def hasty(name: str) -> str:
        return usual(name).replace("ANSWER_SECONDS = 10;", "ANSWER_SECONDS = 1;")

    gateway = gateway_of(spark)
    server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
    address, port = server.getCallbackClient().getAddress(), gateway._python_proxy_port
    silent = socket.create_server(("127.0.0.1", 0))
    classes: Any = mock.patch.object(janino, "_jvms", [])
    vl.spark.decelerate(spark)
    with classes, mock.patch.object(janino, "source_of", hasty):
        vl.spark.accelerate(spark)
    found: list[list[int]] = []
    query = threading.Thread(
        target=lambda: found.extend(ids(load(spark, ev).where(K1)) for _ in range(2)), daemon=True
    )
    try:
        server.resetCallbackClient(address, silent.getsockname()[1])
        query.start()
        query.join(60)
    finally:
        server.resetCallbackClient(address, port)
        silent.close()
        vl.spark.decelerate(spark)
        vl.spark.accelerate(spark)
    assert found == [WANTED, WANTED]


class _UntoldError(Exception):
    def __str__(self) -> str:
        raise ValueError("made to fail")


RAISED = (
    GeneratorExit, KeyboardInterrupt, MemoryError, RecursionError, StopIteration, SystemExit,
    _UntoldError,
)  # fmt: skip


@pytest.mark.rule(42)
@pytest.mark.parametrize("raised", RAISED)
@pytest.mark.parametrize("method", ["_answer", "_warn"])
def test_whatever_is_raised_leaves_the_query_as_it_is(
    spark: SparkSession,
    ev: str,
    monkeypatch: pytest.MonkeyPatch,
    raised: type[BaseException],
    method: str,
) -> None:
    """Not in the main thread, so none of these is Ctrl-C or the end of the program."""

    def fails(*_: object) -> None:
        raise raised

    monkeypatch.setattr(RulePlanner, "_answer", fails)
    if method == "_warn":
        monkeypatch.setattr(warnings, "warn", fails)
    planner = planner_of(spark)
    assert planner is not None
    planner._warned.clear()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert ids(load(spark, ev).where(K1)) == WANTED
    told = [raised.__name__ in str(each.message) for each in said]
    assert told == ([True] if method == "_answer" else [])
