"""The common part of queries in classic sessions and through Spark Connect.

Each kind has its own front end (`catalyst_query`, `connect_query`), which finds tables and paths.
This module decides how a query fails, what is left to Spark, and which version a time means.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, Protocol, TypeVar

from pyspark.sql import DataFrame, SparkSession

from variantlake.errors import (
    AbsolutePathRefused,
    InvalidQuery,
    NotADeltaTable,
    StoreFailed,
    UnsupportedFeature,
    VariantLakeError,
)
from variantlake.spark.query.names import Resolve, Target, versioned
from variantlake.spark.scan.tables import Tables, TableVersion
from variantlake.spark.session.versions import is_tried
from variantlake.sql.token_tables import TableName

SPARK_ALONE = "the statement is not a query over a table of ours: Spark runs it as it is"
NOT_A_SELECT = "the statement does more than read: whole Variants of all files are read"

LEFT_TO_SPARK = (UnsupportedFeature, StoreFailed, NotADeltaTable)
"""Errors of our reader after which Delta Spark may still run the query."""

NO_DELTA = frozenset(
    {
        "DATA_SOURCE_NOT_FOUND",
        "INVALID_TEMP_OBJ_REFERENCE",
        "TABLE_OR_VIEW_NOT_FOUND",
        "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY",
    }
)
"""Spark's error conditions for a table's name if Delta Spark is missing."""


class _Prepared(Protocol):
    frame: DataFrame | None


Prepared = TypeVar("Prepared", bound=_Prepared)


class SessionQueries(ABC, Generic[Prepared]):
    """Runs the queries of one user session."""

    def __init__(self, spark: SparkSession, tables: Tables) -> None:
        self._spark: Any = spark
        self.tables = tables

    def run(self, text: str, args: Any, resolve: Resolve) -> DataFrame:
        """Run the query as a DataFrame. Raises InvalidQuery with Spark's message on this text."""
        prepared = self._checked(text, args, resolve, run=True)
        if prepared.frame is None:
            raise InvalidQuery("the query has no result")
        return prepared.frame

    def plan(self, text: str, args: Any, resolve: Resolve) -> Prepared:
        """Plan the scans of the query, without a run. Raises InvalidQuery with Spark's message."""
        return self._checked(text, args, resolve, run=False)

    @abstractmethod
    def _checked(self, text: str, args: Any, resolve: Resolve, *, run: bool) -> Prepared:
        """Return the query with its scans; without `run` it has no frame."""

    @abstractmethod
    def _sql(self, text: str, args: Any, sources: Mapping[str, str]) -> DataFrame:
        """Run the text in Spark; `sources` as in `or_invalid`. Raises InvalidQuery."""

    def _by_spark(self, text: str, args: Any, error: VariantLakeError, *, run: bool) -> DataFrame:
        """Run the text by Spark alone. Raises `error` without `run`, or if Spark fails too."""
        # A table that a setting refuses must not be read by Spark either.
        if not run or isinstance(error, AbsolutePathRefused):
            raise error
        try:
            return self._sql(text, args, {})
        except InvalidQuery:
            raise error from None

    def opened(
        self, location: str, version: int | None, timestamp: str | None, args: Any
    ) -> TableVersion:
        """Return a table at a version, or at a time in the query, in the user's time zone."""
        if timestamp is None:
            return self.tables.open(location, version)
        text = f"SELECT unix_millis(try_cast(({timestamp}) AS TIMESTAMP))"
        found: int | None = self._sql(text, args, {}).collect()[0][0]
        if found is None:
            raise not_a_timestamp(timestamp)
        return self.tables.open(location, version, before=found)

    def _load(self, name: TableName, target: Target, args: Any) -> TableVersion:
        """Return the table, at the right version, that the tokens of a text name."""
        location, version = target.location, name.version
        if version is None and name.timestamp is None:
            location, version = versioned(location, name.parts)
        return self.opened(location, version, name.timestamp, args)

    @functools.cached_property
    def _is_tried(self) -> bool:
        return is_tried(self._spark)


def not_a_timestamp(text: str) -> InvalidQuery:
    """Return the error for a TIMESTAMP AS OF whose value is not a timestamp."""
    return InvalidQuery(f"{text} is not a timestamp")
