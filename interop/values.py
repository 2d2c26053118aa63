"""One form of values for all engines: what JSON has, and text for the rest.

The workers import this module in environments that have nothing but their engine.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid
from collections.abc import Mapping
from typing import Any

Json = Any


def canonical(value: Any) -> Json:
    """An engine's value as JSON, the same for equal values of any Python classes.

    A struct is an object, a map a list of [key, value] in the order of the keys, and bytes are
    {"hex": text}. A time zone becomes UTC; a timestamp without one keeps none.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"double": str(value)}
    if isinstance(value, decimal.Decimal):
        return {"decimal": format(value, "f")}
    if isinstance(value, dt.datetime):
        return {"timestamp": _moment(value)}
    if isinstance(value, dt.date | dt.time):
        return {"text": value.isoformat()}
    if isinstance(value, bytes | bytearray | memoryview):
        return {"hex": bytes(value).hex()}
    if isinstance(value, uuid.UUID):
        return {"text": str(value)}
    if isinstance(value, Mapping):
        return {str(name): canonical(inner) for name, inner in value.items()}
    if hasattr(value, "asDict"):  # a Row of PySpark
        return canonical(value.asDict())
    if isinstance(value, list | tuple):
        return [canonical(inner) for inner in value]
    if hasattr(value, "tolist"):  # NumPy's scalars and arrays
        return canonical(value.tolist())
    raise TypeError(f"a value of {type(value).__name__} has no form here")


def _moment(value: dt.datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat(" ", "microseconds")
    return value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(" ", "microseconds") + "Z"


def pairs(entries: Any) -> Json:
    """A map, given as a dict or as pairs, in the form of `canonical`."""
    items = entries.items() if isinstance(entries, Mapping) else entries
    return sorted(([canonical(key), canonical(value)] for key, value in items), key=repr)
