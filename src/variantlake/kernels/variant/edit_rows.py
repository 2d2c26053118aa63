"""Change the value at one path in many Variants. Twin: encoding.edit.

`edit_walking` opens the containers on the path from the outside in. `edit_writing` writes them anew
around the copied bytes of their other children and closes them from the inside out.
"""

from __future__ import annotations

from typing import NamedTuple

from variantlake.encoding.limits import MAX_VALUE_BYTES
from variantlake.kernels.native.declared import (
    Bytes,
    Int32s,
    Int64s,
    Int64sIn,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import entry
from variantlake.kernels.tape.containers import MARGIN
from variantlake.kernels.tape.keys import KEY_BYTES, KEY_COUNT, equal_bytes
from variantlake.kernels.tape.tape import SQL_NULL
from variantlake.kernels.tape.words import PADDING, copy_bytes
from variantlake.kernels.variant.edit_walking import walk
from variantlake.kernels.variant.edit_writing import (
    ADDED,
    NEED,
    NEED_METADATA,
    SIZE,
    STAMP,
    EditRoom,
    EditValues,
    room_for,
    write_metadata,
    write_value,
)
from variantlake.kernels.variant.variant_reader import (
    DICTIONARY,
    GOOD,
    TOO_LARGE,
    KeyArrays,
    VariantRows,
    read_metadata,
)

_VALUE_LIMIT = MAX_VALUE_BYTES
_LAST_OFFSET = (1 << 31) - 1


class EditedRows(NamedTuple):
    """The output: `data` and `metadata`, uint8, and the offsets of both, int32, rows + 1.

    On entry, the offsets of the first row to change must say where its output begins.
    """

    data: Bytes
    offsets: Int32s
    metadata: Bytes
    metadata_offsets: Int32s


@entry
def edit_rows(
    variants: VariantRows,
    row: int,
    steps: Int64sIn,
    change: int,
    creates: int,
    values: EditValues,
    table: KeyArrays,
    room: EditRoom,
    output: EditedRows,
    status: Int64s,
) -> int:
    """Change the Variants from `row` on, as many as there is room for.

    steps: 0 and a key id, or 1 and an index, for each step. change: a Change; creates: 1 for
    create_if_missing. status: int64, rows, filled. Returns the first row that it did not process:
    the number of rows when it is done, else a row that needs a larger KeyTable, or room for
    edit[NEED] and edit[NEED_METADATA] bytes, or that would end beyond int32 offsets. Allocates
    nothing, never raises.
    """
    metadata, metadata_offsets, data, offsets, valid = variants
    keys, key_bytes, slots, seen, local, state = table
    frames, work, _, stamps, places, added, edit = room
    out, out_offsets, out_metadata, out_metadata_offsets = output
    nodes, first, value_status = values.nodes, values.first, values.status
    rows = int64(offsets.size) - 1
    known, known_size = int64(-1), int64(-1)
    single = int64(value_status.size) == 1
    while row < rows:
        start, end = int64(offsets[uint64(row)]), int64(offsets[uint64(row + 1)])
        from_ = int64(metadata_offsets[uint64(row)])
        upto = int64(metadata_offsets[uint64(row + 1)])
        size = upto - from_
        edit[uint64(NEED)] = 0
        edit[uint64(NEED_METADATA)] = 0
        if (
            state[uint64(KEY_COUNT)] + size // 2 + 2 > keys.size
            or state[uint64(KEY_BYTES)] + 2 * size + PADDING > key_bytes.size
        ):
            break
        given = int64(0) if single else row
        to = int64(out_offsets[uint64(row)])
        to_metadata = int64(out_metadata_offsets[uint64(row)])
        result = int64(GOOD)
        depth = int64(0)
        if valid[uint64(row)] == 0 or value_status[uint64(given)] == SQL_NULL:
            result = int64(SQL_NULL)
        elif value_status[uint64(given)] != GOOD:
            result = value_status[uint64(given)]
        elif end - start > _VALUE_LIMIT:
            result = int64(TOO_LARGE)
        elif size != known_size or not equal_bytes(metadata, from_, metadata, known, size):
            known, known_size = from_, size
            result = read_metadata(
                metadata, from_, upto, keys, key_bytes, slots, seen, local, state
            )
            if result != GOOD:
                known_size = int64(-1)
            else:
                key_count = state[uint64(DICTIONARY)]
                edit[uint64(SIZE)] = key_count
                stamp = edit[uint64(STAMP)] + 1
                edit[uint64(STAMP)] = stamp
                for index in range(key_count):
                    key = uint64(int64(local[uint64(index)]))
                    if stamps[key] != stamp:
                        stamps[key] = stamp
                        places[key] = index
        if result == GOOD:
            depth = walk(data, start, end, steps, change, creates, frames, work, table)
            if depth < 0:
                result = -depth
        ended, ended_metadata = to, to_metadata
        if result == GOOD:
            t = first[uint64(given)]
            edit[uint64(ADDED)] = 0
            need = end - start + 2 * MARGIN
            if depth > 0:
                need = room_for(frames, depth, steps, change, end - start, nodes, t)
            edit[uint64(NEED)] = need
            if to + need > out.size:
                break
            if depth == 0:
                copy_bytes(out, to, data, start, end - start)
                ended = to + end - start
            else:
                ended = write_value(data, depth, steps, change, values, t, room, out, to)
            if ended < 0:
                result = -ended
            elif ended - to > _VALUE_LIMIT:
                result = int64(TOO_LARGE)
            else:
                ended_metadata = write_metadata(
                    metadata, from_, upto, keys, key_bytes, local, added, edit, out_metadata,
                    to_metadata,
                )  # fmt: skip
                if ended_metadata < -1:
                    result = -ended_metadata
            # The next row may have the same dictionary.
            for number in range(edit[uint64(ADDED)]):
                stamps[uint64(added[uint64(number)])] = 0
            if ended_metadata == -1:
                break
            if ended > _LAST_OFFSET or ended_metadata > _LAST_OFFSET:
                break
        if result != GOOD:
            ended, ended_metadata = to, to_metadata
        status[uint64(row)] = result
        out_offsets[uint64(row + 1)] = ended
        out_metadata_offsets[uint64(row + 1)] = ended_metadata
        row += 1
    return row
