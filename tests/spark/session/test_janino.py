"""Our Java classes: compiled ahead, and each of them once."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pyspark.sql import SparkSession

import variantlake as vl
from variantlake.errors import UnsupportedFeature
from variantlake.spark.session import janino
from variantlake.spark.session.jvm import Java

pytestmark = pytest.mark.spark


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The classes that are compiled, one after the other, as in a JVM that has none of ours."""
    names: list[str] = []
    usual = janino._compile

    def counted(spark: SparkSession, name: str, loader: Java) -> Java:
        names.append(name)
        return usual(spark, name, loader)

    monkeypatch.setattr(janino, "_jvms", [])
    monkeypatch.setattr(janino, "_compile", counted)
    return names


def wait_for_threads() -> None:
    for thread in threading.enumerate():
        if thread.name == janino.THREAD:
            thread.join(timeout=60)
            assert not thread.is_alive()


def test_connect_compiles_what_queries_need(spark: SparkSession, compiled: list[str]) -> None:
    vl.spark.connect(spark)
    wait_for_threads()
    assert compiled == list(janino.OF_QUERIES)
    vl.spark.connect(spark)
    wait_for_threads()
    assert compiled == list(janino.OF_QUERIES)


def test_threads_that_want_one_class_compile_it_once(
    spark: SparkSession, compiled: list[str]
) -> None:
    janino.compile_ahead(spark)
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: janino.new_instance(spark, "ScanViews"), range(8)))
    assert len({each.getClass().getName() for each in made}) == 1
    assert not any(one.equals(other) for one, other in itertools.pairwise(made))
    wait_for_threads()
    assert sorted(compiled) == sorted(janino.OF_QUERIES)


def test_a_class_that_does_not_compile_is_an_error_when_it_is_asked_for(
    spark: SparkSession, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = janino.source_of

    def broken(name: str) -> str:
        return "public class ScanViews { Gone gone; }" if name == "ScanViews" else usual(name)

    monkeypatch.setattr(janino, "source_of", broken)
    vl.spark.connect(spark)
    wait_for_threads()
    assert compiled == ["StaticFileIndex", "ScanViews"]
    for _ in range(2):
        with pytest.raises(UnsupportedFeature, match="the internals of this Spark"):
            janino.java_instance(spark, "ScanViews")
    found: Any = janino.java_instance(spark, "PlanDump")
    assert found.getClass().getName().startswith("PlanDump")
