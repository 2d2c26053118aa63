"""Split Z85 texts, the bounds of a Variant column, into metadata and value, for many files at once.

The texts may hold any bytes. A text in an unusual form gets a status, and the plain reader,
`delta.stats.variant_bounds.split`, reads it.
"""

from __future__ import annotations

from variantlake.kernels.log.log_stats import GROUP_BYTES, GROUP_CHARACTERS, group_value, unsigned
from variantlake.kernels.native.declared import Bytes, BytesIn, Int64s, Int64sIn, int64, uint64
from variantlake.kernels.native.jit import entry, helper

_LONGEST = 1 << 20
"""The plain reader reads texts of more characters, and checks its limits."""


@helper
def _metadata_end(data: Bytes, start: int, end: int) -> int:
    """Return where the metadata at `start` ends; -1 unless offsets ascend and end before `end`."""
    header = int64(data[uint64(start)])
    width = (header >> 6) + 1
    if header & 0x0F != 1 or start + 1 + width > end:
        return int64(-1)
    count = unsigned(data, start + 1, width)
    names = start + 1 + width + (count + 1) * width
    if names > end:
        return int64(-1)
    before = int64(0)
    for k in range(count + 1):
        offset = unsigned(data, start + 1 + width + k * width, width)
        if offset < before or (k == 0 and offset != 0):
            return int64(-1)
        before = offset
    return names + before if names + before < end else int64(-1)


@helper
def _object_end(data: Bytes, start: int, end: int) -> int:
    """Return where the object at `start` ends; -1 if it is not an object, or ends after `end`."""
    header = int64(data[uint64(start)])
    if header & 3 != 2:
        return int64(-1)
    offset_width, id_width = ((header >> 2) & 3) + 1, ((header >> 4) & 3) + 1
    count_width = int64(4) if header & 64 != 0 else int64(1)
    if start + 1 + count_width > end:
        return int64(-1)
    count = unsigned(data, start + 1, count_width)
    values = start + 1 + count_width + count * id_width + (count + 1) * offset_width
    if values > end:
        return int64(-1)
    size = unsigned(data, values - offset_width, offset_width)
    # Each field takes at least a byte.
    return values + size if count <= size <= end - values else int64(-1)


@entry
def split_bounds(
    text: BytesIn,
    starts: Int64sIn,
    ends: Int64sIn,
    places: Int64sIn,
    data: Bytes,
    metadata_sizes: Int64s,
    value_sizes: Int64s,
    digits: Int64sIn,
) -> int:
    """Decode each Z85 text, `metadata` followed by an object, and measure both parts.

    text: uint8, any bytes. starts, ends: int64, one a row; start is -1 without a text. places:
    int64, where each row's bytes go in `data`, four per five characters. metadata_sizes,
    value_sizes: int64, filled; both are 0 without a text, -1 if only the plain reader can read it.
    digits: int64, shape (256,), the digit of each character, 255 for none. Returns how many rows
    have both. Allocates nothing, never raises. Twin: delta.stats.variant_bounds.split.
    """
    good = int64(0)
    for row in range(int64(starts.size)):
        start, end = starts[uint64(row)], ends[uint64(row)]
        size = int64(0) if start < 0 else int64(-1)
        metadata_sizes[uint64(row)] = size
        value_sizes[uint64(row)] = size
        length = end - start
        if start < 0 or length == 0 or length > _LONGEST or length % GROUP_CHARACTERS != 0:
            continue
        first = places[uint64(row)]
        to, sound = first, True
        while start < end:
            value = group_value(text, start, digits)
            if value < 0:
                sound = False
                break
            data[uint64(to)] = value >> 24
            data[uint64(to + 1)] = (value >> 16) & 255
            data[uint64(to + 2)] = (value >> 8) & 255
            data[uint64(to + 3)] = value & 255
            start += GROUP_CHARACTERS
            to += GROUP_BYTES
        middle = _metadata_end(data, first, to) if sound else int64(-1)
        last = _object_end(data, middle, to) if middle >= 0 else int64(-1)
        if last < 0:
            continue
        while to > last and data[uint64(to - 1)] == 0:
            to -= 1
        if to == last:
            metadata_sizes[uint64(row)] = middle - first
            value_sizes[uint64(row)] = last - middle
            good += 1
    return good
