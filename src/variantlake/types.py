"""THE table of Variant primitive types, and the table of types that a `typed_value` may have.

Everything else about types derives from these two tables: ids and widths of the encoding, classes
of equal values, Arrow types, names in DDL. A test fails if another module writes a type id. Spec:
VariantEncoding, "Encoding types"; VariantShredding, "Shredded Value Types".
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

import pyarrow as pa

from variantlake.errors import InvalidSchema

MAX_PRECISION = 38
"""Digits of the widest decimal (decimal16)."""

NULL_VALUE = b"\x00"
"""The encoded Variant null."""

EMPTY_METADATA = b"\x01\x00\x00"
"""Metadata with an empty dictionary, as Spark and we write it."""


class BasicType(enum.IntEnum):
    """The low two bits of a value's first byte."""

    PRIMITIVE = 0
    SHORT_STRING = 1
    OBJECT = 2
    ARRAY = 3


class Primitive(enum.IntEnum):
    """Type ids of primitive values (`primitive_header`)."""

    NULL = 0
    TRUE = 1
    FALSE = 2
    INT8 = 3
    INT16 = 4
    INT32 = 5
    INT64 = 6
    DOUBLE = 7
    DECIMAL4 = 8
    DECIMAL8 = 9
    DECIMAL16 = 10
    DATE = 11
    TIMESTAMP = 12
    TIMESTAMP_NTZ = 13
    FLOAT = 14
    BINARY = 15
    STRING = 16
    TIME = 17
    TIMESTAMP_NANOS = 18
    TIMESTAMP_NTZ_NANOS = 19
    UUID = 20


class Family(enum.Enum):
    """Equivalence classes: only values of the same class can be equal."""

    NULL = "null"
    BOOLEAN = "boolean"
    EXACT_NUMERIC = "exact numeric"
    DOUBLE = "double"
    FLOAT = "float"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"
    TIME = "time"
    BINARY = "binary"
    STRING = "string"
    UUID = "uuid"


VARIABLE = -1
"""Width of a primitive whose data is a 4-byte little-endian size and that many bytes."""


@dataclass(frozen=True, slots=True)
class PrimitiveInfo:
    """One row of the primitive table.

    `width` is the number of bytes after the header byte (for decimals with the scale byte), or
    VARIABLE.
    """

    id: Primitive
    name: str
    width: int
    family: Family


PRIMITIVES: dict[Primitive, PrimitiveInfo] = {
    info.id: info
    for info in (
        PrimitiveInfo(Primitive.NULL, "null", 0, Family.NULL),
        PrimitiveInfo(Primitive.TRUE, "boolean", 0, Family.BOOLEAN),
        PrimitiveInfo(Primitive.FALSE, "boolean", 0, Family.BOOLEAN),
        PrimitiveInfo(Primitive.INT8, "int8", 1, Family.EXACT_NUMERIC),
        PrimitiveInfo(Primitive.INT16, "int16", 2, Family.EXACT_NUMERIC),
        PrimitiveInfo(Primitive.INT32, "int32", 4, Family.EXACT_NUMERIC),
        PrimitiveInfo(Primitive.INT64, "int64", 8, Family.EXACT_NUMERIC),
        PrimitiveInfo(Primitive.DOUBLE, "double", 8, Family.DOUBLE),
        PrimitiveInfo(Primitive.DECIMAL4, "decimal4", 5, Family.EXACT_NUMERIC),
        PrimitiveInfo(Primitive.DECIMAL8, "decimal8", 9, Family.EXACT_NUMERIC),
        PrimitiveInfo(Primitive.DECIMAL16, "decimal16", 17, Family.EXACT_NUMERIC),
        PrimitiveInfo(Primitive.DATE, "date", 4, Family.DATE),
        PrimitiveInfo(Primitive.TIMESTAMP, "timestamp", 8, Family.TIMESTAMP),
        PrimitiveInfo(Primitive.TIMESTAMP_NTZ, "timestamp_ntz", 8, Family.TIMESTAMP_NTZ),
        PrimitiveInfo(Primitive.FLOAT, "float", 4, Family.FLOAT),
        PrimitiveInfo(Primitive.BINARY, "binary", VARIABLE, Family.BINARY),
        PrimitiveInfo(Primitive.STRING, "string", VARIABLE, Family.STRING),
        PrimitiveInfo(Primitive.TIME, "time", 8, Family.TIME),
        PrimitiveInfo(Primitive.TIMESTAMP_NANOS, "timestamp_nanos", 8, Family.TIMESTAMP),
        PrimitiveInfo(
            Primitive.TIMESTAMP_NTZ_NANOS, "timestamp_ntz_nanos", 8, Family.TIMESTAMP_NTZ
        ),
        PrimitiveInfo(Primitive.UUID, "uuid", 16, Family.UUID),
    )
}


class Kind(enum.Enum):
    """The type of a shredded `typed_value` leaf; a DECIMAL also has precision and scale."""

    BOOLEAN = "boolean"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NANOS = "timestamp_nanos"
    TIMESTAMP_NTZ = "timestamp_ntz"
    TIMESTAMP_NTZ_NANOS = "timestamp_ntz_nanos"
    BINARY = "binary"
    STRING = "string"
    UUID = "uuid"


@dataclass(frozen=True, slots=True)
class KindInfo:
    """One row of the shredding table.

    `primitives` are the encoded types of the column's values (for decimals: all three widths,
    within precision and scale). `ddl` is the name in printed DDL; `aliases` parse too. `spark` is
    false if Spark 4.2 cannot read a Variant that holds the type. `ordered` is false if statistics
    have no min and max (booleans, as in Delta Spark).
    """

    kind: Kind
    primitives: tuple[Primitive, ...]
    arrow: pa.DataType | None
    ddl: str
    aliases: tuple[str, ...] = ()
    spark: bool = True
    ordered: bool = True


KINDS: dict[Kind, KindInfo] = {
    info.kind: info
    for info in (
        KindInfo(
            Kind.BOOLEAN, (Primitive.TRUE, Primitive.FALSE), pa.bool_(), "BOOLEAN", ordered=False
        ),
        KindInfo(Kind.INT8, (Primitive.INT8,), pa.int8(), "TINYINT", ("BYTE",)),
        KindInfo(Kind.INT16, (Primitive.INT16,), pa.int16(), "SMALLINT", ("SHORT",)),
        KindInfo(Kind.INT32, (Primitive.INT32,), pa.int32(), "INT", ("INTEGER",)),
        KindInfo(Kind.INT64, (Primitive.INT64,), pa.int64(), "BIGINT", ("LONG",)),
        KindInfo(Kind.FLOAT, (Primitive.FLOAT,), pa.float32(), "FLOAT", ("REAL",)),
        KindInfo(Kind.DOUBLE, (Primitive.DOUBLE,), pa.float64(), "DOUBLE"),
        KindInfo(
            Kind.DECIMAL,
            (Primitive.DECIMAL4, Primitive.DECIMAL8, Primitive.DECIMAL16),
            None,
            "DECIMAL",
            ("DEC", "NUMERIC"),
        ),
        KindInfo(Kind.DATE, (Primitive.DATE,), pa.date32(), "DATE"),
        KindInfo(Kind.TIME, (Primitive.TIME,), pa.time64("us"), "TIME", spark=False),
        KindInfo(Kind.TIMESTAMP, (Primitive.TIMESTAMP,), pa.timestamp("us", "UTC"), "TIMESTAMP"),
        KindInfo(
            Kind.TIMESTAMP_NANOS,
            (Primitive.TIMESTAMP_NANOS,),
            pa.timestamp("ns", "UTC"),
            "TIMESTAMP_NANOS",
            spark=False,
        ),
        KindInfo(
            Kind.TIMESTAMP_NTZ, (Primitive.TIMESTAMP_NTZ,), pa.timestamp("us"), "TIMESTAMP_NTZ"
        ),
        KindInfo(
            Kind.TIMESTAMP_NTZ_NANOS,
            (Primitive.TIMESTAMP_NTZ_NANOS,),
            pa.timestamp("ns"),
            "TIMESTAMP_NTZ_NANOS",
            spark=False,
        ),
        KindInfo(Kind.BINARY, (Primitive.BINARY,), pa.binary(), "BINARY"),
        KindInfo(Kind.STRING, (Primitive.STRING,), pa.string(), "STRING"),
        KindInfo(Kind.UUID, (Primitive.UUID,), pa.uuid(), "UUID", spark=False),
    )
}

KIND_OF = {primitive: info.kind for info in KINDS.values() for primitive in info.primitives}
"""The shredded kind of each primitive type."""


@dataclass(frozen=True, slots=True)
class ShreddedType:
    """The exact type of one `typed_value` leaf; only decimals have `precision` and `scale`.

    Raises InvalidSchema for a decimal outside 1 <= precision <= 38, 0 <= scale <= precision.
    """

    kind: Kind
    precision: int = 0
    scale: int = 0

    def __post_init__(self) -> None:
        if self.kind is Kind.DECIMAL:
            if not (1 <= self.precision <= MAX_PRECISION and 0 <= self.scale <= self.precision):
                raise InvalidSchema(
                    f"DECIMAL({self.precision},{self.scale}) is outside of "
                    f"1 <= precision <= {MAX_PRECISION}, 0 <= scale <= precision"
                )
        elif self.precision or self.scale:
            raise InvalidSchema(f"{self.kind.value} takes no precision or scale")

    @property
    def info(self) -> KindInfo:
        """The row of the shredding table."""
        return KINDS[self.kind]

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type of the leaf; decimals are decimal128, stored by width when written."""
        arrow = self.info.arrow
        return pa.decimal128(self.precision, self.scale) if arrow is None else arrow

    @property
    def ddl(self) -> str:
        """The type in DDL: `BIGINT`, `DECIMAL(18,2)`."""
        if self.kind is Kind.DECIMAL:
            return f"DECIMAL({self.precision},{self.scale})"
        return self.info.ddl

    @classmethod
    def parse(cls, text: str) -> ShreddedType:
        """Parse the name of a type in DDL, in upper or lower case.

        `DECIMAL` alone is DECIMAL(10,0), as in Spark. Raises InvalidSchema for an unknown name.
        """
        match = _DDL_TYPE.fullmatch(text.strip())
        kind = _DDL_NAMES.get(match[1].upper()) if match else None
        if match is None or kind is None:
            raise InvalidSchema(
                f"unknown type {text.strip()!r}", hint=f"one of {', '.join(sorted(_DDL_NAMES))}"
            )
        if kind is not Kind.DECIMAL:
            if match[2] is not None:
                raise InvalidSchema(f"{match[1]} takes no precision or scale")
            return cls(kind)
        return cls(kind, int(match[2] or 10), int(match[3] or 0))

    @classmethod
    def from_arrow(cls, arrow: pa.DataType) -> ShreddedType:
        """Return the shredded type of an Arrow type.

        Raises InvalidSchema for a type that the shredding table does not have (unsigned integers,
        fixed-size binary, time in other units).
        """
        if pa.types.is_decimal(arrow):
            if arrow.scale < 0 or arrow.precision > MAX_PRECISION:
                raise InvalidSchema(f"{arrow} cannot be a shredded value")
            return cls(Kind.DECIMAL, arrow.precision, arrow.scale)
        if pa.types.is_timestamp(arrow) and arrow.tz is not None:
            arrow = pa.timestamp(arrow.unit, "UTC")
        plain: pa.DataType = arrow
        kind = _ARROW_KINDS.get(_ARROW_SYNONYMS.get(plain, plain))
        if kind is None:
            raise InvalidSchema(f"Arrow type {arrow} cannot be a shredded value")
        return cls(kind)

    def __str__(self) -> str:
        return self.ddl


_DDL_TYPE = re.compile(r"([A-Za-z_0-9]+)\s*(?:\(\s*(\d{1,3})\s*(?:,\s*(\d{1,3})\s*)?\))?")
_DDL_NAMES = {name: info.kind for info in KINDS.values() for name in (info.ddl, *info.aliases)}
_ARROW_KINDS: dict[pa.DataType, Kind] = {
    info.arrow: info.kind for info in KINDS.values() if info.arrow is not None
}
_ARROW_SYNONYMS: dict[pa.DataType, pa.DataType] = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}

STRING = ShreddedType(Kind.STRING)
BOOLEAN = ShreddedType(Kind.BOOLEAN)
INT64 = ShreddedType(Kind.INT64)
DOUBLE = ShreddedType(Kind.DOUBLE)
