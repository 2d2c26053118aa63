"""What all of a lake works on: a session, its helper, and the one way that names have here."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from variantlake.delta.log.snapshot import Snapshot
from variantlake.quoting import Parts
from variantlake.shown import Shown
from variantlake.spark.query.catalyst_query import ClassicQueries
from variantlake.spark.query.connect_query import ConnectQueries
from variantlake.spark.query.names import CatalogNames, CatalogTable, CatalogView, find_remote
from variantlake.spark.query.references import Resolve, Target
from variantlake.spark.query.table_locations import Location, NamedLocation, find_place, writable
from variantlake.spark.scan.tables import Tables
from variantlake.spark.session.arguments import check_location, check_tables
from variantlake.spark.session.classic_files import HelperSession
from variantlake.spark.session.jobs import task_runner
from variantlake.spark.session.jvm import is_connect

if TYPE_CHECKING:
    from variantlake.jobs.tasks import Runner  # loads the kernels


class LakeSession(Shown):
    """A session of the user's, what stands beside it, and the tables that were named."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._tables = Tables()
        self._names: dict[str, str] = {}

    def __repr__(self) -> str:
        kind = "Spark Connect" if is_connect(self._spark) else "Spark"
        return f"<{type(self).__name__} on {kind}, {len(self._names)} names registered>"

    @functools.cached_property
    def _helper(self) -> HelperSession:
        return HelperSession(self._spark)

    @functools.cached_property
    def _runner(self) -> ClassicQueries | ConnectQueries:
        return self._runner_over(self._tables)

    def _runner_over(self, tables: Tables) -> ClassicQueries | ConnectQueries:
        """What runs queries over these tables: sessions of Connect show neither plans nor a JVM."""
        if is_connect(self._spark):
            return ConnectQueries(self._spark, tables)
        return ClassicQueries(self._spark, self._helper, tables)

    def _place(self, table: Location) -> NamedLocation:
        """What a caller named, by the one way that names have here."""
        return find_place(table, self._names, self._find)

    def _written_to(self, table: Location) -> str:
        """The location of a table that is loaded into or changed."""
        return writable(self._place(table), table)

    def _snapshot(self, table: Location) -> Snapshot:
        """The newest version of such a table."""
        return self._tables.open(self._written_to(table)).snapshot

    def _rewriter(self, snapshot: Snapshot) -> Runner:
        """What rewrites files of a table on Spark's executors."""
        return task_runner(self._spark, f"rewrite files of {snapshot.store.uri}")

    def _find(self, parts: Parts) -> CatalogTable | CatalogView | None:
        if is_connect(self._spark):
            return find_remote(self._spark, parts)
        return CatalogNames(self._spark).find(parts)

    def _resolver(self, tables: Mapping[str, Location] | None) -> Resolve:
        given = {}
        check_tables(tables)
        for name, table in (tables or {}).items():
            check_location(name, table)
            given[name.lower()] = self._written_to(table)
        return _resolver({**self._names, **given})

    def _in_user_session(self, frame: DataFrame, mark: str) -> DataFrame:
        """A DataFrame of the helper session as one of the user's."""
        view = self._helper.new_view(mark)
        self._helper.publish(frame, view)
        try:
            return self._spark.table(self._helper.qualified(view))
        finally:
            self._helper.drop(view)


def _resolver(named: Mapping[str, str]) -> Resolve:
    """Locations by names in lower case, of one or several parts with dots between them."""

    def resolve(parts: Parts) -> Target | None:
        location = named.get(".".join(parts).lower())
        if location is not None:
            return Target(location, parts, in_spark=False)
        if len(parts) == 2 and parts[0].lower() == "delta":
            return Target(parts[1], parts, in_spark=True)
        return None

    return resolve
