"""Change data files: what a change of rows took away and brought, for readers of the feed.

A commit has them if its files alone do not tell: files that only come or only go do.
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
"""A change type, and rows as `rows_at` gives them."""


def needs_changes(snapshot: Snapshot, decided: FileOutcomes, *, adds_rows: bool) -> bool:
    """Whether a commit of these has to say which rows it changed."""
    stays = bool(decided.marked or decided.rewritten)
    return is_on(snapshot, CHANGE_FEED) and (stays or (adds_rows and bool(decided.gone)))


def change_plan(plan: FilePlan, folder: str) -> FilePlan:
    """How change files are written; `folder` is the table's FOLDER.

    Raises InvalidSchema for a table that has a column with a name of the feed's.
    """
    check_change_feed(plan.schema, {CHANGE_FEED: "true"})
    kind = StructField(CHANGE_TYPE, PrimitiveType("string"))
    schema = StructType((*plan.schema.fields, kind))
    return replace(plan, location=folder, schema=schema, hidden=())


def change_action(add: AddFile) -> AddCdcFile:
    """The action for a change file, from the one that a data file would have."""
    return AddCdcFile(f"{FOLDER}/{add.path}", add.size, add.partition_values)


def write_changes(files: NewFiles, changed: Iterable[Changed]) -> tuple[AddCdcFile, ...]:
    """Write change files for rows; none for no rows."""
    plan = change_plan(files.plan, files.target.store.join(FOLDER))
    return tuple(map(change_action, files.write(_with_types(changed), plan)))


def _with_types(changed: Iterable[Changed]) -> Iterator[pa.Table]:
    for kind, tables in changed:
        for table in tables:
            column = pa.repeat(pa.scalar(kind, pa.string()), table.num_rows)
            yield table.append_column(pa.field(CHANGE_TYPE, pa.string()), column)
