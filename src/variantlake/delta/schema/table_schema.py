"""A table's schema, and its conversion from and to Delta's JSON and Arrow.

A Variant may be a column, a field of a struct, an element of an array or a map's value. Statistics
and shredding cover Variants that are reached through structs only (`variant_columns`).
Spec: PROTOCOL, "Schema Serialization Format".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import pyarrow as pa

from variantlake.errors import InvalidSchema, LimitExceeded, MalformedLog
from variantlake.shredding.layout import VARIANT_TYPE, map_type
from variantlake.types import MAX_PRECISION

MAX_NESTING = 100
"""Our limit on the depth of a table's schema."""


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A primitive type by its Delta name (`long`, `timestamp_ntz`), for decimals with their digits.

    `char` and `varchar` occur only in declarations (`char_types`), with the length as precision.
    """

    name: str
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        if self.name == "decimal":
            return f"decimal({self.precision},{self.scale})"
        return f"{self.name}({self.precision})" if self.precision else self.name


VOID = PrimitiveType("void")
"""The type of a column that is NULL in every row."""


@dataclass(frozen=True, slots=True)
class VariantType:
    """The Variant type."""

    def __str__(self) -> str:
        return "variant"


@dataclass(frozen=True, slots=True)
class ArrayType:
    """A list of `element`."""

    element: DataType
    contains_null: bool = True

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True, slots=True)
class MapType:
    """Pairs of `key` and `value`."""

    key: DataType
    value: DataType
    value_contains_null: bool = True

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class StructField:
    """A column or a field of a struct. `metadata` is its JSON object in the schema."""

    name: str
    type: DataType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def physical_name(self) -> str:
        """The name in data files, partition values and statistics (column mapping)."""
        physical = self.metadata.get("delta.columnMapping.physicalName")
        return physical if isinstance(physical, str) else self.name

    @property
    def default(self) -> str | None:
        """The SQL expression of the column's default; None if the default is NULL."""
        text = self.metadata.get("CURRENT_DEFAULT")
        return text if isinstance(text, str) and text.strip().upper() != "NULL" else None

    @property
    def generation(self) -> str | None:
        """The SQL expression that generates the column's value; None for an ordinary column."""
        text = self.metadata.get("delta.generationExpression")
        return text if isinstance(text, str) else None


@dataclass(frozen=True, slots=True)
class StructType:
    """Named fields in order; the schema of a table is one."""

    fields: tuple[StructField, ...]
    # Filled on the first lookup: a query of all of 5,000 columns looks up each of them.
    _by_name: dict[str, StructField] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _by_lower_name: dict[str, StructField] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __str__(self) -> str:
        return f"struct<{', '.join(f'{item.name}: {item.type}' for item in self.fields)}>"

    def __repr__(self) -> str:
        nulls = ["" if item.nullable else " NOT NULL" for item in self.fields]
        columns = zip(self.fields, nulls, strict=True)
        return f"StructType({', '.join(f'{item.name} {item.type}{n}' for item, n in columns)})"

    @property
    def names(self) -> list[str]:
        """The names of the fields, in order."""
        return [item.name for item in self.fields]

    def __iter__(self) -> Iterator[StructField]:
        return iter(self.fields)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __getitem__(self, name: str) -> StructField:
        """Return the field of exactly this name. Raises KeyError that names the fields."""
        found = self.get(name) if isinstance(name, str) else None
        if found is None:
            raise KeyError(f"no column {name!r}; columns: {', '.join(self.names)}")
        return found

    def field(self, name: str) -> StructField:
        """Return the same under pyarrow's name. Raises KeyError."""
        return self[name]

    def get(self, name: str) -> StructField | None:
        """Return the field of exactly this name; None if there is none."""
        if not self._by_name:
            self._by_name.update((item.name, item) for item in reversed(self.fields))
        return self._by_name.get(name)

    def find(self, name: str) -> StructField | None:
        """Return the first field of this name in any case; None if there is none."""
        if not self._by_lower_name:
            self._by_lower_name.update((item.name.lower(), item) for item in reversed(self.fields))
        return self._by_lower_name.get(name.lower())

    def walk(self) -> Iterator[StructField]:
        """Yield every field at every depth, including those in arrays and maps."""
        for struct in self.structs():
            yield from struct.fields

    def structs(self) -> Iterator[StructType]:
        """Iterate over this struct and all structs in it, including those in arrays and maps."""
        return (type_ for type_ in types_in(self) if isinstance(type_, StructType))

    def leaves(self, *, physical: bool = False) -> Iterator[tuple[tuple[str, ...], StructField]]:
        """Yield columns that are not structs, and the leaves of structs, each with its path.

        Arrays and maps are leaves. `physical` gives paths of physical names.
        """
        for item in self.fields:
            name = item.physical_name if physical else item.name
            if isinstance(item.type, StructType):
                for path, leaf in item.type.leaves(physical=physical):
                    yield (name, *path), leaf
            else:
                yield (name,), item

    def variant_columns(self, *, physical: bool = False) -> tuple[tuple[str, ...], ...]:
        """Return the paths of Variants that are columns or are reached through structs only."""
        return tuple(
            path
            for path, leaf in self.leaves(physical=physical)
            if isinstance(leaf.type, VariantType)
        )

    def holds_variant(self) -> bool:
        """Whether the schema contains a Variant anywhere."""
        return any(isinstance(type_, VariantType) for type_ in types_in(self))

    def to_json(self) -> str:
        """Return the text of `metaData.schemaString`."""
        return orjson.dumps(_type_to_json(self)).decode()

    def to_arrow(self) -> pa.Schema:
        """Return the Arrow schema that readers produce. Variants are struct<metadata, value>."""
        return pa.schema([_arrow_field(item) for item in self.fields])

    @classmethod
    def from_json(cls, text: str) -> StructType:
        """Parse `metaData.schemaString`. Raises MalformedLog naming the column."""
        try:
            document = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise MalformedLog(f"schemaString is not JSON: {error}") from error
        parsed = _parse_type(document, "schema", 0)
        if not isinstance(parsed, StructType):
            raise MalformedLog("schemaString is not a struct")
        return parsed

    @classmethod
    def from_arrow(cls, schema: pa.Schema, *, variants: Sequence[str] = ()) -> StructType:
        """Return the table schema for Arrow data; columns named in `variants` become Variants.

        Raises InvalidSchema naming a column whose type a Delta table cannot hold.
        """
        types = (
            VariantType() if item.name in variants else _from_arrow(item.type, item.name)
            for item in schema
        )
        fields = zip(schema, types, strict=True)
        return cls(tuple(StructField(item.name, type_, item.nullable) for item, type_ in fields))


DataType = PrimitiveType | VariantType | ArrayType | MapType | StructType

_ARROW_TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}
_DELTA_TYPES = {arrow: name for name, arrow in _ARROW_TYPES.items()} | {
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
}
_DECIMAL = re.compile(r"decimal\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)")
_SPANS = ("day", "hour", "minute", "second")
_READ_ONLY = (
    (re.compile(r"(geometry|geography)\([^()]+\)"), pa.binary()),
    (re.compile(r"interval (year|month|year to month)"), pa.int32()),
    (
        re.compile(
            "interval ("
            + "|".join(
                [*_SPANS, *(f"{a} to {b}" for i, a in enumerate(_SPANS) for b in _SPANS[i + 1 :])]
            )
            + ")"
        ),
        pa.duration("us"),
    ),
)
"""Types that we do not write, and read as their files store them: well-known binary, months and
microseconds. We read no bounds of them: those of the geospatial types are text. Specs: the RFCs
"Geospatial types" and "Interval Types"."""


def read_only_type(type_: DataType) -> pa.DataType | None:
    """Return the Arrow type of a type that we read but do not write; None for any other type."""
    if not isinstance(type_, PrimitiveType):
        return None
    return next((arrow for names, arrow in _READ_ONLY if names.fullmatch(type_.name)), None)


def types_in(type_: DataType) -> Iterator[DataType]:
    """Yield a type, then all types that it contains, at every depth."""
    yield type_
    match type_:
        case StructType(fields):
            for item in fields:
                yield from types_in(item.type)
        case ArrayType(element):
            yield from types_in(element)
        case MapType(key, value):
            yield from types_in(key)
            yield from types_in(value)


def _type_to_json(type_: DataType) -> Any:
    if isinstance(type_, StructType):
        fields = [
            {
                "name": item.name,
                "type": _type_to_json(item.type),
                "nullable": item.nullable,
                "metadata": dict(item.metadata),
            }
            for item in type_.fields
        ]
        return {"type": "struct", "fields": fields}
    if isinstance(type_, ArrayType):
        return {
            "type": "array",
            "elementType": _type_to_json(type_.element),
            "containsNull": type_.contains_null,
        }
    if isinstance(type_, MapType):
        return {
            "type": "map",
            "keyType": _type_to_json(type_.key),
            "valueType": _type_to_json(type_.value),
            "valueContainsNull": type_.value_contains_null,
        }
    return str(type_)


def _parse_type(document: Any, where: str, depth: int) -> DataType:
    if depth > MAX_NESTING:
        raise LimitExceeded(f"the table's schema is nested deeper than {MAX_NESTING}")
    if isinstance(document, str):
        return _parse_primitive(document, where)
    if not isinstance(document, dict):
        raise MalformedLog(f"type of {where} is neither a name nor an object")
    kind = document.get("type")
    if kind == "struct":
        return _parse_struct(document, where, depth)
    if kind == "array":
        return ArrayType(
            _parse_type(document.get("elementType"), f"{where}.element", depth + 1),
            _flag(document, "containsNull", where),
        )
    if kind == "map":
        return MapType(
            _parse_type(document.get("keyType"), f"{where}.key", depth + 1),
            _parse_type(document.get("valueType"), f"{where}.value", depth + 1),
            _flag(document, "valueContainsNull", where),
        )
    if isinstance(kind, str):
        # The specification's examples write {"type": "variant"} where a plain name would do.
        return _parse_primitive(kind, where)
    raise MalformedLog(f"type of {where} is unknown: {kind!r}")


def _parse_struct(document: dict[str, Any], where: str, depth: int) -> StructType:
    fields = document.get("fields")
    if not isinstance(fields, list):
        raise MalformedLog(f"struct {where} has no list of fields")
    parsed = []
    for item in fields:
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise MalformedLog(f"a field of {where} has no name")
        name = item["name"]
        inner = name if depth == 0 else f"{where}.{name}"
        metadata = item.get("metadata") or {}
        if not isinstance(metadata, dict):
            raise MalformedLog(f"metadata of {inner} is not an object")
        parsed.append(
            StructField(
                name,
                _parse_type(item.get("type"), inner, depth + 1),
                _flag(item, "nullable", inner),
                metadata,
            )
        )
    return StructType(tuple(parsed))


def _flag(document: dict[str, Any], key: str, where: str) -> bool:
    value = document.get(key, True)
    if not isinstance(value, bool):
        raise MalformedLog(f"{key} of {where} is not a boolean")
    return value


def _parse_primitive(name: str, where: str) -> DataType:
    if name == "variant":
        return VariantType()
    if name in _ARROW_TYPES:
        return PrimitiveType(name)
    if name == "decimal":
        return PrimitiveType("decimal", 10, 0)
    if match := _DECIMAL.fullmatch(name):
        precision, scale = int(match[1]), int(match[2])
        if 1 <= precision <= MAX_PRECISION and scale <= precision:
            return PrimitiveType("decimal", precision, scale)
    if read_only_type(PrimitiveType(name)):
        return PrimitiveType(name)
    raise MalformedLog(
        f"type of {where} is unknown: {name!r}", hint="a newer version of this package may know it"
    )


def arrow_type(type_: DataType, *, physical: bool = False) -> pa.DataType:
    """Return the Arrow type of a column. `physical` gives struct fields their physical names."""
    if isinstance(type_, StructType):
        return pa.struct([_arrow_field(item, physical=physical) for item in type_.fields])
    if isinstance(type_, ArrayType):
        inner = arrow_type(type_.element, physical=physical)
        return pa.list_(pa.field("element", inner, type_.contains_null))
    if isinstance(type_, MapType):
        key = arrow_type(type_.key, physical=physical)
        value = arrow_type(type_.value, physical=physical)
        return map_type(
            pa.field("key", key, nullable=False),
            pa.field("value", value, type_.value_contains_null),
        )
    if isinstance(type_, VariantType):
        return VARIANT_TYPE
    if type_.name == "decimal":
        return pa.decimal128(type_.precision, type_.scale)
    return read_only_type(type_) or _ARROW_TYPES[type_.name]


def _arrow_field(item: StructField, *, physical: bool = False) -> pa.Field[pa.DataType]:
    name = item.physical_name if physical else item.name
    return pa.field(name, arrow_type(item.type, physical=physical), item.nullable)


def _from_arrow(arrow: pa.DataType, where: str) -> DataType:
    if isinstance(arrow, pa.StructType):
        inner = (arrow.field(i) for i in range(arrow.num_fields))
        return StructType(
            tuple(
                StructField(
                    item.name, _from_arrow(item.type, f"{where}.{item.name}"), item.nullable
                )
                for item in inner
            )
        )
    if isinstance(arrow, pa.MapType):
        return MapType(
            _from_arrow(arrow.key_type, f"{where}.key"),
            _from_arrow(arrow.item_type, f"{where}.value"),
            arrow.item_field.nullable,
        )
    if isinstance(arrow, (pa.ListType, pa.LargeListType, pa.FixedSizeListType)):
        element = arrow.value_field
        return ArrayType(_from_arrow(element.type, f"{where}.element"), element.nullable)
    if isinstance(arrow, pa.Decimal128Type) and arrow.scale >= 0:
        return PrimitiveType("decimal", arrow.precision, arrow.scale)
    if isinstance(arrow, pa.DictionaryType):
        return _from_arrow(arrow.value_type, where)
    if isinstance(arrow, pa.TimestampType) and arrow.unit in ("s", "ms", "us", "ns"):
        return PrimitiveType("timestamp_ntz" if arrow.tz is None else "timestamp")
    name = _DELTA_TYPES.get(arrow)
    if name is None:
        unsigned = pa.types.is_unsigned_integer(arrow)
        raise InvalidSchema(
            f"column {where}: a Delta table cannot hold Arrow type {arrow}",
            hint="cast it to a wider integer, or to a decimal of 20 digits" if unsigned else "",
        )
    return PrimitiveType(name)


INTEGER_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
"""Digits before the point of the narrowest decimal to which an integer type widens."""

_SPARK_NAMES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}


def spark_name(type_: DataType) -> str:
    """Return Spark SQL's name of a type that has no parts."""
    name = str(type_)
    return _SPARK_NAMES.get(name, name)
