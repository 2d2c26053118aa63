"""Convert Python objects to trees and back.

| Variant         | to Python                                | from Python                        |
|-----------------|------------------------------------------|------------------------------------|
| null            | None                                     | None                               |
| boolean         | bool                                     | bool, numpy.bool                   |
| int8 to int64   | int                                      | int, numpy integers: the narrowest |
| decimals        | Decimal, scale kept                      | Decimal; int beyond 64 bits        |
| double          | float                                    | float                              |
| float           | float                                    | numpy.float32                      |
| date            | datetime.date                            | datetime.date, datetime64[D]       |
| timestamp       | datetime.datetime in UTC                 | datetime with a time zone          |
| timestamp_ntz   | datetime.datetime, naive                 | naive datetime, datetime64[us]     |
| timestamp*nanos | numpy.datetime64[ns], UTC if so adjusted | datetime64[ns]; pandas' Timestamp  |
| time            | datetime.time                            | naive datetime.time                |
| binary          | bytes                                    | bytes, bytearray, memoryview       |
| string          | str                                      | str                                |
| uuid            | uuid.UUID                                | uuid.UUID                          |
| object          | dict                                     | Mapping with string keys           |
| array           | list                                     | list, tuple, numpy array           |

Dates and timestamps outside the years 1 to 9999 become numpy.datetime64 of their unit. A `Scalar`,
a Variant or an Arrow scalar anywhere in the input keeps its exact type. A datetime64 has no zone. A
pandas Timestamp is a datetime, and keeps its nanoseconds if it has any.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pyarrow as pa

from variantlake.encoding.arrow_scalars import MICROS_OF_UNIT, from_arrow
from variantlake.encoding.limits import MAX_DEPTH
from variantlake.encoding.scalar import (
    FALSE,
    NULL,
    TRUE,
    Scalar,
    encode_string,
    exact_decimal,
    integer,
)
from variantlake.encoding.tree import Tree
from variantlake.errors import InvalidValue, LimitExceeded, VariantLakeError, describe_type
from variantlake.paths import Path
from variantlake.types import Primitive

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - the epoch of timestamps without a zone
_MICRO = dt.timedelta(microseconds=1)
_MICROS_OF_DAY = 24 * 60 * 60 * 1_000_000


@runtime_checkable
class _HasTree(Protocol):
    """A Variant, whose class this module cannot import."""

    def tree(self) -> Tree: ...


def tree_of(value: object) -> Tree:
    """Convert a Python object to a tree, by the table above.

    Raises InvalidValue with the path of an object that no Variant type holds exactly, LimitExceeded
    for nesting beyond MAX_DEPTH, also for an object that contains itself.
    """
    steps: list[str | int] = []
    try:
        root, members = _shell(value)
        stack = [(root, members)]
        while stack:
            parent, members = stack[-1]
            del steps[len(stack) - 1 :]
            step, child = next(members, (None, None))
            if step is None:
                stack.pop()
                continue
            steps.append(step)
            tree, grandchildren = _shell(child)
            if isinstance(parent, dict):
                parent[str(step)] = tree
            elif isinstance(parent, list):
                parent.append(tree)
            if not isinstance(tree, Scalar):
                stack.append((tree, grandchildren))
            if len(stack) > MAX_DEPTH:
                raise LimitExceeded(f"more than {MAX_DEPTH} containers around one another")
    except VariantLakeError as error:
        error.path = Path(tuple(steps)).normalized()
        raise
    return root


_Members: TypeAlias = Iterator[tuple[str | int, object]]


def _shell(value: object) -> tuple[Tree, _Members]:
    """Return a tree and the members still to add: none unless it is an empty container."""
    if isinstance(value, pa.Scalar):
        value = from_arrow(value)
    if isinstance(value, Mapping):
        return {}, ((_checked_key(key), child) for key, child in value.items())
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim):
        return [], iter(enumerate(value))
    if isinstance(value, _HasTree):
        return value.tree(), iter(())
    return scalar_of(value), iter(())


def _checked_key(key: object) -> str:
    if not isinstance(key, str):
        raise InvalidValue(f"key {key!r} of an object is not a string")
    encode_string(key)
    return key


def scalar_of(value: object) -> Scalar:
    """Convert a Python object that is not a container. Raises InvalidValue."""
    match value:
        case Scalar():
            return value
        case None:
            return NULL
        case bool():
            return TRUE if value else FALSE
        case np.timedelta64():  # NumPy's class for integers is its base
            raise InvalidValue("no Variant type holds a timedelta64")
        case int() | np.integer():
            return integer(int(value))
        case float():
            return Scalar(Primitive.DOUBLE, float(value))
        case Decimal():
            return exact_decimal(value)
        case str():
            encode_string(value)
            return Scalar(Primitive.STRING, str(value))
        case bytes() | bytearray() | memoryview():
            return Scalar(Primitive.BINARY, bytes(value))
        case dt.datetime():
            return _of_datetime(value)
        case dt.date():
            return Scalar(Primitive.DATE, (value - _EPOCH.date()).days)
        case dt.time():
            return _of_time(value)
        case uuid.UUID():
            return Scalar(Primitive.UUID, value)
        case np.datetime64():
            return _of_datetime64(value)
        case _ if isinstance(value, np.bool):
            return TRUE if value else FALSE
        case _ if isinstance(value, np.float32):
            return Scalar(Primitive.FLOAT, float(value))
        case _:
            raise InvalidValue(f"no Variant type holds {describe_type(value)}")


def _of_datetime(value: dt.datetime) -> Scalar:
    """Convert to micros, or to nanos if a pandas Timestamp, which is a datetime too, has any."""
    if value != value:  # noqa: PLR0124  # pandas' NaT is a datetime
        raise _not_a_time()
    offset = value.utcoffset()
    clock = dt.datetime.combine(value.date(), value.time()) - _EPOCH
    micros = (clock - (offset or dt.timedelta())) // _MICRO
    nanos = getattr(value, "nanosecond", 0)
    if nanos:
        zoned, number = Primitive.TIMESTAMP_NANOS, micros * 1000 + nanos
        return Scalar(Primitive.TIMESTAMP_NTZ_NANOS if offset is None else zoned, number)
    return Scalar(Primitive.TIMESTAMP_NTZ if offset is None else Primitive.TIMESTAMP, micros)


def _not_a_time() -> InvalidValue:
    return InvalidValue("NaT has no Variant type", hint="None is the Variant null")


def _of_time(value: dt.time) -> Scalar:
    if value.tzinfo is not None:
        raise InvalidValue("a time with a time zone has no Variant type")
    clock = dt.datetime.combine(_EPOCH.date(), value) - _EPOCH
    return Scalar(Primitive.TIME, clock // _MICRO)


def _of_datetime64(value: np.datetime64) -> Scalar:
    """Convert days to dates and nanoseconds to nanos; coarser units become micros."""
    if np.isnat(value):
        raise _not_a_time()
    unit, count = np.datetime_data(value.dtype)
    number = int(value.astype(np.int64)) * count
    if unit == "D":
        return Scalar(Primitive.DATE, number)
    if unit == "ns":
        return Scalar(Primitive.TIMESTAMP_NTZ_NANOS, number)
    if unit in MICROS_OF_UNIT:
        return Scalar(Primitive.TIMESTAMP_NTZ, number * MICROS_OF_UNIT[unit])
    raise InvalidValue(f"datetime64[{unit}] has no Variant type", hint="cast it to [us] or [ns]")


def to_python(tree: Tree) -> Any:
    """Convert a tree to a Python object, by the table above.

    Raises InvalidValue for a time outside a day, and for the timestamp -2^63, NumPy's NaT.
    """
    root = _python_shell(tree)
    todo = [(tree, root)]
    while todo:
        source, target = todo.pop()
        if isinstance(source, dict):
            for name, child in source.items():
                target[name] = _python_shell(child)
                todo.append((child, target[name]))
        elif isinstance(source, list):
            for child in source:
                target.append(_python_shell(child))
                todo.append((child, target[-1]))
    return root


def _python_shell(tree: Tree) -> Any:
    if isinstance(tree, Scalar):
        return scalar_to_python(tree)
    return {} if isinstance(tree, dict) else []


def scalar_to_python(scalar: Scalar) -> Any:
    """Convert one primitive value to a Python object."""
    match scalar:
        case Scalar(Primitive.DATE, int() as days):
            if -719_162 <= days <= 2_932_896:  # years 1 to 9999
                return _EPOCH.date() + dt.timedelta(days=days)
            return np.datetime64(days, "D")
        case Scalar(Primitive.TIMESTAMP | Primitive.TIMESTAMP_NTZ, int() as micros):
            if not -719_162 <= micros // _MICROS_OF_DAY <= 2_932_896:
                return _datetime64(micros, "us")
            zone = dt.UTC if scalar.type is Primitive.TIMESTAMP else None
            return (_EPOCH + dt.timedelta(microseconds=micros)).replace(tzinfo=zone)
        case Scalar(Primitive.TIMESTAMP_NANOS | Primitive.TIMESTAMP_NTZ_NANOS, int() as nanos):
            return _datetime64(nanos, "ns")
        case Scalar(Primitive.TIME, int() as micros):
            if not 0 <= micros < _MICROS_OF_DAY:
                raise InvalidValue(f"time of {micros} microseconds is outside of a day")
            return (_EPOCH + dt.timedelta(microseconds=micros)).time()
        case _:
            return scalar.value


def _datetime64(number: int, unit: Literal["us", "ns"]) -> np.datetime64:
    value = np.datetime64(number, unit)
    if np.isnat(value):
        raise InvalidValue(f"timestamp of {number} {unit} is NaT in numpy")
    return value
