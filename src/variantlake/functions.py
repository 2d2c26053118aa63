"""Functions of single Variants, Arrow arrays of Variants, and Spark columns.

They have the names, arguments and rules of Spark 4.3 (table in docs/variants.md).
In: a Variant, an Arrow array of struct<metadata, value>, or a Column. Out: the same kind.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar, cast, overload

import pyarrow as pa

from variantlake.delta.schema.table_schema import StructField, VariantType
from variantlake.encoding import json
from variantlake.encoding.edit import Change, Edit, edited
from variantlake.encoding.json import Buffer, DuplicateKeys
from variantlake.encoding.variant import Variant
from variantlake.errors import (
    DuplicateKey,
    InvalidPath,
    InvalidValue,
    PathTypeMismatch,
    VariantLakeError,
)
from variantlake.kernels.variant.arrow_variants import as_variants, variant_column
from variantlake.kernels.variant.editor import edit_variants
from variantlake.paths import Path
from variantlake.shredding.layout import is_variant_type
from variantlake.shredding.schema import ShreddingSchema

Target: TypeAlias = Any
"""A Variant or None, an Arrow array or chunked array of Variants, or a Spark Column."""

_Values = TypeVar("_Values")
"""A `Target`; the result is of the same kind."""

_LENIENT = (PathTypeMismatch, DuplicateKey)


@overload
def parse_json(text: str | Buffer, *, duplicate_keys: DuplicateKeys = "error") -> Variant: ...
@overload
def parse_json(text: _Values, *, duplicate_keys: DuplicateKeys = "error") -> _Values: ...
def parse_json(text: Any, *, duplicate_keys: DuplicateKeys = "error") -> Any:
    """Parse a JSON document to a Variant, or an Arrow array of documents to Variants.

    Integers take the narrowest of int8 to int64, then a decimal of up to 38 digits, then double.
    Numbers with a point are decimals with their scale if 38 digits and scale 38 hold them, else
    double; numbers with an exponent are double (infinite when out of range, as in Spark).

    Args:
        text: The document; bytes (bytearray, memoryview) are UTF-8 without a byte order mark. An
            Arrow array or chunked array of strings or such bytes becomes struct<metadata, value>;
            nulls stay nulls.
        duplicate_keys: For a key that occurs twice in one object: raise, or take the last value.

    Raises:
        InvalidValue: Arguments of other types or values than these.
        InvalidJson: Text that is not one JSON document, or not UTF-8, or holds a lone surrogate.
        LimitExceeded: Beyond the limits of `encoding.limits`. This error and InvalidJson have
            `offset` (bytes), `line` and `column` (characters, from 1) in the text, and `path` in
            the document; for an array also `row`, which counts from 0.

    Examples:
        >>> vl.parse_json('{"a": [1, 2.5]}').get("$.a[1]").to_json()
        '2.5'
        >>> import pyarrow as pa
        >>> vl.to_json(vl.parse_json(pa.array(['{"a": 1}', None]))).to_pylist()
        ['{"a":1}', None]
    """
    if isinstance(text, pa.ChunkedArray):
        return _chunks_of_json(text, duplicate_keys)
    if isinstance(text, pa.Array):
        return _array_of_json(text, duplicate_keys)
    return json.parse_json(text, duplicate_keys=duplicate_keys)


def to_json(target: Any) -> Any:
    """Write a Variant, or an Arrow array of Variants, as JSON text.

    The form is that of Spark's `to_json`: fields in stored order, decimals without trailing zeros,
    timestamps in UTC.

    Args:
        target: A Variant becomes text; an Arrow array or chunked array of struct<metadata, value>
            becomes a chunked array of strings. SQL NULL (None) stays NULL, a Variant null becomes
            the text `null`.

    Raises:
        InvalidValue: `target` is not a Variant.
        MalformedVariant, LimitExceeded, UnknownVariantType: A value that has no text; for an array
            with `row`.

    Examples:
        >>> vl.to_json(vl.Variant.of({"a": [1, None]}))
        '{"a":[1,null]}'
    """
    if target is None:
        return None
    if isinstance(target, Variant):
        return target.to_json()
    if isinstance(target, pa.Array | pa.ChunkedArray) and is_variant_type(target.type):
        from variantlake.parquet.read.json_column import to_json as column_to_json

        return column_to_json(target)
    raise _no_variant(target, "; Spark's columns have `pyspark.sql.functions.to_json`")


def variant_set(
    target: _Values, path: str | Path, value: object, *, create_if_missing: bool = True
) -> _Values:
    """Set the value at `path` of `target` to `value`, and return the result.

    Args:
        target: A Variant (None stays None), an Arrow array or chunked array of struct<metadata,
            value> (a null row stays null), or a Spark Column.
        path: `$.a.b[0]`; never `$` alone.
        value: Anything that `Variant.of` takes; None is the Variant null. For arrays also an Arrow
            array with one value per row, for columns also a Column; where it is SQL NULL, so is the
            result.
        create_if_missing: Create missing fields, elements and parents: an array for an index,
            objects for other steps, Variant nulls up to an index beyond the end. If false, a
            Variant that lacks them stays unchanged.

    Raises:
        InvalidPath: `path` does not parse, or is `$`.
        PathTypeMismatch: The path goes through a value of another type (also a Variant null).
        InvalidValue: `value` has no Variant type, or `target` is not a Variant.
        MalformedVariant, LimitExceeded: Bytes that are not Variant; a result beyond our limits.
    """
    changed: _Values = _changed(target, Edit(Change.SET, _path(path), create_if_missing), value)
    return changed


def variant_insert(target: _Values, path: str | Path, value: object) -> _Values:
    """Add `value` to `target` as a new field, or as a new element before the one at `path`.

    As `variant_set`, but replaces nothing: later elements move on by one. Raises DuplicateKey for
    a field that exists, else as `variant_set`.
    """
    changed: _Values = _changed(target, Edit(Change.INSERT, _path(path)), value)
    return changed


def variant_delete(target: _Values, *paths: str | Path) -> _Values:
    """Remove the fields and elements at `paths` from `target`, one after the other.

    A path that does not exist, or goes through a value of another type, removes nothing. Raises
    InvalidPath, and for malformed Variants as `variant_set`.
    """
    if not paths:
        raise InvalidPath(
            "variant_delete needs a path", hint="name a field or an element: $.a or $[0]"
        )
    for path in paths:
        target = _changed(target, Edit(Change.DELETE, _path(path)), None)
    return target


variant_remove = variant_delete


def variant_array_append(target: _Values, path: str | Path, value: object) -> _Values:
    """Add `value` as the last element of the array at `path`, which may be `$`, of `target`.

    An array is appended as one element. A path that does not exist changes nothing. Raises
    PathTypeMismatch for a value that is not an array, else as `variant_set`.
    """
    changed: _Values = _changed(target, Edit(Change.APPEND, _path(path)), value)
    return changed


def try_variant_set(
    target: Target, path: str | Path, value: object, *, create_if_missing: bool = True
) -> Any:
    """As `variant_set`, but NULL if that raises PathTypeMismatch."""
    edit = Edit(Change.SET, _path(path), create_if_missing)
    return _changed(target, edit, value, lenient=True)


def try_variant_insert(target: Target, path: str | Path, value: object) -> Any:
    """As `variant_insert`, but NULL if that raises PathTypeMismatch or DuplicateKey."""
    return _changed(target, Edit(Change.INSERT, _path(path)), value, lenient=True)


def try_variant_array_append(target: Target, path: str | Path, value: object) -> Any:
    """As `variant_array_append`, but NULL if that raises PathTypeMismatch."""
    return _changed(target, Edit(Change.APPEND, _path(path)), value, lenient=True)


def _path(path: str | Path) -> Path:
    if isinstance(path, Path):
        return path
    if not isinstance(path, str):
        raise InvalidPath(f"a path is text such as $.a[0], not {type(path).__name__}")
    return Path.parse(path)


def _changed(target: Target, edit: Edit, value: object, *, lenient: bool = False) -> Any:
    if target is None:
        return None
    if isinstance(target, Variant):
        return _one(target, edit, value, lenient=lenient)
    if isinstance(target, pa.ChunkedArray):
        return _chunks(target, edit, value, lenient=lenient)
    if isinstance(target, pa.Array) and is_variant_type(target.type):
        return _array(target, edit, value, lenient=lenient)
    if type(target).__module__.startswith("pyspark."):
        from variantlake.spark.session.variant_functions import changed_column

        return changed_column(target, edit, value, lenient=lenient)
    raise _no_variant(target, ", or a Column")


def _no_variant(target: Any, hint_end: str) -> InvalidValue:
    is_arrow = isinstance(target, pa.Array | pa.ChunkedArray)
    what = str(target.type) if is_arrow else type(target).__name__
    return InvalidValue(
        f"expected a Variant, found {what}",
        hint=f"give a variantlake.Variant, an Arrow array of struct<metadata, value>{hint_end}",
    )


def _array_of_json(texts: Any, duplicate_keys: DuplicateKeys) -> Any:
    """Parse an array of texts. Raises as `parse_json`."""
    # Imported here, because they load the compiled JSON parser.
    from variantlake.ingest.encode.encode import TEXTS, VariantColumn
    from variantlake.ingest.encode.plain_arrays import plain_array
    from variantlake.kernels.shredded.shredder import Shredder

    texts = plain_array(texts)
    if texts.type not in TEXTS:
        raise InvalidValue(f"an array of {texts.type} holds no JSON text")
    if duplicate_keys != "error":
        return variant_column(_rows_of_json(texts, duplicate_keys))
    unshredded = ShreddingSchema()
    column = StructField("json", VariantType())
    tape = VariantColumn(column, texts.type, lambda _: unshredded, from_json=True).read(texts)
    return Shredder(unshredded).shred(tape)


def _rows_of_json(texts: Any, duplicate_keys: DuplicateKeys) -> list[Variant | None]:
    variants: list[Variant | None] = []
    for row, text in enumerate(texts):
        try:
            value = None
            if text.is_valid:
                value = json.parse_json(memoryview(text.as_buffer()), duplicate_keys=duplicate_keys)
            variants.append(value)
        except VariantLakeError as error:
            error.row = row
            raise
    return variants


def _chunks_of_json(texts: Any, duplicate_keys: DuplicateKeys) -> Any:
    chunks: list[Any] = []
    for chunk in texts.chunks:
        try:
            chunks.append(_array_of_json(chunk, duplicate_keys))
        except VariantLakeError as error:
            if error.row is not None:
                error.row += sum(map(len, chunks))
            raise
    return pa.chunked_array(chunks, cast("Any", variant_column([]).type))


def _one(target: Variant, edit: Edit, value: object, *, lenient: bool) -> Variant | None:
    new = None if edit.change is Change.DELETE else Variant.of(value).tree()
    try:
        return Variant(*edited(target.metadata, target.value, edit, new))
    except _LENIENT:
        if lenient:
            return None
        raise


def _array(target: Any, edit: Edit, value: object, *, lenient: bool) -> Any:
    new = None
    if isinstance(value, pa.ChunkedArray):
        value = value.combine_chunks()
    if isinstance(value, pa.Array):
        if len(value) != len(target):
            raise InvalidValue(f"{len(value)} values for {len(target)} Variants")
        new = as_variants(value)
    elif edit.change is not Change.DELETE:
        new = variant_column([Variant.of(value)])
    if not len(target):
        return variant_column([])
    return edit_variants(as_variants(target), edit, new, lenient=lenient)


def _chunks(target: Any, edit: Edit, value: object, *, lenient: bool) -> Any:
    is_array = isinstance(value, pa.Array | pa.ChunkedArray)
    values: Any = value
    if is_array and len(values) != len(target):
        raise InvalidValue(f"{len(values)} values for {len(target)} Variants")
    chunks, start = [], 0
    for chunk in target.chunks:
        part = values.slice(start, len(chunk)) if is_array else values
        chunks.append(_changed(chunk, edit, part, lenient=lenient))
        start += len(chunk)
    return pa.chunked_array(chunks, cast("Any", variant_column([]).type))
