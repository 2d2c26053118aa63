"""The state of a lake: a session, its helper session, and how names of tables are resolved."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.named_versions import find_version
from variantlake.errors import (
    InvalidQuery,
)
from variantlake.quoting import Parts
from variantlake.spark.query.catalyst_query import ClassicQueries
from variantlake.spark.query.connect_query import ConnectQueries
from variantlake.spark.query.names import CatalogNames, CatalogTable, Resolve, Target, find_remote
from variantlake.spark.query.table_locations import (
    Location,
    NamedLocation,
    find_place,
    writable,
)
from variantlake.spark.scan.tables import Tables, TableVersion
from variantlake.spark.session.arguments import (
    check_location,
    check_tables,
)
from variantlake.spark.session.classic_files import HelperSession
from variantlake.spark.session.jobs import planning_job, task_runner
from variantlake.spark.session.jvm import is_connect
from variantlake.sql.statements import not_run_by_lake

if TYPE_CHECKING:
    from variantlake.jobs.tasks import Runner


_LACKS_DELTA = (
    "[TABLE_OR_VIEW_NOT_FOUND]",
    "[PARSE_SYNTAX_ERROR]",
    "[UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY]",
    "[DATA_SOURCE_NOT_FOUND]",
    "[NOT_SUPPORTED_COMMAND",
    "[UNSUPPORTED_FEATURE.TABLE_OPERATION]",
    "[DELTA_CLONE_UNSUPPORTED_SOURCE]",
    "[INTERNAL_ERROR] Unexpected table relation",  # a DELETE from a view
)
"""Spark's refusals of statements that it supports only for Delta tables."""


class LakeSession:
    """The user's session, our helper session, and `names`: locations of registered tables."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.tables = Tables(planning_job(spark))
        self.names: dict[str, str] = {}

    @functools.cached_property
    def helper(self) -> HelperSession:
        """The session in which we make our scans."""
        return HelperSession(self.spark)

    @functools.cached_property
    def runner(self) -> ClassicQueries | ConnectQueries:
        """The runner of queries over this session's tables."""
        return self.runner_over(self.tables)

    def runner_over(self, tables: Tables) -> ClassicQueries | ConnectQueries:
        """Return a runner of queries; Connect needs its own, without access to plans or a JVM."""
        if is_connect(self.spark):
            return ConnectQueries(self.spark, tables)
        return ClassicQueries(self.spark, self.helper, tables)

    def place(self, table: Location) -> NamedLocation:
        """Resolve a table that a caller named; all methods of a lake resolve names like this."""
        return find_place(table, self.names, self.find)

    def written_to(self, table: Location) -> str:
        """Return the location of a table to write to. Raises as `writable`."""
        return writable(self.place(table), table)

    def number_of(self, location: str, version: int | str | None) -> int | None:
        """Return a version's number, which may be given by its tag.

        Raises MissingSource for an unknown tag, InvalidValue for what cannot be one.
        """
        if not isinstance(version, str):
            return version
        return find_version(self.tables.open(location).snapshot.domains, version, location)

    def snapshot(self, table: Location) -> Snapshot:
        """Return the newest version of a table that could be written to."""
        return self.tables.open(self.written_to(table)).snapshot

    def forget(self, text: str, tables: Mapping[str, Location] | None) -> bool:
        """Remove a registered name, as DROP TABLE does; the table's files stay.

        Returns False if the name is not registered. Raises InvalidQuery for one of `tables`.
        """
        name = text.replace("`", "").lower()
        if name in {each.lower() for each in tables or {}}:
            raise InvalidQuery(
                f"{text} is a name of this statement alone: there is nothing to drop",
                hint="leave it out of tables=",
                cli_hint="",
            )
        return self.names.pop(name, None) is not None

    def rewriter(self, snapshot: Snapshot) -> Runner:
        """Return the runner that rewrites files of a table on Spark's executors."""
        return task_runner(self.spark, f"rewrite files of {snapshot.store.uri}")

    def find(self, parts: Parts) -> CatalogTable | None:
        """Find a table or view in the session's catalog."""
        if is_connect(self.spark):
            return find_remote(self.spark, parts)
        return CatalogNames(self.spark).find(parts)

    def resolver(self, tables: Mapping[str, Location] | None) -> Resolve:
        """Return the resolver of a text's names; `tables` take precedence over registered ones."""
        given = {}
        check_tables(tables)
        for name, table in (tables or {}).items():
            check_location(name, table)
            given[name.lower()] = self.written_to(table)
        return _resolver({**self.names, **given})

    def frame(self, table: TableVersion, source: str) -> DataFrame:
        """Return all rows of a table; `source` is its name in a query."""
        if isinstance(self.runner, ConnectQueries):
            return self.runner.read(table)
        return self.runner.read(self.runner.relation(table, source))

    def query(
        self,
        text: str,
        args: Mapping[str, Any] | list[Any] | None = None,
        tables: Mapping[str, Location] | None = None,
        without_delta: Callable[[], DataFrame] | None = None,
    ) -> DataFrame:
        """Run a query as `Lake.sql` does. Raises as that.

        Calls `without_delta` instead if Spark refuses the statement because it lacks Delta.
        """
        resolve = self.resolver(tables)
        try:
            return self.runner.run(text, _args(args), resolve)
        except InvalidQuery as error:
            # If the session had Delta Spark, it would run such a statement.
            if any(sign in error.message for sign in _LACKS_DELTA):
                if without_delta is not None:
                    return without_delta()
                raise not_run_by_lake(text) or error from None
            raise


def _resolver(named: Mapping[str, str]) -> Resolve:
    """Return the resolver of these names, in lower case and dotted if they have several parts."""

    def resolve(parts: Parts) -> Target | None:
        location = named.get(".".join(parts).lower())
        if location is not None:
            return Target(location, parts, in_spark=False)
        if len(parts) == 2 and parts[0].lower() == "delta":
            return Target(parts[1], parts, in_spark=True)
        return None

    return resolve


def _args(args: Mapping[str, Any] | list[Any] | None) -> Any:
    return dict(args) if isinstance(args, Mapping) else args
