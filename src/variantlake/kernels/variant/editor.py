"""Change a value inside each Variant of an array. Twin: encoding.edit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from variantlake.encoding.edit import Change, Edit, edited
from variantlake.encoding.limits import MAX_DEPTH
from variantlake.encoding.metadata import encode_metadata
from variantlake.encoding.tree import decode
from variantlake.errors import LimitExceeded, VariantLakeError
from variantlake.kernels.native.declared import Bytes, Int32s, Int64s
from variantlake.kernels.tape.arrow_arrays import (
    array_of,
    bitmap_of,
    buffer_of,
    new_buffer,
    struct_of,
)
from variantlake.kernels.tape.containers import MARGIN
from variantlake.kernels.tape.tape import SQL_NULL, Tape
from variantlake.kernels.tape.words import PADDING
from variantlake.kernels.variant.edit_rows import EditedRows, edit_rows
from variantlake.kernels.variant.edit_walking import DUPLICATE, MISMATCH, WORDS
from variantlake.kernels.variant.edit_writing import (
    NEED,
    NEED_METADATA,
    STATE_WORDS,
    EditRoom,
    EditValues,
)
from variantlake.kernels.variant.variant_reader import (
    VariantReader,
    VariantRows,
    bad_variant,
    bytes_of,
    key_arrays,
)
from variantlake.shredding.arrays import valid_of, variants_of
from variantlake.shredding.layout import VARIANT_TYPE
from variantlake.types import EMPTY_METADATA, NULL_VALUE

_TOO_LONG = "the changed Variants pass the 2 GB of one Arrow array"


def edit_variants(
    array: pa.StructArray, edit: Edit, new: pa.StructArray | None, *, lenient: bool = False
) -> pa.StructArray:
    """Return the changed Variants as struct<metadata, value>.

    Args:
        array: struct<metadata: binary, value: binary>, in any order of the two.
        edit: The change to make.
        new: The value for all rows, or one for each; None for DELETE. A null makes the row null.
        lenient: Make a row null if its path meets another type, or if it already has the field to
            insert.

    Raises with the row: PathTypeMismatch, DuplicateKey, MalformedVariant, LimitExceeded.
    """
    reader = VariantReader()
    steps = _steps(edit, reader)
    values = reader.read(variants_of([(EMPTY_METADATA, NULL_VALUE)]) if new is None else new)
    work = _Work(array, values, steps, edit)
    work.run()
    _check(array, new, edit, work.status, lenient=lenient)
    return work.result()


def _steps(edit: Edit, reader: VariantReader) -> Int64s:
    """Return the path as the kernel takes it; adds its keys to the reader's table."""
    names = dict.fromkeys(step for step in edit.path.steps if isinstance(step, str))
    table = reader.read(variants_of([(encode_metadata(list(names)), NULL_VALUE)])).keys
    ids = {name.decode(): number for number, name in enumerate(table.names()) if number}
    numbers = [(0, ids[step]) if isinstance(step, str) else (1, step) for step in edit.path.steps]
    return np.array(numbers, np.int64).reshape(-1)


class _Work:
    """What successive calls of the kernel work on."""

    def __init__(self, array: pa.StructArray, values: Tape, steps: Int64s, edit: Edit) -> None:
        self._values, self._steps, self._edit = values, steps, edit
        rows = len(array)
        self._metadata, self._metadata_offsets = bytes_of(array.field("metadata"))
        self._data, self._offsets = bytes_of(array.field("value"))
        self._valid = np.ascontiguousarray(valid_of(array), np.uint8)
        self.status = np.zeros(rows, np.int64)
        size = int(self._offsets[-1] - self._offsets[0])
        more = int(values.nodes["length"][: values.node_count].max(initial=0)) + 64
        self._out = _Output(rows, size + rows * min(more, 1 << 20))
        names = int(self._metadata_offsets[-1] - self._metadata_offsets[0])
        self._out_metadata = _Output(rows, names + rows * 8)

    def run(self) -> None:
        """Change all rows."""
        rows, table, values = len(self.status), self._values.keys, self._values
        longest = int(np.diff(self._offsets).max(initial=0))
        local = np.empty(int(np.diff(self._metadata_offsets).max(initial=0)) + 1, np.int32)
        work = np.empty(longest + 2 * MAX_DEPTH + 64, np.int64)
        padding = sum(step for step in self._edit.path.steps if isinstance(step, int))
        spans = int(values.nodes["span"][: values.node_count].max(initial=0))
        padding = 0 if self._edit.change is Change.DELETE else padding
        entries = np.empty(longest + spans + padding + 4 * MAX_DEPTH + 64, np.int64)
        frames = np.zeros(WORDS * 2 * (MAX_DEPTH + 2), np.int64)
        state = np.zeros(STATE_WORDS, np.int64)
        variants = VariantRows(
            self._metadata, self._metadata_offsets, self._data, self._offsets, self._valid
        )
        new_values = EditValues(
            values.text, values.arena, values.nodes, values.first, values.status
        )
        row = 0
        while row < rows:
            stamps = np.zeros(len(table.keys), np.int64)
            places, added = np.zeros(len(stamps), np.int32), np.zeros(len(stamps), np.int64)
            state[:] = 0
            before = row
            row = edit_rows(
                variants,
                row,
                self._steps,
                int(self._edit.change),
                int(self._edit.create_if_missing),
                new_values,
                key_arrays(table, local),
                EditRoom(frames, work, entries, stamps, places, added, state),
                EditedRows(*self._out.arrays, *self._out_metadata.arrays),
                self.status,
            )
            if row == rows:
                break
            names = int(self._metadata_offsets[row + 1] - self._metadata_offsets[row])
            table.reserve(names // 2 + 2, 2 * names + PADDING)
            grew = self._out.grow(row, int(state[NEED]))
            grew |= self._out_metadata.grow(row, int(state[NEED_METADATA]))
            if row == before and not grew and len(table.keys) == len(stamps):
                raise LimitExceeded(_TOO_LONG, row=row, hint="change fewer rows at a time")

    def result(self) -> pa.StructArray:
        """The changed rows."""
        rows = len(self.status)
        children = [self._out_metadata.array(), self._out.array()]
        return struct_of(VARIANT_TYPE, rows, bitmap_of(self.status == 0), children)


class _Output:
    """A binary array that the kernel writes: its data and its offsets."""

    def __init__(self, rows: int, size: int) -> None:
        self._rows = rows
        self._buffer, self.data = new_buffer(size + 2 * MARGIN)
        self.offsets = np.zeros(rows + 1, np.int32)

    @property
    def arrays(self) -> tuple[Bytes, Int32s]:
        """The current data and offsets."""
        return self.data, self.offsets

    def grow(self, row: int, need: int) -> bool:
        """Make room for `need` bytes of this row, and some for later rows; False if there is."""
        used = int(self.offsets[row])
        if used + need <= len(self.data):
            return False
        if used + need > 1 << 32:
            raise LimitExceeded(_TOO_LONG, row=row, hint="change fewer rows at a time")
        mean = used // max(row, 1)
        size = used + need + max(need, (self._rows - row) * (mean + 64)) // 2 + 2 * MARGIN
        buffer, data = new_buffer(size)
        data[:used] = self.data[:used]
        self._buffer, self.data = buffer, data
        return True

    def array(self) -> pa.Array[pa.Scalar[pa.DataType]]:
        """Return the rows as a binary array."""
        return array_of(pa.binary(), self._rows, [None, buffer_of(self.offsets), self._buffer])


def _check(
    array: pa.StructArray,
    new: pa.StructArray | None,
    edit: Edit,
    status: Int64s,
    *,
    lenient: bool,
) -> None:
    """Raise the plain twin's error for the first row that could not be changed."""
    allowed = [0, SQL_NULL, *([MISMATCH, DUPLICATE] if lenient else [])]
    bad = np.flatnonzero(~np.isin(status, allowed))
    if not len(bad):
        return
    row = int(bad[0])
    found: VariantLakeError = bad_variant(array, row)
    try:
        tree = None
        if new is not None:
            tree = decode(*_binaries(new, 0 if len(new) == 1 else row))
        metadata, value = _binaries(array, row)
        edited(metadata, value, edit, tree)
    except VariantLakeError as error:
        found = error
    found.row = row
    raise found


def _binaries(rows: pa.StructArray, row: int) -> tuple[bytes, bytes]:
    parts = [rows.field(name)[row].as_py() for name in ("metadata", "value")]
    return bytes(parts[0] or b""), bytes(parts[1] or b"")
