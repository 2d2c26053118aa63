"""Give row ids to the files of a table that starts to track rows.

The protocol demands this order: first the feature, so that every writer gives ids to new files;
then ids for the files without; last the property, which the caller sets. Each step is a commit, and
a repeated call resumes where the last one stopped. Spec: PROTOCOL, "Writer Requirements for Row
Tracking".
"""

from __future__ import annotations

from dataclasses import replace

import orjson

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.needed_features import extended_protocol
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes


def backfill_row_ids(snapshot: Snapshot) -> Snapshot:
    """Give row ids to all files; returns the newest version, in which every file has one.

    Raises InvalidValue for a file whose statistics do not count its rows, CommitConflict where
    another writer changed the table or one of the files, UnsupportedFeature.
    """
    protocol = extended_protocol(snapshot.protocol, ["rowTracking"])
    if protocol != snapshot.protocol:
        parameters = {"newProtocol": orjson.dumps(protocol.to_json()).decode()}
        changes = Changes("UPGRADE PROTOCOL", protocol=protocol, parameters=parameters)
        commit(snapshot, changes)
        snapshot = snapshot.refresh()
    without = [
        replace(add, data_change=False)
        for add in snapshot.add_files()
        if add.base_row_id is None or add.default_row_commit_version is None
    ]
    if without:
        parameters = {"batchId": "0"}
        changes = Changes("ROW TRACKING BACKFILL", adds=tuple(without), parameters=parameters)
        commit(snapshot, changes)
        snapshot = snapshot.refresh()
    return snapshot
