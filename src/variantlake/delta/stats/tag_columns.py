"""The tags of many files by their names, as columns: one pass over all maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from variantlake.delta.stats.columnar_json import StringColumn, texts_of
from variantlake.kernels.log.map_entries import find_entries


def map_columns(maps: Any, names: Sequence[str]) -> dict[str, StringColumn]:
    """What an Arrow array of maps from strings to strings holds under each of these keys.

    The texts stay where they are in memory. Of equal keys in one map it may be any of them.
    """
    _, offsets, data = maps.keys.buffers()
    first, entries = maps.keys.offset, len(maps.keys)
    if not entries:
        empty = StringColumn(np.zeros(0, np.uint8), *2 * (np.full(len(maps), -1, np.int64),))
        return dict.fromkeys(names, empty)
    wanted = [name.encode() for name in names]
    found = np.empty(len(maps) * len(names), np.int64)
    find_entries(
        maps.offsets.to_numpy(),
        np.frombuffer(data or b"", np.uint8),
        np.frombuffer(offsets, np.int32)[first : first + entries + 1],
        np.frombuffer(b"".join(wanted), np.uint8),
        np.cumsum([len(name) for name in wanted], dtype=np.int64),
        found,
    )
    items, null = texts_of(maps.items), maps.is_null().to_numpy(zero_copy_only=False)
    columns = {}
    for number, name in enumerate(names):
        at = found[number :: len(names)]
        starts = np.where((at >= 0) & ~null, items.starts[at], -1)
        columns[name] = StringColumn(items.data, starts, items.ends[at])
    return columns
