"""Compare an engine's rows with those that were written."""

from __future__ import annotations

import decimal
import json
import re
from typing import Any

from variantlake.encoding.json_text import to_json
from variantlake.errors import VariantLakeError

Rows = list[dict[str, Any]]
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d+)?(Z|\+00(:?00)?)?$")


class Columns(Exception):
    """The engine returns the file's columns of a shredded VARIANT, and assembles no value."""


def difference(expected: Rows, rows: Rows) -> str:
    """The first difference between the rows, or an empty text.

    Raises Columns if an engine leaves it to its user to assemble a shredded VARIANT.
    """
    if len(expected) != len(rows):
        return f"{len(rows)} rows for {len(expected)}"
    for number, (wanted, row) in enumerate(zip(expected, rows, strict=True)):
        if set(wanted) != set(row):
            return f"columns {sorted(row)} for {sorted(wanted)}"
        for name, value in wanted.items():
            if isinstance(value, dict) and "variant" in value:
                same = _plain(value["variant"]) == _plain(_variant(row[name]))
            else:
                same = _exact(value) == _exact(row[name])
            if not same:
                return f"row {number}, {name}: {_short(row[name])} for {_short(value)}"
    return ""


def _variant(value: Any) -> Any:
    """An engine's value of a VARIANT: JSON text, or the struct of its bytes."""
    if value is None:
        return None
    if "variant" in value:
        text = value["variant"]
        return None if text is None else json.loads(text, parse_float=decimal.Decimal)
    if {"typed_value", "untyped_value", "object"} & set(value):
        raise Columns
    try:
        text = to_json(
            bytes.fromhex(value["metadata"]["hex"]), bytes.fromhex(value["value"]["hex"])
        )
    except (KeyError, TypeError, VariantLakeError):
        return {"not a Variant": value}
    return json.loads(text, parse_float=decimal.Decimal)


def _plain(value: Any) -> Any:
    """JSON in a form where equal numbers and equal instants compare equal."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return decimal.Decimal(repr(value))
    if isinstance(value, str) and (moment := _MOMENT.match(value)):
        day, time, fraction, zone = moment.group(1, 2, 3, 4)
        return f"{day} {time}{(fraction or '').rstrip('0').rstrip('.')}{'Z' if zone else ''}"
    return value


def _exact(value: Any) -> Any:
    """A value with its type: 1 equals neither true nor 1.0."""
    if isinstance(value, dict):
        return {name: _exact(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_exact(inner) for inner in value]
    return type(value).__name__, value


def _short(value: Any) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}…"
