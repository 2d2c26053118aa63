"""Methods of the rule's Java classes, made to fail: the query gives its rows all the same."""

from __future__ import annotations

import contextlib
import shutil
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException

import variantlake as vl
from tests.spark.layouts import PUSHDOWN, changed
from tests.spark.rule.door import accelerated
from tests.spark.rule.test_metrics import READ, SKIPPED, shown
from tests.spark.rule.test_rule import failing, make, plan_text
from variantlake.spark.lake import connect
from variantlake.spark.query.plans import join_values
from variantlake.spark.rule import accelerate as accelerate_module
from variantlake.spark.rule import planner as planner_module
from variantlake.spark.rule import row_groups
from variantlake.spark.rule.accelerate import planner_of
from variantlake.spark.rule.planner import RulePlanner
from variantlake.spark.session import janino
from variantlake.spark.session.jvm import session_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted", "rule")]

K1 = "event:kind::string = 'k1'"
JOIN = (
    "SELECT a.id FROM {0} a JOIN (SELECT event:n::bigint n FROM {0} WHERE event:n::int > 14 AND "
    f"{K1}) b ON a.event:n::bigint = b.n"
)


@pytest.fixture(scope="module")
def rule(spark: SparkSession) -> Iterator[None]:
    with changed(spark, {PUSHDOWN: "false"}), accelerated(spark):
        yield


@pytest.fixture(scope="module")
def ev(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make(tmp_path_factory.mktemp("faults") / "ev")


@contextlib.contextmanager
def planted(spark: SparkSession, name: str, method: str) -> Iterator[list[str]]:
    """A rule of which one method always fails; at the end, why queries were left as they are."""
    usual = janino.source_of
    text = usual(name)
    assert text.count(f"{method} {{\n") == 1, method
    # A compiler would refuse what follows an exception without a condition.
    fails = 'if (System.nanoTime() != 0L) throw new IllegalStateException("made to fail");'
    faulty = text.replace(f"{method} {{\n", f"{method} {{\n{fails}\n")
    sources = mock.patch.object(janino, "source_of", lambda n: faulty if n == name else usual(n))
    classes: Any = mock.patch.object(janino, "_jvms", [])
    vl.spark.decelerate(spark)
    with classes, sources, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        vl.spark.accelerate(spark)
        reasons: list[str] = []
        yield reasons
        texts = (str(each.message) for each in said)
        reasons += [each for each in texts if "left as Spark runs it" in each]
        vl.spark.decelerate(spark)
    vl.spark.accelerate(spark)


def load(spark: SparkSession, location: str) -> DataFrame:
    return spark.read.format("delta").load(location)


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


METHODS = (
    "private Map memory()",
    "private void collect(LogicalPlan plan)",
    "private static boolean isEnabled(SQLConf settings)",
    "private LogicalPlan mark(LogicalPlan plan)",
    "private Object snapshot(Object index) throws Exception",
    "private static boolean sameSchema(Object index, Object snapshot) throws Exception",
    "private static boolean isWhole(LogicalRelation relation, Object index) throws Exception",
    "private static boolean isWhole(LogicalPlan plan)",
    "private boolean isAsked(LogicalPlan plan)",
    "private static Map settings()",
)


@pytest.mark.rule(42)
@pytest.mark.parametrize("method", METHODS)
def test_a_method_that_fails_leaves_the_query_as_it_is(
    spark: SparkSession, ev: str, method: str
) -> None:
    query = f"SELECT id FROM delta.`{ev}` WHERE event:n::bigint IN (SELECT id FROM delta.`{ev}` "
    with planted(spark, "AcceleratedReads", method) as reasons:
        assert ids(spark.sql(f"{query} WHERE {K1})")) == [*range(10, 17), 19]
        assert ids(load(spark, ev).where("event:n::int > 37")) == [38, 39]
    assert len(reasons) == 1
    assert "made to fail" in reasons[0]


def test_values_that_cannot_be_read_skip_nothing(
    spark: SparkSession, ev: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_values, "WORTH_BYTES", 0)
    monkeypatch.setattr(join_values, "SMALL_SHARE", 1)
    frame = spark.sql(JOIN.format(f"delta.`{ev}`"))
    assert _read(spark, frame) == 2
    rows = "public Object apply(Object steps, Object answer)"
    with planted(spark, "AcceleratedReads", rows) as reasons:
        assert _read(spark, frame) == 5
    assert not reasons
    failing(RulePlanner, "_values")(monkeypatch)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert _read(spark, frame) == 0
    assert len(said) == 1


def _read(spark: SparkSession, frame: DataFrame) -> int:
    """How many files are read for the rows, which have to be right."""
    planner = planner_of(spark)
    assert planner is not None
    with planner.explaining() as planned:
        assert ids(frame) == [15, 16, 19]
    return sum(each.plan.read_files for each in planned)


def test_a_table_that_the_rule_does_not_find_is_read_as_without(
    spark: SparkSession, ev: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(planner_module, "relation_of")(monkeypatch)
    kept = connect(spark).table(ev).where(K1)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert ids(kept) == [*range(10, 17), 19]
    assert ["relation_of was made to fail" in str(each.message) for each in said] == [True]


def test_a_table_that_is_replaced_before_it_is_read_gives_sparks_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    location = make(tmp_path / "t")
    frame = load(spark, location).where(K1).select("id")
    shutil.rmtree(location)
    vl.Table.create(location, "other STRING")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with pytest.raises(AnalysisException) as caught:
            frame.collect()
    condition = "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"
    assert caught.value.getCondition() == condition
    assert [condition in str(each.message) for each in said] == [True]


HOOKS = ("preCBORules", "plannerStrategyBuilders")


@pytest.mark.rule(42)
@pytest.mark.parametrize("hook", HOOKS)
def test_a_rule_that_cannot_be_installed_leaves_no_part_of_it(
    spark: SparkSession, hook: str
) -> None:
    usual = janino.source_of
    asked = "Object extensions = session.extensions();\n"
    fails = f'if (name.equals("{hook}")) throw new IllegalStateException("made to fail");\n'
    sources = mock.patch.object(
        janino, "source_of", lambda name: usual(name).replace(asked, fails + asked)
    )
    classes: Any = mock.patch.object(janino, "_jvms", [])  # as in a JVM that has none of ours
    with _without_rule(spark) as before:
        with sources, classes, pytest.raises(Py4JJavaError, match="made to fail"):
            vl.spark.accelerate(spark)
        assert _hooks(spark) == before


def test_ctrl_c_while_the_rule_is_installed_leaves_no_part_of_it(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = janino.new_instance

    def interrupted(session: SparkSession, name: str) -> mock.Mock:
        java = usual(session, name)

        def install(*given: object) -> None:
            java.install(*given)
            raise KeyboardInterrupt

        return mock.Mock(install=install, remove=java.remove)

    with _without_rule(spark) as before:
        monkeypatch.setattr(accelerate_module, "new_instance", interrupted)
        with pytest.raises(KeyboardInterrupt):
            vl.spark.accelerate(spark)
        assert _hooks(spark) == before
        monkeypatch.undo()


@contextlib.contextmanager
def _without_rule(spark: SparkSession) -> Iterator[list[str]]:
    """What the session has of others, while it has no rule."""
    vl.spark.decelerate(spark)
    try:
        yield _hooks(spark)
    finally:
        vl.spark.accelerate(spark)


def _hooks(spark: SparkSession) -> list[str]:
    """The rules and strategies that the extensions of a session make, as texts."""
    session = session_of(spark)
    extensions = session.extensions()
    made = (extensions.buildPreCBORules(session), extensions.buildPlannerStrategies(session))
    return [each.apply(i).getClass().getName() for each in made for i in range(each.size())]


MEASURING = (
    "private static boolean isOurs(LogicalPlan plan)",
    "private static SparkPlan measured(SparkPlan plan)",
    "scala.collection.immutable.Map all, String name, SQLMetric metric)",
    "private SQLMetric measured(String name, long value)",
    "synchronized void begin(Scan scan, String query)",
    "synchronized void count(long read, long skipped)",
    "void showRowGroups(long[] numbers, String execution)",
    "public void countRowGroups(Dataset frame, long read, long skipped)",
)


@pytest.mark.parametrize("method", MEASURING)
def test_what_pages_would_show_fails_no_query(
    spark: SparkSession, ev: str, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    at_once = mock.Mock(submit=lambda count, *given: count(*given))
    monkeypatch.setattr(row_groups, "counting", at_once)
    with planted(spark, "StaticFileIndex", method) as reasons:
        kept = load(spark, ev).where(K1).select("id")
        assert ids(kept) == [*range(10, 17), 19]
        assert "typed_value" in plan_text(kept)
    assert not reasons


@pytest.mark.parametrize("begun", [True, False])
def test_footers_that_cannot_be_read_fail_no_query(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    location = make(tmp_path / "t")
    at_once = mock.Mock(submit=lambda count, *given: count(*given))
    ended = ThreadPoolExecutor(1)
    ended.shutdown()
    monkeypatch.setattr(row_groups, "counting", at_once if begun else ended)
    failing(row_groups, "row_groups")(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ids(load(spark, location).where(K1)) == [*range(10, 17), 19]
    (scan,) = shown(spark)
    assert (scan[READ], scan[SKIPPED]) == ("1", "3")
