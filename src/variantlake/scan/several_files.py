"""Small files read as if they were one: a column of all of them is decoded in one go.

What a column chunk costs beside its values is then paid once for many. Whatever is unusual is left
to the reading of one file after the other, which gives the same rows and words the errors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from variantlake.expressions.arrays import Values, joined_values
from variantlake.expressions.tree import Ref
from variantlake.parquet.read.chunk_values import read_joined
from variantlake.planning.exact.readings import PhysicalColumn
from variantlake.scan.file_rows import FileReader
from variantlake.scan.typed_columns import as_stored, converted


def joined_columns(readers: Sequence[FileReader], wanted: Sequence[Ref]) -> list[Values] | None:
    """Paths in all rows of the files, one file after the other; none of these rows is deleted.

    None if a value has no cast. Raises MalformedFile.
    """
    columns: dict[Ref, Values] = {}
    left: list[Ref] = []
    for ref in dict.fromkeys(wanted):
        values = _joined(readers, ref)
        if values is None:
            left.append(ref)
        else:
            columns[ref] = values
    columns |= _one_by_one(readers, left)
    if any(each.failed is not None and np.any(each.failed) for each in columns.values()):
        return None
    return [columns[ref] for ref in wanted]


def _joined(readers: Sequence[FileReader], ref: Ref) -> Values | None:
    """A path that kernels decode in one go; None if the files store it in different ways."""
    readings = {reader.reading(ref) for reader in readers}
    reading = readings.pop()
    if readings or not isinstance(reading, PhysicalColumn):
        return None
    places = [reader.chunks(ref, reading) for reader in readers]
    if None in places:
        return None
    every = [place for own in places for place in own or ()]
    array = as_stored(read_joined(every), reading.stored) if every else None
    return None if array is None else converted(array, ref, reading)


def _one_by_one(readers: Sequence[FileReader], wanted: Sequence[Ref]) -> dict[Ref, Values]:
    """Other paths, read row group by row group."""
    parts: dict[Ref, list[Values]] = {ref: [] for ref in wanted}
    for reader in readers if wanted else ():
        for number, group in enumerate(reader.footer.row_groups):
            rows = reader.group(number, np.arange(group.num_rows))
            for ref, values in parts.items():
                values.append(rows.values(ref))
    return {ref: joined_values(values) for ref, values in parts.items()}
