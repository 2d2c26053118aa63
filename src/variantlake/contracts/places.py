"""Describe one node of a tape for people: its path in the document, and its shortened value."""

from __future__ import annotations

import uuid
from decimal import Decimal

import orjson

from variantlake.contracts.numbers import DECIMALS, floats, unscaled
from variantlake.encoding.json_text import scalar_to_json
from variantlake.encoding.scalar import Scalar, ScalarValue, decimal_of
from variantlake.expressions.tree import path_text
from variantlake.kernels.tape.nodes import (
    ARRAY,
    BINARY,
    DOUBLE,
    FALSE,
    FLOAT,
    NULL,
    OBJECT,
    OPAQUE,
    STRING,
    TRUE,
    UUID,
)
from variantlake.kernels.tape.tape import Tape
from variantlake.paths import Path
from variantlake.shown import counted, utf8_text
from variantlake.types import Primitive

MAX_SHOWN = 60
"""The most characters of a value in a reason: a document may hold secrets, and be long."""

MISSING = ""
"""Stands for the value at a path that does not exist."""


def path_of(tape: Tape, row: int, node: int, missing: str | None = None) -> str:
    """The path of a node in its row (`$.items[2].price`), with the key `missing` appended."""
    steps: list[str | int] = []
    container = int(tape.first[row])
    while container != node:
        is_object = tape.nodes["tag"][container] == OBJECT
        child, number = container + 1, 0
        while child + int(tape.nodes["span"][child]) <= node:
            child, number = child + int(tape.nodes["span"][child]), number + 1
        steps.append(_name(tape, child) if is_object else number)
        container = child
    if missing is not None:
        steps.append(missing)
    return utf8_text(path_text(Path(tuple(steps))))


def _name(tape: Tape, node: int) -> str:
    return tape.keys.names()[int(tape.nodes["key"][node])].decode("utf-8", "replace")


def shown_value(tape: Tape, node: int) -> str:
    """The value as shortened JSON; for a container its type and size."""
    record = tape.nodes[node]
    tag = int(record["tag"])
    if tag in (OBJECT, ARRAY):
        count = int(record["extra"])
        if tag == OBJECT:
            return f"an object of {counted(count, 'key')}"
        return f"an array of {counted(count, 'element')}"
    if tag == OPAQUE:
        return "a value of an unknown type"
    text = utf8_text(scalar_to_json(_scalar(tape, node)))
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


def text_of(tape: Tape, node: int) -> str:
    """A string, or the JSON text of a date, UUID, …, without quotes."""
    scalar = _scalar(tape, node)
    if isinstance(scalar.value, str):
        return scalar.value
    text: str = orjson.loads(scalar_to_json(scalar))
    return text


def _scalar(tape: Tape, node: int) -> Scalar:
    record = tape.nodes[node]
    tag = int(record["tag"])
    return Scalar(Primitive(tag), _value(tape, node, tag))


def _value(tape: Tape, node: int, tag: int) -> ScalarValue:
    record = tape.nodes[node]
    number = int(record["value"])
    if tag in (NULL, TRUE, FALSE):
        return {NULL: None, TRUE: True, FALSE: False}[tag]
    if tag in (DOUBLE, FLOAT):
        return float(floats(tape.nodes[node : node + 1], tag)[0])
    if tag in DECIMALS:
        decimal: Decimal = decimal_of(unscaled(tape, node), int(record["extra"]))
        return decimal
    if tag in (STRING, BINARY, UUID):
        source, start = (tape.text, number) if number >= 0 else (tape.arena, ~number)
        size = 16 if tag == UUID else int(record["extra"])
        data = source[start : start + size].tobytes()
        if tag == UUID:
            return uuid.UUID(bytes=data)
        return data if tag == BINARY else data.decode("utf-8", "replace")
    return number
