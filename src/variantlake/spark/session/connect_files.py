"""Files as DataFrames through Spark Connect, which gives no access to a JVM."""

from __future__ import annotations

import atexit
import functools
import re
import unicodedata
import weakref
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, MapType, StringType, StructField, StructType

from variantlake.errors import UnsupportedFeature
from variantlake.quoting import quote_identifier, quote_string
from variantlake.spark.session.classic_files import (
    EVERYTHING,
    ROW_INDEX,
    SETTINGS,
    Files,
    ListedFile,
    unused,
)
from variantlake.spark.session.jobs import functions_of
from variantlake.spark.session.schemas import type_ddl
from variantlake.spark.session.settings import ENABLED
from variantlake.spark.session.versions import at_exit

_GLOB = re.compile(r"[\\{}\[\]*?^]")
_UNQUOTED = "/_-!.~'()*,;:$&+=@"
_QUOTED = ("Cc", "Zs", "Zl", "Zp")
_NOT_FOUND = "variantlake does not know the file of a path that Spark uses: "

MAX_SCANS = 32
"""The most scans in a union, one for each combination of constants; with more, each row looks its
constants up. With constants in the plan, Spark can leave out scans by conditions known late."""

_LISTING = {
    # Without it a scan of more than 32 files starts a job of thousands of tasks to list them.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
}


class ConnectSessionFiles(Files):
    """See Files."""

    def __init__(self, user: SparkSession) -> None:
        super().__init__(user)
        self._unused: deque[str] = deque()

    @functools.cached_property
    def spark(self) -> Any:
        """See Files."""
        clone = self._user.cloneSession()
        # At exit the clone's client would call the server, for minutes if that was stopped with the
        # user's session. The server drops unused sessions by itself.
        atexit.unregister(at_exit(clone.client))
        for name, value in (SETTINGS | _LISTING).items():
            # Setting a deprecated one warns the user. A server does not know ours until it is set.
            if name == ENABLED or clone.conf.get(name) != value:
                clone.conf.set(name, value)
        return clone

    def follow(self) -> None:
        """See Files; this also drops unused views."""
        while self._unused:
            self.drop([self._unused.popleft()])
        super().follow()

    def publish(self, frame: DataFrame, mark: str = "") -> str:
        """Publish `frame` to all sessions of the server; return its full name, ending in `mark`."""
        view = self.new_view(mark)
        frame.createOrReplaceGlobalTempView(view)
        return self.qualified(view)

    def drop(self, views: Iterable[str]) -> None:
        """Drop views by their full names."""
        for view in views:
            self.spark.catalog.dropGlobalTempView(view.partition(".")[2])

    def drop_after(self, frame: DataFrame, views: Iterable[str]) -> None:
        """Drop the views of a DataFrame once it and all DataFrames made of it are gone.

        The next query drops them. Python may finalize an object at any moment, even during a call
        to the server, where another call is not allowed.
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
        found: DataFrame = self.spark.sql(f"SELECT {nothing} WHERE false")
        return found

    def read_parquet(
        self,
        files: Sequence[ListedFile],
        schema: StructType,
        constants: StructType,
        *,
        row_index: bool = False,
        where: Sequence[str] = (),
        columns: Sequence[str] = EVERYTHING,
        label: str = "",  # noqa: ARG002 - a client cannot name a scan
        skipped: tuple[int, int] = (0, 0),  # noqa: ARG002 - nor add to Spark's web UI
    ) -> DataFrame:
        """See Files."""
        files = [replace(file, path=self._hadoop_path(file.path)) for file in files]
        for file in files:
            if file.path.rpartition("/")[2].startswith(("_", ".")):
                raise UnsupportedFeature(
                    "Spark Connect silently leaves out files with such a name",
                    file=file.path,
                    hint="a classic session reads them",
                )
        more = [f"_metadata.row_index AS {ROW_INDEX}"] if row_index else []
        groups: dict[tuple[str | None, ...], list[str]] = {}
        for file in files:
            groups.setdefault(file.constants, []).append(file.path)
        if len(groups) > MAX_SCANS:
            rows = self._looked_up(files, schema, constants, more)
        else:
            frames = []
            for values, paths in groups.items():
                # Makes the columns nullable, like the table's.
                texts = [
                    "NULL" if v is None else f"IF(false, NULL, {quote_string(v)})" for v in values
                ]
                own = _constants(constants, texts)
                frames.append(self._read(paths, schema).selectExpr("*", *own, *more))
            rows = functools.reduce(lambda one, other: one.unionAll(other), frames)
        for condition in where:
            rows = rows.filter(condition)
        return rows if columns == EVERYTHING else rows.selectExpr(*columns)

    def _looked_up(
        self,
        files: Sequence[ListedFile],
        schema: StructType,
        constants: StructType,
        more: Sequence[str],
    ) -> DataFrame:
        """Read files with many different constants in one scan; rows find them by file path.

        Spark sends every task a hash table as one value: an array of maps by the checksum of the
        path. A join would not do: a path in another form than Spark's would join to no rows
        (EXACTNESS, rule 15), and Spark would push conditions below it (see `deletion_vectors`).
        """
        buckets: list[dict[str, tuple[str | None, ...]]] = [{} for _ in files]
        for file in files:
            path = _metadata_path(file.path)
            buckets[zlib.crc32(path.encode()) % len(files)][path] = file.constants
        texts = StructType([StructField(f"t{at}", StringType()) for at in range(len(constants))])
        table = StructType([StructField("b", ArrayType(MapType(StringType(), texts)))])
        values = self.spark.createDataFrame([(buckets,)], table).scalar()
        rows: Any = self._read([file.path for file in files], schema)
        sf = functions_of(self.spark)
        path = rows.metadataColumn("_metadata").getField("file_path")
        bucket = (sf.crc32(path.cast("binary")) % len(files)).cast("int")
        found = sf.coalesce(
            sf.try_element_at(sf.get(values, bucket), path),
            sf.raise_error(sf.concat(sf.lit(_NOT_FOUND), path)),
        )
        name = unused("__vl_of_file", schema.names)
        rows = rows.select("*", found.alias(name), *map(sf.expr, more))
        names = [quote_identifier(item.name) for item in schema.fields]
        columns = _constants(constants, [f"{name}.{field.name}" for field in texts.fields])
        numbered = [ROW_INDEX] if more else []
        selected: DataFrame = rows.selectExpr(*names, *columns, *numbered)
        return selected

    def _read(self, paths: Iterable[str], schema: StructType) -> DataFrame:
        reader = self.spark.read.schema(schema)
        # No columns from the names of folders, no globs.
        reader = reader.option("recursiveFileLookup", "true")
        found: DataFrame = reader.parquet(*(_GLOB.sub(r"\\\g<0>", path) for path in paths))
        return found

    @property
    def parallelism(self) -> int:
        """See Files; a guess, as the server does not tell its cores."""
        return 8

    def deleted(self, vectors: bytes, schema: StructType) -> DataFrame:
        """See Files."""
        rows, position = [], 0
        while position < len(vectors):
            number, words = np.frombuffer(vectors, "<i4", 2, position).tolist()
            bits = np.frombuffer(vectors, "<i8", words, position + 8).tolist()
            rows.append((number, bits))
            position += 8 + 8 * words
        found: DataFrame = self.spark.createDataFrame(rows, schema)
        return found


def _constants(constants: StructType, texts: Sequence[str]) -> Iterator[str]:
    for item, text in zip(constants.fields, texts, strict=True):
        yield f"TRY_CAST({text} AS {type_ddl(item.dataType)}) AS {quote_identifier(item.name)}"


def _metadata_path(path: str) -> str:
    """Return a path as in Spark's `_metadata.file_path`: a Java URI, `file:/…` without host."""
    scheme, slashes, rest = path.partition("://")
    host, _, name = rest.partition("/") if slashes else ("", "", path.removeprefix("/"))
    quoted = "".join(
        quote(char, _UNQUOTED) if char.isascii() or unicodedata.category(char) in _QUOTED else char
        for char in name
    )
    return f"{scheme if slashes else 'file'}:{'//' if host else ''}{host}/{quoted}"
