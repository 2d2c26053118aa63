"""The private helper session that makes the scans of one user session (EXACTNESS, rule 11).

How Parquet is read follows the session that created the DataFrame. So the settings that our scans
need are held by a session of our own, a clone of the user's, whose settings are never touched.
Scans are published as global temporary views, which both sessions see.
"""

from __future__ import annotations

import functools
import itertools
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from variantlake.spark.janino import java_instance
from variantlake.spark.kernel_scan import Task, batches, workers_have_package

SETTINGS = {
    # Reads a Variant column as the physical struct that it is in the file; a column asked for as
    # VARIANT is still read as one.
    "spark.sql.parquet.ignoreVariantAnnotation": "true",
    # Keys of the physical struct are told apart by case (rule 5).
    "spark.sql.caseSensitive": "true",
    # Columns of a schema that has field ids are found by them (column mapping in id mode).
    "spark.sql.parquet.fieldId.read.enabled": "true",
    # Keys stand in our expressions as string literals.
    "spark.sql.parser.escapedStringLiterals": "false",
}
FOLLOWED = ("spark.sql.session.timeZone",)
"""Settings of the user that a scan's own casts depend on."""


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file as the log tells it: size in bytes, time in milliseconds since the epoch.

    `constants` are the texts of columns that are the same in all of its rows; None is NULL.
    """

    path: str
    size: int
    modified: int
    constants: tuple[str | None, ...] = ()


ROW_INDEX = "__vl_row"
"""The column with a row's own place in its file, where it is asked for."""


class Files(Protocol):
    """How the files of a scan become DataFrames."""

    def empty(self, schema: StructType) -> DataFrame:
        """A DataFrame without rows that costs no job."""

    def read_parquet(
        self,
        files: Sequence[KnownFile],
        schema: StructType,
        constants: StructType,
        *,
        row_index: bool = False,
    ) -> DataFrame:
        """The rows of files, read by exactly this schema; columns that a file lacks are NULL.

        The columns of `constants` follow those of `schema`, with each file's own constants cast
        from text to their types, as Spark casts without ANSI; then ROW_INDEX, if asked for.
        """

    def batches(self, task: Task, count: int, schema: StructType) -> DataFrame:
        """The Arrow batches of `task(0)` … `task(count - 1)`, each run by one Spark task."""

    @property
    def parallelism(self) -> int:
        """How many tasks make use of all cores."""

    def deleted(self, vectors: bytes, schema: StructType) -> DataFrame:
        """Deleted rows as a small table; the form of `vectors` is that of `KnownFiles.deleted`."""


class HelperSession:
    """Reads files and publishes views for one user session."""

    def __init__(self, user: SparkSession) -> None:
        self._user: Any = user
        # The clone knows the user's settings; a new session would have those of the start.
        clone = self._user._jsparkSession.cloneSession()  # noqa: SLF001 # no public way in classic
        self.spark = SparkSession(user.sparkContext, clone)
        for name, value in SETTINGS.items():
            self.spark.conf.set(name, value)
        self._files = java_instance(user, "KnownFiles")
        self._database = self.spark.conf.get("spark.sql.globalTempDatabase", "global_temp")
        self._prefix = f"__vl_{uuid.uuid4().hex[:8]}_"
        self._numbers = itertools.count()

    @functools.cached_property
    def has_kernels(self) -> bool:
        """Whether Spark's Python workers have this package; asked once. Queries do without it."""
        return workers_have_package(self.spark)

    def follow(self) -> None:
        """Take over the settings of the user that may have changed since."""
        for name in FOLLOWED:
            self.spark.conf.set(name, self._user.conf.get(name))

    def new_view(self) -> str:
        """A name for a view that nobody has, without its database."""
        return f"{self._prefix}{next(self._numbers)}"

    def qualified(self, view: str) -> str:
        """The view's name as queries and plans write it."""
        return f"{self._database}.{view}"

    def publish(self, frame: DataFrame, view: str) -> None:
        """Make `frame` known to all sessions as `view`, in the place of an older one."""
        frame.createOrReplaceGlobalTempView(view)

    def drop(self, view: str) -> None:
        """Forget the view. DataFrames that were made from it have its plan and go on working."""
        self.spark.catalog.dropGlobalTempView(view)

    def empty(self, schema: StructType) -> DataFrame:
        """A DataFrame without rows that costs no job."""
        java: Any = self.spark
        session, jvm = java._jsparkSession, java._jvm  # noqa: SLF001 # createDataFrame([]) makes an RDD
        rows = jvm.java.util.ArrayList()
        frame = session.createDataFrame(rows, session.parseDataType(schema.json()))
        return DataFrame(frame, self.spark)

    def read_parquet(
        self,
        files: Sequence[KnownFile],
        schema: StructType,
        constants: StructType,
        *,
        row_index: bool = False,
    ) -> DataFrame:
        """See Files.

        Paths are taken as they are: no globs, no percent-decoding, no partition columns from the
        names of folders. Nothing is listed; a file that is missing is found out when it is read.
        """
        text = orjson.dumps(
            {
                "paths": [file.path for file in files],
                "sizes": [file.size for file in files],
                "times": [file.modified for file in files],
                "constants": [
                    [file.constants[at] for file in files] for at in range(len(constants))
                ],
            }
        ).decode()
        session: Any = self._java
        frame = self._files.read(
            session,
            text,
            session.parseDataType(schema.json()),
            session.parseDataType(constants.json()),
            self.spark.conf.get("spark.sql.session.timeZone"),
        )
        rows = DataFrame(frame, self.spark)
        return rows.selectExpr("*", f"_metadata.row_index AS {ROW_INDEX}") if row_index else rows

    def batches(self, task: Task, count: int, schema: StructType) -> DataFrame:
        """See Files."""
        return batches(self.spark, task, count, schema)

    @property
    def parallelism(self) -> int:
        """See Files."""
        return int(self.spark.sparkContext.defaultParallelism)

    def deleted(self, vectors: bytes, schema: StructType) -> DataFrame:
        """See Files."""
        session: Any = self._java
        frame = self._files.deleted(session, vectors, session.parseDataType(schema.json()))
        return DataFrame(frame, self.spark)

    @property
    def _java(self) -> Any:
        session: Any = self.spark
        return session._jsparkSession  # noqa: SLF001 # no public way to a relation of known files
