"""CREATE TABLE, its LIKE and AS SELECT, and REPLACE TABLE, without Delta Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from variantlake.ddl.alter_table import check_expressions
from variantlake.delta.log.log_segment import has_log
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.cluster_paths import PROPERTY as CLUSTER_BY
from variantlake.delta.protocol.cluster_paths import names_paths
from variantlake.delta.protocol.features import check_defaults_listed
from variantlake.delta.protocol.known_properties import FEATURE_PREFIX
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.schema.table_schema import StructType
from variantlake.delta.transaction.creation import Creation, commit_creation, replace_table
from variantlake.errors import InvalidQuery, UnsupportedFeature
from variantlake.quoting import Parts
from variantlake.spark.lake.session import LakeSession
from variantlake.spark.load.append import append
from variantlake.spark.load.append_target import NewTable, in_schema
from variantlake.spark.load.constraints import SparkChecks
from variantlake.spark.query.table_locations import Location, name_parts
from variantlake.sql.create import CreateText, TableClauses
from variantlake.storage.opening import open_store
from variantlake.writing.table_write import READER_FEATURES

_CATALOG = "spark.sql.catalog."


class NewTables:
    """Creates the tables of one session's statements."""

    def __init__(self, session: LakeSession) -> None:
        self._session = session

    def make(self, text: CreateText, args: Any, tables: Mapping[str, Location] | None) -> bool:
        """Create or replace a table; returns False if the name belongs to a catalog of Spark's.

        Raises CommitConflict if there is a table already, NotADeltaTable if there is none to
        replace, InvalidSchema and others as `Table.create` and `Lake.append`.
        """
        location = self._place(text, tables)
        if location is None:
            return False
        there = has_log(open_store(location))
        if there and text.exist_ok:
            return True
        replaced = None
        if text.replaces and (there or text.verb == "REPLACE"):
            replaced = Snapshot.read(location, applies=READER_FEATURES)
        if text.query is not None:
            self._from_rows(location, text, replaced, args, tables)
        else:
            self._empty(location, text, replaced, tables)
        if text.clauses.location is not None:
            self._session.names[_name(text.table)] = location
        return True

    def _place(self, text: CreateText, tables: Mapping[str, Location] | None) -> str | None:
        """Return the table's location; None if a catalog of the session has to create it."""
        given = text.clauses.location
        parts = name_parts(text.table)
        if parts is None:
            return None
        if len(parts) == 2 and parts[0].lower() == "delta":
            if given is not None:
                raise InvalidQuery(
                    "a table that is named by its path has no LOCATION", hint="leave one out"
                )
            return self._session.written_to(text.table)
        known = {name.lower(): table for name, table in (tables or {}).items()}
        known = {**self._session.names, **known}
        if _name(text.table) in known:
            return self._session.written_to(known[_name(text.table)])
        if self._has_catalog(parts):
            return None
        if given is None:
            raise UnsupportedFeature(
                f"{text.operation} needs a place: this session's catalog makes no Delta tables",
                hint="name the table delta.`/path`, or give LOCATION '/path'",
            )
        return self._session.written_to(given)

    def _has_catalog(self, parts: Parts) -> bool:
        """Whether the session configures a catalog for the name, besides Spark's built-in one."""
        name = parts[0] if len(parts) > 2 else "spark_catalog"
        return bool(self._session.spark.conf.get(f"{_CATALOG}{name}", ""))

    def _from_rows(
        self,
        location: str,
        text: CreateText,
        replaced: Snapshot | None,
        args: Any,
        tables: Mapping[str, Location] | None,
    ) -> None:
        clauses = text.clauses
        if _columns(text):
            raise InvalidQuery(
                f"{text.operation} takes its columns from the query", hint="declare none"
            )
        frame = self._session.query(text.query or "", args, tables)
        columns, properties = _clustering(clauses)
        new = NewTable(
            partition_by=clauses.partition_by,
            properties=properties,
            cluster_by=columns,
            description=clauses.comment,
            operation=text.operation,
            replaced=replaced,
        )
        append(self._session.spark, frame, location, new=new)

    def _empty(
        self,
        location: str,
        text: CreateText,
        replaced: Snapshot | None,
        tables: Mapping[str, Location] | None,
    ) -> None:
        made = _like(self._source(text.like, tables), text) if text.like else _new(text, replaced)
        if not text.like and _columns(text):
            schema = StructType.from_json(made.metadata.schema_string)
            if any(field.default is not None for field in schema.fields):
                kept = () if replaced is None else replaced.features
                check_defaults_listed([*kept, *_listed(text)], f"{text.verb} TABLE")
            check_expressions(schema, SparkChecks(self._session.spark, _no_rows))
        if replaced is None:
            commit_creation(open_store(location), made)
        else:
            replace_table(replaced, made)

    def _source(self, name: str, tables: Mapping[str, Location] | None) -> Snapshot:
        """Return the table that LIKE names."""
        given = {each.lower(): table for each, table in (tables or {}).items()}
        return self._session.snapshot(given.get(_name(name), name))


def _no_rows(snapshot: Snapshot) -> DataFrame:
    raise TypeError(f"a new table has no rows: {snapshot.store.uri}")


def _new(text: CreateText, replaced: Snapshot | None) -> Creation:
    clauses = text.clauses
    # As in Delta Spark, options of CREATE TABLE without a query become properties, under two names.
    options = {f"option.{key}": value for key, value in clauses.options.items()}
    schema = parse_table_ddl(_columns(text)) if _columns(text) else StructType(())
    columns, properties = _clustering(clauses)
    return Creation.of(
        replaced,
        schema,
        in_schema(clauses.partition_by, schema),
        {**clauses.options, **options, **properties},
        cluster_columns=in_schema(columns, schema),
        description=clauses.comment,
        operation=text.operation,
    )


def _like(source: Snapshot, text: CreateText) -> Creation:
    """Create it as Delta Spark does: everything of the source but its rows and its clustering."""
    source.check_writable(evaluated=True, kept=True)
    return Creation.like(source, text.clauses.properties)


def _columns(text: CreateText) -> str:
    """Return the columns that the statement declares, those of PARTITIONED BY last."""
    return ", ".join(filter(None, (text.columns, text.clauses.partition_columns)))


def _clustering(clauses: TableClauses) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Return the clustering columns and the properties, one of which names paths of Variants."""
    if not names_paths(clauses.cluster_by):
        return clauses.cluster_by, clauses.properties
    return (), {**clauses.properties, CLUSTER_BY: ", ".join(clauses.cluster_by)}


def _listed(text: CreateText) -> list[str]:
    """Return the features that the statement's properties name."""
    names = (key for key in text.clauses.properties if key.startswith(FEATURE_PREFIX))
    return [key.removeprefix(FEATURE_PREFIX) for key in names]


def _name(text: str) -> str:
    return ".".join(name_parts(text) or (text,)).lower()
