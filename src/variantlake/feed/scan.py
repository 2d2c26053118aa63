"""A scan of changes without Spark: as a table's, in the order of the versions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from variantlake.delta.protocol.change_feed import COMMIT_VERSION
from variantlake.errors import MissingSource
from variantlake.planning.explain import Explanation
from variantlake.scan.table_scan import Scan
from variantlake.shown import Shown

VACUUMED = "vacuum removed files that these changes are in: begin with a later version"


@dataclass(frozen=True, repr=False)
class ChangeScan(Shown):
    """The changed rows of some versions; nothing is read before it is asked for.

    An Arrow stream itself, as `Scan` is. Rows come version by version.
    """

    parts: tuple[Scan, ...]

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return self.parts[0].schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in batches, version by version.

        Raises as `Scan.to_batches`; MissingSource for a file that is not there any more.
        """
        files = [
            (int(file.partition[COMMIT_VERSION] or 0), part, file)
            for part, scan in enumerate(self.parts)
            for file in scan.choice.files
        ]
        files.sort(key=lambda each: each[:2])
        try:
            for _, part, file in files:
                yield from self.parts[part].batches_of([file])
        except MissingSource as error:
            error.hint = error.hint or VACUUMED
            raise

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as an Arrow reader. Raises as `to_batches`, while it is read."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_arrow(self) -> pa.Table:
        """All rows as one table. Raises as `to_batches`."""
        return pa.Table.from_batches(self.to_batches(), self.schema)

    def count(self) -> int:
        """The number of rows, without reading what is selected. Raises as `to_batches`."""
        return sum(scan.count() for scan in self.parts)

    def explain(self) -> tuple[Explanation, ...]:
        """What is read and skipped, by which predicate, of each part of the files."""
        return tuple(scan.explain() for scan in self.parts)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow C stream interface."""
        reader: Any = self.to_reader()
        return reader.__arrow_c_stream__(requested_schema)
