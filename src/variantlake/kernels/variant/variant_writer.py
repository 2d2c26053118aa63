"""Write a tape as Variant binaries. Twin: encoding.tree.encode."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from variantlake.kernels.native.declared import (
    Bytes,
    BytesIn,
    Int32s,
    Int64sIn,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import entry
from variantlake.kernels.tape.arrow_arrays import (
    array_of,
    bitmap_of,
    buffer_of,
    new_buffer,
    struct_of,
)
from variantlake.kernels.tape.dictionary import Dictionary, choose_dictionary, field_ids, nodes_for
from variantlake.kernels.tape.emit import FieldIds, emit_value
from variantlake.kernels.tape.nodes import Nodes
from variantlake.kernels.tape.tape import Tape
from variantlake.kernels.tape.words import PADDING
from variantlake.shredding.layout import VARIANT_TYPE


@entry
def write_rows(
    text: BytesIn,
    arena: BytesIn,
    nodes: Nodes,
    first: Int64sIn,
    skip: BytesIn,
    fields: FieldIds,
    out: Bytes,
    offsets: Int32s,
) -> None:
    """Write each row's value.

    text, arena, nodes, first: of a tape whose node lengths match the width of the ids. skip: uint8,
    zero, one a node. out: uint8, the sum of the rows' lengths and PADDING. offsets: int32,
    rows + 1, filled. Allocates nothing, never raises.
    """
    to = int64(0)
    for row in range(int64(first.size) - 1):
        offsets[uint64(row)] = to
        at = first[uint64(row)]
        if at < first[uint64(row + 1)]:
            to = emit_value(text, arena, nodes, at, skip, out, to, fields)
    offsets[uint64(int64(first.size) - 1)] = to


def write_variant(tape: Tape, *, dictionary: Dictionary | None = None) -> pa.StructArray:
    """Return the rows as struct<metadata: binary not null, value: binary not null>.

    A bad row is a null struct, with empty bytes below it. Raises nothing.
    """
    dictionary = dictionary or choose_dictionary(tape)
    nodes = nodes_for(tape, dictionary)
    starts = tape.first[:-1][tape.first[1:] > tape.first[:-1]]
    size = int(nodes["length"][starts].sum(dtype=np.int64))
    buffer, out = new_buffer(size + PADDING)
    offsets = np.empty(tape.rows + 1, np.int32)
    write_rows(
        tape.text, tape.arena, nodes, tape.first, np.zeros(tape.node_count, np.uint8),
        field_ids(tape, dictionary), out, offsets,
    )  # fmt: skip
    value = array_of(pa.binary(), tape.rows, [None, buffer_of(offsets), buffer])
    valid = bitmap_of(tape.status == 0)
    return struct_of(VARIANT_TYPE, tape.rows, valid, [dictionary.metadata, value])
