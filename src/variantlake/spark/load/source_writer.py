"""Writers of `format("variantlake")`: tasks shred and write their rows, the driver commits once.

Spark creates a writer in a Python process on the driver. This writer plans the write and is sent to
the tasks. Another writer, in another process, commits their results.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructField, StructType

from variantlake.contracts.contract import contract_texts
from variantlake.delta.actions.commit_properties import committed_with
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.properties import constraints
from variantlake.errors import CommitConflict, StoreFailed, UnsupportedFeature, VariantLakeError
from variantlake.ingest.commit_load import commit_load, find_committed_load
from variantlake.ingest.encode.rows import check_columns
from variantlake.ingest.learning.relearn import relearned
from variantlake.jobs.tasks import TaskFailure, TaskResult, delete_strays, sort_results
from variantlake.shredding.schema import ShreddingSchema
from variantlake.spark.load.append_target import (
    check_texts,
    columns_of,
    in_schema,
    target_of,
    text_columns,
)
from variantlake.spark.load.append_task import AppendTask, partition_number
from variantlake.spark.load.constraints import has_expressions
from variantlake.spark.load.sink_options import SinkOptions
from variantlake.storage.opening import open_store
from variantlake.storage.options import take_options
from variantlake.writing.file_plan import FilePlan
from variantlake.writing.files import delete_load, new_load_id
from variantlake.writing.quarantine import delete_quarantine
from variantlake.writing.table_write import READER_FEATURES, TableWrite

_LOG = logging.getLogger("variantlake.load")

QUERY_ID = "sql.streaming.queryId"
"""The local property with the id of a task's query, which the query keeps in its checkpoint."""


@dataclass(frozen=True, slots=True)
class WrittenPart(WriterCommitMessage):
    """The message of one task of a batch to the driver.

    `stream` is the query's own id. `plan` is the plan of the files, and `table` the id of the table
    when it was made, empty if there was none. `shreddings` are the schemas of VARIANT columns,
    with inferred ones.
    """

    outcome: TaskResult | TaskFailure
    stream: str
    plan: FilePlan
    table: str
    shreddings: Mapping[str, ShreddingSchema]


class SourceWriter:
    """Plans a write, and writes the rows of tasks. Pickles without the table's snapshot.

    `hint` says how to write to a table that the sink does not support.
    """

    hint: ClassVar[str]

    def __init__(self, options: SinkOptions, schema: StructType, stores: Mapping[str, str]) -> None:
        """Plan a write of rows with the columns of `schema`. Raises as `append`, before any row."""
        self._options = options
        self._stores = dict(stores)
        self._target: TableWrite | None = self.target(options, schema)
        target = self._target
        names = in_schema(schema.names, target.schema)
        renamed = StructType(
            [
                StructField(name, field.dataType)
                for name, field in zip(names, schema.fields, strict=True)
            ]
        )
        json_columns = text_columns(renamed, target.schema, options.json_columns)
        check_columns(names, target.schema.fields, json_columns, target.store.uri)
        check_texts(renamed, target, json_columns)
        self._names = list(names)
        self._table = "" if target.snapshot is None else target.snapshot.metadata.id
        self._task = AppendTask(
            plan=target.load_plan(new_load_id(), options.load),
            shreddings=target.shreddings(),
            json_columns=frozenset(json_columns),
            inference=options.load.inference,
        )

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_target": None}

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenPart:
        """Write the rows of one partition; returns errors about rows instead of raising them.

        A raised error would make Spark repeat the task. Only StoreFailed is raised, because a
        second attempt may succeed.
        """
        from pyspark import TaskContext

        take_options(self._stores)
        context = TaskContext.get()
        number = partition_number()
        stream = "" if context is None else context.getLocalProperty(QUERY_ID) or ""
        shreddings: Mapping[str, ShreddingSchema] = {}
        outcome: TaskResult | TaskFailure
        try:
            batches = (batch.rename_columns(self._names) for batch in iterator)
            outcome, shreddings = self._task.written(number, batches, None)
        except StoreFailed:
            raise
        except VariantLakeError as error:
            outcome = TaskFailure(number, error)
        return WrittenPart(outcome, stream, self._task.plan, self._table, shreddings)

    @classmethod
    def target(cls, options: SinkOptions, schema: StructType) -> TableWrite:
        """Return the table to write to, or the one to make.

        Raises UnsupportedFeature for a table with SQL expressions, otherwise as `append`.
        """
        target = target_of(schema, options.location, options.json_columns, options.new)
        if has_expressions(target):
            raise UnsupportedFeature(
                "the table has constraints, defaults or generated columns, which the sink cannot "
                "evaluate",
                file=target.store.uri,
                hint=cls.hint,
                cli_hint="",
            )
        if options.overwrite is not None:
            target = options.overwrite.applied(target)
        if options.merge_schema:
            target = target.with_columns(columns_of(schema, options.json_columns))
        return relearned(target)

    def give_up(self, messages: Sequence[WriterCommitMessage | None], what: str) -> None:
        """Remove the files of a write in which a task failed; `what` names the write in the log.

        If all tasks have finished, the commit failed. It left no files, or cannot tell whether the
        log names them, so they stay. Files of tasks without a message are left to VACUUM.
        """
        parts = [each for each in messages if isinstance(each, WrittenPart)]
        if len(parts) == len(messages):
            return
        for part in parts[:1]:
            store = open_store(part.plan.location)
            count = delete_load(store, part.plan.load_id)
            delete_quarantine(store, part.plan.load_id)
            _LOG.info("%s: %s was given up, removed files %d", store.uri, what, count)


class TableBatchWriter(SourceWriter, DataSourceArrowWriter):  # type: ignore[misc] # as PySpark's own
    """Writes the rows of a DataFrame in one commit: `df.write.format("variantlake").save(path)`.

    An overwrite replaces rows of the version that it was planned on. If another writer adds rows to
    those, the commit raises CommitConflict.
    """

    hint = "vl.spark.connect(spark).append(path, frame) can, and .overwrite"

    def __init__(self, options: SinkOptions, schema: StructType, stores: Mapping[str, str]) -> None:
        """Plan a write of rows with the columns of `schema`. Raises as `append`, before any row."""
        super().__init__(options, schema, stores)
        self._schema = schema
        target = self._target
        if options.overwrite is not None and target is not None and target.snapshot is not None:
            planned = replace(options.overwrite, expected_version=target.snapshot.version)
            self._options = replace(options, overwrite=planned)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit the rows. Raises the first error of the rows, CommitConflict; no file stays."""
        started = time.perf_counter()
        take_options(self._stores)
        plan, options = self._task.plan, self._options
        parts = [each for each in messages if isinstance(each, WrittenPart)]
        target = self.target(options, self._schema)
        try:
            results = sort_results(part.outcome for part in parts)
            if find_committed_load(target, options.load) is not None:
                target.clean_up(plan.load_id)
                return
            for part in parts[:1]:
                check_same(target, part, "the rows were written", "write them again")
        except VariantLakeError:
            target.clean_up(plan.load_id)
            raise
        delete_strays(target, plan, results)
        nothing = not any(each.adds or each.bad_rows for each in results)
        if nothing and target.replacing is None and target.snapshot is not None:
            return
        landed = target.with_shreddings(shreddings_of(parts)) if parts else target
        with committed_with(options.user_metadata):
            commit_load(landed, plan, results, options.load, started)
            compact(landed, options.auto_compact)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove the files of a write in which a task failed."""
        take_options(self._stores)
        self.give_up(messages, "a write")


def check_same(target: TableWrite, part: WrittenPart, meanwhile: str, hint: str) -> None:
    """Raise CommitConflict if the table is no longer the one that the files were written for."""
    plan = part.plan
    snapshot = target.snapshot
    fits = (
        (not part.table or (snapshot is not None and snapshot.metadata.id == part.table))
        and plan.schema == target.schema
        and plan.partition_columns == target.partition_columns
        and constraints(plan.properties) == constraints(target.properties)
        and contract_texts(plan.properties) == contract_texts(target.properties)
    )
    if not fits:
        raise CommitConflict(
            f"the table was changed while {meanwhile}",
            file=target.store.uri,
            hint=hint,
            cli_hint="",
        )


def shreddings_of(parts: Sequence[WrittenPart]) -> Mapping[str, ShreddingSchema]:
    """Return the schemas of the task with the most rows: in a first batch each task infers some."""

    def rows(part: WrittenPart) -> int:
        return part.outcome.rows if isinstance(part.outcome, TaskResult) else 0

    return max(parts, key=rows).shreddings


def compact(target: TableWrite, asked: bool | None) -> None:
    """Join small files on the driver's cores, if `asked` or else the table's properties say so."""
    # Loads the engine that rewrites files, so only on demand.
    from variantlake.autoloading.auto_compact import compact_small_files, is_wanted
    from variantlake.jobs.threads import run_in_threads

    if not is_wanted(target.properties, asked):
        return

    newest = Snapshot.read(target.store.uri, store=target.store, applies=READER_FEATURES)
    compact_small_files(newest, run_in_threads)
