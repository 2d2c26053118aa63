"""The private helper session that makes the scans of one user session (EXACTNESS, rule 11).

Spark reads Parquet by the settings of the session that created the DataFrame. So the settings that
our scans need are in a helper session, a clone of the user's, whose own settings never change.
Scans are published as global temporary views, which both sessions see.
"""

from __future__ import annotations

import functools
import itertools
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from variantlake.errors import MissingDependency
from variantlake.spark.session.char_columns import pads
from variantlake.spark.session.janino import java_instance
from variantlake.spark.session.jvm import Java, clone_of, dataset_of, session_of
from variantlake.spark.session.kernel_scan import Task, batches, workers_have_package
from variantlake.spark.session.settings import ENABLED, ESCAPED, TIME_ZONE
from variantlake.spark.session.stores import hadoop_path, reads_s3

SETTINGS = {
    # Reads a Variant column as its physical struct in the file; a column requested as VARIANT is
    # still read as one.
    "spark.sql.parquet.ignoreVariantAnnotation": "true",
    # Keys of the physical struct may differ only in case (rule 5).
    "spark.sql.caseSensitive": "true",
    # Spark finds the columns of a schema with field ids by these (column mapping in id mode).
    "spark.sql.parquet.fieldId.read.enabled": "true",
    # Our expressions contain keys as string literals.
    ESCAPED: "false",
    # Fixes the Arrow types of the rows that we hand over.
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    # The rule must not plan the queries that we run while planning.
    ENABLED: "false",
}


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file by the log: size in bytes, time of modification in milliseconds since the epoch.

    `constants` are the texts of columns with one value in all of its rows; None is NULL.
    """

    path: str
    size: int
    modified: int
    constants: tuple[str | None, ...] = ()


ROW_INDEX = "__vl_row"
"""The column with a row's place in its file, if requested."""

EVERYTHING = ("*",)
"""Selects the columns as they are."""

ONE_TASK_BYTES = 8 << 20
_OPEN_BYTES = 2 << 20
"""The bytes that opening a file counts for."""


def is_for_one_task(files: Iterable[ListedFile]) -> bool:
    """Whether files are so few and small that one task should read them all.

    An aggregate or a sort then needs no exchange, which would take longer than reading the files
    one by one.
    """
    return sum(file.size + _OPEN_BYTES for file in files) <= ONE_TASK_BYTES


def unused(name: str, columns: Collection[str]) -> str:
    """Return the name, made longer while a column of the table has it, in any case."""
    taken = {column.lower() for column in columns}
    while name in taken:
        name += "_"
    return name


class Files(ABC):
    """Reads files and publishes views for one user session."""

    def __init__(self, user: SparkSession) -> None:
        self._user: Any = user
        self._prefix = f"__vl_{uuid.uuid4().hex[:8]}_"
        self._numbers = itertools.count()
        self._zone = ""

    @property
    @abstractmethod
    def spark(self) -> Any:
        """The helper session."""

    @functools.cached_property
    def has_kernels(self) -> bool:
        """Whether Spark's Python workers have this package, checked once; queries work without."""
        return workers_have_package(self.spark)

    @functools.cached_property
    def _hadoop_path(self) -> Callable[[str], str]:
        """Maps the path of a file to Spark's path for it."""
        return str if reads_s3(self.spark) else hadoop_path

    @functools.cached_property
    def _database(self) -> str:
        found: str = self._user.conf.get("spark.sql.globalTempDatabase", "global_temp")
        return found

    def follow(self) -> None:
        """Copy the user's time zone, which may have changed; call this before each query."""
        self.follow_zone(self._user.conf.get(TIME_ZONE))

    def follow_zone(self, zone: str) -> None:
        """Set the helper session's time zone to `zone`, the user's."""
        if zone != self._zone:
            self.spark.conf.set(TIME_ZONE, zone)
            self._zone = zone

    def new_view(self, mark: str = "") -> str:
        """Return a new name for a view, without its database; `mark` ends it."""
        return f"{self._prefix}{next(self._numbers)}{mark}"

    def qualified(self, view: str) -> str:
        """Return the view's name as queries and plans write it."""
        return f"{self._database}.{view}"

    @abstractmethod
    def empty(self, schema: StructType) -> DataFrame:
        """Return a DataFrame without rows that costs no job."""

    @abstractmethod
    def read_parquet(
        self,
        files: Sequence[ListedFile],
        schema: StructType,
        constants: StructType,
        *,
        row_index: bool = False,
        where: Sequence[str] = (),
        columns: Sequence[str] = EVERYTHING,
        label: str = "",
        skipped: tuple[int, int] = (0, 0),
    ) -> DataFrame:
        """Read the rows of files with exactly this schema; columns that a file lacks are NULL.

        The columns of `constants` follow those of `schema`, with each file's constants cast from
        text to their types, as Spark casts without ANSI; then ROW_INDEX, if requested. The result
        selects `columns` from the rows that meet all conditions of `where`. Where possible, Spark's
        plans name the scan by `label`, and its web UI shows the files and bytes of `skipped`.
        """

    def batches(self, task: Task, count: int, schema: StructType) -> DataFrame:
        """Return the Arrow batches of `task(0)` … `task(count - 1)`, each run by one Spark task."""
        return batches(self.spark, task, count, schema)

    @property
    @abstractmethod
    def parallelism(self) -> int:
        """The number of tasks that keeps all cores busy."""

    can_assert = False
    """Whether `asserted` is available."""

    def asserted(self, frame: DataFrame, required: Mapping[str, str]) -> DataFrame:
        """Return the same rows with non-nullable columns; a NULL in one of them is an error.

        `required` maps the names of these columns to their names in the error.
        """
        raise NotImplementedError

    @property
    def pads_chars(self) -> bool:
        """Whether the user's session pads CHAR columns that it reads."""
        return pads(self._user.conf.get)

    @abstractmethod
    def deleted(self, vectors: bytes, schema: StructType) -> DataFrame:
        """Deleted rows as a small table; `vectors` has the form of `StaticFileIndex.deleted`."""


class HelperSession(Files):
    """See Files."""

    def __init__(self, user: SparkSession) -> None:
        super().__init__(user)
        self._files = java_instance(user, "StaticFileIndex")
        self._views = java_instance(user, "ScanViews")
        self.follow()

    @functools.cached_property
    def spark(self) -> SparkSession:
        """See Files."""
        # A clone has the user's settings; a new session would have those of Spark's start.
        clone = clone_of(self._user)
        for name, value in SETTINGS.items():
            clone.conf.set(name, value)
        return clone

    @property
    def user(self) -> SparkSession:
        """The user's session."""
        user: SparkSession = self._user
        return user

    def publish(self, frame: DataFrame, known: str = "") -> str:
        """Publish `frame` to all sessions as a view, and return its qualified name.

        `known` is the name of a view to replace.
        """
        view = known.rpartition(".")[2] or self.new_view()
        self._views.publish(self._java, dataset_of(frame), view)
        return self.qualified(view)

    def empty(self, schema: StructType) -> DataFrame:
        """See Files."""
        return DataFrame(self._views.empty(self._java, schema.json()), self.spark)

    def read_parquet(
        self,
        files: Sequence[ListedFile],
        schema: StructType,
        constants: StructType,
        *,
        row_index: bool = False,
        where: Sequence[str] = (),
        columns: Sequence[str] = EVERYTHING,
        label: str = "",
        skipped: tuple[int, int] = (0, 0),
    ) -> DataFrame:
        """See Files.

        Paths are literal: no globs, no percent-decoding, no partition columns from the names of
        folders. Spark lists nothing, so a missing file is an error only when Spark reads it.

        Raises MissingDependency if this Spark has no file system for an object store.
        """
        known = {
            "paths": [self._hadoop_path(file.path) for file in files],
            "sizes": [file.size for file in files],
            "times": [file.modified for file in files],
            "constants": [[file.constants[at] for file in files] for at in range(len(constants))],
            "one_task": is_for_one_task(files),
            "label": label,
            "skipped": skipped,
        }
        place = [f"_metadata.row_index AS {ROW_INDEX}"] if row_index else []
        try:
            frame = self._files.read(
                self._java,
                orjson.dumps(known).decode(),
                schema.json(),
                constants.json(),
                self._zone,
                orjson.dumps(where).decode(),
                orjson.dumps([*columns, *place]).decode(),
            )
        except Py4JJavaError as error:
            raise _without_file_system(files, error) from error
        return DataFrame(frame, self.spark)

    def count_row_groups(self, scan: DataFrame, read: int, skipped: int) -> None:
        """Show in Spark's web UI, at a table's scan, how many row groups it reads and skips."""
        self._files.countRowGroups(dataset_of(scan), read, skipped)

    @property
    def parallelism(self) -> int:
        """See Files."""
        return int(self.spark.sparkContext.defaultParallelism)

    @functools.cached_property
    def own_cores(self) -> int:
        """How many tasks the driver's process runs at once (`local[*]`); 0 on a cluster."""
        master = str(self.spark.sparkContext.master)
        return self.parallelism if master == "local" or master.startswith("local[") else 0

    def rows(self, batch: pa.RecordBatch, schema: StructType) -> DataFrame:
        """Make a DataFrame of these rows, which must have the Arrow types of `arrow_schema`."""
        message = batch.serialize().to_pybytes()
        rows = self._views.rows(self._java, message, schema.json(), batch.num_rows == 1)
        return DataFrame(rows, self.spark)

    can_assert = True

    def asserted(self, frame: DataFrame, required: Mapping[str, str]) -> DataFrame:
        """See Files."""
        found = self._views.asserted(self._java, dataset_of(frame), dict(required))
        return DataFrame(found, self.spark)

    def deleted(self, vectors: bytes, schema: StructType) -> DataFrame:
        """See Files."""
        parsed = self._java.parseDataType(schema.json())
        frame = self._files.deleted(self._java, vectors, parsed)
        return DataFrame(frame, self.spark)

    @property
    def _java(self) -> Java:
        return session_of(self.spark)


def _without_file_system(files: Sequence[ListedFile], error: Any) -> BaseException:
    """Return MissingDependency if Spark lacks the files' file system, else the same error."""
    reason = str(error.java_exception.getMessage())
    if "No FileSystem for scheme" not in reason and "ClassNotFoundException" not in reason:
        other: BaseException = error
        return other
    return MissingDependency(
        f"Spark has no file system to read it with: {reason}",
        file=files[0].path,
        hint="start Spark with Hadoop's part for this store: for S3 spark.jars.packages="
        "org.apache.hadoop:hadoop-aws of the version of Spark's Hadoop (3.5.0 for Spark 4.2)",
        cli_hint="--engine local runs simple queries; for others give Spark Hadoop's part for this "
        "store in PYSPARK_SUBMIT_ARGS, for S3 '--packages org.apache.hadoop:hadoop-aws:VERSION "
        "pyspark-shell' with the version of Spark's Hadoop (3.5.0 for Spark 4.2)",
    )
