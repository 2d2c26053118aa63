"""Row ids and row commit versions for files that are added. Spec: PROTOCOL, "Row Tracking"."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import orjson

from variantlake.delta.actions.actions import Action, AddFile, DomainMetadata
from variantlake.errors import InvalidValue, MalformedLog

DOMAIN = "delta.rowTracking"
PROPERTY = "delta.enableRowTracking"

_HIGH_WATER_MARK = "rowIdHighWaterMark"
_MATERIALIZED = {
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-",
}


def materialized_columns() -> dict[str, str]:
    """The properties that name the columns of copied rows, for a table that enables the feature."""
    return {name: f"{prefix}{uuid.uuid4()}" for name, prefix in _MATERIALIZED.items()}


def assigns_ids(features: Iterable[str], properties: Mapping[str, str]) -> bool:
    """Whether files that are added must get row ids: when supported, unless suspended."""
    suspended = properties.get("delta.rowTrackingSuspended", "").lower() == "true"
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


def _num_records(add: AddFile) -> int:
    count = add.num_records
    if count is None:
        raise InvalidValue(
            f"file {add.path!r} has no numRecords, which row ids need",
            hint="the table has the feature rowTracking",
        )
    return count
