"""The bounds of one path in many texts of a Variant column, without decoding the others."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array, numpy_array
from variantlake.delta.stats import z85
from variantlake.delta.stats.columns.json_members import StringColumn, gather
from variantlake.delta.stats.variant_bounds import (
    dictionary_of,
    plain_bounds,
    plain_split,
    raw_of,
)
from variantlake.encoding.scalar import DECIMAL_DIGITS, INTEGER_BITS
from variantlake.errors import VariantLakeError
from variantlake.kernels.log.log_stats import (
    MISSING,
    UNUSUAL,
    BoundColumn,
    find_bounds,
    find_metadata,
)
from variantlake.kernels.log.split_bounds import split_bounds
from variantlake.kernels.tape.words import PADDING
from variantlake.parquet.stats.fact_columns import Bools, Int64s, RawColumn, raw_dtype
from variantlake.paths import Path
from variantlake.shredding.layout import VARIANT_TYPE
from variantlake.types import KINDS, Kind, Primitive, ShreddedType

_WIDE = Context(prec=100)
_DIGITS = np.full(256, 255, np.int64)
_DIGITS[np.frombuffer(z85.ALPHABET.encode(), np.uint8)] = np.arange(85)


def split_column(texts: StringColumn, others: Mapping[int, Any]) -> pa.StructArray:
    """Decode bounds in Z85 to a Variant column, null in rows without any.

    `others` has the values of rows that `texts` lacks. Twin: `variant_bounds.plain_split`.
    """
    lengths = np.where(texts.starts < 0, 0, texts.ends - texts.starts)
    places = np.concatenate([[0], np.cumsum(lengths // 5 * 4)])
    data = np.empty(int(places[-1]) + PADDING, np.uint8)
    sizes = np.empty(len(lengths), np.int64), np.empty(len(lengths), np.int64)
    split_bounds(texts.data, texts.starts, texts.ends, places, data, *sizes, _DIGITS)
    odd = {row: (texts.text(row) or b"").decode() for row in np.flatnonzero(sizes[0] < 0).tolist()}
    plain = {row: plain_split(text) for row, text in (odd | dict(others)).items()}
    sizes[0][[*odd]] = sizes[1][[*odd]] = 0
    # Fields that are not null must not be null below a null either: they are empty there.
    starts = places[:-1]
    sides = [gather(data, starts, sizes[0], pa.binary())]
    sides.append(gather(data, starts + sizes[0], sizes[1], pa.binary()))
    absent = sizes[0] == 0
    for row in sorted(row for row, parts in plain.items() if parts is not None):
        absent[row] = False
    if plain:
        mask = arrow_array(np.isin(np.arange(len(absent)), [*plain]))
        parts = [plain[row] or (b"", b"") for row in sorted(plain)]
        sides = [
            pc.replace_with_mask(side, mask, arrow_array([part[i] for part in parts], pa.binary()))
            for i, side in enumerate(sides)
        ]
    return pa.StructArray.from_arrays(sides, fields=list(VARIANT_TYPE), mask=arrow_array(absent))


class BoundTexts:
    """One side's bounds of a Variant column in many files, as Z85 texts. Twin: `decode_bounds`."""

    def __init__(self, texts: StringColumn) -> None:
        self._texts = texts
        rows = len(texts.starts)
        lengths = np.where(texts.starts < 0, 0, texts.ends - texts.starts)
        longest = int(lengths.max()) if rows else 0
        # Texts beyond our limit are left to the plain reader, which says no.
        self._scratch = np.zeros(min(longest, z85.MAX_CHARACTERS) + 8, np.uint8)
        self._sizes = np.empty(rows, np.int64)
        same = np.empty(rows, np.int64)
        find_metadata(texts, self._sizes, same, self._scratch, _DIGITS)
        # Files of one layout share their metadata, so this is about few.
        own, self._dictionary = np.unique(same, return_inverse=True)
        self._ids = [self._ids_of(int(row)) for row in own]

    def _ids_of(self, row: int) -> dict[Path, int]:
        """Return the field id of each path in one row's metadata."""
        size = int(self._sizes[row])
        if size < 0:
            return {}
        start = int(self._texts.starts[row])
        text = self._texts.data[start : start + -(-size // 4) * 5].tobytes()
        try:
            return field_ids(z85.decode(text.decode("ascii"))[:size])
        except (VariantLakeError, ValueError):
            return {}

    def find(self, path: Path, leaf: ShreddedType) -> tuple[RawColumn, Bools]:
        """Return the bound of a leaf in each row, and the rows with a bound of any type there."""
        rows = len(self._texts.starts)
        fields = np.array([ids.get(path, -1) for ids in self._ids], np.int64)[self._dictionary]
        tags = np.empty(rows, np.uint8)
        values, extras = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        bounds = BoundColumn(tags, values, extras, arena=np.empty(32 * rows + 64, np.uint8))
        state, row = np.zeros(1, np.int64), 0
        while True:
            row = find_bounds(
                self._texts, self._sizes, fields, row, bounds, state, self._scratch, _DIGITS
            )
            if row == rows:
                break
            more = np.empty(len(bounds.arena) + len(self._scratch), np.uint8)
            bounds = bounds._replace(arena=np.concatenate([bounds.arena, more]))
        column = raw_column(leaf, bounds)
        for unusual in np.flatnonzero(tags == UNUSUAL).tolist():
            text = (self._texts.text(unusual) or b"").decode("utf-8", "replace")
            bound = plain_bounds(text).get(path)
            if bound is None:
                tags[unusual] = MISSING
            else:
                column.put(np.array([unusual]), RawColumn.of([raw_of(leaf, bound)], leaf))
        return column, tags != MISSING


def field_ids(metadata: bytes | None) -> dict[Path, int]:
    """Return the field id of each path in the metadata of bounds, none for any other metadata."""
    try:
        dictionary, paths = dictionary_of(metadata or b"")
    except VariantLakeError:
        return {}
    return {paths[key]: i for i, key in enumerate(dictionary.keys) if key in paths}


def raw_column(leaf: ShreddedType, bounds: BoundColumn) -> RawColumn:
    """Do the same as `raw_of` for scalars from `find_bounds`."""
    tags, values, extras, arena = bounds
    kind = leaf.kind
    known = np.isin(tags, KINDS[kind].primitives)
    integers = np.isin(tags, [*INTEGER_BITS])
    if kind is Kind.DECIMAL:
        return _decimals(bounds, known | integers)
    if KINDS[kind].primitives[0] in INTEGER_BITS:
        return RawColumn(values, integers)
    if kind is Kind.BOOLEAN:
        return RawColumn((tags == Primitive.TRUE).astype(np.int64), known)
    if kind is Kind.DOUBLE:
        numbers = values.view(np.float64).copy()
        return RawColumn(numbers, known & ~np.isnan(numbers))
    if kind is Kind.FLOAT:
        numbers = values.astype(np.int32).view(np.float32).astype(np.float64)
        return RawColumn(numbers, known & ~np.isnan(numbers))
    if raw_dtype(leaf) is not np.object_:
        return RawColumn(values, known)
    column = RawColumn.unknown(len(tags), leaf)
    rows = np.flatnonzero(known)
    sizes = np.full(len(tags), 16) if kind is Kind.UUID else extras
    texts = _strings(values[rows], sizes[rows], arena) if kind is Kind.STRING else None
    if texts is not None and len(rows):
        column.values[rows] = texts
        column.valid[rows] = True
        return column
    data = arena.tobytes()
    for row in rows.tolist():
        start = int(values[row])
        raw = data[start : start + int(sizes[row])]
        try:
            column.values[row] = raw.decode() if kind is Kind.STRING else raw
            column.valid[row] = True
        except UnicodeDecodeError:
            continue
    return column


def _strings(
    starts: Int64s, sizes: Int64s, arena: npt.NDArray[np.uint8]
) -> npt.NDArray[np.object_] | None:
    """Strings by Arrow; None if one is not UTF-8, or they are too long for it."""
    try:
        array = gather(arena, starts, sizes, pa.string())
        array.validate(full=True)
    except pa.ArrowInvalid:
        return None
    found: npt.NDArray[np.object_] = numpy_array(array)
    return found


def _decimals(bounds: BoundColumn, known: Bools) -> RawColumn:
    tags, values, extras, arena = bounds
    column = RawColumn.unknown(len(tags), ShreddedType(Kind.DECIMAL, 38))
    for row in np.flatnonzero(known).tolist():
        tag, value, scale = int(tags[row]), int(values[row]), int(extras[row])
        if tag == Primitive.DECIMAL16:
            value = int.from_bytes(arena[value : value + 16].tobytes(), "little", signed=True)
        digits = DECIMAL_DIGITS.get(Primitive(tag))
        if digits is not None and abs(value) >= 10**digits:
            continue
        column.values[row] = _WIDE.scaleb(Decimal(value), -scale) if digits else Decimal(value)
        column.valid[row] = True
    return column
