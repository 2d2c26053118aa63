"""Read the statistics of some files from the column `stats_parsed` of a checkpoint.

If the checkpoint also has the texts of the statistics, these have precedence. Fields that the
struct lacks are read from the texts. A field that contradicts the text of one file is ignored for
all files.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import numpy_array
from variantlake.delta.schema.table_schema import PrimitiveType, StructType, arrow_type
from variantlake.delta.stats import z85
from variantlake.delta.stats.columns.arrow_bounds import raw_bounds
from variantlake.delta.stats.columns.json_members import spans_of
from variantlake.delta.stats.columns.path_bounds import field_ids, raw_column
from variantlake.delta.stats.columns.stats_json_to_struct import parsed_stats
from variantlake.delta.stats.columns.stats_struct_to_json import is_text
from variantlake.delta.stats.columns.text_stats import SIDES, StatsColumns
from variantlake.delta.stats.columns.typed_members import BOUNDED
from variantlake.delta.stats.file_texts import StatsStruct
from variantlake.delta.stats.variant_bounds import plain_bounds, raw_of
from variantlake.kernels.log.log_stats import MISSING, UNUSUAL, BoundColumn
from variantlake.kernels.log.parsed_bounds import find_parsed_bounds
from variantlake.parquet.stats.fact_columns import Bools, ColumnPath, Int64s, RawColumn
from variantlake.paths import Path
from variantlake.shredding.layout import is_binary
from variantlake.types import ShreddedType


class ParsedStats:
    """Statistics of a struct, as StatsColumns; `texts` are those of the same files."""

    def __init__(
        self, struct: StatsStruct, schema: StructType, texts: StatsColumns, num_records: Int64s
    ) -> None:
        self._struct, self._schema, self._texts = struct, schema, texts
        self.num_records: Int64s = num_records

    @property
    def tight(self) -> Bools:
        """See StatsColumns."""
        column = self._struct.column(("tightBounds",))
        if column is None:
            tight = self._struct.agreed("tight", ("numRecords",), self._all_are_tight)
            return np.ones(len(self.num_records), np.bool_) if tight else self._texts.tight
        if column.type != pa.bool_() or not self.agreed(("tightBounds",), ()):
            return self._texts.tight
        found: Bools = numpy_array(column, absent=True)
        return found

    def _all_are_tight(self, texts: Any, _: Any) -> bool:
        flags = pc.struct_field(_expected(texts, self._schema, ()), "tightBounds")
        return bool(numpy_array(flags, absent=True).all())

    def nulls(self, column: ColumnPath) -> Int64s:
        """See StatsColumns."""
        path = ("nullCount", *column)
        counts = self._struct.column(path)
        if counts is None or counts.type != pa.int64() or not self.agreed(path, column):
            return self._texts.nulls(column)
        return _counts(counts)

    def variant_bounds(
        self, column: ColumnPath, path: Path, leaf: ShreddedType
    ) -> list[tuple[RawColumn, Bools]]:
        """See StatsColumns."""
        sides = [self._variants(side, column) for side in SIDES]
        if any(side is None for side in sides):
            return self._texts.variant_bounds(column, path, leaf)
        return [find_in_variants(*side, path, leaf) for side in sides if side is not None]

    def _variants(self, side: str, column: ColumnPath) -> tuple[Any, Any] | None:
        """Return `metadata` and `value` of one side's bounds, None if the struct cannot be used."""
        array = self._struct.column((side, *column))
        if array is None or not pa.types.is_struct(array.type):
            return None
        types = {field.name: field.type for field in array.type}
        if types.keys() != {"metadata", "value"} or not all(map(is_binary, types.values())):
            return None
        if not self.agreed((side, *column), column):
            return None
        metadata, value = (pc.struct_field(array, name) for name in ("metadata", "value"))
        return metadata.cast(pa.binary()), value.cast(pa.binary())

    def column_bounds(
        self, column: ColumnPath, type_: PrimitiveType, stored: ShreddedType, *, widened: bool
    ) -> list[RawColumn]:
        """See StatsColumns."""
        found = []
        for side in SIDES:
            array = _as_type(self._struct.column((side, *column)), type_)
            if array is None or not self.agreed((side, *column), column):
                return self._texts.column_bounds(column, type_, stored, widened=widened)
            up = side == "maxValues"
            found.append(raw_bounds(array, type_, stored, up=up, widened=widened))
        return found

    def agreed(self, path: ColumnPath, column: ColumnPath) -> bool:
        """Whether the struct's field at `path`, which is about `column`, agrees with the texts."""

        def compare(texts: Any, found: Any) -> bool:
            wanted = _expected(texts, self._schema, column)
            for name in path:
                wanted = pc.struct_field(wanted, name)
            return _same(found, wanted)

        return self._struct.agreed((path, self._schema), path, compare)


def parsed_or_texts(
    struct: StatsStruct | None, schema: StructType, texts: StatsColumns
) -> StatsColumns:
    """Return the statistics from the struct if it counts the rows of all files, else from texts."""
    records = None if struct is None else struct.column(("numRecords",))
    if struct is None or records is None or records.type != pa.int64() or records.null_count:
        return texts
    parsed = ParsedStats(struct, schema, texts, _counts(records))
    return parsed if parsed.agreed(("numRecords",), ()) else texts


def _expected(texts: Any, schema: StructType, column: ColumnPath) -> Any:
    """Convert these texts to `stats_parsed`, with one column at most."""
    return parsed_stats(
        texts, schema, [column] if column else [], variant_bounds=True, tight_bounds=True
    )


def _same(found: Any, wanted: Any) -> bool:
    if pa.types.is_struct(wanted.type):
        return all(
            _same(pc.struct_field(found, field.name), pc.struct_field(wanted, field.name))
            for field in wanted.type
        )
    try:
        return bool(found.cast(wanted.type).equals(wanted))
    except pa.ArrowInvalid:
        return False


def _counts(column: Any) -> Int64s:
    """Return the counts, -1 for NULL and negative numbers."""
    found: Int64s = numpy_array(column, -1)
    return np.maximum(found, -1)


def _as_type(array: Any, type_: PrimitiveType) -> Any:
    """Convert bounds to the type of their column; None if that may lose something."""
    if array is None or type_.name not in BOUNDED:
        return None
    wanted = arrow_type(type_)
    alike = (
        array.type == wanted
        or (pa.types.is_string(wanted) and is_text(array.type))
        # Files that were written before the column was widened.
        or (pa.types.is_signed_integer(wanted) and pa.types.is_signed_integer(array.type))
        or (pa.types.is_float64(wanted) and pa.types.is_float32(array.type))
    )
    if not alike:
        return None
    try:
        array = array.cast(wanted)
        array.validate(full=True)  # a string of Parquet need not be UTF-8
    except pa.ArrowInvalid:
        return None
    # JSON texts cannot express NaN or infinities.
    is_number = pa.types.is_floating(wanted)
    return pc.if_else(pc.is_finite(array), array, None) if is_number else array


def find_in_variants(
    metadata: Any, value: Any, path: Path, leaf: ShreddedType
) -> tuple[RawColumn, Bools]:
    """Return the bound of a leaf in each row, and the rows that have a bound of any type there."""
    encoded = metadata.dictionary_encode()
    # Files of one layout share their metadata, so there are few.
    known = [field_ids(each).get(path, -1) for each in encoded.dictionary.to_pylist()]
    codes = numpy_array(encoded.indices, len(known))
    fields = np.array([*known, -1], np.int64)[codes]
    spans = spans_of(value)
    rows = len(fields)
    tags = np.empty(rows, np.uint8)
    numbers, extras = np.empty(rows, np.int64), np.empty(rows, np.int64)
    find_parsed_bounds(spans, fields, tags, numbers, extras)
    column = raw_column(leaf, BoundColumn(tags, numbers, extras, spans.data))
    for unusual in np.flatnonzero(tags == UNUSUAL).tolist():
        data = metadata[unusual].as_py() + (spans.text(unusual) or b"")
        bound = plain_bounds(z85.encode(data)).get(path)
        if bound is None:
            tags[unusual] = MISSING
        else:
            column.put(np.array([unusual]), RawColumn.of([raw_of(leaf, bound)], leaf))
    return column, tags != MISSING
