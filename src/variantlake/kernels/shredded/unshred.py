"""Rebuild Variants from shredded columns, a batch at a time. Twin: shredding.unshred.

Rows with anything wrong or rare are only marked here, and the twin reads them. Spec:
VariantShredding, "Reconstructing a Shredded Variant".
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.encoding.metadata import decode_metadata
from variantlake.errors import VariantLakeError
from variantlake.kernels.native.declared import Bytes, Int32s, Int64s
from variantlake.kernels.shredded.shredded_arrays import LeftToTwin
from variantlake.kernels.shredded.unshred_plan import layout_of, plan_of
from variantlake.kernels.shredded.unshred_rows import FRAME, unshred_rows
from variantlake.kernels.tape.arrow_arrays import (
    LARGEST_ARRAY,
    AnyArray,
    are_within,
    array_of,
    buffer_of,
    larger_buffer,
    new_buffer,
    plain_binary,
    slots_of,
)
from variantlake.kernels.tape.keys import number_runs
from variantlake.kernels.tape.words import PADDING
from variantlake.shredding.arrays import members, struct_of, valid_of
from variantlake.shredding.layout import METADATA, TYPED_VALUE, VALUE, VARIANT_TYPE, schema_of
from variantlake.shredding.unshred import unshred_plain
from variantlake.shredding.values import ALL_AS_STORED, NumberForms

_TWIN_SHARE = 16
"""If more than one row in so many is marked, the twin reads the whole batch, which is faster."""

_WORK = 1 << 12
"""Words of working space that suffice for most batches."""

_KEPT_BYTES = 1 << 14
"""The cache keeps no larger dictionaries."""


def unshred(array: pa.StructArray, forms: NumberForms = ALL_AS_STORED) -> pa.StructArray:
    """Rebuild every row of a Variant column, as `unshred_plain` does: same bytes, same errors.

    Returns struct<metadata: binary not null, value: binary not null>; SQL NULL is a null struct.

    Raises MalformedFile, MalformedVariant, InvalidSchema as `unshred_plain` does.
    """
    _check(array.type)
    storage = struct_of(array)
    if len(storage) == 0 or TYPED_VALUE not in {field.name for field in members(storage.type)}:
        return unshred_plain(array)
    try:
        return unshred_storage(
            storage,
            unshred_plain=lambda row: unshred_plain(storage.slice(row, 1), forms),
            forms=forms,
        )
    except (LeftToTwin, pa.ArrowNotImplementedError):
        return unshred_plain(array, forms)


@functools.lru_cache(maxsize=64)
def _check(arrow: pa.DataType) -> None:
    """Raise InvalidSchema for what is not a Variant column."""
    schema_of(arrow)


def unshred_storage(
    storage: pa.StructArray,
    *,
    unshred_plain: Callable[[int], pa.StructArray],
    marked: Bytes | None = None,
    forms: NumberForms = ALL_AS_STORED,
) -> pa.StructArray:
    """Rebuild the rows of struct<metadata, value, typed_value>, at least one.

    `unshred_plain` gives one row by the plain reader, which decides about all that is wrong or
    rare; `marked` (uint8, one a row, changed in place) are rows to leave to it from the beginning.

    Raises what `unshred_plain` raises; LeftToTwin, or ArrowNotImplementedError, when all rows are
    better left to it.
    """
    rows = len(storage)
    if marked is None:
        marked = np.zeros(rows, np.uint8)
    valid = valid_of(storage)
    metadata = plain_binary(storage.field(METADATA))
    if metadata.null_count > 0:
        marked[valid & ~valid_of(metadata)] = 1
    value = _values(storage, metadata, marked, forms)
    left = np.flatnonzero(marked)
    if len(left) * _TWIN_SHARE > rows:
        raise LeftToTwin
    if storage.null_count > 0 or metadata.null_count > 0:
        empty = pa.array(~valid | ~valid_of(metadata))
        metadata = pc.if_else(empty, b"", metadata)
    if len(left) > 0:
        twins = [_row_of_twin(unshred_plain, int(row)) for row in left]
        mask: Any = pa.array(marked.astype(np.bool_))
        metadata = _replaced(metadata, mask, [pair[0] for pair in twins])
        value = _replaced(value, mask, [pair[1] for pair in twins])
    return pa.StructArray.from_arrays(
        [metadata, value], fields=list(VARIANT_TYPE), mask=pa.array(~valid)
    )


def _values(
    storage: pa.StructArray, metadata: AnyArray, marked: Bytes, forms: NumberForms
) -> AnyArray:
    """The values; of SQL NULL and of marked rows, which are set, without bytes."""
    rows = len(storage)
    layout = layout_of(storage.type, forms)
    dictionaries = _dictionaries(metadata, layout.names)
    data, groups = plan_of(storage, layout)
    stack, work = np.empty(FRAME * layout.depth, np.int64), np.empty(_WORK, np.int64)
    offsets = np.zeros(rows + 1, np.int32)
    # Typed values get a header byte or two, containers a few bytes a field.
    buffer, out = new_buffer(min(len(data) + 16 * rows + (1 << 12), LARGEST_ARRAY))
    row = 0
    while True:
        row = unshred_rows(
            data, groups, dictionaries.of_row, dictionaries.ids, dictionaries.ranks,
            dictionaries.starts, row, marked, stack, work, out, offsets,
        )  # fmt: skip
        if row == rows:
            break
        if row < 0:
            row, work = ~row, np.empty(4 * len(work), np.int64)
            continue
        if len(out) == LARGEST_ARRAY:
            raise LeftToTwin
        buffer, out = larger_buffer(out, int(offsets[row]))
    used = int(offsets[rows])
    # With the padding that kernels want, who then need no copy.
    padding = out[used : used + PADDING]
    padding[:] = 0
    written = buffer.slice(0, used + len(padding))
    return array_of(pa.binary(), rows, [None, buffer_of(offsets), written])


def _row_of_twin(unshred_plain: Callable[[int], pa.StructArray], row: int) -> tuple[bytes, bytes]:
    try:
        one: Any = unshred_plain(row)[0].as_py()
    except VariantLakeError as error:
        error.row = row
        raise
    return (b"", b"") if one is None else (one[METADATA], one[VALUE])


def _replaced(array: AnyArray, mask: Any, values: list[bytes]) -> AnyArray:
    replaced: AnyArray = pc.replace_with_mask(array, mask, pa.array(values, pa.binary()))
    return replaced


# --- Key dictionaries -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Dictionaries:
    """The different key dictionaries of a batch.

    of_row: int64, shape (rows,), which one; -1 for one that the twin has to look at.
    ids: int64, all dictionaries' after one another; the id of each name, -1 when it has none.
    ranks: int32, in the same way: the places of their keys in UTF-8 order.
    starts: int64, shape (dictionaries + 1,), into ranks.
    """

    of_row: Int64s
    ids: Int64s
    ranks: Int32s
    starts: Int64s


def _dictionaries(metadata: AnyArray, names: tuple[str, ...]) -> _Dictionaries:
    runs, different = _runs(metadata)
    places: dict[bytes, int] = {}
    ids: list[Int64s] = []
    ranks: list[Int32s] = []
    starts = [0]
    for each in different:
        if each in places:
            continue
        known = (_known_keys if len(each) <= _KEPT_BYTES else _keys)(each, names)
        places[each] = -1 if known is None else len(ids)
        if known is not None:
            ids.append(known[0])
            ranks.append(known[1])
            starts.append(starts[-1] + len(known[1]))
    of_run = np.array([places[each] for each in different], np.int64)
    return _Dictionaries(
        of_run[runs],
        np.concatenate([np.empty(0, np.int64), *ids]),
        np.concatenate([np.empty(0, np.int32), *ranks]),
        np.array(starts, np.int64),
    )


def _runs(metadata: AnyArray) -> tuple[Int64s, list[bytes]]:
    """The number of the run of equal slots for each row, and the bytes of all runs."""
    data, offsets = slots_of(metadata)
    if not are_within(offsets, data):
        raise LeftToTwin
    runs = np.empty(len(metadata), np.int64)
    number_runs(data, offsets, runs)
    firsts = np.flatnonzero(np.diff(runs, prepend=-1))
    spans = zip(offsets[firsts].tolist(), offsets[firsts + 1].tolist(), strict=True)
    return runs, [data[from_:to].tobytes() for from_, to in spans]


def _keys(metadata: bytes, names: tuple[str, ...]) -> tuple[Int64s, Int32s] | None:
    """Of a dictionary the ids of the names, and the ranks of its keys; None if it is odd."""
    try:
        keys = decode_metadata(metadata).keys
    except VariantLakeError:
        return None
    found = {key: place for place, key in enumerate(keys)}
    if len(found) != len(keys):
        return None
    ranks = np.empty(len(keys), np.int32)
    ranks[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    return np.array([found.get(name, -1) for name in names], np.int64), ranks


_known_keys = functools.lru_cache(maxsize=1024)(_keys)
"""A cache, because batches of a file share most dictionaries."""
