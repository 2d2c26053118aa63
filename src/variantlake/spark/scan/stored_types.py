"""The types of Spark that typed columns have, by which its Parquet reader reads them."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from variantlake.types import Kind, ShreddedType

Tree = dict[str | None, "DataType | Tree"]
"""Columns, and the fields or the element within each, by name."""
ELEMENT = None
"""The one child of an array in a Tree, whatever its index: no key of an object."""


def _type(tree: DataType | Tree) -> DataType:
    if not isinstance(tree, dict):
        return tree
    return ArrayType(_type(tree[ELEMENT])) if ELEMENT in tree else struct_type(tree)


def struct_type(tree: Tree) -> StructType:
    """The struct that holds these columns and fields; `Tree` nests them by name."""
    return StructType(
        [StructField(name, _type(child)) for name, child in tree.items() if name is not None]
    )


_LEAF_TYPES: dict[Kind, DataType] = {
    Kind.BOOLEAN: BooleanType(),
    Kind.INT8: ByteType(),
    Kind.INT16: ShortType(),
    Kind.INT32: IntegerType(),
    Kind.INT64: LongType(),
    Kind.FLOAT: FloatType(),
    Kind.DOUBLE: DoubleType(),
    Kind.DATE: DateType(),
    Kind.TIMESTAMP: TimestampType(),
    Kind.TIMESTAMP_NTZ: TimestampNTZType(),
    Kind.BINARY: BinaryType(),
    Kind.STRING: StringType(),
}
"""Exactly the types of the files: Spark's nested reader does not convert (rule 4)."""


def data_type(stored: ShreddedType) -> DataType:
    """Spark's type of a typed column."""
    return _LEAF_TYPES.get(stored.kind) or DecimalType(stored.precision, stored.scale)
