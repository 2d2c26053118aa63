"""Row ids and row commit versions of files that are added, and of rows that move to others.

A row that moves keeps both: the new file has them in two columns, whose names the table's
properties give. Spec: PROTOCOL, "Row Tracking".
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
    """The properties that name the columns of copied rows, for a table that enables the feature."""
    return {name: f"{prefix}{uuid.uuid4()}" for name, prefix in _MATERIALIZED.items()}


def assigns_ids(features: Iterable[str], properties: Mapping[str, str]) -> bool:
    """Whether files that are added must get row ids: when supported, unless suspended."""
    suspended = properties.get(SUSPENDED, "").lower() == "true"
    return "rowTracking" in features and not suspended


def high_water_mark(domains: Iterable[DomainMetadata | Action]) -> int | None:
    """The highest row id that these actions assigned; None when none of them says.

    Raises MalformedLog for a domain that does not have it.
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
    """The adds with row ids above `high_water`, for a commit of `version`, and the new mark.

    A file that has its ids (it is added again) keeps them. The mark is None if none was given.

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

    def fields(self) -> tuple[StructField, StructField]:
        """The columns as a table's would be; no schema has them."""
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
        """Both columns for the rows at these positions of a file, with what the log has for it.

        `stored` are the columns that the file itself has: what they hold goes before the default.
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
