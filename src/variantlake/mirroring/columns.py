"""The columns of a mirror, their sources in its table, and changes of the table's columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import orjson

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.properties import check_clustering
from variantlake.delta.schema.column_mapping import physical_type
from variantlake.delta.schema.columns_by_path import (
    logical_path,
    physical_path,
    shown_path,
    type_at,
)
from variantlake.delta.schema.table_schema import StructType, spark_name
from variantlake.delta.transaction.alter import evolved
from variantlake.errors import InvalidQuery, InvalidSchema
from variantlake.expressions.tree import Ref
from variantlake.scan.table_scan import Scan
from variantlake.sql.select import Item, QueryText

PROPERTY = "variantlake.mirror"
"""A mirror's property with its table and the columns that it has of it, as JSON."""


@dataclass(frozen=True, slots=True)
class MirrorColumns:
    """Columns and paths of a table by their texts (`select`), and their schema in the mirror.

    `table_id` is the id of the table. `sources` has for each column the path of its source in the
    table, the physical path, and the expression that is read. The last two stay when the source is
    renamed, and change when another column gets its name. `sources` is None for a mirror that does
    not record them. `items` is `select` parsed for a version of the table; empty in `in_mirror`.
    """

    table_id: str
    select: tuple[str, ...]
    schema: StructType
    sources: tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...] | None
    items: tuple[Item, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, table: Snapshot, select: Sequence[str]) -> Self:
        """The columns that these texts select.

        Raises InvalidSchema for a VARIANT, InvalidQuery and UnsupportedFeature as a scan.
        """
        scan = Scan(table, QueryText(table.schema).items(select))
        schema = StructType.from_arrow(scan.schema)
        for column, item in zip(schema.fields, scan.items, strict=True):
            if StructType((column,)).holds_variant() or item.ref.type == "variant":
                raise InvalidSchema(
                    f"the column {column.name!r} of the mirror would be VARIANT",
                    hint="give the path a type: event:id::bigint AS id",
                )
        sources = tuple(_source(table.schema, item.ref) for item in scan.items)
        return cls(table.metadata.id, tuple(select), schema, sources, scan.items)

    @classmethod
    def in_mirror(cls, mirror: Snapshot) -> Self:
        """The columns of a mirror, by its property."""
        described = orjson.loads(mirror.properties[PROPERTY])
        sources: Any = described.get("sources")
        if sources is not None:
            sources = tuple((tuple(now), tuple(path), read) for now, path, read in sources)
        return cls(described["id"], tuple(described["select"]), mirror.schema, sources)

    def description(self, table: Snapshot) -> str:
        """The value of the property of a mirror of this table."""
        described = {
            "table": table.store.uri,
            "id": self.table_id,
            "select": self.select,
            "sources": self.sources,
        }
        return orjson.dumps(described).decode()

    def again(self, table: Snapshot) -> Self:
        """The same texts for a newer version. Raises as `of`, and names columns that are gone."""
        try:
            return self.of(table, self.select)
        except InvalidQuery as error:
            if not (changed := list(self._moved(table.schema))):
                raise
            raise InvalidQuery(
                f"the table has changed since the last refresh: {'; '.join(changed)}",
                hint="select all columns of the mirror once more, as they are called now, and AS "
                "the names that they have in the mirror",
            ) from error

    def reads_as(self, other: Self) -> bool:
        """Whether both read the same values from the same table."""
        if self.table_id != other.table_id:
            return False
        if self.sources is None or other.sources is None:
            return self.select == other.select
        return self._reads() == other._reads()

    def differences(self, there: Self) -> list[str]:
        """How these columns differ from those in the mirror, a text for each difference."""
        new = {field.name: spark_name(field.type) for field in self.schema.fields}
        old = {field.name: spark_name(field.type) for field in there.schema.fields}
        old_names = dict(zip(there._reads(), old, strict=False))
        renamed = {
            name: old_names[read]
            for name, read in zip(new, self._reads(), strict=False)
            if name not in old and old_names.get(read, name) not in new
        }
        texts = [
            f"{name} is {old[name]} in the mirror, not {kind}"
            for name, kind in new.items()
            if old.get(name, kind) != kind
        ]
        texts += [
            f"{now} is {name} in the mirror: {now} AS {name}" for now, name in renamed.items()
        ]
        texts += [
            f"{name} is not in the mirror"
            for name in new
            if name not in old and name not in renamed
        ]
        texts += [
            f"{name} is only in the mirror"
            for name in old
            if name not in new and name not in renamed.values()
        ]
        if not texts and list(old) != list(new):
            texts = ["the order in the mirror is " + ", ".join(old)]
        return texts

    def within(self, mirror: Snapshot) -> Snapshot:
        """The mirror with these columns.

        Raises InvalidSchema if one that partitions or sorts the mirror is missing.
        """
        if not self.differences(self.in_mirror(mirror)):
            return mirror
        try:
            protocol, metadata = evolved(mirror, self.schema)
            check_clustering(metadata.configuration, self.schema, mirror.partition_columns)
        except InvalidSchema as error:
            error.say_first("the mirror keeps its partitions and the order of its rows")
            raise
        schema = StructType.from_json(metadata.schema_string)
        return replace(mirror, protocol=protocol, metadata=metadata, schema=schema)

    def _reads(self) -> list[tuple[tuple[str, ...], str]]:
        return [(path, read) for _, path, read in self.sources or ()]

    def _moved(self, schema: StructType) -> Iterator[str]:
        there = {field.physical_name for field in schema.fields}
        for name, path, _ in dict.fromkeys(self.sources or ()):
            now = logical_path(schema, path)
            if path[0] not in there:
                yield f"{shown_path(name)} is gone"
            elif now != name:
                yield f"{shown_path(name)} is called {shown_path(now)} now"


def _source(schema: StructType, ref: Ref) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    path = physical_path(schema, ref.column)
    read = str(replace(ref, column=path, shown=()))
    if ref.path is None:
        read += f" {physical_type(type_at(schema, ref.column))}"
    return ref.column, path, read
