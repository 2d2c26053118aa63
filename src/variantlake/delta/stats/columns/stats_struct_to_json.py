"""Convert the column `stats_parsed` of a checkpoint to the JSON texts that commits would have.

So readers of statistics need only one form. The texts are built column by column, not row by row.
Values without a JSON form, and shredded Variants, are left out, which means unknown.
Spec: PROTOCOL, "Checkpoint Schema", "Statistics for Variant Columns".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array
from variantlake.delta.stats import z85
from variantlake.shredding.layout import is_binary

_PIECE = 16 << 20
"""Bytes of columns that are converted at once, because an array of texts cannot hold 2 GB."""

_ESCAPED = '["\\\\\\x00-\\x1f]'


def stats_to_json(parsed: Any) -> Any:
    """Convert a chunked array `stats_parsed` to texts; null where it is null, or is no struct.

    Raises pyarrow.ArrowInvalid for strings that are not UTF-8.
    """
    if not pa.types.is_struct(parsed.type):
        return pa.nulls(len(parsed), pa.string())
    texts = [_value(piece) for chunk in parsed.chunks for piece in pieces(chunk, _PIECE)]
    found = pa.chunked_array(texts, pa.string())
    found.validate(full=True)
    return found


def pieces(rows: Any, most_bytes: int) -> Iterator[Any]:
    """Split an array or a table into parts of at most `most_bytes`, but at least one row."""
    if rows.nbytes <= most_bytes or len(rows) < 2:
        yield rows
    else:
        yield from pieces(rows.slice(0, len(rows) // 2), most_bytes)
        yield from pieces(rows.slice(len(rows) // 2), most_bytes)


def _value(array: Any) -> Any:
    """Return the JSON of each value, null for values without a JSON form."""
    type_ = array.type
    if array.null_count == len(array):
        return pa.nulls(len(array), pa.string())
    if pa.types.is_struct(type_):
        names = {field.name for field in type_}
        return _variant(array) if names >= {"metadata", "value"} else _object(array)
    if is_text(type_):
        return _string(array.cast(pa.string()))
    if pa.types.is_floating(type_):
        array = array.cast(pa.float64())
        return _where(array.cast(pa.string()), pc.is_finite(array))
    if pa.types.is_timestamp(type_):
        # Dropping the zone leaves the time in UTC.
        text = array.cast(pa.timestamp("us"), safe=False).cast(pa.string())
        text = pc.replace_substring(text, " ", "T", max_replacements=1)
        return _moment(text if type_.tz is None else _joined(text, "Z"))
    if pa.types.is_date32(type_):
        return _moment(array.cast(pa.string()))
    if pa.types.is_integer(type_) or pa.types.is_boolean(type_) or pa.types.is_decimal(type_):
        return array.cast(pa.string())
    return pa.nulls(len(array), pa.string())


def _object(array: Any) -> Any:
    members = []
    for number, field in enumerate(array.type):
        text = _value(pc.struct_field(array, [number]))
        if text.null_count < len(text):
            name = orjson.dumps(field.name).decode()
            members.append(pc.fill_null(_joined(f",{name}:", text), ""))
    if not members:
        return _where(pa.repeat("{}", len(array)), array.is_valid())
    text = pc.binary_replace_slice(_joined(*members), start=0, stop=1, replacement="{")
    return _where(_joined(text, "}"), array.is_valid())


def _variant(array: Any) -> Any:
    """Encode bounds of a Variant column in Z85: `metadata`, `value`, and zeros as padding."""
    parts = {
        field.name: pc.struct_field(array, [number]) for number, field in enumerate(array.type)
    }
    sides = parts["metadata"], parts["value"]
    if not all(is_binary(side.type) for side in sides):
        return pa.nulls(len(array), pa.string())
    metadata, value = (side.cast(pa.binary()) for side in sides)
    sizes: Any = pc.add(pc.binary_length(metadata), pc.binary_length(value))
    longest = pa.scalar(z85.MAX_CHARACTERS // 5 * 4)
    whole: Any = pc.and_(array.is_valid(), pc.less(sizes, longest))
    if "typed_value" in parts:
        whole = pc.and_(whole, parts["typed_value"].is_null())
    padding = arrow_array([bytes(count) for count in range(4)], pa.binary())
    missing: Any = pc.bit_wise_and(pc.negate(sizes), 3)
    data = pc.binary_join_element_wise(metadata, value, padding.take(missing), b"")
    return _quoted(z85.encode_column(_where(data, whole)))


def _string(array: Any) -> Any:
    odd = pc.fill_null(pc.match_substring_regex(array, _ESCAPED), False)
    if not pc.any(odd).as_py():
        return _quoted(array)
    escaped = [orjson.dumps(text).decode() for text in array.filter(odd).to_pylist()]
    return pc.replace_with_mask(_quoted(array), odd, arrow_array(escaped, pa.string()))


def _moment(array: Any) -> Any:
    """Quote dates and times; null for a date outside Arrow's years, whose text is invalid."""
    return _quoted(_where(array, pc.invert(pc.starts_with(array, "<"))))


def _quoted(array: Any) -> Any:
    return _joined('"', array, '"')


def _joined(*parts: Any) -> Any:
    """Join the parts of each row; null if a part is null."""
    return pc.binary_join_element_wise(*parts, "")


def _where(array: Any, chosen: Any) -> Any:
    return pc.if_else(chosen, array, pa.scalar(None, array.type))


def is_text(type_: pa.DataType) -> bool:
    """Whether an Arrow type is one of the string types."""
    return (
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_string_view(type_)
    )
