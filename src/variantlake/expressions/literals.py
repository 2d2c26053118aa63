"""Read the constants and types in a query's text, typed as Spark types them.

Forms whose meaning in Spark is not certain are refused by name; Spark runs those.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from decimal import Decimal

from sqlglot import exp

from variantlake.delta.schema.table_schema import PrimitiveType
from variantlake.delta.stats.partition_values import partition_raw
from variantlake.errors import UnsupportedFeature
from variantlake.expressions.tree import Expression, Literal, Ref
from variantlake.expressions.typing import (
    INT_LIMITS,
    comparison_type,
    refused,
    spark_type,
    type_of,
    type_text,
    untyped,
)
from variantlake.types import MAX_PRECISION, Kind, ShreddedType

_TYPES = {
    exp.DType.TEXT: "string",
    exp.DType.TINYINT: "tinyint",
    exp.DType.SMALLINT: "smallint",
    exp.DType.INT: "int",
    exp.DType.BIGINT: "bigint",
    exp.DType.FLOAT: "float",
    exp.DType.DOUBLE: "double",
    exp.DType.BOOLEAN: "boolean",
    exp.DType.DATE: "date",
    exp.DType.TIMESTAMP: "timestamp",
    exp.DType.TIMESTAMPTZ: "timestamp",
    exp.DType.TIMESTAMPNTZ: "timestamp_ntz",
    exp.DType.BINARY: "binary",
    exp.DType.VARIANT: "variant",
}
DAY = 86_400_000_000
"""Microseconds."""
WHOLE_NUMBER = re.compile(rf"[0-9]{{1,{MAX_PRECISION}}}")
"""An integer that fits one of Spark's types, at least a decimal."""
_DECIMAL = re.compile(r"[0-9]*\.[0-9]+|[0-9]+\.[0-9]*")
_EXPONENT = re.compile(r"([0-9]+\.?|[0-9]*\.[0-9]+)[eE][+-]?[0-9]+")
_EXACT = 1 << 24
"""All whole numbers up to this one are values of FLOAT."""
_WHOLE_TEXT = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER_TEXT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_BOOLEANS = {"true": True, "false": False}
_NO_NUMBERS = {"nan": math.nan, "infinity": math.inf, "-infinity": -math.inf}
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_ISO_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?")


def coerced(operand: Expression, literal: Literal, *, utc: bool) -> Literal:
    """Convert a literal as Spark does to compare it with an operand: a text to a date, say."""
    target = type_of(operand)
    if target is None:
        wanted = "double" if literal.type.startswith("decimal") else literal.type
        raise untyped("a comparison", operand, "string" if wanted == "void" else wanted)
    if literal.value is None:
        return Literal(None, type_text(operand))
    if isinstance(literal.value, str) and target.kind in (
        Kind.DATE,
        Kind.TIMESTAMP,
        Kind.TIMESTAMP_NTZ,
    ):
        return moment(literal.value, target, utc=utc)
    if isinstance(literal.value, str) and (other := _of_text(literal.value, target)) is not None:
        return other
    if literal.type == "date" and (target.kind is Kind.TIMESTAMP_NTZ or (utc and is_time(target))):
        return within(Literal(int(literal.value) * DAY, target.ddl.lower()), Kind.INT64)
    if target.kind is Kind.FLOAT and type(literal.value) is int and abs(literal.value) <= _EXACT:
        # Spark compares them as FLOAT, in ANSI mode as DOUBLE: both hold this number.
        return Literal(float(literal.value), "double")
    if comparison_type(target, (literal,)) is None:
        error = refused(
            f"the comparison of {operand}, which is {type_text(operand)}, with {literal}"
        )
        if isinstance(literal.value, str) and isinstance(operand, Ref) and operand.path is not None:
            read = replace(operand, type="string")
            error.hint = error.cli_hint = f"read it as text: {read} = {literal}"
        raise error
    return literal


def within(literal: Literal, kind: Kind) -> Literal:
    """Return a number of days, months or microseconds. Raises UnsupportedFeature if too large."""
    if not -INT_LIMITS[kind] <= int(literal.value or 0) < INT_LIMITS[kind]:
        raise refused("a day, a moment or an INTERVAL beyond those that Spark holds")
    return literal


def is_time(type_: ShreddedType) -> bool:
    """Whether the type is a timestamp, with or without a time zone."""
    return type_.kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ)


def _of_text(text: str, target: ShreddedType) -> Literal | None:
    """Cast a text as Spark does in ANSI mode to compare it; None if the result is not certain."""
    if target.kind in INT_LIMITS and _WHOLE_TEXT.fullmatch(text):
        return Literal(int(text), "bigint")
    if target.kind in (Kind.FLOAT, Kind.DOUBLE) and _NUMBER_TEXT.fullmatch(text):
        return Literal(float(text), "double")
    if target.kind is Kind.BOOLEAN and text.lower() in _BOOLEANS:
        return Literal(_BOOLEANS[text.lower()], "boolean")
    if target.kind is Kind.BINARY:
        return Literal(text.encode(), "binary")
    return None


def constant(node: exp.Expression, *, utc: bool) -> Literal:
    """Read a constant, typed as Spark types it."""
    match node:
        case exp.Paren():
            return constant(node.this, utc=utc)
        case exp.Null():
            return Literal(None, "void")
        case exp.Boolean():
            return Literal(bool(node.this), "boolean")
        case exp.Literal() if node.is_string:
            return Literal(node.this, "string")
        case exp.Literal():
            return _number(node.this)
        case exp.HexString() if len(str(node.this)) % 2 == 0:
            return Literal(bytes.fromhex(str(node.this)), "binary")
        case exp.Neg():
            number = constant(node.this, utc=utc)
            if isinstance(number.value, int | float | Decimal):
                return _number_of(-number.value, number.type)
        case exp.Cast() if isinstance(node.this, exp.Literal):
            return _typed(node, utc=utc)
    raise refused("a constant of this kind")


def _number(text: str) -> Literal:
    if WHOLE_NUMBER.fullmatch(text):
        return _number_of(int(text), "")
    if _DECIMAL.fullmatch(text):
        value = Decimal(text)
        digits, exponent = len(value.as_tuple().digits), -int(value.as_tuple().exponent)
        if max(digits, exponent) <= MAX_PRECISION:
            return Literal(value, f"decimal({max(digits, exponent)},{exponent})")
    if _EXPONENT.fullmatch(text) and math.isfinite(float(text)):
        return Literal(float(text), "double")
    raise refused("a number of this form")


def _number_of(value: float | Decimal, type_: str) -> Literal:
    if not isinstance(value, int) or type_ == "bigint":
        return Literal(value, type_)
    for kind in (Kind.INT32, Kind.INT64):
        if -INT_LIMITS[kind] <= value < INT_LIMITS[kind]:
            return Literal(value, "int" if kind is Kind.INT32 else "bigint")
    return Literal(Decimal(value), f"decimal({len(str(abs(value)))},0)")


def _typed(node: exp.Cast, *, utc: bool) -> Literal:
    type_ = type_name(node.to)
    target = spark_type(type_)
    text = node.this.this
    if target is not None and node.this.is_string:
        if target.kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
            return moment(text, target, utc=utc)
        if target.kind is Kind.STRING:
            return Literal(text, type_)
        if target.kind is Kind.DOUBLE and text.lower() in _NO_NUMBERS:
            return Literal(_NO_NUMBERS[text.lower()], type_)
        if target.kind is Kind.DOUBLE and _NUMBER_TEXT.fullmatch(text):
            return Literal(float(text), type_)
    elif target is not None and target.kind is Kind.DOUBLE:
        return Literal(float(text), type_)
    elif (
        target is not None
        and WHOLE_NUMBER.fullmatch(text)
        and int(text) < INT_LIMITS.get(target.kind, 0)
    ):
        return Literal(int(text), type_)
    raise refused("a constant of this kind")


def moment(text: str, target: ShreddedType, *, utc: bool) -> Literal:
    """Parse an ISO date or timestamp; `utc`: a TIMESTAMP's text without a zone is in UTC."""
    written, type_ = text.strip(), PrimitiveType(target.ddl.lower())
    value = None
    if target.kind is Kind.DATE and _ISO_DATE.fullmatch(written):
        value = partition_raw(written, type_)
    elif target.kind is not Kind.DATE:
        whole = f"{written} 00:00:00" if _ISO_DATE.fullmatch(written) else written
        zone = target.kind is Kind.TIMESTAMP
        if _ISO_MOMENT.fullmatch(whole) and (utc or not zone):
            value = partition_raw(whole + ("+00:00" if zone else ""), type_)
        elif zone and whole.endswith("Z") and _ISO_MOMENT.fullmatch(whole[:-1]):
            value = partition_raw(whole[:-1] + "+00:00", type_)
    if value is None:
        raise refused(f"{text!r} as a {target.ddl.lower()}")
    return Literal(value, target.ddl.lower())


def type_name(type_: exp.DataType) -> str:
    """Spark's name of a type. Raises UnsupportedFeature for one without a column form."""
    name = _TYPES.get(type_.this, "")
    if type_.this is exp.DType.DECIMAL:
        digits = [str(part.this.this) for part in type_.expressions]
        precision, scale = (*digits, *("10", "0")[len(digits) :])
        name = f"decimal({precision},{scale})"
    if name != "variant" and spark_type(name) is None:
        shown = type_.sql("spark")
        if type_.args.get("nested"):
            hint = "without a type a path is a VARIANT: lists and dicts in Python; DuckDB casts it"
            raise UnsupportedFeature(
                f"the local engine makes no {shown} of a path", hint=hint, cli_hint=hint
            )
        raise refused(f"the type {shown}")
    return name
