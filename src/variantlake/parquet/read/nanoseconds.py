"""Find timestamps of a file that are finer than microseconds."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from variantlake.errors import MalformedFile
from variantlake.parquet.metadata.footer import Footer, read_footer
from variantlake.parquet.metadata.old_times import first_row, flat, integers
from variantlake.parquet.metadata.pages import check_pages
from variantlake.parquet.metadata.schema_tree import SchemaNode
from variantlake.parquet.read.reader import named_groups
from variantlake.parquet.variant.variant_columns import variant_nodes
from variantlake.storage.input_file import InputFile
from variantlake.storage.opening import Source, name_of, open_file


def first_below_micros(
    path: Source, variant_columns: Collection[str] = ()
) -> tuple[str, int] | None:
    """Return the column and the row of the first timestamp finer than microseconds, or None.

    Rows count from the start of the file. Reads only columns of INT96 and of nanoseconds, and none
    inside Variants, which can hold nanoseconds. `variant_columns` names Variants that the file does
    not mark. Raises MalformedFile, MissingSource.
    """
    with open_file(path) as file:
        footer = read_footer(file)
        tops = dict(_fine_leaves(footer, named_groups(footer, variant_columns)))
        start = 0
        for number, group in enumerate(footer.row_groups):
            chunks = [group.columns[leaf] for leaf in tops]
            file.prefetch((chunk.first_page, chunk.compressed_size) for chunk in chunks)
            for leaf, top in tops.items():
                check_pages(file.read_at, footer.leaves[leaf], group.columns[leaf], group)
                try:
                    row = _first(file, number, leaf)
                except MemoryError:  # an ArrowException too, and the file may be whole
                    raise
                except (pa.ArrowException, OSError) as error:
                    raise MalformedFile(
                        f"row group {number} does not read: {error}", file=name_of(path)
                    ) from error
                if row is not None:
                    return top, start + row
            start += group.num_rows
    return None


def _fine_leaves(footer: Footer, wanted: Collection[tuple[str, ...]]) -> Iterator[tuple[int, str]]:
    for top in footer.schema.children:
        variants = [node for node, _ in variant_nodes(top, wanted, (top.name,))]
        inside = {leaf for node in variants for leaf in node.leaves()}
        for leaf in top.leaves():
            if leaf not in inside and _is_fine(footer.leaves[leaf].node):
                yield leaf, top.name


def _first(file: InputFile, row_group: int, leaf: int) -> int | None:
    """Return the first row of a row group with such a timestamp in a leaf, or None."""
    fine, coarse = (_column(file, row_group, leaf, unit) for unit in ("ns", "us"))
    if not _below(fine, coarse):
        return None
    return first_row(fine.num_rows, lambda *part: _below(fine.slice(*part), coarse.slice(*part)))


def _below(fine: pa.Table, coarse: pa.Table) -> bool:
    (nanos,), (micros,) = flat(fine), flat(coarse)
    counts = integers(nanos)
    if nanos.type == micros.type:  # no INT96
        return bool((counts % 1000 != 0).any())
    # Nanoseconds of far years overflow, and the product overflows in the same way.
    return bool((counts - integers(micros) * 1000 != 0).any())


def _column(file: InputFile, row_group: int, leaf: int, unit: str) -> pa.Table:
    parquet = pq.ParquetFile(file.native, coerce_int96_timestamp_unit=unit)
    found: pa.Table = parquet.reader.read_row_group(row_group, column_indices=[leaf])
    return found


def _is_fine(node: SchemaNode) -> bool:
    is_nanos = node.logical is not None and node.logical.unit == "NANOS"
    return node.physical == "INT96" or (node.kind == "TIMESTAMP" and is_nanos)
