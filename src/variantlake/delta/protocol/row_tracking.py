"""Assign row ids and row commit versions to new files, and keep them for rows that move.

A row that moves to another file keeps both, in two columns of the new file whose names are in the
table's properties. Spec: PROTOCOL, "Row Tracking".
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array
from variantlake.delta.actions.actions import Action, AddFile, DomainMetadata
from variantlake.delta.schema.table_schema import PrimitiveType, StructField
from variantlake.errors import InvalidValue, MalformedLog

DOMAIN = "delta.rowTracking"
PROPERTY = "delta.enableRowTracking"
SUSPENDED = "delta.rowTrackingSuspended"

_HIGH_WATER_MARK = "rowIdHighWaterMark"
ROW_ID = "delta.rowTracking.materializedRowIdColumnName"
ROW_COMMIT_VERSION = "delta.rowTracking.materializedRowCommitVersionColumnName"
_MATERIALIZED = {ROW_ID: "_row-id-col-", ROW_COMMIT_VERSION: "_row-commit-version-col-"}


def materialized_columns() -> dict[str, str]:
    """Make the properties that name the columns for moved rows, with new unique names."""
    return {name: f"{prefix}{uuid.uuid4()}" for name, prefix in _MATERIALIZED.items()}


def assigns_ids(features: Iterable[str], properties: Mapping[str, str]) -> bool:
    """Whether new files must get row ids: if the feature is listed and not suspended."""
    suspended = properties.get(SUSPENDED, "").lower() == "true"
    return "rowTracking" in features and not suspended


def high_water_mark(domains: Iterable[DomainMetadata | Action]) -> int | None:
    """Return the high-water mark of row ids in these actions, None if no action has it.

    Raises MalformedLog for a row-tracking domain without an integer mark.
    """
    for domain in domains:
        if isinstance(domain, DomainMetadata) and domain.domain == DOMAIN:
            try:
                mark = orjson.loads(domain.configuration)[_HIGH_WATER_MARK]
            except (orjson.JSONDecodeError, KeyError, TypeError) as error:
                raise MalformedLog(f"the domain {DOMAIN} has no {_HIGH_WATER_MARK}") from error
            if type(mark) is not int:
                raise MalformedLog(f"{_HIGH_WATER_MARK} is {mark!r}, expected an integer")
            return mark
    return None


def with_row_ids(
    adds: Sequence[AddFile], version: int, high_water: int
) -> tuple[tuple[AddFile, ...], DomainMetadata | None]:
    """Assign row ids above `high_water` to the adds of commit `version`; returns also the new mark.

    A file that has ids already (it is added again) keeps them. The mark is None if no id was
    assigned.

    Raises InvalidValue for a file whose statistics do not count its rows.
    """
    found = []
    following = high_water + 1
    for add in adds:
        if add.base_row_id is not None:
            found.append(add)
            continue
        found.append(replace(add, base_row_id=following, default_row_commit_version=version))
        following += _num_records(add)
    if following == high_water + 1:
        return tuple(found), None
    mark = orjson.dumps({_HIGH_WATER_MARK: following - 1}).decode()
    return tuple(found), DomainMetadata(DOMAIN, mark)


@dataclass(frozen=True, slots=True)
class RowIdColumns:
    """The names in files of the two columns for moved rows."""

    row_id: str
    row_commit_version: str

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Self | None:
        """Return the columns of a table, None if it does not enable row tracking.

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
        """The names of the columns for row ids and for row commit versions."""
        return (self.row_id, self.row_commit_version)

    def fields(self) -> tuple[StructField, StructField]:
        """Return both columns as fields; no table schema contains them."""
        return (
            StructField(self.row_id, PrimitiveType("long")),
            StructField(self.row_commit_version, PrimitiveType("long")),
        )

    def values(
        self,
        base_row_id: int | None,
        commit_version: int | None,
        positions: npt.NDArray[np.int64],
        stored: Mapping[str, Any],
    ) -> list[pa.Array[Any]]:
        """Return both columns for the rows at these positions of a file.

        `base_row_id` and `commit_version` are the file's in the log. `stored` has those of the two
        columns that the file contains; their values have precedence.

        Raises MalformedLog for a file whose rows have no ids.
        """
        if base_row_id is None or commit_version is None:
            raise MalformedLog(
                "the table enables row tracking and the file has no baseRowId, or no "
                "defaultRowCommitVersion"
            )
        default = [
            arrow_array(positions + base_row_id),
            arrow_array(np.full(len(positions), commit_version, np.int64)),
        ]
        return [
            pc.coalesce(stored[name].cast(pa.int64()), each) if name in stored else each
            for name, each in zip(self.names, default, strict=True)
        ]


def _num_records(add: AddFile) -> int:
    count = add.num_records
    if count is None:
        raise InvalidValue(
            f"file {add.path!r} has no numRecords, which row ids need",
            hint="Table.analyze() counts the rows of such files",
            cli_hint="`variantlake analyze` counts the rows of such files",
        )
    return count
