"""Names of versions (tags), as metadata domains of the log: `variantlake.version.<name>`.

Other writers keep the domain and ignore it. While it exists, our vacuum and log cleanup keep what
the version needs. Spec: PROTOCOL, "Domain Metadata".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from variantlake.delta.actions.actions import DomainMetadata
from variantlake.errors import InvalidValue, MalformedLog, MissingSource, did_you_mean
from variantlake.shown import Shown
from variantlake.units import EPOCH

DOMAIN = "variantlake.version."
"""The prefix of the domains' names."""
FEATURE = "domainMetadata"
"""The writer feature that a table with named versions needs."""
MAX_NAME = 128
"""Our limit on the characters of a name."""

_NAME = re.compile(r"(?!\d+$)[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True, repr=False)
class NamedVersion(Shown):
    """A version that has a name; `created` is when it got it, in milliseconds since 1970."""

    name: str
    version: int
    created: int

    @property
    def time(self) -> datetime:
        """When the version got its name, in UTC, to the millisecond."""
        return EPOCH + timedelta(milliseconds=self.created)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values; `created` is the time as text."""
        created = self.time.isoformat(timespec="milliseconds")
        return {"name": self.name, "version": self.version, "created": created}

    def domain(self, *, removed: bool = False) -> DomainMetadata:
        """Return the action that names the version, or removes the name."""
        document = {"version": self.version, "created": self.created}
        return DomainMetadata(DOMAIN + self.name, orjson.dumps(document).decode(), removed)


def check_name(name: str) -> None:
    """Raise InvalidValue for what cannot be a version's name: a number could be a version."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise InvalidValue(
            f"{name!r:.150} cannot be the name of a version",
            hint="a version is a whole number, and its name, as 'audit-2026', has at most "
            f"{MAX_NAME} letters, digits, dots, dashes and underscores, and is not a number",
        )


def named_versions(domains: Iterable[DomainMetadata]) -> list[NamedVersion]:
    """Return the named versions, oldest first. Raises MalformedLog for an invalid domain."""
    found = [_parse(each) for each in domains if each.domain.startswith(DOMAIN)]
    return sorted(found, key=lambda each: (each.version, each.name))


def find_version(domains: Mapping[str, DomainMetadata], name: str, location: str) -> int:
    """Return the version of this name. Raises MissingSource if none has it."""
    check_name(name)
    domain = domains.get(DOMAIN + name)
    if domain is None:
        names = [each.removeprefix(DOMAIN) for each in domains if each.startswith(DOMAIN)]
        raise MissingSource(
            f"no version of the table has the name {name!r}",
            file=location,
            hint=did_you_mean(name, names) or "Table.tags() lists the names",
            cli_hint=did_you_mean(name, names) or "variantlake tag lists the names",
        )
    return _parse(domain).version


def _parse(domain: DomainMetadata) -> NamedVersion:
    try:
        document = orjson.loads(domain.configuration)
        version, created = document["version"], document["created"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise MalformedLog(f"the metadata domain {domain.domain} names no version") from error
    if type(version) is not int or type(created) is not int or version < 0:
        raise MalformedLog(f"the metadata domain {domain.domain} names no version")
    return NamedVersion(domain.domain.removeprefix(DOMAIN), version, created)
