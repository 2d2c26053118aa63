"""Find and read the rows to erase, including rows that a deletion vector already hides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array
from variantlake.delta.actions.actions import AddFile
from variantlake.delta.log.files.logical_files import adds_of
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.table_schema import VariantType
from variantlake.dml.found_rows import find_rows
from variantlake.dml.read_rows import rows_at
from variantlake.dml.removed_rows import vector_rows
from variantlake.dml.row_ids import RowIds
from variantlake.errors import in_file
from variantlake.expressions.tree import Predicate
from variantlake.kernels.tape.dictionary import own_dictionaries
from variantlake.kernels.tape.tape import Tape
from variantlake.kernels.variant.variant_reader import VariantReader, bad_variant
from variantlake.kernels.variant.variant_writer import write_variant
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.planning.files import ScanFile
from variantlake.scan.table_scan import Scan
from variantlake.shredding.arrays import struct_of


@dataclass(frozen=True, slots=True)
class ErasedRows:
    """The rows to erase from one file: `visible` ones of the table, and `hidden` deleted ones.

    `staying` are the rows of the table that stay. All are ascending places in the file.
    """

    add: AddFile
    file: ScanFile
    visible: Int64s
    hidden: Int64s
    staying: Int64s


def erased_rows(snapshot: Snapshot, condition: Predicate) -> list[ErasedRows]:
    """Find the rows for which the condition is true, file by file. Raises as `find_rows`."""
    files = snapshot.files
    bare = replace(snapshot, files=files.without("deletion_vector"))
    taken = find_rows(Scan(bare, (), condition))
    paths = arrow_array([each.add.path for each in taken], pa.string())
    chosen = files.filter(pc.is_in(files["path"], value_set=paths))
    adds = {add.path: add for add in adds_of(chosen)}
    found = []
    for each in taken:
        add = adds[each.add.path]
        before = vector_rows(snapshot, add, each.num_rows)
        rows = each.places()
        rest = np.setdiff1d(np.arange(each.num_rows, dtype=np.int64), rows)
        found.append(
            ErasedRows(
                add,
                each.file,
                visible=np.setdiff1d(rows, before),
                hidden=np.intersect1d(rows, before),
                staying=np.setdiff1d(rest, before),
            )
        )
    return found


def staying_rows(snapshot: Snapshot, found: list[ErasedRows]) -> Iterator[pa.Table]:
    """Read the rows that stay, and give each Variant a dictionary of only the keys that it uses.

    The rows of a file share a dictionary, which would keep the keys of erased rows.
    """
    variants = [
        number
        for number, field in enumerate(snapshot.schema.fields)
        if isinstance(field.type, VariantType)
    ]
    reader = VariantReader()
    ids = RowIds.of(snapshot)
    for each in found:
        places = each.staying
        tables = rows_at(snapshot, each.file, each.staying)
        for table in ids.moved(tables, each.add, each.file, each.staying):
            pruned = table
            for number in variants:
                with in_file(each.file.path):
                    column = _pruned(reader, table.column(number), places)
                pruned = pruned.set_column(number, table.schema.field(number), column)
            places = places[table.num_rows :]
            yield pruned


def visible_rows(snapshot: Snapshot, found: list[ErasedRows]) -> Iterator[pa.Table]:
    """Read the erased rows that were in the table."""
    for each in found:
        if len(each.visible):
            yield from rows_at(snapshot, each.file, each.visible)


def tape_of(reader: VariantReader, array: pa.StructArray, places: Int64s | None = None) -> Tape:
    """Read Variants into a tape; `places` are those in the file. Raises MalformedVariant."""
    tape = reader.read(array)
    bad = np.flatnonzero(tape.bad)
    if len(bad):
        error = bad_variant(array, int(bad[0]))
        error.row = None if places is None else int(places[bad[0]])
        raise error
    return tape


def _pruned(
    reader: VariantReader, column: pa.ChunkedArray[Any], places: Int64s
) -> pa.ChunkedArray[Any]:
    """Write Variants with their own dictionaries; `places` are those in the file."""
    chunks: list[Any] = []
    for chunk in column.chunks:
        tape = tape_of(reader, struct_of(chunk), places)
        places = places[len(chunk) :]
        chunks.append(write_variant(tape, dictionary=own_dictionaries(tape)).cast(column.type))
    made: Any = pa.chunked_array
    found: pa.ChunkedArray[Any] = made(chunks, column.type)
    return found
