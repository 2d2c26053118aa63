"""Parquet's logical types, and the older converted types folded into them.

Spec: Parquet, "Logical Types" and `parquet.thrift`, union LogicalType.
"""

from __future__ import annotations

from dataclasses import dataclass

from variantlake.errors import MalformedFile
from variantlake.parquet.metadata.thrift import Fields, Struct, Wire


@dataclass(frozen=True, slots=True)
class Logical:
    """A logical type by the specification's name (`STRING`, `DECIMAL`, `TIMESTAMP`, `VARIANT`).

    Only the parameters of its own kind are set: `precision` and `scale` of a DECIMAL, `unit`
    (`MILLIS`, `MICROS`, `NANOS`) and `utc` of a TIME or TIMESTAMP, `bits` and `signed` of an
    INTEGER, `version` of a VARIANT. A kind that we do not know, or know with other parameters, is
    called `UNKNOWN_<field id>`: only the physical type of its column means something to us.
    """

    kind: str
    precision: int = 0
    scale: int = 0
    unit: str = ""
    utc: bool = False
    bits: int = 0
    signed: bool = True
    version: int = 0

    def __str__(self) -> str:
        match self.kind:
            case "DECIMAL":
                return f"DECIMAL({self.precision},{self.scale})"
            case "TIME" | "TIMESTAMP":
                return f"{self.kind}({str(self.utc).lower()},{self.unit})"
            case "INTEGER":
                return f"INT({self.bits},{str(self.signed).lower()})"
            case "VARIANT":
                return f"VARIANT({self.version})"
        return self.kind


_PLAIN = {
    1: "STRING",
    2: "MAP",
    3: "LIST",
    4: "ENUM",
    6: "DATE",
    11: "UNKNOWN",
    12: "JSON",
    13: "BSON",
    14: "UUID",
    15: "FLOAT16",
    17: "GEOMETRY",
    18: "GEOGRAPHY",
}
_UNITS = {1: "MILLIS", 2: "MICROS", 3: "NANOS"}
_TIME = Struct(
    # isAdjustedToUTC, unit
    {1: Wire.TRUE, 2: Struct({unit: Struct({}) for unit in _UNITS}, names_unknown=True)}
)


def _logical_type(fields: Fields, end: int) -> Logical:
    if len(fields) != 1:
        raise MalformedFile("a logical type that is not exactly one type", offset=end)
    ((field_id, parameters),) = fields.items()
    unknown = Logical(f"UNKNOWN_{field_id}")
    match field_id:
        case 5:
            return _decimal(parameters.get(2, 0), parameters.get(1, 0), end)
        case 7 | 8:
            unit = next(iter(parameters.get(2, {})), 0)
            if not unit or 1 not in parameters:
                raise MalformedFile("a time or timestamp without a unit", offset=end)
            if unit not in _UNITS:
                return unknown
            kind = "TIME" if field_id == 7 else "TIMESTAMP"
            return Logical(kind, unit=_UNITS[unit], utc=parameters[1])
        case 10:
            bits = parameters.get(1, 0)
            if bits < 1 or 2 not in parameters:
                raise MalformedFile(f"an integer type of {bits} bits", offset=end)
            if bits not in (8, 16, 32, 64):
                return unknown
            return Logical("INTEGER", bits=bits, signed=parameters[2])
        case 16:
            # The field is optional in parquet.thrift; only version 1 exists so far.
            return Logical("VARIANT", version=parameters.get(1, 1))
    return Logical(_PLAIN[field_id]) if field_id in _PLAIN else unknown


def _decimal(precision: int, scale: int, end: int) -> Logical:
    if not 1 <= precision <= 1000 or not 0 <= scale <= precision:
        raise MalformedFile(f"a DECIMAL({precision},{scale})", offset=end)
    return Logical("DECIMAL", precision=precision, scale=scale)


_PARAMETERS = {
    5: Struct({1: Wire.I32, 2: Wire.I32}),  # scale, precision
    7: _TIME,
    8: _TIME,
    10: Struct({1: Wire.I8, 2: Wire.TRUE}),  # bitWidth, isSigned
    16: Struct({1: Wire.I8}),  # specification_version
}
LOGICAL_TYPE = Struct(
    {**dict.fromkeys(_PLAIN, Struct({})), **_PARAMETERS}, _logical_type, names_unknown=True
)
"""How to read the union LogicalType as a Logical."""


_CONVERTED = {
    0: Logical("STRING"),
    1: Logical("MAP"),
    2: Logical("MAP_KEY_VALUE"),
    3: Logical("LIST"),
    4: Logical("ENUM"),
    6: Logical("DATE"),
    7: Logical("TIME", unit="MILLIS", utc=True),
    8: Logical("TIME", unit="MICROS", utc=True),
    9: Logical("TIMESTAMP", unit="MILLIS", utc=True),
    10: Logical("TIMESTAMP", unit="MICROS", utc=True),
    11: Logical("INTEGER", bits=8, signed=False),
    12: Logical("INTEGER", bits=16, signed=False),
    13: Logical("INTEGER", bits=32, signed=False),
    14: Logical("INTEGER", bits=64, signed=False),
    15: Logical("INTEGER", bits=8),
    16: Logical("INTEGER", bits=16),
    17: Logical("INTEGER", bits=32),
    18: Logical("INTEGER", bits=64),
    19: Logical("JSON"),
    20: Logical("BSON"),
    21: Logical("INTERVAL"),
}


def of_converted(converted: int | None, precision: int, scale: int) -> Logical | None:
    """Return the logical type of a converted type.

    None without a converted type; a Logical `UNKNOWN_CONVERTED_<number>` for one that we do not
    know. Raises MalformedFile for an impossible decimal.
    """
    if converted is None:
        return None
    if converted == 5:
        return _decimal(precision, scale, 0)
    return _CONVERTED.get(converted, Logical(f"UNKNOWN_CONVERTED_{converted}"))
