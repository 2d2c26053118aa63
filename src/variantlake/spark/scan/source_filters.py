"""Translates the filters that Spark pushes to data sources in Python (from PySpark 4.1 on)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)
from pyspark.sql.types import StructType

from variantlake.expressions import tree as predicates
from variantlake.expressions.tree import Compare, CompareOp, Literal, Predicate, Ref

_COMPARISONS: dict[type[Filter], CompareOp] = {
    EqualTo: "=",
    EqualNullSafe: "<=>",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
}


def predicate_of(
    condition: Filter, schema: StructType, stored: Mapping[str, str]
) -> Predicate | None:
    """Return the condition as a predicate; None if planning does not know it.

    Args:
        condition: The filter that Spark pushes.
        schema: The table's columns.
        stored: The names of the columns in files.
    """
    attribute: tuple[str, ...] = getattr(condition, "attribute", ())
    if len(attribute) != 1 or attribute[0] not in stored:
        return None
    if schema[attribute[0]].metadata:
        return None  # a CHAR, which is padded in some sessions
    type_ = schema[attribute[0]].dataType.simpleString()
    ref = Ref((stored[attribute[0]],), None, type_, shown=attribute)
    match condition:
        case IsNull():
            return predicates.IsNull(ref)
        case IsNotNull():
            return predicates.Not(predicates.IsNull(ref))
        case StringStartsWith(_, prefix) if type_ == "string":
            return predicates.StartsWith(ref, prefix)
        case In(_, values):
            options = [_literal(value, type_) for value in values]
            known = tuple(option for option in options if option is not None)
            return predicates.In(ref, known) if len(known) == len(options) else None
    op = _COMPARISONS.get(type(condition))
    literal = _literal(getattr(condition, "value", None), type_)
    return None if op is None or literal is None else Compare(op, ref, literal)


def _literal(value: Any, type_: str) -> Literal | None:
    """Return a constant as a literal of the column's type; None if its form is not certain."""
    match value:
        case None | bool() | int() | float() | str() | bytes() | Decimal():
            return Literal(value, type_)
        case dt.datetime():
            if (value.tzinfo is None) != (type_ == "timestamp_ntz"):
                return None
            moment = value.replace(tzinfo=value.tzinfo or dt.UTC)
            return Literal((moment - _EPOCH) // dt.timedelta(microseconds=1), type_)
        case dt.date():
            return Literal((value - _EPOCH.date()).days, type_)
    return None


_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
