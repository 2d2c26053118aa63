"""Read bounds of a Variant column that are stored as Variants: one field of many objects at once.

The objects may hold any bytes. A row in an unusual form gets a status, and the plain reader,
`delta.stats.variant_bounds`, reads it.
"""

from __future__ import annotations

from variantlake.kernels.log.log_stats import MISSING, UNUSUAL, TextSpans, child_at, put_bound
from variantlake.kernels.native.declared import Bytes, Int64s, Int64sIn, int64, uint64
from variantlake.kernels.native.jit import entry


@entry
def find_parsed_bounds(
    values: TextSpans, fields: Int64sIn, tags: Bytes, numbers: Int64s, extras: Int64s
) -> int:
    """Read one field of each object of bounds.

    values: the objects, Variants without their metadata. fields: int64, the field id in each row,
    -1 for none. tags, numbers, extras: filled like those of a BoundColumn whose arena is
    values.data. Returns how many rows have a bound. Allocates nothing, never raises.
    Twin: delta.stats.variant_bounds.decode_bounds.
    """
    data, starts, ends = values
    good = int64(0)
    for row in range(int64(starts.size)):
        tags[uint64(row)] = MISSING
        numbers[uint64(row)] = 0
        extras[uint64(row)] = 0
        if starts[uint64(row)] < 0 or fields[uint64(row)] < 0:
            continue
        end = ends[uint64(row)]
        place = child_at(data, starts[uint64(row)], end, fields[uint64(row)])
        if place == -1:
            continue
        tags[uint64(row)] = UNUSUAL
        if place < 0:
            continue
        put_bound(data, place, end, row, tags, numbers, extras)
        good += int64(tags[uint64(row)] < UNUSUAL)
    return good
