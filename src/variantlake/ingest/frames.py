"""Convert pandas DataFrames and Polars LazyFrames to Arrow data, Python values to Variants."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from variantlake.delta.schema.table_schema import StructType, VariantType
from variantlake.encoding.variant import Variant
from variantlake.errors import InvalidValue, VariantLakeError
from variantlake.kernels.variant.arrow_variants import variant_column


def as_arrow(data: Any, schema: StructType) -> Any:
    """A pandas DataFrame as an Arrow table, a Polars LazyFrame collected; else `data` itself.

    Raises InvalidValue for a pandas column whose values have no common type.
    """
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(data, pandas.DataFrame):
        return _from_pandas(data, schema)
    if polars is not None and isinstance(data, polars.LazyFrame):
        return data.collect()
    return data


def _from_pandas(frame: Any, schema: StructType) -> pa.Table:
    """Convert each cell of a VARIANT column by itself.

    Arrow would give all of them the same struct type, with the keys of all. A column of strings
    stays text, which is read as JSON. An index without a name does not become a column.
    """
    variants = {field.name for field in schema.fields if isinstance(field.type, VariantType)}
    places = [
        place
        for place, name in enumerate(frame.columns)
        if name in variants and _holds_objects(frame.iloc[:, place])
    ]
    others = [place for place in range(frame.shape[1]) if place not in places]
    try:
        plain = pa.Table.from_pandas(frame.iloc[:, others])
    except pa.ArrowException as error:
        raise InvalidValue(f"the values of a column have no type in common: {error}") from error
    columns: list[tuple[str, Any]] = list(zip(plain.column_names, plain.columns, strict=True))
    for place in places:
        name = str(frame.columns[place])
        columns.insert(place, (name, _variants(name, frame.iloc[:, place])))
    columns = [each for each in columns if not each[0].startswith("__index_level_")]
    return pa.table([array for _, array in columns], names=[name for name, _ in columns])


def _holds_objects(column: Any) -> bool:
    """Whether a column holds Python objects other than strings."""
    if column.dtype != object:
        return False
    return not all(isinstance(each, str) for each in column[column.notna()])


def _variants(name: str, column: Any) -> pa.StructArray:
    def variant(cell: tuple[Any, bool]) -> Variant | None:
        value, missing = cell
        return None if missing else Variant.of(value)

    cells = zip(column, column.isna(), strict=True)
    return variant_column(list(converted(name, cells, variant)))


def converted(
    name: str, values: Iterable[Any], convert: Callable[[Any], Any], start: int = 0
) -> Iterator[Any]:
    """The converted values of a column; errors name it and the row, counted from `start`."""
    for row, value in enumerate(values, start):
        try:
            yield convert(value)
        except VariantLakeError as error:
            error.row = row
            error.say_first(f"column {name!r}")
            raise
