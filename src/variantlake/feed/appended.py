"""The files that a version appended, for who reads a table version by version.

What changes no data (`dataChange` is false) appends nothing. A version that also removes rows is
refused, or read as the reader asks. Spec: PROTOCOL, "Add File and Remove File".
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
    """What becomes of versions that remove rows."""

    FAIL = "fail"
    IGNORE_DELETES = "ignoreDeletes"
    """Those that only remove are read as versions without rows; others fail."""
    SKIP = "skipChangeCommits"
    """They are read as versions without rows, whatever they add."""
    GIVE_ADDED = "ignoreChanges"
    """The files that they add are read as if all of their rows were new."""


def appended_files(read: Snapshot, version: int, policy: ChangeCommits) -> list[AddFile]:
    """The files that a version appended, in the log's order, to be read with the schema of `read`.

    Raises UnsupportedFeature for a version that removes rows, unless `policy` allows it, and for
    one whose schema cannot be read so; MissingSource for one that the log does not hold any more;
    MalformedLog.
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
