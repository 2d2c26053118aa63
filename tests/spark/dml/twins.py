"""Two tables that are made alike: Delta Spark changes the one, and a Lake the other."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import variantlake as vl
from tests.spark.layouts import UNADAPTED, changed, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REFUSED = "refused"
_REFUSALS = (vl.VariantLakeError, PySparkException, Py4JJavaError)


@dataclass(frozen=True)
class Twins:
    """The tables' folders. In the text of a statement `{t}` stands for the one or the other.

    `shown` are the columns, in SQL, in which they must agree, and `read` is how we read them.
    """

    spark: SparkSession
    lake: vl.spark.Lake
    folder: Path
    shown: str = "*"
    read: Callable[[vl.Table], list[dict[str, Any]]] = lambda table: (
        table.scan().as_json().to_arrow().to_pylist()
    )

    @classmethod
    def create(
        cls, lake: vl.spark.Lake, spark: SparkSession, folder: Path, *setup: str, **shown: Any
    ) -> Twins:
        """The one by statements of Delta Spark, the other a copy of it."""
        twins = cls(spark, lake, folder, **shown)
        for text in setup:
            spark.sql(text.format(t=twins.theirs))
        shutil.copytree(folder / "theirs", folder / "ours")
        return twins

    @property
    def ours(self) -> str:
        return f"delta.`{self.folder / 'ours'}`"

    @property
    def theirs(self) -> str:
        return f"delta.`{self.folder / 'theirs'}`"

    def agree(self, *texts: str, by_delta: bool = False) -> None:
        """AssertionError where a statement gives other counts or rows, or one alone refuses it.

        `by_delta` says that Delta Spark is to run them on our table too. After each statement we
        read both tables. Delta Spark reads all these versions at the end, as few statements: its
        reading takes longer than what it reads.
        """
        before, versions = self._versions(), list[tuple[int, ...]]()
        for text in texts:
            self._agree(text, by_delta)
            if self._versions() != before:
                before = self._versions()
                versions.append(before)
        for _, alike in groupby(versions, key=self._columns):
            self.same_rows("\n".join(texts), list(alike))

    def _versions(self) -> tuple[int, ...]:
        return tuple(vl.Table.open(self.folder / name).version for name in ("ours", "theirs"))

    def _columns(self, versions: tuple[int, ...]) -> str:
        return str(vl.Table.open(self.folder / "ours", version=versions[0]).schema)

    def _agree(self, text: str, by_delta: bool) -> None:
        before = self._table().version
        with changed(self.spark, UNADAPTED):
            right, _ = _answer(lambda: self.spark.sql(text.format(t=self.theirs)))
        ours, error = _answer(lambda: self.lake.sql(text.format(t=self.ours)))
        assert ours == right, f"{text}\n{error}"
        table = self._table()
        assert ours != REFUSED or table.version == before, text
        if table.version > before:
            engine = str(table.history(1)[0].info["engineInfo"])
            assert engine.startswith("Apache-Spark") == by_delta, f"{text}\n{engine}"
            self.same_for_us(text)

    def same_for_us(self, text: str) -> None:
        """AssertionError where the tables differ by what we read of them."""
        found, right = (
            Counter(map(repr, self.read(vl.Table.open(self.folder / name))))
            for name in ("ours", "theirs")
        )
        assert found == right, f"{text}\nmissing {right - found}, wrong {found - right}"

    def same_rows(self, text: str = "", versions: Sequence[tuple[int, ...]] = ()) -> None:
        """AssertionError where the tables differ for Delta Spark, in these versions or now."""
        query = " UNION ALL ".join(
            f"SELECT {number}, {at}, {self.shown} FROM {name} VERSION AS OF {version}"
            for at, both in enumerate(versions or [self._versions()])
            for number, (name, version) in enumerate(
                zip((self.ours, self.theirs), both, strict=True)
            )
        )
        found, right = sides = Counter[str](), Counter[str]()
        with changed(self.spark, UNADAPTED):
            for number, *row in self.spark.sql(query).collect():
                sides[number][repr(row)] += 1
        assert found == right, f"{text}\nmissing {right - found}, wrong {found - right}"

    def same_by_us(self) -> None:
        """AssertionError where we read other rows of our table than Delta Spark does."""
        query = f"SELECT {self.shown} FROM {self.ours}"
        assert rows(self.lake.sql(query)) == rows(self.spark.sql(query))

    def judged(self, text: str, expected: str) -> None:
        """The same where Delta Spark refuses the statement: `expected` gives the rows."""
        with_ours = expected.format(t=self.ours)
        right = rows(self.spark.sql(with_ours))
        refused, _ = _answer(lambda: self.spark.sql(text.format(t=self.theirs)))
        assert refused == REFUSED, text
        self.lake.sql(text.format(t=self.ours))
        found = Counter(repr(tuple(row.values())) for row in self.read(self._table()))
        assert found == right, f"{text}\nmissing {right - found}, wrong {found - right}"

    def _table(self) -> vl.Table:
        return vl.Table.open(self.folder / "ours")


def _answer(run: Callable[[], DataFrame]) -> tuple[Any, object]:
    try:
        return Counter(map(tuple, run().collect())), None
    except _REFUSALS as error:
        return REFUSED, error
