"""Find the files that gain by another layout: those in which some value would move."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from variantlake.parquet.stats.fact_columns import ColumnPath, Int64s, VariantColumns
from variantlake.planning.log_files import LogFiles
from variantlake.shredding.schema import Object, ShreddingSchema, Untyped

Bools = npt.NDArray[np.bool_]


def that_gain(files: LogFiles, rows: Int64s, column: ColumnPath, wanted: ShreddingSchema) -> Bools:
    """Return a mask of the files (of `rows`) in which this layout would move some value.

    The counts in the log decide; a file without them counts as gaining.
    """
    gains = np.ones(len(rows), np.bool_)
    variants = files.of_log.variant(column)
    if variants is None:
        return gains
    layout = variants.layout[rows]
    for code in np.unique(layout[layout >= 0]).tolist():
        places = np.flatnonzero(layout == code)
        known = not variants.legacy[code] and not variants.others[code]
        if known:
            gains[places] = _of_layout(variants, code, rows[places], wanted)
    return gains


def _of_layout(variants: VariantColumns, code: int, rows: Int64s, wanted: ShreddingSchema) -> Bools:
    schema = variants.schemas[code]
    gains = np.zeros(len(rows), np.bool_)
    if schema == wanted:
        return gains
    numbers = {path: number for number, (path, _) in enumerate(schema.nodes())}
    for path, node in wanted.nodes():
        if isinstance(node, Object | Untyped):
            continue
        found, where = schema.find(path)
        if found == node and where == path:
            continue
        # The new column's values are in the residual of the deepest node above it, or in a column
        # of another type.
        counts = variants.counts(rows, np.full(len(rows), numbers[where], np.int64))
        gains |= counts.residuals != 0
        if where == path:
            gains |= counts.typed != 0
    for path, node in schema.nodes():
        if isinstance(node, Object | Untyped):
            continue
        found, where = wanted.find(path)
        if found != node or where != path:
            nodes = np.full(len(rows), numbers[path], np.int64)
            gains |= variants.counts(rows, nodes).typed != 0
    return gains
