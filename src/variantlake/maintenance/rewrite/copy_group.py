"""Join files in the cheapest way, by copying their row groups as bytes.

The plan proposes this from the log, and the footers decide. If they do not allow it, the rows of
the group are rewritten like any others.
"""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path

from variantlake.delta.log.snapshot import Snapshot
from variantlake.maintenance.rewrite.groups import FileGroup, RewriteInput, Tier
from variantlake.parquet.stats.facts import FileFacts
from variantlake.parquet.write.copy_row_groups import (
    MIN_ROW_GROUP_BYTES,
    CopySource,
    NotMovable,
    copy_row_groups,
    open_source,
    why_not,
)
from variantlake.parquet.write.file_writer import WrittenFile
from variantlake.storage.opening import open_store
from variantlake.storage.store import LocalStore
from variantlake.writing.file_plan import FilePlan
from variantlake.writing.files import load_file

__all__ = ["MIN_ROW_GROUP_BYTES", "copy_group", "why_not_copied"]


def copy_group(table: Snapshot, files: FilePlan, group: FileGroup) -> WrittenFile | None:
    """Copy the row groups of a group's files into one file; None if they cannot be copied.

    The new file is in the table's folder, and each of its column chunks was compared with the
    source's. When anything raises, no file is left.

    Raises MalformedFile and MissingSource as `read_footer`, MalformedFile for pages that do not fit
    their footer, StoreFailed.
    """
    if any(file.tier is not Tier.COPY for file in group.files):
        return None
    try:
        sources = [_source(table, file) for file in group.files]
        if _why_not(sources) is not None:
            return None
        return _copied(files, group, sources)
    except NotMovable:
        return None


def why_not_copied(table: Snapshot, group: FileGroup) -> str | None:
    """Return why the footers forbid copying the row groups of these files, None if they do not.

    Raises MalformedFile and MissingSource as `read_footer`.
    """
    try:
        return _why_not([_source(table, file) for file in group.files])
    except NotMovable as error:
        return str(error)


def _why_not(sources: list[CopySource]) -> str | None:
    if any(leaf.node.kind == "UNKNOWN" for source in sources for leaf in source.footer.leaves):
        return "they contain a VOID column, which files must not have"
    return why_not(sources)


def _source(table: Snapshot, file: RewriteInput) -> CopySource:
    columns = table.schema.variant_columns(physical=True)
    source = open_source(table.location(file.path), file.facts, columns)
    if file.facts is not None and not _is_of(file.facts, source):
        return open_source(table.location(file.path), None, columns)
    return source


def _is_of(known: FileFacts, source: CopySource) -> bool:
    """Whether the log's facts have the size and the number of rows of this file."""
    return known.size == source.tail.size and known.num_records == source.footer.num_rows


def _copied(files: FilePlan, group: FileGroup, sources: list[CopySource]) -> WrittenFile:
    store = open_store(files.location)
    groups = [rows for source in sources for rows in source.footer.row_groups]
    codec = next((chunk.codec for rows in groups for chunk in rows.columns), "none")
    codec = codec.partition("_")[0].lower()
    name = load_file(group.number, files.load_id, uuid.uuid4().hex[:8], 0, codec)
    if isinstance(store, LocalStore):
        copied = copy_row_groups(sources, store.root / name)
        store.flush(name)
    else:
        with tempfile.TemporaryDirectory(prefix="variantlake-") as folder:
            copied = copy_row_groups(sources, Path(folder) / name)
            store.upload(name, Path(copied.path))
    return copied
