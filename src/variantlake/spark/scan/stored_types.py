"""The Spark types with which its Parquet reader reads the columns of files."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from variantlake.delta.schema import table_schema as delta
from variantlake.types import ShreddedType

Tree = dict[str | None, "DataType | Tree"]
"""Columns, and the fields or the element within each, by name."""
ELEMENT = None
"""The name in a Tree for the elements of an array, whatever their index; no key of an object."""


def _type(tree: DataType | Tree) -> DataType:
    if not isinstance(tree, dict):
        return tree
    return ArrayType(_type(tree[ELEMENT])) if ELEMENT in tree else struct_type(tree)


def struct_type(tree: Tree) -> StructType:
    """Return the struct of these columns and fields; `Tree` nests them by name."""
    return StructType(
        [StructField(name, _type(child)) for name, child in tree.items() if name is not None]
    )


def data_type(stored: ShreddedType) -> DataType:
    """Return Spark's type of a typed column: exactly the file's, which Spark does not check.

    See EXACTNESS, rule 4.
    """
    return from_arrow_type(stored.arrow, prefer_timestamp_ntz=True)


_DECIMAL = re.compile(r"decimal\((\d{1,2}),\s*(\d{1,2})\)")


def is_beyond_spark(type_: delta.DataType, metadata: Mapping[str, object]) -> bool:
    """Whether old files may hold integers, at any depth, that Spark cannot read as decimals.

    `metadata` is the column's. Delta widens to decimals that hold every INT or BIGINT. Other
    writers also widen to decimals that hold just every byte or short. Spec: PROTOCOL, "Type
    Widening".
    """
    changes = metadata.get("delta.typeChanges")
    for change in changes if isinstance(changes, list) else ():
        if not isinstance(change, dict):
            continue
        wanted = _DECIMAL.fullmatch(str(change.get("toType")))
        digits = delta.INTEGER_DIGITS.get(str(change.get("fromType")))
        if wanted and digits and int(wanted[1]) - int(wanted[2]) < digits:
            return True
    match type_:
        case delta.StructType(fields):
            return any(is_beyond_spark(item.type, item.metadata) for item in fields)
        case delta.ArrayType(element):
            return is_beyond_spark(element, {})
        case delta.MapType(key, value):
            return is_beyond_spark(key, {}) or is_beyond_spark(value, {})
        case _:
            return False
