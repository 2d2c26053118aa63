"""Hash many texts: the paths of a table's files."""

from __future__ import annotations

from variantlake.kernels.digest.mixing import hash_text
from variantlake.kernels.native.declared import BytesIn, Int32sIn, Int64s, int64, uint64
from variantlake.kernels.native.jit import entry


@entry
def hash_texts(data: BytesIn, offsets: Int32sIn, hashes: Int64s) -> None:
    """Hash the texts data[offsets[row]:offsets[row + 1]].

    offsets: int32, within `data`, ascending. hashes: int64, one less than offsets, filled.
    Allocates nothing, never raises.
    """
    for row in range(int64(hashes.size)):
        start = int64(offsets[uint64(row)])
        size = int64(offsets[uint64(row + 1)]) - start
        hashes[uint64(row)] = hash_text(data, start, size, int64(0))
