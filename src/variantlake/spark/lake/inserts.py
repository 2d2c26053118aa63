"""INSERT for sessions without Delta Spark: cast a query's rows to the table, and load them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import orjson
from pyspark.sql import DataFrame
from pyspark.sql import types as st

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.identity_columns import is_identity
from variantlake.errors import InvalidQuery, InvalidSchema, UnsupportedFeature
from variantlake.ingest.encode.numbers import unnumbered_columns
from variantlake.ingest.encode.rows import check_columns
from variantlake.ingest.overwrite import Overwrite
from variantlake.quoting import quote_identifier
from variantlake.spark.dml.determinism import check_deterministic
from variantlake.spark.dml.stored_values import StoredValues
from variantlake.spark.lake.session import LakeSession
from variantlake.spark.load.append import append
from variantlake.spark.load.constraints import RowConstraint, holds, refusals
from variantlake.spark.query.table_locations import Location
from variantlake.spark.session.refusals import or_invalid
from variantlake.spark.session.schemas import spark_schema, type_ddl
from variantlake.spark.session.settings import ANSI, is_on
from variantlake.sql.changes import Named
from variantlake.sql.inserts import InsertText, with_defaults

if TYPE_CHECKING:
    from variantlake.spark.dml.change import ChangeRunner

_PARTITIONS_MODE = "spark.sql.sources.partitionOverwriteMode"


class Inserts:
    """Runs INSERT over the tables of one session."""

    def __init__(self, session: LakeSession, changes: ChangeRunner) -> None:
        self._session, self._changes = session, changes

    def run(
        self, location: str, text: InsertText, args: Any, tables: Mapping[str, Location] | None
    ) -> None:
        """Append the rows, or replace others with them, in one commit.

        Raises InvalidQuery for rows with the wrong columns, otherwise as `Lake.append` and
        `Lake.overwrite`.
        """
        if text.replaces_by:
            raise UnsupportedFeature(
                f"INSERT ... REPLACE {text.replaces_by} does not run on Delta tables",
                hint="INSERT ... REPLACE WHERE names the rows that go; MERGE finds them by keys",
            )
        snapshot = self._session.tables.open(location).snapshot
        names = _columns(snapshot, text)
        defaults = {field.name: field.default or "NULL" for field in snapshot.schema.fields}
        order = names or [field.name for field in snapshot.schema.fields]
        query = with_defaults(
            text.query, lambda at: defaults[order[at]] if at < len(order) else "NULL"
        )
        frame = self._session.query(query, args, tables)
        if text.evolves and not text.by_name:
            names += frame.columns[len(names) :]
        by_name = text.by_name
        frame = _by_name(frame, snapshot, text) if by_name else _by_place(frame, names)
        if not (text.by_name and text.where is None and _has_types_of(frame, snapshot, text)):
            frame = self._stored(frame, snapshot, text)
        if text.where is not None and not _is_of_partitions(snapshot, text.where):
            if text.evolves:
                raise UnsupportedFeature(
                    "INSERT WITH SCHEMA EVOLUTION does not take REPLACE WHERE over these columns",
                    hint="ALTER TABLE ... ADD COLUMNS adds the columns before",
                )
            self._replace(location, snapshot, frame, text.where)
            return
        overwrite = self._overwrite(snapshot, text)
        with refusals():
            append(
                self._session.spark,
                frame,
                location,
                overwrite=overwrite,
                merge_schema=text.evolves,
            )

    def _replace(self, location: str, snapshot: Snapshot, frame: DataFrame, where: str) -> None:
        """Replace the rows that fulfil a condition with new ones, which must fulfil it, too."""
        from variantlake.spark.dml.change import Statement
        from variantlake.spark.dml.changed_rows import replaced_rows_text

        target = Named(location, "t")
        columns = spark_schema(st.StructType.fromJson(orjson.loads(snapshot.schema.to_json())))
        check_deterministic(self._session.spark, [("t", columns)], [where])
        left_out = [field for field in snapshot.schema.fields if field.name not in frame.columns]
        left_out = [each for each in left_out if not each.generation and not is_identity(each)]
        check_columns((), [each for each in left_out if not each.default], (), snapshot.store.uri)
        for field in left_out:
            value = f"CAST({field.default or 'NULL'} AS {type_ddl(columns[field.name].dataType)})"
            frame = frame.selectExpr("*", f"{value} AS {quote_identifier(field.name)}")
        rule = holds(RowConstraint("REPLACE WHERE", where), frame)
        frame = or_invalid(lambda: frame.filter(rule), {})
        numbers = [each.name for each in unnumbered_columns(snapshot.schema, frame.columns)]
        view = f"__vl_rows_{uuid4().hex[:12]}"
        frame.createOrReplaceTempView(view)
        statement = Statement(
            "WRITE",
            {"mode": "Overwrite", "partitionBy": "[]", "predicate": where},
            lambda *_: replaced_rows_text(target, where, view, frame.columns, numbers),
            lambda *_: True,
        )
        try:
            self._changes.run(location, statement, self._session.resolver({}))
        finally:
            self._session.spark.catalog.dropTempView(view)

    def _stored(self, frame: DataFrame, snapshot: Snapshot, text: InsertText) -> DataFrame:
        """Cast the rows to the types of the table's columns; a value that does not fit fails."""
        columns = spark_schema(st.StructType.fromJson(orjson.loads(snapshot.schema.to_json())))
        frame = _fields_by_place(frame, columns)
        given = frame.schema

        def type_of(_kind: str, name: str) -> st.DataType:
            return given[name.strip("`").replace("``", "`")].dataType

        stored = StoredValues(columns, is_on(self._session.spark, ANSI), type_of)
        values = {name: quote_identifier(name) for name in frame.columns}
        items = [
            f"{stored(name, value)} AS {quote_identifier(name)}" if name in columns.names else value
            for name, value in values.items()
        ]
        for name, value in (text.partition or {}).items():
            if value is not None:
                written = _written(snapshot, name)
                items.append(f"{stored(written, value)} AS {quote_identifier(written)}")
        return frame.selectExpr(*items)

    def _overwrite(self, snapshot: Snapshot, text: InsertText) -> Overwrite | None:
        if text.where is not None:
            return Overwrite(text.where)
        if not text.overwrites:
            return None
        chosen = {name: value for name, value in (text.partition or {}).items() if value}
        mode = str(self._session.spark.conf.get(_PARTITIONS_MODE, "static"))
        if mode.lower() == "dynamic" and snapshot.partition_columns:
            return Overwrite(partitions=True)
        if not chosen:
            return Overwrite()
        equal = (f"{quote_identifier(name)} = {value}" for name, value in chosen.items())
        return Overwrite(" AND ".join(equal))


def _is_of_partitions(snapshot: Snapshot, where: str) -> bool:
    try:
        Overwrite(where).of(snapshot)
    except (InvalidSchema, InvalidQuery, UnsupportedFeature):
        return False
    return True


def _has_types_of(frame: DataFrame, snapshot: Snapshot, text: InsertText) -> bool:
    """Whether the rows have the table's types, except for the order of fields in structs.

    If so, Delta Spark assigns fields of structs by name. If it must cast any column, it assigns the
    fields of all columns by position.
    """
    columns = spark_schema(st.StructType.fromJson(orjson.loads(snapshot.schema.to_json())))
    known = {field.name: field.dataType for field in columns.fields}
    return not text.partition and all(
        field.name in known and _sorted(field.dataType) == _sorted(known[field.name])
        for field in frame.schema.fields
    )


def _sorted(type_: st.DataType) -> st.DataType:
    """Return a type with fields sorted by name, ignoring what may be NULL."""
    match type_:
        case st.StructType(fields=fields):
            parts = (st.StructField(each.name, _sorted(each.dataType)) for each in fields)
            return st.StructType(sorted(parts, key=lambda each: each.name))
        case st.ArrayType(elementType=element):
            return st.ArrayType(_sorted(element))
        case st.MapType(keyType=key, valueType=value):
            return st.MapType(_sorted(key), _sorted(value))
    return type_


def _columns(snapshot: Snapshot, text: InsertText) -> list[str]:
    """Return the columns that the query's rows go into, in order; empty for rows by name."""
    partition = {_written(snapshot, name): each for name, each in (text.partition or {}).items()}
    wrong = [name for name in partition if name not in snapshot.partition_columns]
    if wrong:
        raise InvalidSchema(f"{wrong[0]!r} is not a partition column", file=snapshot.store.uri)
    if text.by_name:
        return []
    if text.columns:
        return [_written(snapshot, name) for name in text.columns]
    inner = [field.name for field in snapshot.schema.fields if field.name not in partition]
    return inner + [name for name, value in partition.items() if value is None]


def _written(snapshot: Snapshot, name: str) -> str:
    """Return a column's name with the table's case. Raises InvalidSchema."""
    for field in snapshot.schema.fields:
        if field.name.lower() == name.lower():
            return field.name
    columns = ", ".join(field.name for field in snapshot.schema.fields)
    raise InvalidSchema(
        f"the table has no column {name!r}", file=snapshot.store.uri, hint=f"columns: {columns}"
    )


def _by_place(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    if len(names) != len(frame.columns):
        raise InvalidQuery(
            f"the rows have {len(frame.columns)} columns, and go into {len(names)}: "
            f"{', '.join(names)}",
            hint="name the columns that they have: INSERT INTO t (a, b) ...",
        )
    if len({name.lower() for name in names}) != len(names):
        raise InvalidQuery(f"a column is named twice: {', '.join(names)}")
    return frame.toDF(*names)


def _fields_by_place(frame: DataFrame, columns: st.StructType) -> DataFrame:
    """Rename fields of structs to the table's names, since fields go by position, too."""
    items = []
    for field in frame.schema.fields:
        name = quote_identifier(field.name)
        if field.name not in columns.names:  # a column to be added to the table
            items.append(name)
            continue
        wanted = _with_names(field.dataType, columns[field.name].dataType, field.name)
        same = wanted == field.dataType
        items.append(name if same else f"CAST({name} AS {type_ddl(wanted)}) AS {name}")
    return frame.selectExpr(*items)


def _with_names(given: st.DataType, wanted: st.DataType, place: str) -> st.DataType:
    """Return the type `given` with the field names of `wanted`."""
    match given, wanted:
        case st.StructType(), st.StructType():
            if len(given.fields) != len(wanted.fields):
                raise InvalidQuery(
                    f"{place} has the fields {', '.join(wanted.names)}, and its new value "
                    f"{', '.join(given.names)}",
                    hint="give a value for each field, or NULL; ALTER TABLE ... ADD COLUMN"
                    f" {place}.name adds one, and so does lake.append(..., merge_schema=True)",
                )
            pairs = zip(given.fields, wanted.fields, strict=True)
            return st.StructType(
                [
                    st.StructField(
                        to.name, _with_names(own.dataType, to.dataType, f"{place}.{to.name}")
                    )
                    for own, to in pairs
                ]
            )
        case st.ArrayType(), st.ArrayType():
            return st.ArrayType(_with_names(given.elementType, wanted.elementType, place))
        case st.MapType(), st.MapType():
            key = _with_names(given.keyType, wanted.keyType, place)
            return st.MapType(key, _with_names(given.valueType, wanted.valueType, place))
    return given


def _by_name(frame: DataFrame, snapshot: Snapshot, text: InsertText) -> DataFrame:
    there = {field.name.lower() for field in snapshot.schema.fields}
    return frame.toDF(
        *(
            name if text.evolves and name.lower() not in there else _written(snapshot, name)
            for name in frame.columns
        )
    )
