"""Names from other libraries, and what to write here instead: hints of error messages."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Collection
from importlib import import_module
from types import ModuleType
from typing import ParamSpec, TypeVar

from variantlake.errors import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")

_EXPORT = "export('rows.{}') writes the rows into a file"

_OURS = {
    "arrow": "to_arrow() gives the rows",
    "at": "Table.open(location, version=3) opens an older version",
    "as_of": "Table.open(location, version=3) opens an older version",
    "alias": "merge(..., target_alias='t') names the table",
    "collect": "to_pylist(), to_pandas(), to_polars() or to_arrow() gives the rows",
    "column_names": "schema has the columns",
    "columns": "schema has the columns",
    "compact": "optimize() joins small files",
    "create": "vl.Table.create(location, schema) makes a table",
    "connect": "vl.Table.open(location) opens a table, and vl.spark.connect(spark) is for Spark",
    "detail": "schema, properties, protocol, files() and history() tell about the table",
    "describe": "schema, properties, protocol, files() and history() tell about the table",
    "DeltaTable": "vl.Table.open(location) opens a table",
    "df": "to_pandas() gives the rows",
    "drop": "a table is a folder: nothing but removing that drops it",
    "dtypes": "schema has the columns and their types",
    "exists": "Table.open raises NotADeltaTable if there is no table",
    "explain": "scan(...).explain() and sql(...).explain() say what is read and skipped",
    "fetch_arrow_table": "to_arrow() gives the rows",
    "fetchall": "to_pylist() gives the rows",
    "fetchone": "head(1) gives the first row",
    "filter": "scan(where=...) filters",
    "first": "head(1) gives the first row",
    "group_by": "sql('SELECT ... GROUP BY 1') makes groups",
    "groupby": "sql('SELECT ... GROUP BY 1') makes groups",
    "ingest": "Table.append(source) loads files, and vl.spark.connect(spark).ingest in tasks",
    "info": "schema, properties, protocol, files() and history() tell about the table",
    "insert": "append(rows) adds rows",
    "is_deltatable": "Table.open raises NotADeltaTable if there is no table",
    "join": "sql(..., engine='duckdb') joins",
    "limit": "scan(limit=10) or head(10) limits the rows",
    "load": "append(source) loads files",
    "location": "uri is where the table is",
    "mirror": "vl.mirror(table, target, 'event:id::bigint AS id') makes a mirror",
    "num_rows": "count() counts the rows",
    "open": "vl.Table.open(location) opens a table",
    "order_by": "sql('SELECT ... ORDER BY 1') orders the rows",
    "path": "uri is where the table is",
    "pl": "to_polars() gives the rows",
    "query": "sql('SELECT ...') runs a query",
    "read": "vl.Table.open(location).scan() reads a table",
    "read_json": "vl.Table.create(location, 'event VARIANT').append('events.ndjson') loads files",
    "read_table": "vl.Table.open(location).scan() reads a table",
    "replace": "overwrite(rows) replaces rows",
    "rollback": "restore(version) brings a version back",
    "rows": "scan() gives the rows",
    "select": "scan(select=...) selects columns and paths",
    "shape": "count() counts the rows, and schema has the columns",
    "show": "head(10) gives the first rows",
    "sort_by": "sql('SELECT ... ORDER BY 1') orders the rows",
    "take": "head(10) gives the first rows",
    "to_csv": _EXPORT.format("csv"),
    "to_duckdb": "vl.duckdb.attach(connection, name, table) gives the rows to DuckDB",
    "to_df": "to_pandas() gives the rows",
    "to_dicts": "to_pylist() gives the rows",
    "to_json": _EXPORT.format("jsonl"),
    "to_parquet": _EXPORT.format("parquet"),
    "to_table": "to_arrow() gives the rows",
    "toPandas": "to_pandas() gives the rows",
    "where": "scan(where=...) filters",
    "write": "append(rows) and overwrite(rows) write",
    "write_csv": _EXPORT.format("csv"),
    "write_deltalake": "vl.Table.create(location, schema).append(rows) writes a table",
    "write_json": _EXPORT.format("jsonl"),
    "write_parquet": _EXPORT.format("parquet"),
    "write_table": "vl.Table.create(location, schema).append(rows) writes a table",
}

_CONDITION, _KEY = ("where", "on"), ("key", "on")
_CLUSTER = "set_clustering(paths) and cluster() put rows that are alike into the same files"
_CLAUSES = "merge_builder(source, on) has a method for each clause"

_KEYWORDS = {
    "as_of": ("version",),
    "by": ("key",),
    "destination": ("target",),
    "assignments": ("set",),
    "columns": ("select",),
    "condition": _CONDITION,
    "configuration": ("properties",),
    "data": ("rows", "source"),
    "df": ("data", "rows", "source"),
    "end": ("ending_version", "ending_timestamp"),
    "ending": ("ending_version", "ending_timestamp"),
    "endingVersion": ("ending_version",),
    "fields": ("select",),
    "filter": _CONDITION,
    "filters": _CONDITION,
    "from_version": ("starting_version",),
    "if_not_exists": ("exist_ok",),
    "ignore_if_exists": ("exist_ok",),
    "join_cols": _KEY,
    "keys": _KEY,
    "mode": ("replace", "exist_ok"),
    "n_rows": ("limit",),
    "new_values": ("set",),
    "on": ("key",),
    "options": ("storage_options",),
    "partition_columns": ("partition_by",),
    "partition_cols": ("partition_by",),
    "partition_filters": ("where",),
    "partitionBy": ("partition_by",),
    "path": ("location",),
    "predicate": _CONDITION,
    "primary_key": _KEY,
    "replace_where": ("where",),
    "replaceWhere": ("where",),
    "retention_hours": ("retention",),
    "row_filter": _CONDITION,
    "schema_mode": ("merge_schema",),
    "selected_fields": ("select",),
    "since": ("starting_version", "starting_timestamp"),
    "start": ("starting_version", "starting_timestamp"),
    "starting": ("starting_version", "starting_timestamp"),
    "startingVersion": ("starting_version",),
    "snapshot_id": ("version",),
    "table_uri": ("location",),
    "target_size": ("target_file_size",),
    "timestamp_as_of": ("timestamp",),
    "timestampAsOf": ("timestamp",),
    "to_version": ("ending_version",),
    "until": ("ending_version", "ending_timestamp"),
    "updates": ("set",),
    "version_as_of": ("version",),
    "versionAsOf": ("version",),
}
"""Keywords of other libraries, and ours with the same meaning; hints name those that a verb has."""

_NO_KEYWORDS = {
    "when_matched": _CLAUSES,
    "when_matched_update_all": _CLAUSES,
    "when_not_matched": _CLAUSES,
    "when_not_matched_insert_all": _CLAUSES,
    "z_order": _CLUSTER,
    "z_order_by": _CLUSTER,
    "zorder": _CLUSTER,
    "zorder_by": _CLUSTER,
}
"""Hints for keywords of other libraries that no keyword of ours replaces."""

_VERBS = frozenset(
    {"append", "delete", "history", "merge", "optimize", "overwrite", "restore", "update", "upsert"}
)
"""Methods of a table that people look for in the module."""

_PACKAGES = {
    "erase": "vl.Table.open(location).erase(where) removes rows and their history",
    "export": "vl.Table.open(location).export('rows.parquet') writes the rows into a file",
    "report": "vl.Table.open(location).report() makes a report",
    "scan": "vl.Table.open(location).scan() reads a table",
    "sql": "vl.Table.open(location).sql('SELECT ... FROM t') queries a table, and"
    " vl.spark.connect(spark).sql(...) any of them",
    "table": "vl.Table.open(location) opens a table",
}
"""Packages of ours that people mistake for functions, and what to call instead."""


class Package(ModuleType):
    """A package whose call raises an error that says what to call instead."""

    def __call__(self, *_: object, **__: object) -> None:
        """Raise TypeError with what to write instead."""
        name = self.__name__.rpartition(".")[2]
        raise TypeError(f"vl.{name} is not a function: {_PACKAGES[name]}")

    def __reduce__(self) -> tuple[object, tuple[str]]:
        """Pickle by name: cloudpickle, which sends functions to Spark's tasks, expects modules."""
        return import_module, (self.__name__,)


def say_what_to_call(name: str) -> None:
    """Make the loaded package of this name a Package."""
    sys.modules[name].__class__ = Package


def says_its_keywords(verb: Callable[P, R]) -> Callable[P, R]:
    """Wrap a verb so that its error for an unknown keyword names ours with the same meaning."""
    parameters = inspect.signature(verb).parameters
    names = frozenset(parameters) | {"commit_properties"}
    # If a verb has **options, the function that takes them refuses unknown ones.
    passes_on = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    if passes_on and "json_columns" in parameters:  # loads take it in **options
        names |= {"merge_schema"}

    @functools.wraps(verb)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not names.issuperset(kwargs):
            for name in sorted(set(kwargs) - names):
                if not passes_on or not names.isdisjoint(_KEYWORDS.get(name, ())):
                    raise _no_such_keyword(verb, name, names)
        return verb(*args, **kwargs)

    return call


def _no_such_keyword(verb: Callable[..., object], name: str, names: Collection[str]) -> TypeError:
    ours = [f"{each}=..." for each in _KEYWORDS.get(name, ()) if each in names]
    hint = f"write {' or '.join(ours)}" if ours else _NO_KEYWORDS.get(name)
    if verb.__name__.startswith("to_") and name in ("columns", "select", "where", "limit"):
        hint = f"scan({name.replace('columns', 'select')}=...) reads less of the table"
    hint = hint or did_you_mean(name, set(names) - {"self", "cls"})
    what = f"{verb.__qualname__}() got an unexpected keyword argument {name!r}"
    return TypeError(f"{what}: {hint}" if hint else what)


def no_such_name(owner: str, name: str, known: Collection[str], hint: str = "") -> AttributeError:
    """Return the error for a missing attribute, with what to write instead if known."""
    what = f"{owner!r} has no attribute {name!r}"
    if name.startswith("_"):
        return AttributeError(what)
    hint = hint or _OURS.get(name) or did_you_mean(name, known)
    if owner == "variantlake" and name in _VERBS:
        hint = f"vl.Table.open(location).{name}(...)"
    return AttributeError(f"{what}: {hint}" if hint else what)


def no_such_attribute(thing: object, name: str, hint: str = "") -> AttributeError:
    """Return the error for a missing attribute of an object.

    Raises the error of a property that exists but failed.
    """
    if hasattr(type(thing), name):
        object.__getattribute__(thing, name)
    return no_such_name(type(thing).__name__, name, dir(thing), hint)
