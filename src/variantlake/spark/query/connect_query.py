"""Runs queries through Spark Connect, which shows no plan and no JVM.

`token_tables` and `token_paths` find tables and paths by the tokens of the text. A Variant that the
text reads only by paths becomes a struct of columns. If Spark refuses the rewritten text, or gives
it other columns, the query runs on whole Variants. Conditions of a plain SELECT skip files.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from sqlglot.tokenizer_core import Token

from variantlake.errors import InvalidQuery, UnsupportedFeature, VariantLakeError
from variantlake.expressions.tree import Ref, map_refs
from variantlake.planning.stats.first_rows import FirstRows, map_order
from variantlake.quoting import Parts, quote_identifier
from variantlake.spark.query.connect_splices import ConnectTable, alike, over_views, path_changes
from variantlake.spark.query.names import Resolve, Target, find_remote, target_of
from variantlake.spark.query.read_versions import view_mark
from variantlake.spark.query.session_queries import (
    LEFT_TO_SPARK,
    NO_DELTA,
    NOT_A_SELECT,
    SPARK_ALONE,
    SessionQueries,
)
from variantlake.spark.scan.dataframe import scan
from variantlake.spark.scan.path_columns import path_columns
from variantlake.spark.scan.tables import Tables, TableVersion
from variantlake.spark.session.connect_files import ConnectSessionFiles
from variantlake.spark.session.refusals import or_invalid
from variantlake.spark.session.schemas import same_columns
from variantlake.spark.session.settings import (
    DOUBLE_QUOTED_NAMES,
    JOINED_TEXTS,
    is_case_sensitive,
    is_on,
)
from variantlake.spark.session.versions import UNTRIED
from variantlake.sql.scopes import PushedFilter, Scopes, TableReference
from variantlake.sql.splice import Splice, splice, with_origins
from variantlake.sql.token_paths import Owner, PathExpression, Paths, typed_paths
from variantlake.sql.token_tables import TableName, qualifier_splices, sure_names, table_names
from variantlake.sql.tokens import ParsedText, inner_query, is_read_only, tokenize

NATIVELY = "paths are read from the whole Variant: {}"
NOT_REWRITTEN = "Spark did not take the rewritten text"
A_STAR = "a star stands for the Variant"
BESIDE_PATHS = "the text reads {} in other ways too"


@dataclass(frozen=True, slots=True)
class _TableReading:
    """How a text reads one table, its `owner`.

    `whole` are the Variants (in lower case) that it needs as they are, `usable` the paths that may
    become fields, and `pushed_filter` is the condition on the rows.
    """

    owner: Owner
    whole: frozenset[str]
    usable: tuple[PathExpression, ...]
    pushed_filter: PushedFilter


@dataclass(slots=True)
class ConnectQuery:
    """A query with its scans. `text` is that of `frame`, which is None if it is only explained."""

    tables: tuple[ConnectTable, ...] = ()
    note: str = ""
    frame: DataFrame | None = None
    text: str = ""


class ConnectQueries(SessionQueries[ConnectQuery]):
    """Runs the queries of one Spark Connect session."""

    def __init__(self, spark: SparkSession, tables: Tables) -> None:
        super().__init__(spark, tables)
        self._files = ConnectSessionFiles(spark)

    def read(self, table: TableVersion) -> DataFrame:
        """Return a DataFrame of a whole table."""
        self._files.follow()
        view = self._everything(table)
        frame: DataFrame = self._spark.table(view)
        self._files.drop_after(frame, [view])
        return frame

    def _checked(self, text: str, args: Any, resolve: Resolve, *, run: bool) -> ConnectQuery:
        """As `_prepare`, but a text that does not parse raises Spark's error on the original."""
        try:
            return self._prepare(text, args, resolve, run=run)
        except InvalidQuery as error:
            if "[PARSE_" in error.message and is_read_only(tokenize(text)):
                try:
                    self._sql(text, args)
                except InvalidQuery as written:
                    if "[PARSE_" in written.message:
                        raise written from None
            raise

    def _prepare(self, text: str, args: Any, resolve: Resolve, *, run: bool) -> ConnectQuery:
        explain = _EXPLAIN.match(text)  # sqlglot parses EXPLAIN as a single command
        if explain and is_read_only(tokenize(text[explain.end() :])):
            return self._explanation(text, explain.end(), args, resolve, run=run)
        parsed = ParsedText.of(text)
        find = functools.cache(lambda parts: resolve(parts) or self._in_catalog(parts))
        found = self._find_reading(parsed, find)
        if cut := qualifier_splices(parsed.tokens, [name for name, _ in found]):
            parsed = ParsedText.of(splice(text, cut))
            found = self._find_reading(parsed, find)
        if not found:
            return ConnectQuery(note=SPARK_ALONE, frame=self._sql(text, args) if run else None)
        in_spark = all(target.in_spark for _, target in found)
        try:
            tables = [(name, self._load(name, target, args)) for name, target in found]
        except LEFT_TO_SPARK as error:
            frame = self._by_spark(text, args, error, run=run or is_read_only(parsed.tokens))
            return ConnectQuery(note=str(error), frame=frame)
        self._files.follow()
        if not is_read_only(parsed.tokens):
            inner = self._inside(parsed, tables, run=run) if args is None else None
            if inner is not None or not run:
                return inner or ConnectQuery(note=NOT_A_SELECT)
            return self._statement(text if in_spark else None, parsed.text, args, tables)
        try:
            return self._select(parsed, args, tables, run=run)
        except (InvalidQuery, UnsupportedFeature) as error:
            error.message = with_origins(error.message, text, cut)
            if not in_spark:
                raise
            return ConnectQuery(note=SPARK_ALONE, frame=self._by_spark(text, args, error, run=True))

    def _explanation(
        self, text: str, start: int, args: Any, resolve: Resolve, *, run: bool
    ) -> ConnectQuery:
        """Explain the query that starts at `start`, as it would run."""
        try:
            inner = self._prepare(text[start:], args, resolve, run=run)
        except VariantLakeError:
            if not run:
                raise
            inner = ConnectQuery()  # Spark reports the error in the explanation
        if run:
            rewritten = text[:start] + inner.text if inner.text else text
            inner = replace(inner, frame=self._sql(rewritten, args))
        return inner

    def _inside(
        self,
        parsed: ParsedText,
        tables: Sequence[tuple[TableName, TableVersion]],
        *,
        run: bool,
    ) -> ConnectQuery | None:
        """Plan the query of an INSERT or CREATE TABLE … AS like any other.

        None for other statements, and if Spark does not accept the query on its own.
        """
        first = inner_query(parsed.tokens)
        start = 0 if first is None else parsed.tokens[first].start
        if first is None or any(name.start < start for name, _ in tables):
            return None
        query = ParsedText.of(parsed.text[start:])
        moved = [(name.moved(-start), table) for name, table in tables]
        try:
            inner = self._select(query, None, moved, run=run)
        except (InvalidQuery, UnsupportedFeature):
            return None
        if run:
            # `inner.frame` kept its views up to here.
            inner = replace(inner, frame=self._sql(parsed.text[:start] + inner.text, None))
        return inner

    def _statement(
        self,
        whole: str | None,
        text: str,
        args: Any,
        tables: Sequence[tuple[TableName, TableVersion]],
    ) -> ConnectQuery:
        """Run INSERT and the like at once: by Spark alone, or over native views.

        `whole` is the original text if Spark may know all of its tables, else None.
        """
        try:
            if whole is not None:
                return ConnectQuery(note=SPARK_ALONE, frame=self._sql(whole, args))
        except InvalidQuery as error:
            if not any(f"[{condition}" in error.message for condition in NO_DELTA):
                raise
        views = [self._everything(table) for _, table in tables]
        native = splice(text, over_views([name for name, _ in tables], views))
        return ConnectQuery(note=NOT_A_SELECT, frame=self._sql(native, args))

    def _everything(self, table: TableVersion) -> str:
        """Create a view of all rows and columns, and return its name."""
        plan = self.tables.plan_everything(table, has_kernels=lambda: self._files.has_kernels)
        return self._files.publish(scan(self._files, table, plan, {}), view_mark(table))

    def _select(
        self,
        parsed: ParsedText,
        args: Any,
        tables: Sequence[tuple[TableName, TableVersion]],
        *,
        run: bool,
    ) -> ConnectQuery:
        text = parsed.text
        names = [name for name, _ in tables]
        written = [text[name.start : name.stop] for name in names]
        known = {source: table for source, (_, table) in zip(written, tables, strict=True)}
        empty = {
            source: self._files.publish(self._files.empty(table.schema))
            for source, table in known.items()
        }
        try:
            over = over_views(names, [empty[source] for source in written])
            sources = {view: source for source, view in empty.items()}
            original = self._sql(splice(text, over), args, sources)
        except InvalidQuery as error:
            error.message = with_origins(error.message, text, over)
            raise
        finally:
            self._files.drop(empty.values())
        scopes = Scopes(
            parsed,
            case_sensitive=is_case_sensitive(self._spark),
            quoted_names=is_on(self._spark, DOUBLE_QUOTED_NAMES),
            joined_texts="''" in parsed.text and is_on(self._spark, JOINED_TEXTS),
        )
        paths = self._paths(parsed, tables, scopes)
        planned = alike(self._planned(text, tables, paths, scopes))
        if not run:
            return ConnectQuery(planned)
        changes = path_changes(parsed, planned, original)
        if changes:
            query = self._over(text, args, planned, changes)
            if query and query.frame and same_columns(query.frame, original):
                return query
        natively = replace(paths, typed=(), whole=NOT_REWRITTEN)
        planned = self._planned(text, tables, natively, scopes)
        query = self._over(text, args, planned, [])
        if query is None:
            raise InvalidQuery(NOT_REWRITTEN)
        return query

    def _over(
        self, text: str, args: Any, tables: tuple[ConnectTable, ...], changes: Sequence[Splice]
    ) -> ConnectQuery | None:
        """Return the query over the scans of its tables; None if Spark refuses it."""
        views = [
            self._files.publish(
                scan(self._files, found.table, found.plan, found.columns, needed=found.needed),
                view_mark(found.table),
            )
            for found in tables
        ]
        names = over_views([found.name for found in tables], views)
        rewritten = splice(text, [*names, *changes])
        try:
            frame = self._sql(rewritten, args)
        except InvalidQuery:
            self._files.drop(views)
            return None
        # The client's plan holds the views' names, which the server looks up for every action.
        self._files.drop_after(frame, views)
        return ConnectQuery(tables, frame=frame, text=rewritten)

    def _paths(
        self,
        parsed: ParsedText,
        tables: Sequence[tuple[TableName, TableVersion]],
        scopes: Scopes,
    ) -> Paths:
        """Return the paths of the text, and the reason, if any, why none may become a field."""
        variants = frozenset(name.lower() for _, table in tables for name in table.variants)
        names = sure_names(parsed.tokens, table_names(parsed))
        paths = typed_paths(parsed, variants, names, renames=scopes.renames())
        if not self._is_tried:
            return replace(paths, whole=UNTRIED)
        if any(path.type == "timestamp" for path in paths.typed):
            kind = self._spark.conf.get("spark.sql.timestampType", "TIMESTAMP_LTZ")
            if kind != "TIMESTAMP_LTZ":
                return replace(paths, whole="TIMESTAMP has no time zone here")
        if any(path.type == "string" for path in paths.typed):
            ours = {name.parts for name, _ in tables}
            others = [name for name in table_names(parsed) if name.parts not in ours]
            if self._collates(parsed.tokens, [table.schema for _, table in tables], others):
                return replace(paths, whole="strings have collations here")
        return paths

    def _collates(
        self, tokens: Sequence[Token], schemas: Sequence[StructType], others: Sequence[TableName]
    ) -> bool:
        """Whether strings of the query may have a collation other than the default.

        A field's collation has another strength than that of `variant_get`. No plan shows types, so
        this looks up the columns of every name in the text; names of common tables have none.
        """
        if any(token.text.lower().startswith("collat") for token in tokens):
            return True
        for name in others:
            try:
                found = self._spark.table(".".join(map(quote_identifier, name.parts))).schema
            except PySparkException:
                continue
            schemas = [*schemas, found]
        return any("collate" in schema.simpleString() for schema in schemas)

    def _planned(
        self,
        text: str,
        tables: Sequence[tuple[TableName, TableVersion]],
        paths: Paths,
        scopes: Scopes,
    ) -> tuple[ConnectTable, ...]:
        starred = scopes.starred()
        owners = [
            Owner(
                name.called.lower(),
                frozenset(map(str.lower, table.variants)),
                None if starred is None else name.start in starred,
            )
            for name, table in tables
        ]
        whole = paths.read_whole(owners)
        usable = paths.usable(owners, whole)
        return tuple(
            self._planned_table(
                text,
                name,
                table,
                paths,
                _TableReading(
                    owner,
                    read,
                    usable,
                    scopes.pushed_filter(TableReference(name.start, table.snapshot.schema)),
                ),
            )
            for (name, table), owner, read in zip(tables, owners, whole, strict=True)
        )

    def _planned_table(
        self, text: str, name: TableName, table: TableVersion, paths: Paths, reading: _TableReading
    ) -> ConnectTable:
        predicate = reading.pushed_filter.predicate if self._is_tried else None
        predicate = predicate and map_refs(predicate, table.stored_ref)
        first = self._first(reading.pushed_filter.first, paths)
        variants = {variant.lower(): variant for variant in table.variants}
        alone = {
            path: table.stored_ref(Ref((variants[path.column],), path.path, path.type, path.strict))
            for path in reading.usable
            if path.column in variants.keys() - reading.whole
        }
        stored = table.stored_names
        needed = {column for column in stored if paths.reads(reading.owner, column)}
        by_paths = {variants[path.column] for path in alone}
        plan = self.tables.plan(
            table,
            list(alone.values()),
            {stored[column] for column in needed - by_paths},
            predicate,
            first and map_order(first, table.stored_ref),
            has_kernels=lambda: self._files.has_kernels,
        )
        notes = [reading.pushed_filter.note]
        if reading.whole & {path.column for path in paths.typed if path.may_be_of(reading.owner)}:
            beside = BESIDE_PATHS.format(", ".join(sorted(reading.whole)))
            beside = A_STAR if paths.is_starred(reading.owner) else beside
            notes.insert(0, NATIVELY.format(paths.whole or beside))
        return ConnectTable(
            name=name,
            source=text[name.start : name.stop],
            table=table,
            predicate=predicate,
            plan=plan,
            refs=alone,
            columns=path_columns(plan, alone.values()),
            needed=frozenset(stored[column] for column in needed),
            whole=tuple(sorted(variants[column] for column in reading.whole)),
            note="; ".join(filter(None, notes)),
        )

    def _first(self, first: FirstRows | None, paths: Paths) -> FirstRows | None:
        """Return the LIMIT of the text; None if it orders by a path and no path may be used."""
        if first is None or not self._is_tried:
            return None
        by_path = first.order is not None and first.order.ref.path is not None
        return None if by_path and paths.whole else first

    def _find_reading(self, parsed: ParsedText, resolve: Resolve) -> list[tuple[TableName, Target]]:
        found = ((name, resolve(name.parts)) for name in table_names(parsed))
        return [(name, target) for name, target in found if target is not None]

    def _in_catalog(self, parts: Parts) -> Target | None:
        """Return the Delta table of this name in Spark's catalog; None for views and all else."""
        return target_of(find_remote(self._spark, parts))

    def _sql(self, text: str, args: Any, sources: Mapping[str, str] | None = None) -> DataFrame:
        def analysed() -> DataFrame:
            frame: DataFrame = self._spark.sql(text, args)
            frame.schema  # noqa: B018 # analyses the text, so that its errors are raised here
            return frame

        return or_invalid(analysed, sources or {})


_EXPLAIN = re.compile(
    r"\s*EXPLAIN\s+(?:(?:EXTENDED|FORMATTED|COST|CODEGEN|LOGICAL)\s+)?", re.IGNORECASE
)
