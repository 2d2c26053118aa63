"""The result of a conversion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from variantlake.ingest.commit_load import LoadCounts, LoadResult
from variantlake.ingest.conversion.plan import Step


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ConvertResult(LoadCounts):
    """The result of a conversion, or of its dry run.

    `steps` are the actions for the sources, with their reasons. `shredding` is the DDL of each
    Variant column that has rewritten files.
    """

    steps: tuple[Step, ...] = ()

    @classmethod
    def of(cls, done: LoadResult, steps: tuple[Step, ...], shredding: Mapping[str, str]) -> Self:
        """Make the result of a committed conversion."""
        return cls(
            version=done.version,
            seconds=done.seconds,
            files_written=done.files_written,
            files_empty=done.files_empty,
            rows_written=done.rows_written,
            bytes_written=done.bytes_written,
            steps=steps,
            shredding=shredding,
        )
