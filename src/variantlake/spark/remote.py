"""Queries through Spark Connect, which shows no plan and no JVM.

Tables and paths are found by the tokens of the text (`token_tables`, `token_paths`). Where nothing
but paths reads a Variant, it becomes a struct of columns, as in a classic session; a text that
Spark then takes for something else, or does not take, runs on whole Variants. Conditions of a plain
SELECT skip files.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlglot
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp
from sqlglot.tokens import Token  # type: ignore[attr-defined]  # re-exported there

from variantlake.arrow.query_text import QueryText
from variantlake.errors import (
    InvalidQuery,
    NotADeltaTable,
    StoreFailed,
    UnsupportedFeature,
    VariantLakeError,
)
from variantlake.planning.plan import ScanPlan
from variantlake.planning.predicates import Predicate, Ref, map_refs
from variantlake.spark.references import Parts, Resolve, Target
from variantlake.spark.refusals import or_invalid
from variantlake.spark.remote_files import RemoteFiles
from variantlake.spark.scan import VARIANT_FIELD, PathColumn, path_columns, scan
from variantlake.spark.schemas import same_columns
from variantlake.spark.tables import Tables, TableVersion
from variantlake.spark.text import Splice, quote_identifier, splice
from variantlake.spark.token_paths import Paths, TypedPath, typed_paths
from variantlake.spark.token_tables import TableName, qualifier_splices, table_names
from variantlake.spark.tokens import is_read_only, select_items, tokenize

SPARK_ALONE = "the statement is not a query over a table of ours: Spark runs it as it is"
NOT_A_SELECT = "the statement does more than read: its tables are read natively and in full"
NATIVELY = "paths are read natively: {}"
NOT_REWRITTEN = "Spark did not take the rewritten text"
BESIDE_PATHS = "the text reads {} in other ways too"


@dataclass(frozen=True, slots=True)
class RemoteTable:
    """One place where a text reads a table, and what is read of it.

    `refs` are the paths of the text as the table's files name them; `columns` are the Variants, by
    the same names, that become structs of paths, `needed` all that are read. `note` says why
    Variants do not become structs.
    """

    name: TableName
    source: str
    table: TableVersion
    predicate: Predicate | None
    plan: ScanPlan
    refs: Mapping[TypedPath, Ref]
    columns: Mapping[str, PathColumn]
    needed: frozenset[str]
    whole: tuple[str, ...]
    note: str


@dataclass(slots=True)
class RemoteQuery:
    """A query with its scans. `frame` is None for an explanation alone."""

    tables: tuple[RemoteTable, ...] = ()
    note: str = ""
    frame: DataFrame | None = None


class RemoteQueries:
    """Runs the queries of one Spark Connect session."""

    def __init__(self, spark: SparkSession, tables: Tables) -> None:
        self._spark: Any = spark
        self._tables = tables
        self._files = RemoteFiles(spark)

    def run(self, text: str, args: Any, resolve: Resolve) -> DataFrame:
        """The query's DataFrame. Raises InvalidQuery with Spark's sentence."""
        prepared = self._prepare(text, args, resolve, run=True)
        if prepared.frame is None:
            raise InvalidQuery("the query has no result")
        return prepared.frame

    def plan(self, text: str, args: Any, resolve: Resolve) -> RemoteQuery:
        """What the query would read; it is not run."""
        return self._prepare(text, args, resolve, run=False)

    def read(self, table: TableVersion) -> DataFrame:
        """A whole table."""
        self._files.follow()
        view = self._everything(table)
        frame: DataFrame = self._spark.table(view)
        self._files.drop_after(frame, [view])
        return frame

    def _prepare(self, text: str, args: Any, resolve: Resolve, *, run: bool) -> RemoteQuery:
        tokens = tokenize(text)
        find = functools.cache(lambda parts: resolve(parts) or self._in_catalog(parts))
        found = self._found(text, tokens, find)
        if cut := qualifier_splices(tokens, [name for name, _ in found]):
            shorter = splice(text, cut)
            tokens = tokenize(shorter)
            found = self._found(shorter, tokens, find)
        else:
            shorter = text
        if not found:
            return RemoteQuery(note=SPARK_ALONE, frame=self._sql(text, args) if run else None)
        in_spark = all(target.in_spark for _, target in found)
        try:
            tables = [(name, self._load(name, target, args)) for name, target in found]
        except (NotADeltaTable, StoreFailed, UnsupportedFeature) as error:
            return self._alone(text, args, str(error), error, run=run or is_read_only(tokens))
        self._files.follow()
        if not is_read_only(tokens):
            if not run:
                return RemoteQuery(note=NOT_A_SELECT)
            return self._statement(text if in_spark else None, shorter, args, tables)
        try:
            return self._select(shorter, args, tokens, tables, run=run)
        except (InvalidQuery, UnsupportedFeature) as error:
            if not in_spark:
                raise
            return self._alone(text, args, SPARK_ALONE, error, run=True)

    def _alone(
        self, text: str, args: Any, note: str, error: VariantLakeError, *, run: bool
    ) -> RemoteQuery:
        """The text by Spark alone. Raises `error` where Spark does not take it either."""
        if not run:
            raise error
        try:
            return RemoteQuery(note=note, frame=self._sql(text, args))
        except InvalidQuery:
            raise error from None

    def _statement(
        self,
        whole: str | None,
        text: str,
        args: Any,
        tables: Sequence[tuple[TableName, TableVersion]],
    ) -> RemoteQuery:
        """INSERT and the like, which are run at once: by Spark alone, or over native views.

        `whole` is the text whose tables Spark may know, None where it cannot.
        """
        try:
            if whole is not None:
                return RemoteQuery(note=SPARK_ALONE, frame=self._sql(whole, args))
        except InvalidQuery as error:
            if not any(sign in error.message for sign in _NO_DELTA):
                raise
        views = [self._everything(table) for _, table in tables]
        over_views = splice(text, _over_views([name for name, _ in tables], views))
        return RemoteQuery(note=NOT_A_SELECT, frame=self._sql(over_views, args))

    def _everything(self, table: TableVersion) -> str:
        """A view of all rows and columns."""
        return self._files.publish(
            scan(self._files, table, self._tables.plan_everything(table), {})
        )

    def _select(
        self,
        text: str,
        args: Any,
        tokens: Sequence[Token],
        tables: Sequence[tuple[TableName, TableVersion]],
        *,
        run: bool,
    ) -> RemoteQuery:
        names = [name for name, _ in tables]
        empty = [self._files.publish(self._files.empty(table.schema)) for _, table in tables]
        try:
            sources = {
                view: text[name.start : name.stop] for name, view in zip(names, empty, strict=True)
            }
            original = self._sql(splice(text, _over_views(names, empty)), args, sources)
        finally:
            self._files.drop(empty)
        variants = frozenset(name.lower() for _, table in tables for name in table.variants)
        paths = self._usable(typed_paths(text, tokens, variants))
        planned = _alike([self._planned(text, name, table, paths) for name, table in tables])
        if not run:
            return RemoteQuery(planned)
        changes = _path_changes(text, tokens, planned, original)
        if changes:
            frame = self._over(text, args, planned, changes)
            if frame is not None and same_columns(frame, original):
                return RemoteQuery(planned, frame=frame)
        whole = replace(paths, found=(), whole=NOT_REWRITTEN)
        planned = tuple(self._planned(text, name, table, whole) for name, table in tables)
        frame = self._over(text, args, planned, [])
        if frame is None:
            raise InvalidQuery(NOT_REWRITTEN)
        return RemoteQuery(planned, frame=frame)

    def _over(
        self, text: str, args: Any, tables: Sequence[RemoteTable], changes: Sequence[Splice]
    ) -> DataFrame | None:
        """The query over the scans of its tables, analysed; None if Spark refuses it."""
        views = [
            self._files.publish(
                scan(self._files, found.table, found.plan, found.columns, needed=found.needed)
            )
            for found in tables
        ]
        names = _over_views([found.name for found in tables], views)
        try:
            frame = self._sql(splice(text, [*names, *changes]), args)
        except InvalidQuery:
            self._files.drop(views)
            return None
        # The client's plan has names in it: the server looks them up for every action.
        self._files.drop_after(frame, views)
        return frame

    def _usable(self, paths: Paths) -> Paths:
        """The paths, fewer where a type's name means another type in this session."""
        if any(path.type == "timestamp" for path in paths.found):
            kind = self._spark.conf.get("spark.sql.timestampType", "TIMESTAMP_LTZ")
            if kind != "TIMESTAMP_LTZ":
                return replace(paths, whole="TIMESTAMP has no time zone here")
        return paths

    def _planned(
        self, text: str, name: TableName, table: TableVersion, paths: Paths
    ) -> RemoteTable:
        predicate = QueryText(table.snapshot.schema, utc=False).skipping(text)
        if predicate is not None:
            predicate = map_refs(predicate, table.stored_ref)
        variants = {variant.lower(): variant for variant in table.variants}
        asked = {
            path: table.stored_ref(Ref((variants[path.column],), path.path, path.type, path.strict))
            for path in paths.found
            if path.column in variants
        }
        alone = {
            path: ref
            for path, ref in asked.items()
            if not paths.whole and path.column not in paths.read_whole
        }
        stored = dict(zip(table.schema.names, table.stored.names, strict=True))
        needed = {column for column in stored if paths.reads(column)}
        by_paths = {variants[path.column] for path in alone}
        plan = self._tables.plan(
            table,
            list(alone.values()),
            {stored[column] for column in needed - by_paths},
            predicate,
            has_kernels=lambda: self._files.has_kernels,
        )
        read = variants.keys() if paths.whole else paths.read_whole & variants.keys()
        why = paths.whole
        if len(alone) < len(asked) and not why:
            why = BESIDE_PATHS.format(", ".join(sorted(read)))
        return RemoteTable(
            name=name,
            source=text[name.start : name.stop],
            table=table,
            predicate=predicate,
            plan=plan,
            refs=alone,
            columns=path_columns(plan, alone.values()),
            needed=frozenset(stored[column] for column in needed),
            whole=tuple(sorted(variants[column] for column in read)),
            note=NATIVELY.format(why) if why and asked else "",
        )

    def _found(
        self, text: str, tokens: Sequence[Token], resolve: Resolve
    ) -> list[tuple[TableName, Target]]:
        found = ((name, resolve(name.parts)) for name in table_names(text, tokens))
        return [(name, target) for name, target in found if target is not None]

    def _in_catalog(self, parts: Parts) -> Target | None:
        """A Delta table of Spark's catalog by this name; views and all else are Spark's."""
        name = ".".join(map(quote_identifier, parts))
        try:
            rows = self._spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
        except PySparkException:
            return None
        # What follows the columns of the table; the last of a name counts.
        entry = {row[0]: row[1] for row in rows}
        if str(entry.get("Provider")).lower() != "delta" or not entry.get("Location"):
            return None
        return Target(entry["Location"], parts, in_spark=True)

    def _load(self, name: TableName, target: Target, args: Any) -> TableVersion:
        location, version, before = target.location, name.version, None
        if location == name.parts[-1] and version is None and name.timestamp is None:
            path, at, number = location.rpartition("@v")
            if at and number.isdigit():
                location, version = path, int(number)
        if name.timestamp is not None:
            text = f"SELECT unix_millis(try_cast(({name.timestamp}) AS TIMESTAMP))"
            before = self._sql(text, args).collect()[0][0]
            if before is None:
                raise InvalidQuery(f"{name.timestamp} is not a timestamp")
        return self._tables.load(location, version, before=before)

    def _sql(self, text: str, args: Any, sources: Mapping[str, str] | None = None) -> DataFrame:
        def analysed() -> DataFrame:
            frame: DataFrame = self._spark.sql(text, args)
            frame.schema  # noqa: B018 # analysed here, so that a mistake is said here
            return frame

        return or_invalid(analysed, sources or {})


_NO_DELTA = (
    "[DATA_SOURCE_NOT_FOUND", "[INVALID_TEMP_OBJ_REFERENCE", "[TABLE_OR_VIEW_NOT_FOUND",
    "[UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY",
)  # fmt: skip
"""How Spark refuses a table's name for want of Delta Spark."""


def _over_views(names: Iterable[TableName], views: Iterable[str]) -> list[Splice]:
    """The changes that make a query read views under the names of tables."""
    return [
        Splice(name.start, name.stop, _with_alias(name, view))
        for name, view in zip(names, views, strict=True)
    ]


def _with_alias(name: TableName, view: str) -> str:
    if name.aliased:
        return view
    named = f"{view} AS {quote_identifier(name.parts[-1])}"
    return f"({named})" if name.sampled else named


def _alike(tables: Sequence[RemoteTable]) -> tuple[RemoteTable, ...]:
    """The tables with structs of one form for one name: the text does not tell whose a path is."""
    native = {
        path.column
        for table in tables
        for path, ref in table.refs.items()
        if table.columns[ref.column[0]].native
    }
    found = []
    for table in tables:
        columns = dict(table.columns)
        for path, ref in table.refs.items():
            column = ref.column[0]
            columns[column] = replace(columns[column], native=path.column in native)
        found.append(replace(table, columns=columns))
    return tuple(found)


def _path_changes(
    text: str, tokens: Sequence[Token], tables: Iterable[RemoteTable], original: DataFrame
) -> list[Splice]:
    """The paths as fields of structs, and the names of select items that they leave."""
    paths = {
        path: _field_splice(text, path, table.columns[ref.column[0]], ref)
        for table in tables
        for path, ref in table.refs.items()
    }
    if not paths:
        return []
    changes = list(paths.values())
    unnamed = _unnamed_items(text, tokens, original.columns)
    for start, stop, name in unnamed:
        if any(start <= path.span[0] < stop for path in paths):
            changes.append(_named(stop, name))
    for path in paths:
        outermost = any(start <= path.span[0] < stop for start, stop, _ in unnamed)
        if path.item_end is not None and path.bare and not outermost:
            changes.append(_named(path.item_end, path.bare))
    return changes


def _named(place: int, name: str) -> Splice:
    return Splice(place, place, f" AS {quote_identifier(name)}")


def _field_splice(text: str, path: TypedPath, column: PathColumn, ref: Ref) -> Splice:
    """See `sql._field_splice`."""
    name = text[slice(*path.name)]
    field = f"{name}.{column.field(ref)}"
    if not column.native:
        return Splice(*path.span, field)
    before, after = text[path.span[0] : path.name[0]], text[path.name[1] : path.span[1]]
    return Splice(*path.span, f"coalesce({field}, {before}{name}.{VARIANT_FIELD}{after})")


def _unnamed_items(
    text: str, tokens: Sequence[Token], names: Sequence[str]
) -> list[tuple[int, int, str]]:
    """The outermost select items without names of their own: spans, and what Spark names them."""
    try:
        parsed: Any = sqlglot.parse_one(text, read="databricks")
    except sqlglot.errors.SqlglotError:
        return []
    while isinstance(parsed, exp.SetOperation | exp.Subquery):
        parsed = parsed.this
    items = select_items(tokens)
    if not isinstance(parsed, exp.Select) or not len(parsed.expressions) == len(items) == len(
        names
    ):
        return []
    return [
        (start, stop, name)
        for (start, stop), name, item in zip(items, names, parsed.expressions, strict=True)
        if not isinstance(item, exp.Alias | exp.Aliases)
    ]
