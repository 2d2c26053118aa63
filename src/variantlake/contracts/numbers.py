"""Compare numbers of a tape with one number.

Integers and decimals are compared exactly, doubles and floats with the nearest double or float of
the number: 0.1 as a double equals 0.1.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from variantlake.kernels.native.declared import Int64s, Records
from variantlake.kernels.tape.nodes import (
    DECIMAL4,
    DECIMAL8,
    DECIMAL16,
    DOUBLE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
)
from variantlake.kernels.tape.tape import Tape

INTEGERS = (INT8, INT16, INT32, INT64)
DECIMALS = (DECIMAL4, DECIMAL8, DECIMAL16)

NOT_COMPARED = 2
"""The sign of NaN, which is neither less nor greater nor equal."""

_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1

Signs = npt.NDArray[np.int8]


def signs(tape: Tape, at: Int64s, number: Fraction) -> Signs:
    """The sign of value - `number` for each of these numeric nodes: -1, 0, 1 or NOT_COMPARED."""
    nodes: Records = tape.nodes[at]
    found: Signs = np.zeros(len(at), np.int8)
    tags = nodes["tag"]
    chosen = np.isin(tags, INTEGERS)
    found[chosen] = _of_integers(nodes["value"][chosen], number)
    for tag in (DOUBLE, FLOAT):
        chosen = tags == tag
        if chosen.any():
            found[chosen] = _of_doubles(floats(nodes[chosen], tag), number, tag)
    chosen = (tags == DECIMAL4) | (tags == DECIMAL8)
    scales = nodes["extra"]
    for scale in np.unique(scales[chosen]).tolist():
        some = chosen & (scales == scale)
        found[some] = _of_integers(nodes["value"][some], number * 10**scale)
    for place in np.flatnonzero(tags == DECIMAL16).tolist():
        scaled = number * 10 ** int(scales[place])
        found[place] = _sign(unscaled(tape, int(at[place])) - scaled)
    return found


def are_whole(tape: Tape, at: Int64s) -> npt.NDArray[np.bool_]:
    """Which of these numeric nodes are whole numbers."""
    nodes: Records = tape.nodes[at]
    tags, scales = nodes["tag"], nodes["extra"]
    found = np.isin(tags, INTEGERS)
    for tag in (DOUBLE, FLOAT):
        chosen = tags == tag
        if chosen.any():
            values = floats(nodes[chosen], tag)
            found[chosen] = np.isfinite(values) & (np.trunc(values) == values)
    for place in np.flatnonzero(np.isin(tags, DECIMALS)).tolist():
        found[place] = unscaled(tape, int(at[place])) % 10 ** int(scales[place]) == 0
    return found


def unscaled(tape: Tape, node: int) -> int:
    """The unscaled value of a decimal."""
    record = tape.nodes[node]
    if record["tag"] != DECIMAL16:
        return int(record["value"])
    place = int(record["value"])
    source, start = (tape.text, place) if place >= 0 else (tape.arena, ~place)
    return int.from_bytes(source[start : start + 16].tobytes(), "little", signed=True)


def floats(nodes: Records, tag: int) -> npt.NDArray[np.float64]:
    """The values of doubles or floats."""
    bits = np.ascontiguousarray(nodes["value"])
    if tag == DOUBLE:
        return bits.view(np.float64)
    return bits.astype(np.int32).view(np.float32).astype(np.float64)


def _of_integers(values: Int64s, number: Fraction) -> Signs:
    floor = number.numerator // number.denominator
    if floor > _GREATEST:
        return np.full(len(values), -1, np.int8)
    if floor < _LEAST:
        return np.full(len(values), 1, np.int8)
    found = (values > floor).astype(np.int8) - (values < floor).astype(np.int8)
    if floor != number:
        found[found == 0] = -1
    return found


def _of_doubles(values: npt.NDArray[np.float64], number: Fraction, tag: int) -> Signs:
    try:
        nearest = float(number)
    except OverflowError:
        nearest = np.inf if number > 0 else -np.inf
    if tag == FLOAT:
        with np.errstate(over="ignore"):
            nearest = float(np.float32(nearest))
    found = (values > nearest).astype(np.int8) - (values < nearest).astype(np.int8)
    found[np.isnan(values)] = NOT_COMPARED
    return found


def _sign(number: Fraction) -> int:
    return (number > 0) - (number < 0)
