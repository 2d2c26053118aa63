"""Name versions, and remove their names. See `Table.tag` and `Table.untag`."""

from __future__ import annotations

import time

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.named_versions import (
    DOMAIN,
    FEATURE,
    NamedVersion,
    check_name,
    find_version,
    named_versions,
)
from variantlake.delta.protocol.needed_features import extended_protocol
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes
from variantlake.errors import InvalidValue
from variantlake.maintenance.restore import MissingFiles
from variantlake.maintenance.restore_state import files_only_in
from variantlake.maintenance.vacuuming.running import are_expired, check_no_vacuum


def name_version(newest: Snapshot, name: str, version: int, *, move: bool = False) -> NamedVersion:
    """Name a version. Commits nothing if it already has the name. Raises as `Table.tag`."""
    check_name(name)
    given = {each.name: each for each in named_versions(newest.domains.values())}
    before = given.get(name)
    if before is not None and before.version == version:
        return before
    if before is not None and not move:
        raise InvalidValue(
            f"{name!r} is the name of version {before.version}",
            file=newest.store.uri,
            hint="move=True moves it, and untag removes it",
            cli_hint="--move moves it, and --delete removes it",
        )
    revives = version != newest.version and _needs_expired_files(newest, version)
    named = NamedVersion(name, version, time.time_ns() // 1_000_000)
    protocol = extended_protocol(newest.protocol, [FEATURE])
    changes = Changes(
        "TAG VERSION",
        domains=(named.domain(),),
        protocol=None if protocol == newest.protocol else protocol,
        file_metrics=False,
        revives=revives,
        parameters={"name": name, "version": version},
    )
    commit(newest, changes)
    return named


def _needs_expired_files(newest: Snapshot, version: int) -> bool:
    """Whether the version needs files that a vacuum may remove.

    Raises if a vacuum may be running, or has removed some of these files.
    """
    old = newest.at(version)
    back = files_only_in(old, newest)
    if not are_expired(newest, back):
        return False
    check_no_vacuum(newest)
    gone = MissingFiles.of(old, back)
    if gone.count:
        raise gone.error_named(version, newest.store.uri)
    return True


def remove_name(newest: Snapshot, name: str) -> NamedVersion:
    """Remove a name. Returns the name and the version that it named. Raises as `Table.untag`."""
    version = find_version(newest.domains, name, newest.store.uri)
    (named,) = named_versions([newest.domains[DOMAIN + name]])
    changes = Changes(
        "UNTAG VERSION",
        domains=(named.domain(removed=True),),
        file_metrics=False,
        parameters={"name": name, "version": version},
    )
    commit(newest, changes)
    return named
