"""Changing rows: DELETE, UPDATE and MERGE, as methods and as SQL."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.sql import DataFrame

from variantlake.errors import (
    InvalidQuery,
    InvalidValue,
    NotADeltaTable,
    StoreFailed,
    UnsupportedFeature,
    VariantLakeError,
)
from variantlake.expressions.from_python import Condition, TypedPath, constant
from variantlake.quoting import Parts, quote_identifier
from variantlake.spark.lake.maintenance import LakeMaintenance
from variantlake.spark.query.references import delta_name
from variantlake.spark.query.table_locations import Location, name_parts
from variantlake.spark.session.arguments import check_expressions, check_text, is_frame
from variantlake.spark.session.char_columns import char_columns, pads
from variantlake.spark.session.refusals import REFUSALS, quiet
from variantlake.spark.session.settings import (
    ANSI,
    DOUBLE_QUOTED_NAMES,
    ESCAPED,
    TIME_ZONE,
    is_on,
    is_utc,
)
from variantlake.sql.changes import (
    ChangeText,
    Clause,
    DeleteText,
    MergeText,
    Named,
    UpdateText,
    change_text,
    parse_change,
    parse_clauses,
    with_texts,
)
from variantlake.sql.splice import splice
from variantlake.sql.token_tables import short_qualifiers
from variantlake.sql.tokens import tokenize

if TYPE_CHECKING:
    from variantlake.dml.result import ChangeResult
    from variantlake.spark.dml.change import ChangeRunner

MAX_LOCAL_BYTES = 4 << 30
"""Bytes of files up to which rows for a DELETE are found in this process, without a job."""

UPSERT = ("WHEN MATCHED THEN UPDATE SET *", "WHEN NOT MATCHED THEN INSERT *")
"""What `merge` does where no clauses are given."""


class LakeChanges(LakeMaintenance):
    """The part of `Lake` that changes rows."""

    def delete(
        self, table: Location, where: str | Condition | None = None, *, dry_run: bool = False
    ) -> ChangeResult:
        """Delete rows in one commit; gives what was done.

        Where the local engine takes the condition the rows are found without a job of Spark, on
        bounds and typed columns; else Spark finds them by any condition that it takes.

        Args:
            table: Its name, path or URL, as for `read`.
            where: A condition as it stands after WHERE; rows for which it is NULL stay. None
                deletes all rows.
            dry_run: Change nothing, and tell what would be done; only for conditions that the
                local engine takes.

        Raises:
            InvalidQuery: Spark does not take the condition.
            InvalidValue: A value that a cast in the condition fails at.
            UnsupportedFeature: An append-only table, or a feature that we do not write, by name,
                where Delta Spark is not configured to do it.
            CommitConflict: Another writer changed the same rows, or added some that `where` finds.
        """
        text = self._condition(where)
        location = self._written_to(table)
        if dry_run:
            return self._delete_here(location, text, dry_run=True)
        return self._done(location, DeleteText(_named(location), text))

    def update(
        self,
        table: Location,
        set: Mapping[str, Any],  # noqa: A002 - as SQL calls it
        where: str | Condition | None = None,
    ) -> ChangeResult:
        """Give columns new values in some rows, in one commit; gives what was done.

        `lake.update(t, {"n": "n + 1", "checked": True}, "event:kind::string = 'x'")`.

        Args:
            table: Its name, path or URL, as for `read`.
            set: By column, SQL expressions as text (a text constant in quotes of its own), typed
                paths, or other constants of Python.
            where: As for `delete`.

        Raises as `delete`; InvalidValue for a row that a constraint of the table refuses.
        """
        if not isinstance(set, Mapping) or not set:
            raise InvalidValue(
                "update takes a mapping of columns to their new values",
                hint="lake.update(table, {'n': 'n + 1'}, where=\"id = 7\")",
                cli_hint="",
            )
        location = self._written_to(table)
        pairs = tuple((quote_identifier(name), _expression(value)) for name, value in set.items())
        made = [value for value in set.values() if isinstance(value, TypedPath | Condition)]
        check_expressions(made, "a new value", self._spark)
        text = self._condition(where)
        return self._done(location, UpdateText(_named(location), pairs, text))

    def merge(
        self,
        table: Location,
        source: DataFrame | str,
        on: str,
        *clauses: str,
        target: str = "t",
        name: str = "s",
        tables: Mapping[str, Location] | None = None,
    ) -> ChangeResult:
        """Merge rows into a table, in one commit; gives what was done.

        `lake.merge(t, df, "t.id = s.id")` updates the rows that are there and inserts the others.

        Args:
            table: Its name, path or URL, as for `read`.
            source: A DataFrame, or what may stand after USING: a table's name, or a query in
                parentheses.
            on: The condition that a row of the table and one of the source match by.
            *clauses: As in MERGE: `"WHEN MATCHED AND s.gone THEN DELETE"`, in their order; without
                any UPSERT.
            target: What `on` and the clauses call the table.
            name: What they call the source.
            tables: As for `sql`.

        Raises as `update`; InvalidQuery where several source rows match one row of the table.
        """
        check_text(on, "the condition of a merge")
        found: list[Clause] = []
        for text in clauses or UPSERT:
            parsed = parse_clauses(text)
            if parsed is None:
                raise InvalidQuery(
                    f"{text!r} is no clause of a MERGE",
                    hint="WHEN [NOT] MATCHED [BY SOURCE] [AND …] THEN UPDATE SET …, DELETE or "
                    "INSERT …",
                )
            found += parsed
        location = self._written_to(table)
        with self._named_source(source) as named:
            own = Named(delta_name(location), target)
            merge = MergeText(own, Named(named, name), on, tuple(found))
            return self._done(location, merge, tables=tables)

    def sql(
        self,
        query: str,
        args: Mapping[str, Any] | list[Any] | None = None,
        *,
        tables: Mapping[str, Location] | None = None,
    ) -> DataFrame:
        """See LakeQueries; DELETE, UPDATE and MERGE change rows of our tables when they are given.

        Their result is the row of counts that Delta Spark gives.

        Raises as `LakeQueries.sql`, and as `delete`, `update` and `merge`.
        """
        check_text(query)

        def left_to_spark(error: UnsupportedFeature) -> DataFrame:
            try:
                return super(LakeChanges, self).sql(query, args, tables=tables)
            except VariantLakeError:
                raise error from None

        try:
            parsed = parse_change(query)
        except UnsupportedFeature as error:
            return left_to_spark(error)
        location = None if parsed is None else self._location_of(parsed.target.text, tables)
        if parsed is None or location is None:
            return super().sql(query, args, tables=tables)
        from variantlake.spark.dml.statements import result_rows

        given = dict(args) if isinstance(args, Mapping) else args
        try:
            done = self._changed(location, parsed, args=given, tables=tables)
        except UnsupportedFeature as error:
            return left_to_spark(error)
        kind = type(parsed).__name__.removesuffix("Text").upper()
        rows: DataFrame = result_rows(self._spark, kind, done)
        return rows

    def _done(
        self,
        location: str,
        parsed: ChangeText,
        *,
        tables: Mapping[str, Location] | None = None,
    ) -> ChangeResult:
        """A change by us; what we do not take by Delta Spark, if it is there."""
        try:
            return self._changed(location, parsed, tables=tables)
        except UnsupportedFeature as error:
            try:
                with quiet():
                    (row,) = self._spark.sql(change_text(parsed)).collect()
            except REFUSALS:
                raise error from None
        from variantlake.spark.dml.statements import result_of

        return result_of(parsed, row.asDict(), self._tables.open(location).snapshot.version)

    def _changed(
        self,
        location: str,
        parsed: ChangeText,
        *,
        args: Any = None,
        tables: Mapping[str, Location] | None = None,
    ) -> ChangeResult:
        from variantlake.spark.dml.statements import statement_of

        if isinstance(parsed, DeleteText) and not args:
            try:
                return self._delete_here(location, parsed.where, alias=parsed.target.alias)
            except (InvalidQuery, UnsupportedFeature):
                pass  # Spark may take the condition, and words the error if it does not
        if isinstance(parsed, MergeText) and isinstance(args, list):
            raise InvalidQuery(
                "a MERGE takes parameters by name",
                hint="lake.sql(text, {'name': value}), :name in the text",
                cli_hint="",
            )
        resolve = self._resolver(tables)
        parsed = self._with_short_names(parsed)
        statement = statement_of(self._spark, parsed, args, ansi=is_on(self._spark, ANSI))
        return self._change_runner.run(location, statement, resolve)

    def _with_short_names(self, parsed: ChangeText) -> ChangeText:
        """The statement with columns qualified by the last parts of tables' names alone.

        Queries give the tables these names as aliases, which have one part.
        """
        tables = [parsed.target, *([parsed.source] if isinstance(parsed, MergeText) else [])]
        names = [name for each in tables if len(name := self._whole_name(each)) > 1]

        def shorter(text: str) -> str:
            return splice(text, short_qualifiers(tokenize(text), names))

        return with_texts(parsed, shorter) if names else parsed

    def _whole_name(self, table: Named) -> Parts:
        """All parts of the name of a table that has no alias; none for another."""
        parts = name_parts(table.text)
        if parts is None or parts[-1] != table.alias:
            return ()
        if ".".join(parts).lower() in self._names or parts[0].lower() == "delta":
            return parts
        return (found.name if (found := self._find(parts)) else ()) or parts

    def _condition(self, where: str | Condition | None) -> str | None:
        check_expressions([] if where is None else [where], "a condition", self._spark)
        return None if where is None else str(where)

    def _delete_here(
        self, location: str, where: str | None, *, alias: str = "", dry_run: bool = False
    ) -> ChangeResult:
        """A DELETE without a job. Raises UnsupportedFeature for what only Spark finds."""
        from variantlake.dml.delete import delete

        if '"' in (where or "") and is_on(self._spark, DOUBLE_QUOTED_NAMES):
            raise UnsupportedFeature(
                "the local engine takes what double quotes hold for text, and this session for a "
                "name",
                hint="write names in backticks and texts in single quotes",
            )
        if "\\" in (where or "") and is_on(self._spark, ESCAPED):
            raise UnsupportedFeature(
                f"the local engine takes backslashes for escapes, and this session's {ESCAPED} not",
                hint=f"spark.conf.set('{ESCAPED}', 'false')",
            )
        snapshot = self._tables.open(location).snapshot
        if char_columns(snapshot.schema) and not pads(self._spark.conf.get):
            raise UnsupportedFeature(
                "the local engine compares CHAR columns at their length, and this session does not",
                hint="leave spark.sql.readSideCharPadding and legacy.charVarcharAsString alone",
            )
        utc = is_utc(self._spark.conf.get(TIME_ZONE))
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

        return ChangeRunner(self._spark, self._tables, self._runner_over)

    def _location_of(self, text: str, tables: Mapping[str, Location] | None) -> str | None:
        """Where a table is that a statement names; None for one that is not ours."""
        for name, given in (tables or {}).items():
            if name.lower() == text.replace("`", "").lower():
                return self._written_to(given)
        try:
            return self._place(text).location
        except (NotADeltaTable, StoreFailed, InvalidValue):
            return None

    @contextmanager
    def _named_source(self, source: DataFrame | str) -> Iterator[str]:
        """A source as a text names it."""
        if not is_frame(source):
            check_text(source, "the source of a merge")
            yield str(source)
            return
        view = f"__vl_source_{uuid4().hex[:12]}"
        source.createOrReplaceTempView(view)
        try:
            yield view
        finally:
            self._spark.catalog.dropTempView(view)


def _named(location: str) -> Named:
    """A table of which the user wrote no name: by its location, as a query would name it."""
    return Named(delta_name(location), location)


def _expression(value: Any) -> str:
    if isinstance(value, TypedPath):
        return value.text
    if isinstance(value, str | Condition):
        return str(value)
    return constant(value)
