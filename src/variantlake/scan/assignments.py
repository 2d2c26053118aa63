"""Convert SQL values to the type of the column that they are assigned to, or refuse them."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.delta.schema.table_schema import StructType, spark_name
from variantlake.errors import InvalidValue, UnsupportedFeature
from variantlake.expressions.casts.values import cast_raw
from variantlake.expressions.tree import Literal
from variantlake.expressions.typing import SPARK_RUNS_IT, spark_type
from variantlake.scan.files.casts import nearest_doubles
from variantlake.scan.files.column_reads import as_type
from variantlake.shredding.fit import raw_array, raws_of
from variantlake.shredding.layout import is_variant_type
from variantlake.types import ShreddedType

_WHOLE_NUMBERS = pa.decimal128(19, 0)


def scalar_of(value: Literal, wanted: Any, name: str) -> Any:
    """Convert a constant to the column's type."""
    if value.value is None:
        return pa.scalar(None, wanted)
    if isinstance(value.value, Decimal | int) and pa.types.is_floating(wanted):
        number = value.value
        is_double = pa.types.is_float64(wanted)
        return pa.scalar(float(number) if is_double else _nearest_float(number), wanted)
    kind = spark_type(value.type)
    if kind is None:
        raise _refused(value.type, wanted, name)
    return assigned(raw_array([value.value], kind), wanted, name)[0]


def _nearest_float(number: Decimal | int) -> float:
    """Round once to the nearest FLOAT: through a DOUBLE it may be the second nearest."""
    near = np.float32(float(number))
    floats = (np.nextafter(near, np.float32(way)) for way in (-math.inf, near, math.inf))

    def distance(each: np.float32) -> tuple[Fraction, int]:
        return abs(Fraction(float(each)) - Fraction(number)), int(each.view(np.int32)) & 1

    return float(min(floats, key=distance))


def assigned(array: Any, wanted: Any, name: str) -> Any:
    """Convert values to the column's type; a decimal is rounded to the column's scale."""
    if array.type == wanted:
        return array
    if pa.types.is_nested(wanted):
        return _nested(array, wanted, name)
    if pa.types.is_decimal(array.type) and pa.types.is_float64(wanted):
        return nearest_doubles(array)
    if _rounds(array.type, wanted):
        return _rounded(array, wanted, name)
    if not _widens(array.type, wanted):
        raise _refused(sql_name(array.type), wanted, name)
    if pa.types.is_integer(array.type) and pa.types.is_decimal(wanted):
        array = array.cast(_WHOLE_NUMBERS)  # Arrow needs digits for every number of the type
    try:
        return array.cast(wanted)
    except pa.ArrowInvalid as error:
        raise InvalidValue(f"a value does not fit the column {name!r}: {error}") from None


def _nested(array: Any, wanted: Any, name: str) -> Any:
    """Convert nested values of a type that differs only in what may be NULL."""
    given, needed = (str(kind).replace(" not null", "") for kind in (array.type, wanted))
    if given != needed:
        raise _refused(sql_name(array.type), wanted, name)
    return as_type(array, wanted)


def _rounded(array: Any, wanted: Any, name: str) -> Any:
    """Round decimals half up to a smaller scale."""
    stored, requested = ShreddedType.from_arrow(array.type), ShreddedType.from_arrow(wanted)
    encoded = array.dictionary_encode()
    raws = raws_of(encoded.dictionary)
    cast = [None if raw is None else cast_raw(raw, stored, requested) for raw in raws]
    rounded = raw_array(cast, requested).take(encoded.indices)
    if rounded.null_count > array.null_count:
        raise InvalidValue(f"a value does not fit the column {name!r}, {sql_name(wanted)}")
    return rounded


def _rounds(given: Any, wanted: Any) -> bool:
    return (
        pa.types.is_decimal(given)
        and pa.types.is_decimal(wanted)
        and bool(given.scale > wanted.scale)
    )


def _widens(given: Any, wanted: Any) -> bool:
    types = pa.types
    if types.is_integer(given):
        return types.is_integer(wanted) or types.is_decimal(wanted)
    if types.is_decimal(given):
        return types.is_decimal(wanted) and bool(given.scale <= wanted.scale)
    return types.is_float32(given) and types.is_float64(wanted)


def _refused(given: str, wanted: Any, name: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"the local engine does not store {given} values in the column {name!r}, which is "
        f"{sql_name(wanted)}",
        **SPARK_RUNS_IT,
    )


def sql_name(arrow: Any) -> str:
    """Spark's DDL for an Arrow type."""
    if is_variant_type(arrow):
        return "VARIANT"
    return spark_name(StructType.from_arrow(pa.schema([("it", arrow)])).fields[0].type).upper()
