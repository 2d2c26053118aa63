"""Run a lake's SQL texts: queries, DELETE, UPDATE, MERGE, ALTER TABLE and CREATE TABLE."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from variantlake.delta.actions.commit_properties import user_metadata
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.features import check_defaults_listed
from variantlake.errors import (
    InvalidQuery,
    InvalidValue,
    NotADeltaTable,
    StoreFailed,
    UnsupportedFeature,
    VariantLakeError,
)
from variantlake.quoting import Parts
from variantlake.spark.lake.session import LakeSession
from variantlake.spark.query.catalyst_query import ClassicQueries
from variantlake.spark.query.names import delta_name
from variantlake.spark.query.table_locations import (
    Location,
    name_parts,
)
from variantlake.spark.session.arguments import (
    check_text,
    is_frame,
)
from variantlake.spark.session.char_columns import char_columns, pads
from variantlake.spark.session.jvm import is_connect
from variantlake.spark.session.refusals import REFUSALS, quiet
from variantlake.spark.session.settings import (
    ANSI,
    DELTA_USER_METADATA,
    DOUBLE_QUOTED_NAMES,
    ESCAPED,
    TIME_ZONE,
    evolves_merges,
    is_on,
    is_utc,
)
from variantlake.sql.alter import Alteration, ChangeColumns, Default, DropFeature, parse_alter
from variantlake.sql.changes import (
    ChangeText,
    DeleteText,
    MergeText,
    Named,
    change_text,
    parse_change,
    with_texts,
)
from variantlake.sql.create import parse_create
from variantlake.sql.inserts import InsertText, parse_insert
from variantlake.sql.splice import Splice, splice
from variantlake.sql.statements import not_run_by_lake
from variantlake.sql.table_functions import TableChanges, table_changes_in
from variantlake.sql.token_tables import short_qualifiers, tags_in
from variantlake.sql.tokens import ParsedText, tokenize
from variantlake.sql.upkeep import (
    CloneTable,
    ConvertToDelta,
    DropTable,
    Upkeep,
    parse_upkeep,
)

if TYPE_CHECKING:
    from variantlake.dml.result import ChangeResult
    from variantlake.spark.dml.change import ChangeRunner
    from variantlake.spark.lake.new_tables import NewTables

MAX_LOCAL_BYTES = 4 << 30
"""The most bytes of files in which this process finds rows for a DELETE, without a Spark job."""


@contextmanager
def _described_commits(spark: Any) -> Iterator[None]:
    """Pass this context's commit properties on to commits of Delta Spark."""
    text = user_metadata()
    if text is None:
        yield
        return
    before = spark.conf.get(DELTA_USER_METADATA, None)
    spark.conf.set(DELTA_USER_METADATA, text)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(DELTA_USER_METADATA)
        else:
            spark.conf.set(DELTA_USER_METADATA, before)


class LakeStatements:
    """Runs texts over the tables of one session."""

    def __init__(self, session: LakeSession) -> None:
        self._session = session

    def sql(
        self,
        query: str,
        args: Mapping[str, Any] | list[Any] | None,
        tables: Mapping[str, Location] | None,
    ) -> DataFrame:
        """Run a text as `Lake.sql` does. Raises as that."""

        def left_to_spark(error: UnsupportedFeature) -> DataFrame:
            try:
                with _described_commits(self._session.spark):
                    return self._session.query(query, args, tables)
            except VariantLakeError as refused:
                if refused.message.startswith("[DELTA_"):  # Delta Spark refuses these arguments
                    said = refused.message.partition("\n")[0]
                    error.hint = f"Delta Spark refuses it too: {said}"
                raise error from None

        changes = [each for each in table_changes_in(query) if self._is_ours(each, tables)]
        if changes and not is_connect(self._session.spark):
            return self._over_changes(query, changes, args, tables)
        whole = parse_upkeep(query) or parse_insert(query)
        if isinstance(whole, DropTable) and self._session.forget(whole.table, tables):
            return self._session.spark.createDataFrame([], StructType([]))
        location = None if whole is None else self._location_of(whole.table, tables)
        if isinstance(whole, ConvertToDelta):
            location = _parquet_folder(whole.table) or location
        if whole is not None and location is not None:
            own = functools.partial(self._whole, location, whole, args, tables)
            if isinstance(whole, CloneTable):
                names = {*self._session.names, *map(str.lower, tables or ())}
                if whole.source.replace("`", "").lower() in names:  # that Spark does not know
                    return own()
            return self._session.query(query, args, tables, own)
        try:
            made = parse_create(query)
        except UnsupportedFeature as error:
            return left_to_spark(error)
        if made is not None and self._makes_tables.make(made, args, tables):
            return self._session.spark.createDataFrame([], StructType([]))
        altered = parse_alter(query)
        if altered is not None:
            location = self._location_of(altered.table, tables)
            if location is None:
                with _described_commits(self._session.spark):
                    return self._session.query(query, args, tables)
            try:
                self.alter(location, altered.change)
            except UnsupportedFeature as error:
                return left_to_spark(error)
            return self._session.spark.createDataFrame([], StructType([]))
        parsed = parse_change(query)
        location = None if parsed is None else self._location_of(parsed.target.text, tables)
        if parsed is not None and location is None:
            location = self._behind(parsed.target.text)
        if parsed is None or location is None:
            refuse = None if parsed is None else functools.partial(self._not_ours, parsed, query)
            with _described_commits(self._session.spark):
                return self._session.query(query, args, tables, refuse)
        from variantlake.spark.dml.statements import result_rows

        given = dict(args) if isinstance(args, Mapping) else args
        try:
            done = self.change(location, parsed, args=given, tables=tables)
        except UnsupportedFeature as error:
            return left_to_spark(error)
        if isinstance(self._session.runner, ClassicQueries):
            self._session.runner.renew_views()
        kind = type(parsed).__name__.removesuffix("Text").upper()
        rows: DataFrame = result_rows(self._session.spark, kind, done)
        return rows

    def with_numbers(self, query: str, tables: Mapping[str, Location] | None) -> str:
        """Return a text with the numbers of the versions that it names by their tags.

        Raises MissingSource for a name that no version of the table has.
        """
        if "version" not in query.lower():
            return query
        found = []
        for table, tag, span in tags_in(ParsedText.of(query)):
            location = self._location_of(table, tables)
            if location is not None:
                number = str(self._session.number_of(location, tag))
                found.append(Splice(*span, number))
        return splice(query, found)

    def _not_ours(self, parsed: ChangeText, query: str) -> DataFrame:
        """Raise the error for a change of a target that we cannot find, without Delta Spark."""
        target = parsed.target.text
        parts = name_parts(target)
        entry = None if parts is None else self._session.find(parts)
        if entry is not None and entry.is_view:
            raise UnsupportedFeature(
                f"{target} is a view, and rows of a view are not changed here",
                hint="name the table that it reads; a temporary view takes changes if it is"
                " SELECT * of one table",
            )
        raise not_run_by_lake(query) or NotADeltaTable(f"there is no table {target}")

    def _behind(self, text: str) -> str | None:
        """Return the location of the table of which a temporary view is SELECT *, else None."""
        parts, runner = name_parts(text), self._session.runner
        return runner.table_behind(parts) if parts and isinstance(runner, ClassicQueries) else None

    def _is_ours(self, call: TableChanges, tables: Mapping[str, Location] | None) -> bool:
        return self._location_of(call.table, tables) is not None

    def _over_changes(
        self,
        query: str,
        calls: Sequence[TableChanges],
        args: Any,
        tables: Mapping[str, Location] | None,
    ) -> DataFrame:
        """Run a query with calls of `table_changes` replaced by views of the changed rows."""
        from variantlake.spark.lake.change_feed import read_changes
        from variantlake.spark.lake.upkeep import TableStatements

        statements = TableStatements(self._session)

        with ExitStack() as views:
            spliced = []
            for call in calls:
                location = self._location_of(call.table, tables) or ""
                (first, since), (last, until) = map(
                    statements.end_of_range, (call.first, call.last)
                )
                frame = read_changes(
                    self._session,
                    self._session.tables.open(location).snapshot,
                    versions=(first, last),
                    times=(since, until),
                    items=["*"],
                    where=None,
                )
                view = views.enter_context(self.named_source(frame))
                spliced.append(Splice(*call.span, view))
            return self._session.query(splice(query, spliced), args, tables)

    def _whole(
        self,
        location: str,
        text: Upkeep | InsertText,
        args: Any,
        tables: Mapping[str, Location] | None,
    ) -> DataFrame:
        """Run a statement about a whole table, or an INSERT, for a session without Delta Spark."""
        if isinstance(text, InsertText):
            from variantlake.spark.lake.inserts import Inserts

            inserts = Inserts(self._session, self._change_runner)
            targets = [(location, text)]
            for also in text.also:
                target = self._location_of(also.table, tables)
                if target is None:
                    raise NotADeltaTable(f"there is no table {also.table}")
                targets.append((target, also))
            for target, insert in targets:  # each one reads what those before it wrote
                inserts.run(target, insert, args, tables)
            return self._session.spark.createDataFrame([], StructType([]))
        from variantlake.spark.lake.upkeep import TableStatements

        source = None
        if isinstance(text, CloneTable):
            source = self._location_of(text.source, tables)
            if source is None:
                raise NotADeltaTable(f"there is no table {text.source}")
        return TableStatements(self._session).run(location, text, source)

    def run(
        self,
        location: str,
        parsed: ChangeText,
        *,
        tables: Mapping[str, Location] | None = None,
        dry_run: bool = False,
    ) -> ChangeResult:
        """Change rows, or let Delta Spark do so, if the session has it and we do not support it.

        Delta Spark has no dry run, so then UnsupportedFeature names what we do not support.
        """
        try:
            return self.change(location, parsed, tables=tables, dry_run=dry_run)
        except UnsupportedFeature as error:
            if dry_run:
                raise
            try:
                with quiet(), _described_commits(self._session.spark):
                    (row,) = self._session.spark.sql(change_text(parsed)).collect()
            except REFUSALS:
                raise error from None
        from variantlake.spark.dml.statements import result_of

        version = self._session.tables.open(location).snapshot.version
        return result_of(parsed, row.asDict(), version)

    def alter(self, location: str, change: Alteration) -> int:
        """Change a table's columns, properties or constraints; returns the new version."""
        from variantlake.ddl.alter_table import alter_table
        from variantlake.spark.load.constraints import SparkChecks

        def rows(snapshot: Snapshot) -> DataFrame:
            found = self._session.tables.open(location, snapshot.version)
            return self._session.frame(found, delta_name(location))

        snapshot = self._session.tables.open(location).snapshot
        run = self._session.rewriter(snapshot)
        if isinstance(change, DropFeature):
            from variantlake.maintenance.drop_feature import drop_feature

            truncates = change.truncates
            done = drop_feature(snapshot, change.name, run, truncate_history=truncates)
            return done.version or 0
        given = change.changes if isinstance(change, ChangeColumns) else (change,)
        if any(isinstance(each, Default) and each.expression is not None for each in given):
            check_defaults_listed(snapshot.features, "ALTER TABLE")
        checks = SparkChecks(self._session.spark, rows)
        return alter_table(snapshot, change, checks, run=run)

    def change(
        self,
        location: str,
        parsed: ChangeText,
        *,
        args: Any = None,
        tables: Mapping[str, Location] | None = None,
        dry_run: bool = False,
    ) -> ChangeResult:
        """Change rows without Delta Spark. Raises UnsupportedFeature if we do not support it."""
        from variantlake.spark.dml.statements import statement_of

        if isinstance(parsed, DeleteText) and not args:
            try:
                return self.delete_here(
                    location, parsed.where, alias=parsed.target.alias, dry_run=dry_run
                )
            except (InvalidQuery, UnsupportedFeature):
                pass  # Spark may support the condition; otherwise its error is the better one
        if isinstance(parsed, MergeText) and isinstance(args, list):
            raise InvalidQuery(
                "a MERGE takes parameters by name",
                hint="lake.sql(text, {'name': value}), :name in the text",
                cli_hint="",
            )
        if isinstance(parsed, MergeText) and evolves_merges(self._session.spark):
            parsed = replace(parsed, evolves=True)
        resolve = self._session.resolver(tables)
        parsed = self._with_short_names(parsed)
        statement = statement_of(
            self._session.spark, parsed, args, ansi=is_on(self._session.spark, ANSI)
        )
        return self._change_runner.run(location, statement, resolve, dry_run=dry_run)

    def _with_short_names(self, parsed: ChangeText) -> ChangeText:
        """Qualify columns by only the last parts of the tables' names.

        Our queries use these last parts as the tables' aliases.
        """
        tables = [parsed.target, *([parsed.source] if isinstance(parsed, MergeText) else [])]
        names = [name for each in tables if len(name := self._whole_name(each)) > 1]

        def shorter(text: str) -> str:
            return splice(text, short_qualifiers(tokenize(text), names))

        return with_texts(parsed, shorter) if names else parsed

    def _whole_name(self, table: Named) -> Parts:
        """Return all parts of the name of a table without an alias; empty if it has one."""
        parts = name_parts(table.text)
        if parts is None or parts[-1] != table.alias:
            return ()
        if ".".join(parts).lower() in self._session.names or parts[0].lower() == "delta":
            return parts
        return (found.name if (found := self._session.find(parts)) else ()) or parts

    def delete_here(
        self, location: str, where: str | None, *, alias: str = "", dry_run: bool = False
    ) -> ChangeResult:
        """Delete without a Spark job. Raises UnsupportedFeature for rows that only Spark finds."""
        from variantlake.dml.delete import delete

        if '"' in (where or "") and is_on(self._session.spark, DOUBLE_QUOTED_NAMES):
            raise UnsupportedFeature(
                "this session reads double quotes as names; the local engine reads them as strings",
                hint="write names in backticks and texts in single quotes",
            )
        if "\\" in (where or "") and is_on(self._session.spark, ESCAPED):
            raise UnsupportedFeature(
                f"the local engine reads backslashes as escapes, but this session has {ESCAPED} on",
                hint=f"spark.conf.set('{ESCAPED}', 'false')",
            )
        snapshot = self._session.tables.open(location).snapshot
        if char_columns(snapshot.schema) and not pads(self._session.spark.conf.get):
            raise UnsupportedFeature(
                "the local engine pads CHAR columns to their length, and this session does not",
                hint="leave spark.sql.readSideCharPadding and legacy.charVarcharAsString alone",
            )
        utc = is_utc(self._session.spark.conf.get(TIME_ZONE))
        return delete(
            snapshot,
            where,
            dry_run=dry_run,
            table=alias,
            utc=utc,
            computed=False,
            max_bytes=MAX_LOCAL_BYTES,
        )

    @functools.cached_property
    def _change_runner(self) -> ChangeRunner:
        # Loads the kernels, which queries do without.
        from variantlake.spark.dml.change import ChangeRunner

        return ChangeRunner(self._session.spark, self._session.tables, self._session.runner_over)

    @functools.cached_property
    def _makes_tables(self) -> NewTables:
        # Loads the kernels, which queries do without.
        from variantlake.spark.lake.new_tables import NewTables

        return NewTables(self._session)

    def _location_of(self, text: str, tables: Mapping[str, Location] | None) -> str | None:
        """Return the location of a table that a statement names; None if it is not ours."""
        for name, given in (tables or {}).items():
            if name.lower() == text.replace("`", "").lower():
                return self._session.written_to(given)
        try:
            return self._session.place(text).location
        except (NotADeltaTable, StoreFailed, InvalidValue):
            return None

    @contextmanager
    def named_source(self, source: DataFrame | str) -> Iterator[str]:
        """Yield the text that names a source; a DataFrame becomes a temporary view meanwhile."""
        if not is_frame(source):
            check_text(source, "the source of a merge")
            yield str(source)
            return
        view = f"__vl_source_{uuid4().hex[:12]}"
        source.createOrReplaceTempView(view)
        try:
            yield view
        finally:
            self._session.spark.catalog.dropTempView(view)


def _parquet_folder(table: str) -> str | None:
    """Return the path of "parquet.`path`"; None for any other name."""
    parts = name_parts(table) or ()
    return parts[1] if len(parts) == 2 and parts[0].lower() == "parquet" else None
