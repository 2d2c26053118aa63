"""Format Arrow columns as text for CSV and JSON lines, as Spark writes values.

Uses Arrow's functions where they write the same text, else formats value by value.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute

from variantlake.arrays import distinct_names
from variantlake.encoding.java_numbers import double_text, float_text
from variantlake.encoding.json_text import to_json as value_to_json
from variantlake.errors import MalformedFile, VariantLakeError
from variantlake.export.time_texts import is_time, time_texts, with_time_texts
from variantlake.parquet.read.json_column import to_json as variants_to_json
from variantlake.shown import json_default
from variantlake.shredding.fit import raws_of
from variantlake.shredding.layout import METADATA, VALUE, is_variant_type

compute = cast("Any", pyarrow.compute)
"""Arrow's functions, untyped: their stubs do not cover arrays of any type."""

Texts = Any
"""A large_string array."""

_TEXT = pa.large_string()
_SPECIAL = r'["\\\x00-\x1f]'
"""Characters that JSON strings escape."""


def texts(name: str, column: Any) -> Texts:
    """The values of a column as text, NULL as null: structs, lists and Variants as JSON.

    Raises MalformedVariant, LimitExceeded and MalformedFile, with the row of the column.
    """
    kind = column.type
    if is_variant_type(kind):
        return _whole(variants_to_json(column))
    if pa.types.is_nested(kind):
        found = json_texts(name, column)
        return compute.if_else(column.is_valid(), found, pa.scalar(None, _TEXT))
    if pa.types.is_floating(kind):
        return _float_texts(column)
    if is_time(kind):
        return pa.array(time_texts(column), _TEXT)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _each(raws_of(column), lambda raw: raw.hex().upper())
    if pa.types.is_string(kind):
        _check_utf8(name, column)
    return column.cast(_TEXT)


def json_texts(name: str, column: Any) -> Texts:
    """The values of a column as JSON, NULL as `null`. Raises as `texts`."""
    kind = column.type
    if pa.types.is_nested(kind) and not is_variant_type(kind):
        return pa.array(value_texts(name, column), _TEXT)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        coded = _each(raws_of(column), lambda raw: base64.b64encode(raw).decode())
        found = _in_quotes(coded)
    else:
        found = texts(name, column)
        if pa.types.is_floating(kind):
            found = compute.if_else(compute.is_finite(column), found, _in_quotes(found))
        elif pa.types.is_string(kind) or is_time(kind):
            found = quoted(found)
    return found.fill_null("null")


def json_lines(batch: pa.RecordBatch) -> Texts:
    """Each row as a JSON object, with its NULLs. Raises as `texts` and `distinct_names`."""
    if not batch.num_columns:
        return pa.array(["{}"] * batch.num_rows, _TEXT)
    parts: list[Any] = []
    before = "{"
    for name, column in zip(distinct_names(batch.schema), batch.columns, strict=True):
        parts += [f"{before}{json.dumps(name, ensure_ascii=False)}:", json_texts(name, column)]
        before = ","
    return joined(*parts, "}")


def csv_lines(batch: pa.RecordBatch) -> Texts:
    """Each row as a line of CSV (RFC 4180): an empty text is `""`, NULL an empty cell.

    Raises as `texts`.
    """
    cells = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        cells.append(csv_cells(texts(name, column)))
    return joined(*cells, by=",")


def csv_cells(found: Texts) -> Texts:
    """Texts as CSV cells."""
    doubled = compute.replace_substring(found, '"', '""')
    quoted = _in_quotes(doubled)
    needed = compute.or_(compute.match_substring_regex(found, '[",\r\n]'), compute.equal(found, ""))
    return compute.if_else(needed, quoted, found).fill_null("")


def joined(*parts: Any, by: str = "") -> Texts:
    """The parts of each row as one text, or null if one is null."""
    typed = (pa.scalar(each, _TEXT) if isinstance(each, str) else each for each in (*parts, by))
    return compute.binary_join_element_wise(*typed)


def _whole(column: pa.ChunkedArray[Any]) -> Texts:
    return column.cast(_TEXT).combine_chunks()


def _each(values: Any, form: Callable[[Any], str]) -> Texts:
    return pa.array([None if each is None else form(each) for each in values], _TEXT)


def _in_quotes(found: Texts) -> Texts:
    return joined('"', found, '"')


def quoted(found: Texts) -> Texts:
    """Texts as JSON strings."""
    plain = _in_quotes(found)
    escaped = compute.match_substring_regex(found, _SPECIAL)
    if not compute.any(escaped).as_py():
        return plain
    written = [json.dumps(text, ensure_ascii=False) for text in found.filter(escaped).to_pylist()]
    return compute.replace_with_mask(plain, escaped.fill_null(False), pa.array(written, _TEXT))


def _float_texts(column: Any) -> Texts:
    """Floats as Java writes them: from 10^-3 to below 10^7 without an exponent, as in Arrow."""
    number = float_text if pa.types.is_float32(column.type) else double_text
    size = compute.abs(column)
    plain = compute.and_(compute.greater_equal(size, 1e-3), compute.less(size, 1e7))
    found = column.cast(_TEXT)
    # Arrow writes whole numbers without a fraction.
    whole = compute.invert(compute.match_substring(found, "."))
    found = compute.if_else(whole, joined(found, ".0"), found)
    others = compute.invert(plain).fill_null(False)
    if not compute.any(others).as_py():
        return found
    written = pa.array([number(each) for each in column.filter(others).to_pylist()], _TEXT)
    return compute.replace_with_mask(found, others, written)


def _check_utf8(name: str, column: Any) -> None:
    """Raise MalformedFile, with the row, for a string that is not UTF-8; Arrow does not check."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        python_values(name, column)
        raise


def value_texts(name: str, column: Any) -> list[str]:
    """The Python values of a column as JSON. Raises as `texts`."""
    found = []
    for row, value in enumerate(python_values(name, column)):
        try:
            found.append(nested_text(value, column.type))
        except VariantLakeError as error:
            error.row = row
            raise
    return found


def python_values(name: str, column: Any) -> list[Any]:
    """The Python values of a column, with text for times that Python cannot represent.

    Raises MalformedFile, with the row, for a string that is not UTF-8.
    """
    try:
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError):
        column = with_time_texts(column)
        for row in range(len(column)):
            try:
                column[row].as_py()
            except (ValueError, OverflowError) as error:
                raise MalformedFile(
                    f"column {name!r} holds what has no Python value: {error}", row=row
                ) from error
        values = column.to_pylist()
    return values


def nested_text(value: Any, kind: pa.DataType) -> str:
    """A Python value of this Arrow type as JSON. Raises MalformedVariant."""
    if value is None:
        return "null"
    if isinstance(kind, pa.StructType):
        if {field.name for field in kind} == {METADATA, VALUE}:
            return value_to_json(value[METADATA], value[VALUE])
        members = (
            f"{json.dumps(each.name, ensure_ascii=False)}: "
            f"{nested_text(value[each.name], each.type)}"
            for each in kind
        )
        return "{" + ", ".join(members) + "}"
    if isinstance(kind, pa.ListType | pa.LargeListType):
        return "[" + ", ".join(nested_text(item, kind.value_type) for item in value) + "]"
    if isinstance(kind, pa.MapType):
        pairs = (
            f"[{nested_text(k, kind.key_type)}, {nested_text(v, kind.item_type)}]" for k, v in value
        )
        return "[" + ", ".join(pairs) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        value = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    return json.dumps(value, ensure_ascii=False, default=json_default)
