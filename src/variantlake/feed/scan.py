"""Scan changes without Spark, in the order of the versions."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from variantlake.delta.protocol.change_feed import COMMIT_VERSION
from variantlake.errors import MissingSource
from variantlake.planning.explain import Explanation
from variantlake.scan.arrow_stream import ArrowStream
from variantlake.scan.table_scan import Scan

VACUUMED = "vacuum removed files that these changes are in: begin with a later version"


@dataclass(frozen=True, repr=False)
class ChangeScan(ArrowStream):
    """The changed rows of some versions, in order; it reads nothing before its rows are taken.

    It is an Arrow stream, as `Scan` is.
    """

    parts: tuple[Scan, ...]

    def __repr__(self) -> str:
        names = reprlib.repr(self.schema.names)
        return f"<ChangeScan of {names}, up to version {self.parts[-1].snapshot.version}>"

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return self.parts[0].schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches, version by version.

        Raises as `Scan.to_batches`; MissingSource for a file that no longer exists.
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

    def count(self) -> int:
        """Count the rows without reading the selected columns. Raises as `to_batches`."""
        return sum(scan.count() for scan in self.parts)

    def explain(self) -> tuple[Explanation, ...]:
        """Explain for each part of the files what the scan reads and skips, by which predicate."""
        return tuple(scan.explain() for scan in self.parts)
