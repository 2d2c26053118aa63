"""Convert members of JSON texts to Arrow columns of the types of a table's columns.

Members in the usual form are converted column by column. Every other member goes through
`stats_reader.raw_value` row by row, which is the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array, arrow_scalar, numpy_array
from variantlake.delta.schema.table_schema import PrimitiveType, arrow_type
from variantlake.delta.stats.columns.json_members import JsonMembers, gather
from variantlake.delta.stats.stats_reader import INTEGERS, raw_value
from variantlake.kernels.log.log_stats import MISSING, UNUSUAL
from variantlake.parquet.stats.fact_columns import Bools
from variantlake.types import Primitive

BOUNDED = {*INTEGERS, "string", "float", "double", "decimal", "date", "timestamp", "timestamp_ntz"}
"""The types whose columns have bounds."""

_WIDE = Context(prec=100)
_POWERS = np.array([10**k for k in range(19)], np.int64)
_EXACT_POWERS = np.array([10.0**k for k in range(23)])
"""The powers of ten that a double holds exactly."""

# Years that all calendars and parsers read alike.
_DAY = r"^(19|20)\d\d-\d\d-\d\d"
_TIME = r"T\d\d:\d\d:\d\d(\.\d{1,6})?"
_PATTERNS = {
    "date": f"{_DAY}$",
    "timestamp": f"{_DAY}{_TIME}(Z|[+-]\\d\\d:\\d\\d)$",
    "timestamp_ntz": f"{_DAY}{_TIME}$",
}


def typed_column(
    members: JsonMembers, type_: PrimitiveType, plain: Callable[[int], Any]
) -> pa.Array[Any]:
    """Convert the members to a column of `type_`, one of BOUNDED; null for other values.

    `plain` returns a row's member from the plain parser, decimals with every digit.
    """
    found: pa.Array[Any]
    if type_.name in INTEGERS:
        limit = 1 << (INTEGERS[type_.name] - 1)
        fits = members.integers & (members.values >= -limit) & (members.values <= limit - 1)
        width = np.dtype(f"int{INTEGERS[type_.name]}")
        found = arrow_array(members.values.astype(width), mask=~fits)
        return found
    if type_.name in ("float", "double"):
        found, usual = _floats(members, type_)
    elif type_.name == "decimal":
        found, usual = _decimals(members, type_)
    else:
        found, usual = _texts(members, type_)
    odd = ~usual & (members.tags != MISSING) & (members.tags != Primitive.NULL)
    rows = np.flatnonzero(odd).tolist()
    if rows:
        raws = raw_array([raw_value(plain(row), type_) for row in rows], type_)
        found = pc.replace_with_mask(found, arrow_array(odd), raws)
    return found


def raw_array(raws: list[Any], type_: PrimitiveType) -> pa.Array[Any]:
    """Convert raw values to the column's type: dates are days, timestamps microseconds."""
    if type_.name == "decimal":
        # Arrow does not accept 0E+9 as a number with few digits.
        unit = Decimal(1).scaleb(-type_.scale)
        raws = [_WIDE.quantize(raw, unit) if _fits(raw, type_) else None for raw in raws]
    found: pa.Array[Any] = arrow_array(raws, arrow_type(type_))
    return found


def _fits(value: Decimal | None, type_: PrimitiveType) -> bool:
    """Whether the type holds a decimal without rounding it."""
    if value is None:
        return False
    exponent = value.as_tuple().exponent
    return (
        isinstance(exponent, int)
        and -exponent <= type_.scale
        and value.copy_abs() < Decimal(10) ** (type_.precision - type_.scale)
    )


def _floats(members: JsonMembers, type_: PrimitiveType) -> tuple[Any, Bools]:
    tags, values, scales = members.tags, members.values, members.extras
    numbers = np.where(tags == Primitive.DOUBLE, values.view(np.float64), values)
    usual = (tags == Primitive.DOUBLE) & np.isfinite(numbers)
    # Zero may have a sign, which an integer loses.
    usual |= members.integers & (values != 0)
    # A division of two exact numbers is rounded once.
    points = _with_point(members) & (scales < len(_EXACT_POWERS)) & (values != 0)
    points &= np.abs(values) <= 1 << 53
    numbers[points] = values[points] / _EXACT_POWERS[scales[points]]
    usual |= points
    with np.errstate(over="ignore"):
        dtype = np.float32 if type_.name == "float" else np.float64
        return arrow_array(numbers.astype(dtype), mask=~usual), usual


def _decimals(members: JsonMembers, type_: PrimitiveType) -> tuple[Any, Bools]:
    scales = np.where(members.integers, 0, members.extras)
    usual = members.integers | _with_point(members)
    shifts = np.where(usual, type_.scale - scales, -1)
    usual &= (shifts >= 0) & (shifts <= 18)
    shifts[~usual] = 0
    sizes = np.abs(members.values)  # negative for the least int64
    usual &= (sizes >= 0) & (sizes < _POWERS[18 - shifts])
    values = np.where(usual, members.values, 0) * _POWERS[shifts]
    places = min(type_.precision, 18)
    fits = usual & (np.abs(values) < _POWERS[places] if places < 18 else usual)
    words = np.stack([values, values >> 63], axis=1)
    valid = arrow_array(fits).buffers()[1]
    buffers = [valid, pa.py_buffer(words.data)]
    return pa.Array.from_buffers(arrow_type(type_), len(values), buffers), usual


def _with_point(members: JsonMembers) -> Bools:
    return np.isin(members.tags, [Primitive.DECIMAL4, Primitive.DECIMAL8])


def _texts(members: JsonMembers, type_: PrimitiveType) -> tuple[Any, Bools]:
    usual: Any = members.tags == Primitive.STRING
    sizes = np.where(usual, members.extras, 0)
    texts: Any = gather(
        members.documents.data, np.where(usual, members.values, 0), sizes, pa.string()
    )
    texts = pc.if_else(arrow_array(usual), texts, arrow_scalar(None, pa.string()))
    if type_.name == "string":
        return texts, usual
    arrow: Any = arrow_type(type_)
    alike = numpy_array(pc.match_substring_regex(texts, _PATTERNS[type_.name]))
    try:
        moments = pc.if_else(arrow_array(alike), texts, arrow_scalar(None, pa.string())).cast(arrow)
    except pa.ArrowInvalid:  # a 30th of February
        return pa.nulls(len(texts), arrow), np.zeros(len(usual), np.bool_)
    return moments, alike


def unusual_rows(members: JsonMembers) -> list[int]:
    """Return the rows whose member only the plain parser can read."""
    rows: list[int] = np.flatnonzero(members.tags == UNUSUAL).tolist()
    return rows
