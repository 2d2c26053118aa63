"""The types of Spark that typed columns have, by which its Parquet reader reads them."""

from __future__ import annotations

from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from variantlake.types import ShreddedType

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


def data_type(stored: ShreddedType) -> DataType:
    """Spark's type of a typed column: exactly the file's, which its reader does not check.

    See EXACTNESS, rule 4.
    """
    return from_arrow_type(stored.arrow, prefer_timestamp_ntz=True)
