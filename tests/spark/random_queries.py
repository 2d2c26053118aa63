"""Random queries of a random table, and the engines that shall agree on them.

Many cases are one Spark job: a SELECT of many expressions, planned once, or a text of many branches
joined by UNION ALL, each of which we plan on its own. The same text over the judge's view is the
right answer (EXACTNESS, rule 1); where two answers differ the expressions and branches are run
alone, so that the failure names one.

`python -m tests.spark.random_queries --seconds 300` tries one table after the other, `--seed N` the
one of a failure again.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import PySparkException

from tests.scan.test_scan_against_spark import shown as shown_value
from tests.sessions import delta_session
from tests.spark.layouts import COMPILED, INTERPRETED, PLAINLY, changed
from tests.spark.random_aggregates import aggregates_agree, first_rows_agree, pushed_agree
from tests.spark.random_expressions import Branch, Queries, shown
from tests.spark.random_frames import frames_together
from tests.spark.random_tables import RandomTable, make
from tests.spark.rule.door import accelerated, lake_of
from variantlake import Table
from variantlake.errors import UnsupportedFeature
from variantlake.planning import late_materialization
from variantlake.spark.lake import Lake, connect
from variantlake.spark.scan import pushed_aggregates

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SETTINGS: tuple[Mapping[str, str], ...] = (
    {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC"},
    {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "America/St_Johns"},
    {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "Asia/Kathmandu"},
    {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "Pacific/Apia"},
)


def evaluated(settings: Mapping[str, str]) -> Mapping[str, str]:
    """One of SETTINGS. Spark compiles ours under half of them: with ANSI, and without it."""
    return settings if SETTINGS.index(settings) in (0, 3) else {**settings, **INTERPRETED}


BRANCHES = 12
"""Queries of one text: of more each takes longer."""

VALUES, CONDITIONS = 12, 48
"""Expressions of one SELECT."""

Rows = Counter[tuple[Any, ...]]


def _together(branches: Sequence[Branch]) -> str:
    return " UNION ALL ".join(branch.text(at) for at, branch in enumerate(branches))


@dataclass(frozen=True, slots=True)
class Trial:
    """One table and the session that asks it."""

    spark: SparkSession
    lake: Lake
    table: RandomTable

    def agree(self, branches: Sequence[Branch]) -> None:
        """Raises AssertionError if our answer to a branch is not the judge's."""
        text = _together(branches)
        right, ours = self._judged(text), self._ours(text)
        if ours != right or isinstance(right, str):
            for branch in branches:
                self.agree_alone(branch.text(0))
            assert isinstance(right, str) or ours == right, f"only together: {self._about(text)}"

    def agree_alone(self, text: str) -> None:
        """Raises AssertionError if our answer to one query is not the judge's."""
        right, ours = self._judged(text), self._ours(text)
        if isinstance(right, str):
            # Rule 1: Spark's own class of error, or what skipping left.
            assert isinstance(ours, Counter) or ours == right, f"{ours}, {right}{self._about(text)}"
            return
        assert isinstance(ours, Counter), f"{ours}{self._about(text)}"
        wrong = f"missing {_few(right - ours)}, wrong {_few(ours - right)}"
        assert ours == right, f"{wrong}{self._about(text)}"

    def frames_agree(self, branches: Sequence[Branch], chance: random.Random) -> None:
        """Raises AssertionError if the branches as DataFrames give other rows than the judge."""
        if not self._frames_differ(branches, chance):
            return
        for branch in branches:
            wrong = self._frames_differ([branch], chance)
            assert not wrong, f"as a DataFrame: {self._about(branch.text(0))}"
        raise AssertionError(f"DataFrames, only together: {self._about(_together(branches))}")

    def _frames_differ(self, branches: Sequence[Branch], chance: random.Random) -> bool:
        right = self._judged(_together(branches))
        ours = answer(lambda: frames_together(self.spark, branches, self.table.location, chance))
        # Rule 1: an error may be left out with the rows that skipping leaves out.
        left_out = isinstance(right, str) and isinstance(ours, Counter)
        return ours != right and not left_out

    def _about(self, text: str) -> str:
        layouts = "\n  ".join(self.table.layouts)
        settings = {name: self.spark.conf.get(name) for name in SETTINGS[0]}
        return f"\n{text}\n{settings}, seed {self.table.seed}\n  {layouts}"

    def _judged(self, text: str) -> Rows | str:
        with changed(self.spark, PLAINLY):
            return answer(lambda: self.spark.sql(text.format(t=self.table.judge)))

    def _ours(self, text: str) -> Rows | str:
        return answer(lambda: self.lake.sql(text.format(t=f"delta.`{self.table.location}`")))

    def values_agree(self, values: Sequence[tuple[str, str]]) -> int:
        """Values of all rows, their types, and the names that Spark gives them; their number."""
        text = f"SELECT k, {', '.join(value for value, _ in values)} FROM {{t}}"
        with changed(self.spark, PLAINLY):
            judged = self.spark.sql(text.format(t=self.table.judge))
            right = answer(lambda: _as_text(judged, values))
        ours = self.lake.sql(text.format(t=f"delta.`{self.table.location}`"))
        assert ours.columns == judged.columns
        assert ours.dtypes == judged.dtypes
        if answer(lambda: _as_text(ours, values)) != right:
            for value in values:
                self.agree_alone(Branch((shown(*value),), "{t}", "true").text(0))
            raise AssertionError(f"only together: {self._about(text)}")
        return len(values)

    def saved(self, branches: Sequence[Branch]) -> tuple[int, int]:
        """How many files are skipped for these branches, and how many paths read from columns."""
        text = _together(branches).format(t=f"delta.`{self.table.location}`")
        scans = self.lake.explain(text).to_dict()["tables"]
        skipped = sum(scan["files"]["skipped"] for scan in scans)
        return skipped, sum(path["physical"] for scan in scans for path in scan["paths"])

    def errors_agree(self, queries: Queries, count: int) -> int:
        """Casts that may fail, without a condition; gives how many did."""
        raised = 0
        for requested in [requested for requested in queries.requested if not requested.sure][
            :count
        ]:
            value = shown(requested.get("event", strict=True, colon=True), requested.type)
            text = Branch((value,), "{t}", "true").text(0)
            right, ours = self._judged(text), self._ours(text)
            assert ours == right, f"{ours}, {right}{self._about(text)}"
            raised += isinstance(right, str)
        return raised

    def local_agree(self, queries: Queries, count: int) -> int:
        """The local engine, on conditions that it parses and on values; gives how many it took."""
        opened = Table.open(self.table.location)
        conditions: list[str] = []
        while len(conditions) < count:
            queries.look_elsewhere()
            condition = queries.condition()
            with contextlib.suppress(UnsupportedFeature):
                opened.scan("k", condition)
                conditions.append(condition)
        taken = 0
        for text, right in zip(conditions, self._judged_columns(conditions), strict=True):
            with contextlib.suppress(UnsupportedFeature):
                found: list[Any] = opened.scan("k", text).to_arrow()["k"].to_pylist()
                taken += 1
                wanted = [k for k, fulfilled in right.items() if fulfilled == "True"]
                wrong = f"missing {set(wanted) - set(found)}, wrong {set(found) - set(wanted)}"
                assert sorted(found) == sorted(wanted), f"locally {wrong}{self._about(text)}"
        values = [
            requested.get("event", strict=requested.sure, colon=True)
            for requested in queries.requested
        ]
        judged = [
            _AS_NUMBER.get(requested.type, "{value}").format(value=value)
            for requested, value in zip(queries.requested, values, strict=True)
        ]
        for text, right in zip(values, self._judged_columns(judged), strict=True):
            with contextlib.suppress(UnsupportedFeature):
                table = opened.scan(f"k, {text} AS got").to_arrow()
                taken += 1
                got = dict(zip(table["k"].to_pylist(), _plain(table["got"]), strict=True))
                other = {k: (got.get(k), right[k]) for k in right if got.get(k) != right[k]}
                assert not other, f"locally {other}{self._about(text)}"
        return taken

    def _judged_columns(self, values: Sequence[str]) -> list[dict[int, str]]:
        """For each expression its value in each row, by the row's `k`."""
        found: list[dict[int, str]] = []
        for start in range(0, len(values), 80):
            batch = values[start : start + 80]
            texts = [f"{value} AS c{at}" for at, value in enumerate(batch)]
            with changed(self.spark, PLAINLY):
                frame = self.spark.sql(f"SELECT k, {', '.join(texts)} FROM {self.table.judge}")
                rows = frame.collect()
            found += [
                {row[0]: shown_value(row[at]) for row in rows} for at in range(1, len(batch) + 1)
            ]
        return found


_AS_NUMBER = {
    "date": "unix_date({value})",
    "timestamp": "unix_micros({value})",
    "timestamp_ntz": "unix_micros(CAST({value} AS TIMESTAMP))",
}
"""Python has no dates before year 1. Both sides are in UTC."""


def _plain(column: pa.ChunkedArray[Any]) -> list[str]:
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if pa.types.is_date(column.type) else pa.int64())
    return [shown_value(value) for value in column.to_pylist()]


@contextlib.contextmanager
def found_first() -> Iterator[None]:
    """Rows are found first and rebuilt by our kernels in files of any size (rule 14)."""
    usual = late_materialization.MIN_BYTES
    late_materialization.MIN_BYTES = 0
    try:
        yield
    finally:
        late_materialization.MIN_BYTES = usual


@contextlib.contextmanager
def begun_by_tasks(spark: SparkSession) -> Iterator[None]:
    """Our tasks begin aggregates of tables of any size, whatever their keys (rule 35)."""
    usual = pushed_aggregates.REPEATED
    pushed_aggregates.REPEATED = 0
    try:
        with changed(spark, {pushed_aggregates.MIN_BYTES_SETTING: "0"}):
            yield
    finally:
        pushed_aggregates.REPEATED = usual


def answer(frame: Callable[[], DataFrame]) -> Rows | str:
    """The rows, or the class of the error."""
    try:
        return Counter(
            tuple(tuple(item) if isinstance(item, list) else item for item in row)
            for row in frame().collect()
        )
    except PySparkException as error:
        return error.getCondition() or str(error)


def _as_text(frame: DataFrame, values: Sequence[tuple[str, str]]) -> DataFrame:
    names = [f"c{at}" for at in range(len(values))]
    texts = [shown(name, type_) for name, (_, type_) in zip(names, values, strict=True)]
    return frame.toDF("k", *names).selectExpr("k", *texts)


def _few(rows: Rows) -> str:
    return str(sorted(map(str, rows))[:3])


def try_table(spark: SparkSession, folder: Path, seed: int, settings: Mapping[str, str]) -> int:
    """All that is asked of one table under some settings; gives the number of cases.

    Raises AssertionError, with the query that answers wrong and what makes the table again.
    """
    trial = Trial(spark, connect(spark), make(spark, folder, seed))
    queries = Queries(trial.table, random.Random(seed))
    cases = 0
    with changed(spark, evaluated(settings)):
        for _ in range(5):
            cases += trial.values_agree(queries.values(VALUES, CONDITIONS))
        for _ in range(2):
            trial.agree([queries.branch() for _ in range(BRANCHES)])
        with accelerated(spark):
            door = Trial(spark, lake_of(spark), trial.table)
            door.agree([queries.branch() for _ in range(BRANCHES)])
            with changed(spark, COMPILED):  # what is left of a frame, Spark pushes into its scan
                door.frames_agree([queries.branch() for _ in range(BRANCHES)], random.Random(seed))
        trial.errors_agree(queries, 8)
        with found_first():
            trial.agree([queries.whole() for _ in range(4)])
        with begun_by_tasks(spark):
            pushed_agree(trial, queries, 6, f"{seed} {settings}")
        first_rows_agree(trial, queries, 8, f"{seed} {settings}")
    with changed(spark, SETTINGS[0]):
        local = trial.local_agree(queries, 100) + aggregates_agree(trial, queries, 60, seed)
    return cases + 4 * BRANCHES + 8 + 8 + 4 + local


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 1 where an answer was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark.random_queries")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None, help="try this one table")
    options = parser.parse_args(arguments)
    end = time.monotonic() + options.seconds
    first = random.randrange(2**32) if options.seed is None else options.seed
    cases, seed = 0, first
    with tempfile.TemporaryDirectory(prefix="variantlake-queries-") as scratch:
        spark = delta_session(Path(scratch))
        while seed == first or (options.seed is None and time.monotonic() < end):
            try:
                cases += try_table(spark, Path(scratch) / str(seed), seed, SETTINGS[seed % 4])
            except Exception:  # noqa: BLE001  # this is what we are looking for
                sys.stderr.write(f"seed {seed}\n{traceback.format_exc()}")
                return 1
            seed += 1
        spark.stop()
    sys.stdout.write(f"{cases} cases in {seed - first} tables: all answered as Spark does\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
