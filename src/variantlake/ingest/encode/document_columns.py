"""The further columns that a load of documents fills: from folders, from paths, from the load.

`day=…/` in a source's path is a percent-encoded value, as Hive and Spark write it. A path of the
documents (`event:ts::date`) has the value that Spark's `variant_get` returns; times without a zone
are in UTC.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from variantlake.delta.protocol.identity_columns import is_identity
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.schema.table_schema import (
    DataType,
    PrimitiveType,
    StructField,
    StructType,
    VariantType,
)
from variantlake.delta.stats.partition_values import partition_array
from variantlake.encoding.variant import Variant
from variantlake.errors import (
    InvalidQuery,
    InvalidSchema,
    InvalidValue,
    UnsupportedFeature,
    VariantLakeError,
)
from variantlake.expressions.tree import Ref
from variantlake.ingest.encode.defaults import default_of
from variantlake.ingest.sources.sources import Source
from variantlake.parquet.read.path_values import Mismatch, PathRequest
from variantlake.paths import Path
from variantlake.scan.files.casts import extract
from variantlake.shown import utf8_text
from variantlake.shredding.arrays import AnyArray
from variantlake.shredding.layout import TYPED_VALUE, is_list, is_struct
from variantlake.sql.select import QueryText
from variantlake.writing.options.keywords import names_of

PartitionBy = str | Sequence[str] | Mapping[str, str | None]
"""`"day=event:ts::date"`, `"day"` or `"day DATE"` (of folders), several of them, or a mapping."""

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"

_STRING, _TIMESTAMP = PrimitiveType("string"), PrimitiveType("timestamp")
_OF_PATH = re.compile(r"\s*(\w+|`[^`]+`)\s*=\s*(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RequestedColumns:
    """The columns that the user requests: partition columns, with a path or None for folders.

    `types` are the given types of columns of folders. `file_column` and `loaded_at_column` are
    names.
    """

    paths: Mapping[str, str | None]
    types: Mapping[str, StructField]
    file_column: str | None = None
    loaded_at_column: str | None = None

    @classmethod
    def of(
        cls, partition_by: PartitionBy, file_column: str | None, loaded_at_column: str | None
    ) -> RequestedColumns:
        """Parse the keywords of a load. Raises InvalidSchema for text that does not parse."""
        paths: dict[str, str | None] = {}
        types: dict[str, StructField] = {}
        for name, path, field in _requested(partition_by):
            if name in paths:
                raise InvalidSchema(f"the partition column {name!r} is named twice")
            paths[name] = path
            if field is not None:
                types[name] = field
        return cls(paths, types, file_column, loaded_at_column)

    def new_fields(self, documents: StructField) -> StructType:
        """Return the columns of a new table: the documents, then the partition columns."""
        fields = [documents]
        for name, path in self.paths.items():
            if path is not None:
                fields.append(StructField(name, _type_of(_ref(path, documents))))
            else:
                fields.append(self.types.get(name, StructField(name, _STRING)))
        return StructType((*fields, *self.extra_fields()))

    def extra_fields(self) -> tuple[StructField, ...]:
        """The columns for the file and the time of the load."""
        requested = ((self.file_column, _STRING), (self.loaded_at_column, _TIMESTAMP))
        return tuple(StructField(name, type_) for name, type_ in requested if name is not None)


@dataclass(frozen=True, slots=True)
class DocumentColumns:
    """How the columns beside the documents are filled, by the table's fields; pickles.

    `loaded_at` is in microseconds since the epoch. `numbers` are identity columns, `defaults` other
    columns with their values, each as an array of one row.
    """

    documents: StructField
    folders: tuple[StructField, ...] = ()
    paths: tuple[tuple[StructField, Ref], ...] = ()
    file: StructField | None = None
    moment: StructField | None = None
    loaded_at: int = 0
    numbers: tuple[StructField, ...] = ()
    defaults: tuple[tuple[StructField, AnyArray], ...] = ()

    @classmethod
    def of(
        cls,
        wanted: RequestedColumns,
        schema: StructType,
        partition_columns: Sequence[str],
        column: str,
        at: int,
    ) -> DocumentColumns:
        """Find the columns in a table's schema. Raises InvalidSchema for one that it lacks."""
        documents = _field(schema, column)
        if wanted.paths and {name.lower() for name in wanted.paths} != {
            name.lower() for name in partition_columns
        }:
            raise InvalidSchema(
                f"the load partitions by {', '.join(wanted.paths)}, and the table is "
                f"partitioned by {', '.join(partition_columns) or 'no column'}",
                hint="name the table's own partition columns, or none; those of a table with "
                "versions cannot be changed: load into a new table",
            )
        texts = {name.lower(): text for name, text in wanted.paths.items()}
        types = {name.lower(): field.type for name, field in wanted.types.items()}
        # A partition column without a path takes its value from a folder's name.
        folders, paths = [], []
        for name in partition_columns:
            field, text = _field(schema, name), texts.get(name.lower())
            ref = None if text is None else _ref(text, documents)
            requested = types.get(name.lower()) if ref is None else _type_of(ref)
            if requested is not None and requested != field.type:
                raise InvalidSchema(
                    f"partition column {field.name!r} is {field.type} in the table, "
                    f"{requested} here"
                )
            if ref is None:
                folders.append(field)
            else:
                paths.append((field, ref))
        file, moment = (
            None if name is None else _typed(schema, name, type_)
            for name, type_ in (
                (wanted.file_column, _STRING),
                (wanted.loaded_at_column, _TIMESTAMP),
            )
        )
        numbers = (f for f in schema.fields if is_identity(f) and f.name not in partition_columns)
        made = cls(documents, tuple(folders), tuple(paths), file, moment, at, tuple(numbers))
        others = (f for f in schema.fields if f.name not in made.filled)
        defaults = ((f, array) for f in others if (array := default_of(f)) is not None)
        return replace(made, defaults=tuple(defaults))

    @property
    def filled(self) -> frozenset[str]:
        """The names of all columns that the load fills."""
        others = (field for field, _ in (*self.paths, *self.defaults))
        beside = (*self.folders, *others, *self.numbers)
        given = (self.documents, self.file, self.moment, *beside)
        return frozenset(field.name for field in given if field is not None)

    def check(self, sources: Collection[Source]) -> None:
        """Raise InvalidSchema for a source without a folder, InvalidValue for a bad value."""
        for source in sources:
            for _ in self.of_source(source):
                pass

    def of_source(self, source: Source) -> Iterator[tuple[StructField, AnyArray]]:
        """Yield the columns with one value for all rows of a source, as arrays of one row."""
        known = _folder_values(source) if self.folders else {}
        for field in self.folders:
            yield field, _folder_value(field, known, source)
        if self.file is not None:
            yield self.file, pa.array([utf8_text(source.label)], pa.string())
        if self.moment is not None:
            yield self.moment, pa.array([self.loaded_at], pa.timestamp("us", "UTC"))

    def of_paths(self, batch: pa.RecordBatch) -> Iterator[tuple[StructField, AnyArray, Any]]:
        """Yield the columns of paths, each with a mask of the rows whose cast fails, or None.

        `batch` has the documents as they are stored. Raises UnsupportedFeature for a value that
        only Spark can cast.
        """
        for field, ref in self.paths:
            variants = _at_path(batch, self.documents.physical_name, ref.path or Path())
            inner = Ref((self.documents.name,), None, ref.type, ref.strict)
            try:
                found = extract(variants, inner)
            except UnsupportedFeature as error:
                error.path = str(ref.path)
                raise
            yield field, found.array, found.failed

    def document(self, row: pa.RecordBatch, field: StructField) -> tuple[Any, str]:
        """Return a stored document, and its value at the path of a column, as JSON texts."""
        path = next(ref.path for known, ref in self.paths if known is field)
        whole, part = (
            _variant(_at_path(row, self.documents.physical_name, each or Path()))
            for each in (Path(), path)
        )
        return whole.to_json(), part.to_json()


def _variant(found: AnyArray) -> Variant:
    value: Any = found[0].as_py()
    return Variant(value["metadata"], value["value"])


def _requested(given: PartitionBy) -> Iterator[tuple[str, str | None, StructField | None]]:
    if isinstance(given, Mapping):
        for name, path in given.items():
            yield name, path or None, None
        return
    for text in names_of("partition_by", given):
        if match := _OF_PATH.fullmatch(text):
            yield match[1].strip("`"), match[2].strip(), None
        elif re.search(r"\w\s+\w", text):
            for field in parse_table_ddl(text).fields:
                yield field.name, None, field
        else:
            yield text.strip().strip("`"), None, None


def _ref(text: str, documents: StructField) -> Ref:
    """Parse a path of the documents with its type. Raises InvalidQuery for anything else."""
    items = QueryText(StructType((StructField(documents.name, VariantType()),))).items(text)
    if len(items) != 1 or items[0].ref.path is None or items[0].ref.type == "variant":
        raise InvalidQuery(
            f"{text!r} is not a path of the documents with a type",
            hint=f'as in partition_by="day={documents.name}:ts::date"',
            cli_hint=f"the path needs a type, as in {documents.name}:ts::date",
        )
    return items[0].ref


def _type_of(ref: Ref) -> DataType:
    return parse_table_ddl(f"x {ref.type}").fields[0].type


def _field(schema: StructType, name: str) -> StructField:
    found = schema.get(name) or next(
        (field for field in schema.fields if field.name.lower() == name.lower()), None
    )
    if found is None:
        known = ", ".join(field.name for field in schema.fields)
        raise InvalidSchema(
            f"the table has no column {name!r}",
            hint=f"merge_schema=True adds it; its columns: {known}",
            cli_hint=f"--merge-schema adds it; its columns: {known}",
        )
    return found


def _typed(schema: StructType, name: str, type_: PrimitiveType) -> StructField:
    field = _field(schema, name)
    if field.type != type_:
        raise InvalidSchema(f"column {field.name!r} is {field.type}, expected {type_}")
    return field


def _folder_values(source: Source) -> dict[str, str]:
    """Return the values in the folders of a source's path, by lower-case names."""
    values: dict[str, str] = {}
    for folder in source.path.split("/")[:-1]:
        name, equals, text = folder.partition("=")
        name = urllib.parse.unquote(name).lower()
        if not equals or not name:
            continue
        if values.setdefault(name, text) != text:
            raise InvalidValue(f"the path has two values of {name!r}", file=source.label)
    return values


def _folder_value(field: StructField, known: Mapping[str, str], source: Source) -> AnyArray:
    text = known.get(field.name.lower())
    if text is None:
        raise InvalidSchema(
            f"{field.name!r} is a partition column, and the path of the source has no folder "
            f"{field.name}=…",
            file=source.label,
            hint=f"partition_by '{field.name}=event:path::type' takes it from the documents",
            cli_hint=f"--partition-by '{field.name}=event:path::type' takes it from the documents",
        )
    return folder_array(field, text, source.label)


def folder_array(field: StructField, text: str, file: str) -> AnyArray:
    """Parse the value after the `=` in a folder's name. Raises InvalidValue for a bad one."""
    try:
        value = None if text in ("", HIVE_NULL) else urllib.parse.unquote(text, errors="strict")
        return partition_array(value, field)
    except (VariantLakeError, UnicodeError):
        raise InvalidValue(
            f"the folder {field.name}={text} is not a value of {field.type}", file=file
        ) from None


def _at_path(batch: pa.RecordBatch, column: str, path: Path) -> AnyArray:
    """Return the Variants at a path of stored documents; NULL if it is missing or null."""
    kind: Any = batch.schema.field(column).type
    way: list[str | int] = []
    for step in path.steps:
        place = kind.get_field_index(TYPED_VALUE) if is_struct(kind) else -1
        typed: Any = kind.field(place).type if place >= 0 else None
        if isinstance(step, str) and typed is not None and is_struct(typed):
            index = typed.get_field_index(step)
            if index < 0:
                break
            kind = typed.field(index).type
        elif isinstance(step, int) and typed is not None and is_list(typed):
            kind = typed.value_type
        else:
            break
        way.append(step)
    return PathRequest(
        name="",
        column=column,
        path=path,
        way=tuple(way),
        rest=Path(path.steps[len(way) :]),
        wanted=None,
        row_leaf=0,
        own_leaves=(0,),
        on_mismatch=Mismatch.ERROR,
    ).evaluate(batch)
