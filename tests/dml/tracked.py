"""Row ids and row commit versions of a table, read as the protocol says and nothing else does."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

import variantlake as vl
from variantlake.delta.log.deletion_vectors import deleted_rows
from variantlake.delta.log.files.logical_files import adds_of
from variantlake.delta.protocol.row_tracking import ROW_COMMIT_VERSION, ROW_ID

TRACKED = {"delta.enableRowTracking": "true"}


def tracked_rows(table: vl.Table, key: str | None = "id") -> dict[Any, tuple[int, int]]:
    """The row id and the row commit version of each row of the newest version, by its key.

    None stands for the file and the place.
    """
    snapshot = table.refresh().snapshot
    names = [snapshot.properties[each] for each in (ROW_ID, ROW_COMMIT_VERSION)]
    found: dict[Any, tuple[int, int]] = {}
    for add in adds_of(snapshot.files):
        rows = pq.read_table(Path(snapshot.store.uri) / unquote(add.path)).to_pylist()
        gone = set()
        if add.deletion_vector is not None:
            gone = set(deleted_rows(snapshot.store, add.deletion_vector, len(rows)).tolist())
        assert add.base_row_id is not None
        assert add.default_row_commit_version is not None
        for place, row in enumerate(rows):
            if place in gone:
                continue
            default = (add.base_row_id + place, add.default_row_commit_version)
            stored = [row.get(name) for name in names]
            one, other = (
                given if value is None else value
                for value, given in zip(stored, default, strict=True)
            )
            found[(add.path, place) if key is None else row[key]] = one, other
    assert len({row_id for row_id, _ in found.values()}) == len(found)
    return found
