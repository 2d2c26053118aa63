"""Change data files: the rows that a commit deleted, updated and inserted, for the change feed.

A commit that only adds or only removes whole files needs none: readers derive the changes.
Spec: PROTOCOL, "Change Data Files", "Add CDC File".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from variantlake.delta.actions.actions import AddCdcFile, AddFile
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.change_feed import CHANGE_FEED, CHANGE_TYPE, check_change_feed
from variantlake.delta.schema.table_schema import PrimitiveType, StructField, StructType
from variantlake.dml.files.new_files import NewFiles
from variantlake.dml.removed_rows import FileOutcomes, is_on
from variantlake.writing.file_plan import FilePlan

FOLDER = "_change_data"
DELETE, INSERT = "delete", "insert"
BEFORE, AFTER = "update_preimage", "update_postimage"

Changed = tuple[str, Iterable[pa.Table]]
"""A change type, and rows as `rows_at` returns them."""


def needs_changes(snapshot: Snapshot, decided: FileOutcomes, *, adds_rows: bool) -> bool:
    """Whether a commit of these needs change data files."""
    stays = bool(decided.marked or decided.rewritten)
    return is_on(snapshot, CHANGE_FEED) and (stays or (adds_rows and bool(decided.gone)))


def change_plan(plan: FilePlan, folder: str) -> FilePlan:
    """Return the plan that writes change files; `folder` is the location of the table's FOLDER.

    Raises InvalidSchema if a column of the table has a name that the feed reserves.
    """
    check_change_feed(plan.schema, {CHANGE_FEED: "true"})
    kind = StructField(CHANGE_TYPE, PrimitiveType("string"))
    schema = StructType((*plan.schema.fields, kind))
    return replace(plan, location=folder, schema=schema, hidden=())


def change_action(add: AddFile) -> AddCdcFile:
    """Turn the `add` action of a new change file into the one that a commit needs."""
    return AddCdcFile(f"{FOLDER}/{add.path}", add.size, add.partition_values)


def write_changes(files: NewFiles, changed: Iterable[Changed]) -> tuple[AddCdcFile, ...]:
    """Write change files for rows; no file if there are none."""
    plan = change_plan(files.plan, files.target.store.join(FOLDER))
    return tuple(map(change_action, files.write(_with_types(changed), plan)))


def _with_types(changed: Iterable[Changed]) -> Iterator[pa.Table]:
    for kind, tables in changed:
        for table in tables:
            column = pa.repeat(pa.scalar(kind, pa.string()), table.num_rows)
            yield table.append_column(pa.field(CHANGE_TYPE, pa.string()), column)
