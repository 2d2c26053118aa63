"""List the files that a version appended, for a stream that reads a table version by version.

Files whose `dataChange` is false are not appended. A version that also removes rows is refused, or
read as the stream's options say. Spec: PROTOCOL, "Add File and Remove File".
"""

from __future__ import annotations

import enum

from variantlake.delta.actions.actions import AddFile, Metadata, RemoveFile
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.log.reconciliation import read_commit
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import MissingSource, UnsupportedFeature
from variantlake.feed.commits import check_schema

_CHOICES = (
    "skipChangeCommits leaves out such versions, ignoreDeletes those that only remove rows; "
    "ignoreChanges gives all rows of the new files, including those that were read before;"
    " readChangeFeed gives the change of each row"
)


class ChangeCommits(enum.Enum):
    """How to read versions that remove rows."""

    FAIL = "fail"
    IGNORE_DELETES = "ignoreDeletes"
    """Versions that only remove have no rows; others fail."""
    SKIP = "skipChangeCommits"
    """They have no rows, whatever they add."""
    GIVE_ADDED = "ignoreChanges"
    """All rows of the files that they add count as new."""


def appended_files(read: Snapshot, version: int, policy: ChangeCommits) -> list[AddFile]:
    """Return the files that a version appended, in the log's order, for the schema of `read`.

    Raises UnsupportedFeature for a version that removes rows, unless `policy` allows it, and for
    one whose rows cannot be read with that schema; MissingSource for one that the log does not hold
    any more; MalformedLog.
    """
    try:
        actions = read_commit(read.store, commit_path(version))
    except MissingSource as error:
        raise MissingSource(
            f"the log does not hold version {version} any more",
            file=read.store.uri,
            hint="failOnDataLoss=false continues with the oldest version of the log, without the"
            " rows in between",
            cli_hint="",
        ) from error
    adds = [each for each in actions if isinstance(each, AddFile) and each.data_change]
    removes = [each for each in actions if isinstance(each, RemoveFile) and each.data_change]
    for each in actions:
        if isinstance(each, Metadata):
            check_schema(read, each, version, read)
    if not removes or policy is ChangeCommits.GIVE_ADDED:
        return adds
    if policy is ChangeCommits.SKIP or (policy is ChangeCommits.IGNORE_DELETES and not adds):
        return []
    what = "changes" if adds else "removes"
    raise UnsupportedFeature(
        f"version {version} {what} existing rows, which a stream of appended rows cannot show",
        file=read.store.uri,
        hint=_CHOICES,
        cli_hint="",
    )
