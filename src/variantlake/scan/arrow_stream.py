"""Rows as an Arrow stream for other libraries; Variants have an extension type or are JSON text.

The extension type of a VARIANT column is `arrow.parquet.variant`, which pyarrow and Polars keep and
DuckDB reads as its own VARIANT. Spec: Arrow, "Canonical Extension Types", "Parquet Variant".
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute

from variantlake.arrays import distinct_names
from variantlake.encoding.variant import Variant
from variantlake.errors import (
    InvalidValue,
    MissingDependency,
    VariantLakeError,
    check_option_names,
    in_memory,
)
from variantlake.familiar_names import says_its_keywords
from variantlake.shown import Shown, counted, html_table, shortened
from variantlake.shredding.arrays import AnyField, map_leaves, map_types
from variantlake.shredding.layout import (
    VARIANT_EXTENSION,
    VARIANT_TYPE,
    element_type,
    is_list,
    map_type,
)

if TYPE_CHECKING:
    from variantlake.export.export import ExportResult
    from variantlake.export.keywords import ExportKeywords

TOO_MANY_ROWS = (
    "the rows do",
    (
        "`to_batches` and `export` read them piece by piece; if a piece does not fit, select "
        "fewer columns or paths"
    ),
    "select fewer columns, paths or rows",
)
"""What to tell `errors.in_memory` when rows are read."""

_SHOWN_ROWS = 10
_CELL = 80
"""Characters of a value that a notebook or a prompt shows."""

_EXACT_IN_DOUBLES = 2**53
"""Doubles hold every integer from its negative to it."""

_PROMPT_ROWS = 60
"""Rows that a prompt shows."""

_MARK: dict[bytes | str, bytes | str] = {
    "ARROW:extension:name": VARIANT_EXTENSION,
    "ARROW:extension:metadata": "",
}


def marked(field: AnyField) -> AnyField:
    """Set the extension type on each VARIANT in the field, at any depth."""
    kind: Any = field.type
    if kind == VARIANT_TYPE:
        return field.with_metadata(_MARK)
    if isinstance(kind, pa.StructType):
        return field.with_type(pa.struct(list(map(marked, kind))))
    if isinstance(kind, pa.MapType):
        return field.with_type(map_type(kind.key_field, marked(kind.item_field)))
    if is_list(kind) and pa.types.is_nested(element_type(kind)):
        return field.with_type(pa.list_(marked(kind.value_field)))
    return field


class ArrowStream(Shown):
    """Base of the classes that provide rows; whatever takes an Arrow stream accepts them."""

    if not TYPE_CHECKING:  # else a type checker would accept any name

        def __getattr__(self, name: str) -> Any:
            from variantlake.familiar_names import no_such_attribute

            raise no_such_attribute(self, name)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result; VARIANT columns have the extension type."""
        raise NotImplementedError

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in batches."""
        raise NotImplementedError

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as an Arrow reader. Raises as `to_batches`, while it is read."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    @says_its_keywords
    def to_arrow(self) -> pa.Table:
        """All rows as one table. Raises as `to_batches`.

        Examples:
            >>> t.scan("id").to_arrow()["id"].to_pylist()
            [1, 2]
        """
        with in_memory(*TOO_MANY_ROWS):
            return pa.Table.from_batches(self.to_batches(), self.schema)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows as dicts, with Variants as values of Python.

        Raises as `to_batches`; InvalidQuery if two columns have one name.
        """
        names = distinct_names(self.schema)
        for batch in self.to_batches():
            columns = [_python_values(column) for column in batch.columns]
            for row in zip(*columns, strict=True):
                yield dict(zip(names, row, strict=True))

    @says_its_keywords
    def to_pylist(self) -> list[dict[str, Any]]:
        """All rows as dicts, with Variants as values of Python.

        Raises as `to_batches`; InvalidQuery if two columns have one name.
        `table.scan("event", limit=1).to_pylist()` gives `[{"event": {"kind": "a"}}]`.

        Examples:
            >>> t.scan("event", "id = 1").to_pylist()
            [{'event': {'kind': 'a', 'n': 1}}]
        """
        return list(self)

    @says_its_keywords
    def to_pandas(self) -> Any:
        """All rows as a DataFrame of pandas, with Variants as values of Python.

        Integers with NULLs are doubles, as pandas has it, or `Int64` if a double cannot hold one.
        Raises MissingDependency without pandas, else as `to_batches`.
        """
        exact = _needed("pandas").Int64Dtype()
        rows = self.to_arrow()
        found = rows.to_pandas()
        for place, column in enumerate(rows.columns):
            if _holds_variants(column.type):
                values = np.empty(len(column), object)
                values[:] = _python_values(column)
                found.isetitem(place, values)
            elif column.null_count and _exceeds_doubles(column):
                found.isetitem(place, column.to_pandas(types_mapper=lambda _: exact))
        return found

    @says_its_keywords
    def to_polars(self) -> Any:
        """All rows as a DataFrame of Polars, with Variants as JSON text.

        Raises MissingDependency without Polars, else as `to_batches`.
        """
        return _needed("polars").DataFrame(self.as_json())

    def export(
        self,
        path: str | os.PathLike[str],
        format: Literal["parquet", "csv", "jsonl"] | None = None,  # noqa: A002 - as in loads
        **options: Unpack[ExportKeywords],
    ) -> ExportResult:
        """Write the rows into one file, batch by batch; the file appears once it is complete.

        `table.scan("event:kind::string AS kind, day").export("kinds.csv.gz")`. Values are written
        as Spark writes them: in CSV, NULL is an empty field, an empty text is `""`, and binary data
        are hexadecimal. JSON lines have all columns, with binary data in base64. After `as_json()`,
        Variants are JSON text.

        Args:
            path: A file on a disk or in an object store. `.gz` and `.zst` compress CSV and JSON.
            format: The format; None takes it from the name: `.parquet`, `.csv`, `.jsonl`,
                `.ndjson`.
            **options: `overwrite=True` replaces an existing file, `dry_run=True` only counts the
                rows. For Parquet, `shredding` sets which paths of Variants become columns:
                `"infer"`, the default, infers them from the first rows, None leaves Variants whole,
                and DDL names them. `progress` is called as for `Table.optimize`.

        Raises:
            InvalidValue: The file exists, its name implies no format, or an option is unknown.
            MissingSource: There is no such folder.
            StoreFailed: The file cannot be written; what was there before is unharmed.
            What `to_batches` raises.
        """
        from variantlake.export.export import export_rows  # loads the kernels
        from variantlake.export.keywords import ExportKeywords

        check_option_names(options, ExportKeywords.__annotations__)
        return export_rows(self.schema, self.to_batches(), path, format, **options)

    def count(self) -> int:
        """The number of rows. Raises as `to_batches`."""
        return sum(batch.num_rows for batch in self.to_batches())

    def head(self, rows: int = 10) -> HeadRows:
        """The first rows, without reading more files than they need; a prompt shows them.

        Raises InvalidValue for what is not a number of rows, else as `to_batches`.
        """
        if type(rows) is not int or rows < 0:
            raise InvalidValue(f"head takes a number of rows, not {rows!r:.60}")
        found: list[pa.RecordBatch] = []
        for batch in self.to_batches():
            found.append(batch.slice(0, rows - sum(each.num_rows for each in found)))
            if sum(each.num_rows for each in found) >= rows:
                break
        return HeadRows(pa.Table.from_batches(found, self.schema))

    def _repr_html_(self) -> str:
        """What a notebook shows: the first ten rows, or why they cannot be read."""
        import html

        try:
            rows = self.head(_SHOWN_ROWS).to_arrow()
        except VariantLakeError as error:
            return f"<p>{html.escape(repr(self))}: {html.escape(str(error))}</p>"
        cells = (
            list(map(_cell, row)) for row in zip(*map(_python_values, rows.columns), strict=True)
        )
        more = ", the first rows" if rows.num_rows == _SHOWN_ROWS else ""
        return f"<p>{html.escape(repr(self))}{more}</p>{html_table(rows.column_names, cells)}"

    def as_json(self) -> JsonStream:
        """The same rows with JSON text in place of Variants, at any depth.

        `polars.DataFrame(table.scan("event").as_json())`. The text is that of `vl.to_json`.
        """
        return JsonStream(self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow C stream interface."""
        reader: Any = self.to_reader()
        return reader.__arrow_c_stream__(requested_schema)


class HeadRows(ArrowStream):
    """Rows in memory. A prompt shows their values, including those of Variants.

    `len(rows)` counts them, `rows[0]` is the first one as a dict, and `to_arrow()` is an Arrow
    table.
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema; VARIANT columns have the extension type."""
        return self._table.schema

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self._table.num_rows

    def __len__(self) -> int:
        return self._table.num_rows

    def __getitem__(self, at: int) -> dict[str, Any]:
        return self.to_pylist()[at]

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in batches."""
        yield from self._table.to_batches()

    def to_arrow(self) -> pa.Table:
        """The rows as one table."""
        return self._table

    def __repr__(self) -> str:
        shown = self._table.slice(0, _PROMPT_ROWS)
        lines = [shown.column_names]
        lines += [
            [_prompt_cell(value) for value in row]
            for row in zip(*map(_python_values, shown.columns), strict=True)
        ]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
        more = len(self) - shown.num_rows
        return "\n".join(text + ([f"and {counted(more, 'more row')}"] if more else []))


def _prompt_cell(value: Any) -> str:
    """Show any value on one line."""
    text = "NULL" if value is None else value if isinstance(value, str) else str(value)
    return shortened(text if text.isprintable() else repr(text), _CELL)


def _exceeds_doubles(column: Any) -> bool:
    """Whether a double may not hold an integer of the column."""
    if not pa.types.is_int64(column.type):
        return False
    bounds = pa.compute.min_max(column)
    least, most = bounds["min"].as_py(), bounds["max"].as_py()
    return least is not None and (least < -_EXACT_IN_DOUBLES or most > _EXACT_IN_DOUBLES)


def _holds_variants(kind: pa.DataType) -> bool:
    return map_types(kind, _text_type, VARIANT_TYPE.equals) != kind


def _python_values(column: Any) -> list[Any]:
    """The values of a column, with Variants as values of Python and NULL as None."""
    values: list[Any] = column.to_pylist()
    if not _holds_variants(column.type):
        return values
    return [_python_value(value, column.type) for value in values]


def _python_value(value: Any, kind: Any) -> Any:
    if value is None:
        return None
    if kind == VARIANT_TYPE:
        return Variant(value["metadata"], value["value"]).to_python()
    if isinstance(kind, pa.StructType):
        return {each.name: _python_value(value[each.name], each.type) for each in kind}
    if isinstance(kind, pa.MapType):
        return [(key, _python_value(item, kind.item_type)) for key, item in value]
    if is_list(kind):
        return [_python_value(each, element_type(kind)) for each in value]
    return value


def _cell(value: Any) -> str:
    return "" if value is None else shortened(str(value), _CELL)


def _needed(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingDependency(
            f"{package} is not installed", hint=f"pip install {package}"
        ) from error


@dataclass(frozen=True, repr=False)
class JsonStream(ArrowStream):
    """Rows whose Variants are JSON text. `to_batches` also raises as `vl.to_json`."""

    rows: ArrowStream

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return pa.schema(
            [
                pa.field(
                    each.name, map_types(each.type, _text_type, VARIANT_TYPE.equals), each.nullable
                )
                for each in self.rows.schema
            ]
        )

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in batches."""
        for batch in self.rows.to_batches():
            columns = [
                column
                if column.type == wanted.type
                else map_leaves(column, _text, VARIANT_TYPE.equals)
                for column, wanted in zip(batch.columns, self.schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _text_type(kind: pa.DataType) -> pa.DataType:
    return pa.string() if kind == VARIANT_TYPE else kind


def _text(array: Any) -> Any:
    from variantlake.parquet.read.json_column import to_json  # loads kernels

    return to_json(array).combine_chunks() if array.type == VARIANT_TYPE else array
