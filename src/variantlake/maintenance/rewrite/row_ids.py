"""Row ids and row commit versions of rows that move to another file.

A row keeps both: the new file has them in two columns, whose names the table's properties give.
Spec: PROTOCOL, "Row Tracking".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.delta.protocol.row_tracking import PROPERTY
from variantlake.errors import MalformedLog
from variantlake.maintenance.rewrite.groups import RewriteInput
from variantlake.parquet.stats.fact_columns import Int64s

ROW_ID = "delta.rowTracking.materializedRowIdColumnName"
ROW_COMMIT_VERSION = "delta.rowTracking.materializedRowCommitVersionColumnName"


@dataclass(frozen=True, slots=True)
class RowIdColumns:
    """The names of the two columns in files."""

    row_id: str
    row_commit_version: str

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Self | None:
        """The columns of a table; None if rows have no ids that must survive.

        Raises MalformedLog for a table that enables row tracking and does not name them.
        """
        if properties.get(PROPERTY, "").lower() != "true":
            return None
        if ROW_ID not in properties or ROW_COMMIT_VERSION not in properties:
            raise MalformedLog(
                f"the table enables row tracking and has no {ROW_ID}, or no {ROW_COMMIT_VERSION}"
            )
        return cls(properties[ROW_ID], properties[ROW_COMMIT_VERSION])

    @property
    def names(self) -> tuple[str, str]:
        """Row id, row commit version."""
        return (self.row_id, self.row_commit_version)

    def fields(self) -> list[pa.Field[Any]]:
        """The columns as files have them."""
        return [pa.field(name, pa.int64()) for name in self.names]

    def check(self, file: RewriteInput) -> None:
        """Raise MalformedLog for a file whose rows have no ids."""
        if file.base_row_id is None or file.row_commit_version is None:
            raise MalformedLog(
                "the table enables row tracking and the file has no baseRowId, or no "
                "defaultRowCommitVersion",
                file=file.path,
            )

    def values(
        self, file: RewriteInput, positions: Int64s, stored: Mapping[str, Any]
    ) -> list[pa.Array[Any]]:
        """Both columns for the rows at these positions of a file.

        `stored` are the columns that the file itself has: what they hold goes before the default.
        """
        default = [
            pa.array(positions + (file.base_row_id or 0)),
            pa.array(np.full(len(positions), file.row_commit_version or 0, np.int64)),
        ]
        return [
            pc.coalesce(stored[name].cast(pa.int64()), given) if name in stored else given
            for name, given in zip(self.names, default, strict=True)
        ]
