"""Changing values inside of Variants: one value, Arrow arrays, columns of a Spark DataFrame.

The functions have the names, arguments and rules of Spark 4.3's (docs/variants.md has them as a
table). In: a Variant, an Arrow array of struct<metadata, value>, or a Column. Out: the same kind.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar, cast

import pyarrow as pa

from variantlake.encoding.edit import Change, Edit, edited
from variantlake.encoding.variant import Variant
from variantlake.errors import DuplicateKey, InvalidPath, InvalidValue, PathTypeMismatch
from variantlake.kernels.variant.arrow_variants import as_variants, variant_column
from variantlake.kernels.variant.editor import edit_variants
from variantlake.paths import Path
from variantlake.shredding.layout import is_variant_type

Target: TypeAlias = Any
"""A Variant or None, an Arrow array or column of Variants, a Column of Spark."""

_Values = TypeVar("_Values")
"""A `Target`; what comes out is of the same kind."""

_LENIENT = (PathTypeMismatch, DuplicateKey)


def variant_set(
    target: _Values, path: str | Path, value: object, *, create_if_missing: bool = True
) -> _Values:
    """`target` with `value` at `path`, put in the place of what is there.

    Args:
        target: A Variant (None gives None), an Arrow array or chunked array of struct<metadata,
            value> (a null row stays null), or a Column of Spark.
        path: `$.a.b[0]`; never `$` alone.
        value: What `Variant.of` takes; None is the Variant null. For arrays also an Arrow array of
            one value for each row, for columns also a Column; there a SQL NULL gives NULL.
        create_if_missing: Fields, elements and parents that are not there are made: objects, arrays
            before an index, Variant nulls before an index after the end. If not, what lacks them
            is unchanged.

    Raises:
        InvalidPath: `path` does not parse, or is `$`.
        PathTypeMismatch: The path goes through a value of another type (also a Variant null).
        InvalidValue: `value` has no Variant type, or `target` is no Variant.
        MalformedVariant, LimitExceeded: Bytes that are not Variant; a result beyond our limits.
    """
    changed: _Values = _changed(target, Edit(Change.SET, _path(path), create_if_missing), value)
    return changed


def variant_insert(target: _Values, path: str | Path, value: object) -> _Values:
    """`target` with `value` as a new field, or before the element that `path` names.

    As `variant_set`, but for what is there: later elements move on by one. Raises DuplicateKey for
    a field that is there, else as `variant_set`.
    """
    changed: _Values = _changed(target, Edit(Change.INSERT, _path(path)), value)
    return changed


def variant_delete(target: _Values, *paths: str | Path) -> _Values:
    """`target` without the fields and elements at `paths`, removed one after the other.

    A path that leads nowhere, or through a value of another type, removes nothing. Raises
    InvalidPath, and as `variant_set` for malformed Variants.
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
    """`target` with `value` as the new last element of the array at `path`, which may be `$`.

    An array is appended as one element. A path that leads nowhere changes nothing. Raises
    PathTypeMismatch for what is not an array, else as `variant_set`.
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
    what = str(target.type) if isinstance(target, pa.Array) else type(target).__name__
    raise InvalidValue(
        f"expected a Variant, found {what}",
        hint="give a variantlake.Variant, an Arrow array of struct<metadata, value>, or a Column",
    )


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
    given: Any = pa.chunked_array([value]) if isinstance(value, pa.Array) else value
    if isinstance(given, pa.ChunkedArray) and len(given) != len(target):
        raise InvalidValue(f"{len(given)} values for {len(target)} Variants")
    done, start = [], 0
    for chunk in target.chunks:
        part = given
        if isinstance(given, pa.ChunkedArray):
            part = given.slice(start, len(chunk))
        done.append(_changed(chunk, edit, part, lenient=lenient))
        start += len(chunk)
    return pa.chunked_array(done, cast("Any", variant_column([]).type))
