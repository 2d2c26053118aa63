"""Files as DataFrames through Spark Connect, which has no JVM to hand.

Scans are made in a clone of the user's session and published as global temporary views, as in a
classic session (`session`).
"""

from __future__ import annotations

import atexit
import functools
import itertools
import re
import uuid
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from variantlake.errors import UnsupportedFeature
from variantlake.spark.kernel_scan import Task, batches
from variantlake.spark.schemas import type_ddl
from variantlake.spark.session import FOLLOWED, ROW_INDEX, SETTINGS, KnownFile
from variantlake.spark.text import quote_identifier, quote_string

_GLOB = re.compile(r"[\\{}\[\]*?^]")
_LISTING = {
    # Without it a scan of more than 32 files starts a job of thousands of tasks to look at them.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
}


class RemoteFiles:
    """Files as DataFrames of a private clone of one Connect session; see `session.Files`."""

    def __init__(self, user: SparkSession) -> None:
        self._user: Any = user
        self._prefix = f"__vl_{uuid.uuid4().hex[:8]}_"
        self._numbers = itertools.count()
        self._followed: dict[str, str] = {}
        self._unused: deque[str] = deque()

    @functools.cached_property
    def _spark(self) -> Any:
        clone = self._user.cloneSession()
        # At the end it would call the server, for minutes if that was stopped with the user's
        # session. The server itself forgets sessions that nobody uses.
        atexit.unregister(clone.client._on_exit)  # noqa: SLF001 # nothing public leaves it out
        for name, value in (SETTINGS | _LISTING).items():
            if clone.conf.get(name, None) != value:  # to set a deprecated one warns the user
                clone.conf.set(name, value)
        return clone

    @functools.cached_property
    def _database(self) -> str:
        found: str = self._user.conf.get("spark.sql.globalTempDatabase", "global_temp")
        return found

    def follow(self) -> None:
        """Take over the settings of the user that may have changed since; before each query."""
        while self._unused:
            self.drop([self._unused.popleft()])
        for name in FOLLOWED:
            value = self._user.conf.get(name)
            if self._followed.get(name) != value:
                self._spark.conf.set(name, value)
                self._followed[name] = value

    def publish(self, frame: DataFrame) -> str:
        """Make `frame` known to all sessions of the server; gives its whole name."""
        view = f"{self._prefix}{next(self._numbers)}"
        frame.createOrReplaceGlobalTempView(view)
        return f"{self._database}.{view}"

    def drop(self, views: Iterable[str]) -> None:
        """Forget views by their whole names."""
        for view in views:
            self._spark.catalog.dropGlobalTempView(view.partition(".")[2])

    def drop_after(self, frame: DataFrame, views: Iterable[str]) -> None:
        """Forget views that a DataFrame names, once none that was made of it is left.

        They are dropped when the next query comes: objects end at any moment, also in the midst of
        a call to the server, which must not be called from there.
        """
        remote: Any = frame
        # DataFrames made of this one keep its plan, not itself.
        last = weakref.finalize(remote._plan, self._unused.extend, list(views))  # noqa: SLF001
        last.atexit = False

    def empty(self, schema: StructType) -> DataFrame:
        """See Files."""
        nothing = ", ".join(
            f"CAST(NULL AS {type_ddl(item.dataType)}) AS {quote_identifier(item.name)}"
            for item in schema.fields
        )
        found: DataFrame = self._spark.sql(f"SELECT {nothing} WHERE false")
        return found

    def read_parquet(
        self,
        files: Sequence[KnownFile],
        schema: StructType,
        constants: StructType,
        *,
        row_index: bool = False,
    ) -> DataFrame:
        """See Files."""
        for file in files:
            if file.path.rpartition("/")[2].startswith(("_", ".")):
                raise UnsupportedFeature(
                    "Spark Connect leaves out files with such a name without a word",
                    file=file.path,
                    hint="a classic session reads them",
                )
        groups: dict[tuple[str | None, ...], list[str]] = {}
        for file in files:
            groups.setdefault(file.constants, []).append(file.path)
        frames = [
            self._read(paths, schema).selectExpr(
                "*",
                *_constants(constants, values),
                *([f"_metadata.row_index AS {ROW_INDEX}"] if row_index else []),
            )
            for values, paths in groups.items()
        ]
        return functools.reduce(lambda one, other: one.unionAll(other), frames)

    def _read(self, paths: Iterable[str], schema: StructType) -> DataFrame:
        reader = self._spark.read.schema(schema)
        # No columns from the names of folders, no globs.
        reader = reader.option("recursiveFileLookup", "true")
        found: DataFrame = reader.parquet(*(_GLOB.sub(r"\\\g<0>", path) for path in paths))
        return found

    def batches(self, task: Task, count: int, schema: StructType) -> DataFrame:
        """See Files."""
        return batches(self._spark, task, count, schema)

    @property
    def parallelism(self) -> int:
        """See Files; the server does not say."""
        return 8

    def deleted(self, vectors: bytes, schema: StructType) -> DataFrame:
        """See Files."""
        rows, position = [], 0
        while position < len(vectors):
            number, words = np.frombuffer(vectors, "<i4", 2, position).tolist()
            bits = np.frombuffer(vectors, "<i8", words, position + 8).tolist()
            rows.append((number, bits))
            position += 8 + 8 * words
        found: DataFrame = self._spark.createDataFrame(rows, schema)
        return found


def _constants(constants: StructType, values: Sequence[str | None]) -> Iterator[str]:
    for item, value in zip(constants.fields, values, strict=True):
        text = "NULL" if value is None else quote_string(value)
        yield f"TRY_CAST({text} AS {type_ddl(item.dataType)}) AS {quote_identifier(item.name)}"
