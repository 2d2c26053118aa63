"""Find the table that a DataFrame is appended to, or describe the one that its columns make."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from pyspark.sql import types as st

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.known_properties import SCHEMA_PREFIX
from variantlake.delta.schema.table_schema import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    VariantType,
)
from variantlake.delta.transaction.creation import Creation
from variantlake.errors import InvalidSchema, MalformedLog, NotADeltaTable, wrong_option
from variantlake.shredding.ddl import format_ddl, parse_ddl
from variantlake.writing.options.keywords import check_options, names_of
from variantlake.writing.table_write import READER_FEATURES, TableWrite


@dataclass(frozen=True, slots=True)
class NewTable:
    """How an append makes a table: see `Table.create`.

    With an `operation` (for the history), the table must be new, or replaces all of `replaced`.
    """

    partition_by: tuple[str, ...] = ()
    shredding: str | Mapping[str, str] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    cluster_by: tuple[str, ...] = ()
    description: str | None = None
    operation: str | None = None
    replaced: Snapshot | None = None

    @classmethod
    def of(
        cls,
        partition_by: str | Sequence[str],
        shredding: str | Mapping[str, str] | None,
        properties: Mapping[str, str] | None,
    ) -> Self:
        """Make it of a user's arguments. Raises InvalidValue for a wrong one."""
        check_options(properties=properties)
        if shredding is not None and not isinstance(shredding, str | Mapping):
            raise wrong_option("shredding", shredding, "DDL, or a mapping of columns to DDL")
        return cls(names_of("partition_by", partition_by), shredding, properties or {})

    def properties_of(self, schema: StructType) -> dict[str, str]:
        """Return the properties, with the shredding schemas among them.

        Raises InvalidSchema for a single DDL unless there is exactly one VARIANT column.
        """
        given = self.shredding
        if given is None:
            return dict(self.properties)
        if isinstance(given, str):
            variants = [f.name for f in schema.fields if isinstance(f.type, VariantType)]
            if len(variants) != 1:
                raise InvalidSchema(
                    f"the rows have {len(variants)} VARIANT columns",
                    hint='name the one to shred: shredding={"event": "kind STRING"}',
                )
            given = {variants[0]: given}
        own = {SCHEMA_PREFIX + name: format_ddl(parse_ddl(text)) for name, text in given.items()}
        return {**self.properties, **own}


def target_of(
    given: st.StructType,
    table: str | os.PathLike[str],
    json_columns: Collection[str],
    new: NewTable | None,
    *,
    numbered: bool = False,
) -> TableWrite:
    """Return the table, or the one to make of the columns `given`; otherwise as `TableWrite.of`."""
    location = os.fspath(table)
    if new is not None and new.operation is not None:
        return _created(location, columns_of(given, json_columns), new, new.operation)
    try:
        snapshot = Snapshot.read(location, applies=READER_FEATURES)
    except NotADeltaTable:
        if new is None:
            raise
        schema = columns_of(given, json_columns)
        names = in_schema(new.partition_by, schema)
        return TableWrite.open(location, schema, new.properties_of(schema), names, evaluated=True)
    target = TableWrite.of(snapshot, evaluated=True, numbered=numbered)
    requested = () if new is None else in_schema(new.partition_by, snapshot.schema)
    if requested and requested != snapshot.partition_columns:
        known = ", ".join(snapshot.partition_columns) or "no column"
        raise InvalidSchema(
            f"the table is partitioned by {known}, not by {', '.join(requested)}",
            file=target.store.uri,
        )
    if new is not None and new.shredding is not None:
        for name, text in new.properties_of(target.schema).items():
            if name.startswith(SCHEMA_PREFIX):
                column = target.schema.get(name.removeprefix(SCHEMA_PREFIX))
                if column is None or not isinstance(column.type, VariantType):
                    raise InvalidSchema(f"{name!r} is not a VARIANT column of the table")
                target = target.with_shredding(
                    column.physical_name, parse_ddl(text), requested=True
                )
    return target


def _created(location: str, schema: StructType, new: NewTable, operation: str) -> TableWrite:
    properties = new.properties_of(schema)
    creation = Creation.of(
        new.replaced,
        schema,
        in_schema(new.partition_by, schema),
        properties,
        cluster_columns=in_schema(new.cluster_by, schema),
        description=new.description,
        operation=operation,
    )
    return TableWrite.created(location, new.replaced, creation, properties)


def in_schema(names: Sequence[str], schema: StructType) -> tuple[str, ...]:
    """Return column names in the schema's case, as Spark's ignore it; paths into structs stay."""
    written = {field.name.lower(): field.name for field in schema.fields}
    return tuple(written.get(name.lower(), name) for name in names)


def columns_of(given: st.StructType, json_columns: Collection[str]) -> StructType:
    """Return the columns of a table made of rows with the columns `given`; all are nullable."""
    try:
        found = StructType.from_json(given.json())
    except MalformedLog as error:  # as it would be in a table's log
        raise InvalidSchema(
            f"a Delta table cannot hold the DataFrame's columns: {error.message}",
            hint="cast the column to a type of Delta, or leave it out",
        ) from None
    for name in json_columns:
        if found.get(name) is None:
            raise InvalidSchema(f"the data have no column {name!r} of JSON text")
    return StructType(
        tuple(
            StructField(
                each.name,
                VariantType() if each.name in json_columns else _described_type(each.type),
                metadata={k: v for k, v in each.metadata.items() if k in _KEPT_METADATA},
            )
            for each in found.fields
        )
    )


def _described_type(kind: DataType) -> DataType:
    """Return the type as `nullable_type` does, but keep the comments of fields."""
    if isinstance(kind, StructType):
        fields = (
            StructField(
                each.name,
                _described_type(each.type),
                metadata={k: v for k, v in each.metadata.items() if k == "comment"},
            )
            for each in kind.fields
        )
        return StructType(tuple(fields))
    if isinstance(kind, ArrayType):
        return ArrayType(_described_type(kind.element))
    if isinstance(kind, MapType):
        return MapType(_described_type(kind.key), _described_type(kind.value))
    return kind


def text_columns(
    given: st.StructType, schema: StructType, json_columns: Sequence[str]
) -> tuple[str, ...]:
    """Return the VARIANT columns that the rows have as text: `json_columns`, and all strings."""
    variants = {field.name for field in schema.fields if isinstance(field.type, VariantType)}
    strings = [
        field.name
        for field in given.fields
        if field.name in variants and field.dataType == st.StringType()
    ]
    return tuple(dict.fromkeys((*in_schema(json_columns, schema), *strings)))


def check_texts(given: st.StructType, target: TableWrite, json_columns: Collection[str]) -> None:
    """Raise InvalidSchema for a column that should be JSON text and has another type."""
    for name in json_columns:
        kind = given[name].dataType.simpleString() if name in given.names else "string"
        column = target.schema.get(name)
        if column is not None and isinstance(column.type, VariantType) and kind not in _TEXTS:
            raise InvalidSchema(
                f"column {name!r} is given as {kind}, expected JSON text (string or binary)"
            )


_TEXTS = ("string", "binary")
_KEPT_METADATA = ("comment", "__CHAR_VARCHAR_TYPE_STRING")
"""Metadata of a DataFrame's columns to keep; the rest is about the table it was read from."""
