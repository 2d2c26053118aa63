"""Rewrite one group of files, in a thread or a Spark task; all arguments pickle."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import Self

from variantlake.delta.actions.actions import AddFile
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.row_tracking import RowIdColumns
from variantlake.errors import MalformedFile
from variantlake.jobs.tasks import TaskResult
from variantlake.maintenance.rewrite.cell_rows import CellRows
from variantlake.maintenance.rewrite.copy_group import copy_group
from variantlake.maintenance.rewrite.gather_rows import Gathered
from variantlake.maintenance.rewrite.groups import (
    APART_TAG,
    FileGroup,
    InputCounts,
    Tier,
    TierCounts,
)
from variantlake.maintenance.rewrite.proof import RewriteProof
from variantlake.maintenance.rewrite.stored_rows import InputRows, StoredForm, StoredRows
from variantlake.parquet.write.file_writer import WrittenFile
from variantlake.writing.file_plan import FilePlan
from variantlake.writing.files import FileSet, new_load_id
from variantlake.writing.options.file_sizes import TARGET_FILE_BYTES, FileLimits
from variantlake.writing.options.load_options import LoadOptions
from variantlake.writing.table_write import TableWrite

Check = Callable[[], None]
"""A task calls it now and then; it stops the task by raising."""


@dataclass(frozen=True, slots=True)
class RewritePlan:
    """How to rewrite files of one table version; pickles.

    `table` is the version without its files. `files` is the plan of new files; its schema may have
    other physical names than the one of `table`. With `digest`, a RewriteProof compares the rows
    read and written.
    """

    table: Snapshot
    files: FilePlan
    row_ids: RowIdColumns | None = None
    digest: bool = True

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        *,
        target_file_size: int = TARGET_FILE_BYTES,
        digest: bool = True,
    ) -> Self:
        """Make the plan for a table.

        Raises UnsupportedFeature, by name, for a table that we must not write, MalformedLog for one
        whose row ids cannot be kept, InvalidValue for a size below 1.
        """
        # A group becomes about one file. Sizes are estimates, and must not leave a tiny rest.
        limits = FileLimits(target_file_size + target_file_size // 2)
        target = TableWrite.of(snapshot, evaluated=True, kept=True)
        options = LoadOptions(limits=limits)
        return cls(
            snapshot.without_files(),
            # No sorting: it would finish joined files early, at smaller sizes.
            replace(target.file_plan(new_load_id(), options), cluster_by=()),
            RowIdColumns.of(snapshot.properties),
            digest,
        )

    def partition_values(self, group: FileGroup) -> dict[str, str | None]:
        """Return the partition values of a group's new files, by their physical names."""
        before, after = self.table.schema.fields, self.files.schema.fields
        pairs = zip(before, after, strict=True)
        names = {old.physical_name: new.physical_name for old, new in pairs}
        return {names.get(name, name): text for name, text in group.partition_values.items()}

    def another(self) -> RewritePlan:
        """Return the same plan with a new load id, because clean-ups delete files by load id."""
        return replace(self, files=replace(self.files, load_id=new_load_id()))


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenGroup(TaskResult):
    """The result of a group. Bytes are those of its input files and of the new ones.

    `tiers` counts input files and rows by how they were rewritten.
    """

    number: int
    bytes_read: int
    bytes_written: int
    tiers: TierCounts


def rewrite_group(
    plan: RewritePlan, group: FileGroup, check: Check | None = None
) -> RewrittenGroup:
    """Write the rows of a group's files, without deleted rows, to new files.

    It commits nothing. The new files are in the table's folder under the plan's load id; when
    anything raises, none of this call's files is left. Memory use is that of a row group.

    Raises MalformedFile, MalformedVariant and MissingSource with file and row, StoreFailed.
    """
    copied = copy_group(plan.table, plan.files, group)
    if copied is not None:
        rows = copied.facts.num_records
        counts = InputCounts(len(group.files), group.bytes, rows)
        return _result(plan, group, {group.apart: [copied]}, rows, {Tier.COPY: counts})
    partitions, stored = plan.files.partition_columns, plan.files.schema
    form = StoredForm.of(plan.table.schema, partitions, group, plan.row_ids, new=stored)
    proof = None
    if plan.digest:
        as_stored = all(file.tier is not Tier.SHRED for file in group.files)
        proof = RewriteProof(plan.table, group.partition_values, as_stored=as_stored, new=stored)
    source = InputRows(plan.table, form, proof, cells=group.cells, check=check)
    with ExitStack() as stack, _sink(group, form) as cells:
        outputs = _Outputs(plan, group, form, stack, check=check, proof=proof)
        write = outputs.write if cells is None else cells.add
        for each in source.of(group.files):
            write(each)
        if cells is not None:
            cells.write(outputs.write, outputs.finish)
        written = outputs.close()
        kept = sum(file.facts.num_records for own in written.values() for file in own)
        if kept != source.rows:
            raise MalformedFile(
                f"{source.rows} rows were read and {kept} written",
                file=group.files[0].path,
                hint="internal error; please report it",
            )
        if proof is not None:
            new = [each for own in written.values() for each in own]
            proof.check([(file.path, file.vector) for file in group.files], new)
    return _result(plan, group, written, source.rows, source.tiers)


_Written = Mapping[int, list[WrittenFile]]
"""New files by a number as `FileGroup.apart`: files of different numbers are not joined."""


def _result(
    plan: RewritePlan, group: FileGroup, written: _Written, rows: int, tiers: TierCounts
) -> RewrittenGroup:
    return RewrittenGroup(
        adds=tuple(_adds(plan, group, written)),
        rows=rows,
        number=group.number,
        bytes_read=group.bytes,
        bytes_written=sum(each.size for files in written.values() for each in files),
        tiers=tiers,
    )


def _adds(plan: RewritePlan, group: FileGroup, written: _Written) -> Iterator[AddFile]:
    for apart, files in written.items():
        more = {**group.tags, **({APART_TAG: str(apart)} if apart else {})}
        for file in files:
            if file.facts.num_records:
                add = plan.files.add(file, plan.partition_values(group))
                yield replace(add, tags={**(add.tags or {}), **more}, data_change=False)


def _sink(group: FileGroup, form: StoredForm) -> AbstractContextManager[CellRows | None]:
    """Return the collector of rows by cell, None for a group without cells."""
    return nullcontext() if group.cells is None else CellRows(group.cells, form.variants)


class _Outputs:
    """The new files of a group: nearly always one set, and one more for rows that stay apart."""

    def __init__(
        self,
        plan: RewritePlan,
        group: FileGroup,
        form: StoredForm,
        stack: ExitStack,
        *,
        check: Check | None,
        proof: RewriteProof | None,
    ) -> None:
        """Leaving the `stack` removes files that are still open."""
        self._plan, self._group, self._form, self._check = plan, group, form, check
        self._watch = proof.written if proof is not None and proof.sees_writing else None
        self._stack = stack
        self._sets: dict[Hashable, tuple[FileSet, Gathered]] = {}
        self._finished: dict[int, list[WrittenFile]] = {}

    def write(self, rows: StoredRows) -> None:
        """Add rows to the set of files that they may share."""
        found = self._sets.get(rows.apart)
        if found is None:
            found = self._begin(rows.apart)
        found[1].add(rows.batch, rows.notes)

    def _begin(self, apart: Hashable) -> tuple[FileSet, Gathered]:
        if apart is not None:  # at most two sets at a time, so that memory is bounded
            for other in [each for each in self._sets if each is not None]:
                self._end(other)
        opened = self._plan.files.file_set(
            self._group.number,
            self._form.schema,
            self._form.variants,
            self._check,
            partition_values=self._plan.partition_values(self._group),
        )
        opened.watch = self._watch
        self._stack.enter_context(opened)
        self._sets[apart] = opened, Gathered(opened.write)
        return self._sets[apart]

    def _end(self, apart: Hashable) -> None:
        files, waiting = self._sets.pop(apart)
        waiting.flush()
        number = self._group.apart + (apart is not None)
        self._finished.setdefault(number, []).extend(files.close())

    def finish(self) -> None:
        """Finish the open files; later rows go into new files."""
        for each in list(self._sets):
            self._end(each)

    def close(self) -> _Written:
        """Finish the last files; returns all files."""
        self.finish()
        return self._finished
