"""Inputs of `Table.append`: files, bytes, Python rows, and data of other libraries."""

from __future__ import annotations

import dataclasses
import io
import itertools
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, ClassVar, Protocol, TypeGuard, TypeVar

import pyarrow as pa

from variantlake.delta.protocol.identity_columns import is_identity
from variantlake.delta.schema.table_schema import (
    ArrayType,
    DataType,
    MapType,
    StructType,
    VariantType,
    arrow_type,
)
from variantlake.encoding.variant import Variant
from variantlake.errors import InvalidSchema, InvalidValue, describe_type
from variantlake.ingest.frames import as_arrow, converted
from variantlake.ingest.row_values import array_of
from variantlake.ingest.sources.copies import copied
from variantlake.ingest.sources.find_files import PARQUET
from variantlake.ingest.sources.sources import Documents, SourceSpec, expand, specs
from variantlake.kernels.variant.arrow_variants import variant_column
from variantlake.parquet.read.reader import iter_batches


class HasArrowStream(Protocol):
    """Rows of pandas, Polars, DuckDB and others, or a scan of ours."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as a stream of Arrow's C interface."""


class Dataclass(Protocol):
    """An instance of a dataclass: one row."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class LazyRows(Protocol):
    """A query of another library that is not computed yet, such as a Polars LazyFrame."""

    def collect(self) -> Any:
        """The rows."""


Rows = (
    Documents | SourceSpec | bytes | IO[Any] | HasArrowStream | LazyRows | pa.RecordBatch
    | Mapping[str, Any] | Dataclass | Iterable[Any]
)  # fmt: skip
"""What `Table.append` takes."""

_MOST_SHAPES = 1000
"""Sets of row keys whose renames are cached."""

_ROWS = 4096
"""Python rows in one batch; those of the first batch decide the columns."""


@contextmanager
def read_input(
    data: Any,
    schema: StructType,
    column: str | None,
    *,
    is_complete: bool = True,
    takes_documents: bool = True,
    json_columns: Collection[str] = (),
    format: str | None = None,  # noqa: A002 - the name that users give it
) -> Iterator[Documents | pa.RecordBatchReader]:
    """Convert what `Table.append` takes to documents or Arrow rows, valid while the block runs.

    Column names match without case. Python rows get NULL in columns of the table that none of them
    has, unless `is_complete` is false. Python rows with none of the table's columns are documents,
    unless `takes_documents` is false; text in their `json_columns` stays text for the caller to
    parse. Files are of `format`; None takes it from their names.

    Raises InvalidValue for other data, and for a row that does not fit its column.
    """
    if isinstance(data, str | os.PathLike):
        data = [data]
    elif isinstance(data, bytes | bytearray | memoryview):
        data = io.BytesIO(data)
    elif _fields_of(data) is not None:
        data = [data]
    if isinstance(data, Documents):
        yield Documents.of(data, format)
    elif (reader := arrow_reader(as_arrow(data, schema))) is not None:
        yield _documents_of(reader, schema, column) if column else _as_named(reader, schema)
    elif callable(getattr(data, "read", None)):
        with copied(data, str(getattr(data, "name", "the given bytes"))) as file:
            yield _as_named(_from_files([file], format), schema)
    elif isinstance(data, Iterable):
        rows = iter(data)
        head = list(itertools.islice(rows, _ROWS))
        if head and isinstance(head[0], str | os.PathLike):
            yield _as_named(_from_files([*head, *rows], format), schema)
        elif head and isinstance(head[0], bytes):
            with copied(io.BytesIO(_joined([*head, *rows])), "the given bytes") as file:
                yield _from_files([file], format)
        elif head and isinstance(head[0], pa.RecordBatch):
            batches = itertools.chain(head, rows)
            yield _as_named(pa.RecordBatchReader.from_batches(head[0].schema, batches), schema)
        else:
            python_rows = _PythonRows(
                schema,
                column,
                head,
                is_complete=is_complete,
                takes_documents=takes_documents,
                json_columns=json_columns,
            )
            yield python_rows.reader(rows)
    else:
        raise _not_rows(data)


def names_documents(data: Any, form: str | None = None) -> TypeGuard[Documents | list[SourceSpec]]:
    """Whether `data` names files of documents, by `form` or, if it is None, by their endings."""
    if isinstance(data, Documents):
        return True
    named = [data] if isinstance(data, str | os.PathLike) else data
    if not isinstance(named, Collection) or not named:
        return False
    if not all(isinstance(each, str | os.PathLike) for each in named):
        return False
    if form is not None:
        return form != "parquet"
    return not any(PARQUET.accepts(os.fspath(each)) for each in named)


def arrow_reader(data: Any) -> pa.RecordBatchReader | None:
    """A reader of Arrow data or of an object with an Arrow stream; None for anything else."""
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data]).to_reader()
    if isinstance(data, pa.Table):
        return data.to_reader()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    return None


def table_names(names: Sequence[str], schema: StructType) -> list[str]:
    """The names in the table's case: as in Delta, `ID` is the column `id`. Unknown names stay.

    If two names are the same column of the table, all stay as they are.
    """
    fields = [schema.get(name) or schema.find(name) for name in names]
    known = [
        name if field is None else field.name for name, field in zip(names, fields, strict=True)
    ]
    return list(names) if len(set(known)) < len(set(names)) else known


_Input = TypeVar("_Input", Documents, pa.RecordBatchReader, Documents | pa.RecordBatchReader)


def _as_named(data: _Input, schema: StructType) -> _Input:
    """Rows with column names in the table's case; documents as they are."""
    if isinstance(data, Documents):
        return data
    names = table_names(data.schema.names, schema)
    if names == data.schema.names:
        return data
    renamed = pa.schema(
        [field.with_name(name) for field, name in zip(data.schema, names, strict=True)]
    )
    batches = (pa.RecordBatch.from_arrays(each.columns, schema=renamed) for each in data)
    return pa.RecordBatchReader.from_batches(renamed, batches)


def _joined(lines: Sequence[Any]) -> bytes:
    """Join pieces of newline-delimited JSON, such as the values of messages."""
    for number, line in enumerate(lines):
        if not isinstance(line, bytes):
            error = _not_rows(line)
            error.row = number
            raise error
    return b"\n".join(lines)


def _documents_of(
    reader: pa.RecordBatchReader, schema: StructType, column: str
) -> pa.RecordBatchReader:
    """Rows without the VARIANT column as documents in it; rows with it as they are."""
    if column in reader.schema.names or not reader.schema.names:
        return reader
    field = schema.get(column)
    if field is None or not isinstance(field.type, VariantType):
        raise InvalidSchema(f"there is no VARIANT column {column!r}")
    documents = pa.schema([pa.field(column, pa.struct(list(reader.schema)))])
    batches = (
        pa.RecordBatch.from_arrays([batch.to_struct_array()], schema=documents) for batch in reader
    )
    return pa.RecordBatchReader.from_batches(documents, batches)


def _from_files(given: Sequence[SourceSpec], form: str | None) -> Documents | pa.RecordBatchReader:
    """Read files of a format; None takes Parquet by the names, else newline-delimited JSON."""
    named = specs(list(given))
    if form is not None and form != "parquet":
        return Documents.of(named, form)
    parquet = [form is not None or PARQUET.accepts(os.fspath(each)) for each in named]
    if not any(parquet):
        return Documents.of(named)
    if not all(parquet):
        raise InvalidValue(
            "Parquet files and others are given together; append each kind by itself"
        )
    batches = (batch for source in expand(named, PARQUET) for batch in iter_batches(source.path))
    first = next(batches, None)
    if first is None:
        return pa.RecordBatchReader.from_batches(pa.schema([]), [])
    return pa.RecordBatchReader.from_batches(first.schema, itertools.chain([first], batches))


class _PythonRows:
    """Convert Python rows to record batches with the table's types.

    A row maps names of columns to values. Rows with none of the table's columns are documents of
    its only VARIANT column; with `column`, all rows are documents of that one.
    """

    def __init__(
        self,
        schema: StructType,
        column: str | None,
        head: Sequence[Any],
        *,
        is_complete: bool,
        takes_documents: bool,
        json_columns: Collection[str],
    ) -> None:
        self._head = [_row(value, number) for number, value in enumerate(head)]
        self._schema = schema
        self._renames: dict[tuple[Any, ...], Mapping[str, str]] = {}
        self._documents = column
        self._json_columns = json_columns
        filled = schema.fields if is_complete else ()
        names = [f.name for f in filled if f.default is None and not is_identity(f)]
        given = dict.fromkeys(name for row in self._head for name in row)
        variants = [field.name for field in schema.fields if isinstance(field.type, VariantType)]
        known = {field.name.lower() for field in schema.fields}
        are_documents = takes_documents and column is None and len(variants) == 1
        if are_documents and given and known.isdisjoint(str(name).lower() for name in given):
            self._documents = variants[0]
        if self._documents is not None:
            if self._documents not in variants:
                raise InvalidSchema(f"there is no VARIANT column {self._documents!r}")
            self._types: dict[str, pa.DataType | None] = {self._documents: None}
            return
        self._head = [self._named(row, number) for number, row in enumerate(self._head)]
        given = dict.fromkeys(name for row in self._head for name in row)
        self._types = {}
        self._nested = {
            field.name: field.type
            for field in schema.fields
            if field.name not in variants and _has_fields(field.type)
        }
        for name in dict.fromkeys((*names, *given)):
            field = schema.get(name)
            if field is None:  # merge_schema may add it
                self._types[name] = array_of(name, [row.get(name) for row in self._head], 0).type
            else:
                is_text = name in json_columns
                is_variant = isinstance(field.type, VariantType) and not is_text
                self._types[name] = (
                    None if is_variant else pa.string() if is_text else arrow_type(field.type)
                )

    def reader(self, rest: Iterator[Any]) -> pa.RecordBatchReader:
        first = self._batch(self._head, 0)
        return pa.RecordBatchReader.from_batches(first.schema, self._batches(first, rest))

    def _batches(self, first: pa.RecordBatch, rest: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        yield first
        count = first.num_rows
        while values := list(itertools.islice(rest, _ROWS)):
            rows = [_row(each, count + n) for n, each in enumerate(values)]
            if self._documents is None:
                rows = [self._named(row, count + n) for n, row in enumerate(rows)]
            yield self._batch(rows, count)
            count += len(values)

    def _named(self, row: Mapping[str, Any], number: int) -> Mapping[str, Any]:
        """The row with its keys in the table's case."""
        keys = tuple(row)
        names = self._renames.get(keys)
        if names is None:
            if len(self._renames) == _MOST_SHAPES:
                self._renames.clear()
            names = self._renames[keys] = self._names_of(keys, number)
        return {names.get(name, name): value for name, value in row.items()} if names else row

    def _names_of(self, keys: Sequence[Any], number: int) -> Mapping[str, str]:
        """The keys of a row that the table spells differently, with its names for them."""
        texts = [name for name in keys if isinstance(name, str)]
        if all(self._schema.get(name) is not None for name in texts):
            return {}
        if len({name.lower() for name in texts}) < len(texts):
            raise InvalidValue(
                f"the row has keys that differ in case alone: {sorted(texts)}", row=number
            )
        pairs = zip(texts, table_names(texts, self._schema), strict=True)
        return {text: name for text, name in pairs if text != name}

    def _batch(self, rows: Sequence[Mapping[str, Any]], start: int) -> pa.RecordBatch:
        if self._documents is not None:
            return pa.record_batch([_variants(self._documents, rows, start)], [self._documents])
        for number, row in enumerate(rows):
            if more := row.keys() - self._types.keys():
                raise InvalidValue(
                    f"the row has the key {min(more, key=str)!r}, which is no column of the table",
                    row=start + number,
                    hint="column= names the VARIANT column that takes rows as documents",
                    cli_hint="",
                )
        columns = [
            _variants(name, [row.get(name) for row in rows], start)
            if type_ is None
            else array_of(name, self._values(name, rows, start), start, type_)
            for name, type_ in self._types.items()
        ]
        return pa.record_batch(columns, list(self._types))

    def _values(self, name: str, rows: Sequence[Mapping[str, Any]], start: int) -> list[Any]:
        values = [row.get(name) for row in rows]
        if name in self._json_columns:
            _check_texts(name, values, start)
        kind = self._nested.get(name)
        if kind is None:
            return values
        return list(converted(name, values, lambda value: nested_value(value, kind), start))


def _row(value: Any, number: int) -> Mapping[str, Any]:
    fields = _fields_of(value)
    if fields is None:
        error = _not_rows(value)
        error.row = number
        raise error
    return fields


def _fields_of(value: Any) -> Mapping[str, Any] | None:
    """The fields by name of a mapping, dataclass, named tuple or Pydantic model; else None."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, type | Variant) or hasattr(value, "__arrow_c_stream__"):
        return None
    if dataclasses.is_dataclass(value) and not isinstance(value, Documents):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    for name in ("model_dump", "_asdict"):
        if callable(method := getattr(value, name, None)):
            fields: Mapping[str, Any] = method()
            return fields
    return None


def _variants(name: str, values: Sequence[Any], start: int) -> Any:
    return variant_column(list(converted(name, values, _variant, start)))


def _variant(value: Any) -> Variant | None:
    return None if value is None else Variant.of(_plain(value))


def _check_texts(name: str, values: Sequence[Any], start: int) -> None:
    """Raise InvalidValue for a value that is neither text nor None."""
    for number, value in enumerate(values):
        if not isinstance(value, str | bytes | None):
            raise InvalidValue(
                f"column {name!r} is given as JSON text, and {value!r:.80} is not text",
                row=start + number,
                hint="without json_columns= dicts, lists and numbers are stored as such values",
                cli_hint="",
            )


def _has_fields(kind: DataType) -> bool:
    """Whether a type is or contains a struct or a Variant."""
    match kind:
        case ArrayType(element) | MapType(_, element):
            return _has_fields(element)
    return isinstance(kind, StructType | VariantType)


def nested_value(value: Any, kind: DataType) -> Any:
    """Convert a value for Arrow to a type that may contain structs or Variants.

    Raises InvalidValue for a key that is not a field of the struct: Arrow would drop it.
    """
    if value is None:
        return None
    match kind:
        case VariantType():
            variant = _variant(value)
            return variant and {"metadata": variant.metadata, "value": variant.value}
        case StructType(fields):
            items = _fields_of(value)
            if items is None:
                return value  # Arrow refuses it
            kinds = {field.name: field.type for field in fields}
            if more := items.keys() - kinds.keys():
                raise InvalidValue(
                    f"the struct has the key {min(more, key=str)!r}, which is not a field of it"
                )
            return {key: nested_value(each, kinds[key]) for key, each in items.items()}
        case ArrayType(element) if isinstance(value, list | tuple):
            return [nested_value(each, element) for each in value]
        case MapType(_, element) if isinstance(value, Mapping | list | tuple):
            pairs = value.items() if isinstance(value, Mapping) else value
            return [(key, nested_value(each, element)) for key, each in pairs]
    return value


def _plain(value: Any) -> Any:
    """A value with dataclasses and other rows within it as mappings."""
    if isinstance(value, str | int | float | None):
        return value
    if (fields := _fields_of(value)) is not None:
        return {name: _plain(each) for name, each in fields.items()}
    return list(map(_plain, value)) if isinstance(value, list | tuple) else value


def _not_rows(data: object) -> InvalidValue:
    what = describe_type(data)
    return InvalidValue(
        f"{what} is neither a row nor rows",
        hint="Table.append takes paths of JSON or Parquet files, vl.ndjson(...), bytes, rows as "
        "dicts or dataclasses, and Arrow data; lake.append takes DataFrames of Spark",
        cli_hint="",
    )
