"""Append a Spark DataFrame to a table: tasks shred and write their own rows, the driver commits."""

from __future__ import annotations

import itertools
import os
import pickle
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Unpack

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from variantlake.arrow.append import write_rows
from variantlake.arrow.encode import VariantColumn
from variantlake.arrow.files import new_load_id
from variantlake.arrow.landing import LoadResult, TaskResult, collect, found, guarded, land
from variantlake.arrow.options import LoadKeywords, LoadOptions
from variantlake.arrow.overwriting import Overwrite
from variantlake.arrow.rows import TableRows, check_columns
from variantlake.arrow.target import READER_FEATURES, UNSHREDDED, FilePlan, Target
from variantlake.delta.schema import StructField, VariantType
from variantlake.delta.snapshot import Snapshot
from variantlake.errors import InvalidSchema
from variantlake.kernels.profiler import profile
from variantlake.shredding.infer import InferenceOptions, infer
from variantlake.shredding.profile import Profile
from variantlake.shredding.schema import ShreddingSchema
from variantlake.spark.constraints import evaluated, refusals
from variantlake.spark.jobs import run_over

SAMPLE_ROWS = 4096
"""Rows that the inference of a shredding schema looks at."""


def append(
    spark: SparkSession,
    frame: DataFrame,
    table: str | os.PathLike[str],
    *,
    json_columns: Collection[str] = (),
    overwrite: Overwrite | None = None,
    **options: Unpack[LoadKeywords],
) -> LoadResult:
    """Append the rows of a DataFrame to a table, in one commit.

    Each Spark task takes its partition's rows in Arrow, shreds the VARIANT columns and writes
    Parquet files itself. Columns go by name; those that are left out are generated, get their
    default, or NULL. The table's constraints are checked by Spark, on paths of Variants too.

    Args:
        spark: The session, classic or Connect.
        frame: The rows. VARIANT columns are taken as they are.
        table: The table's location.
        json_columns: VARIANT columns of the table that the frame gives as JSON text (STRING).
        overwrite: The rows take the place of these rows; None adds them.
        **options: What becomes of bad documents, a load id, the order and size of files: see
            `LoadOptions`. Where a VARIANT column has no shredding schema yet, one is inferred from
            a sample, for which the frame's plan runs once more.

    Raises:
        InvalidSchema: The frame does not fit the table's columns.
        InvalidJson, MalformedVariant, InvalidValue, LimitExceeded: A bad value, with its row in the
            task's part of the frame. Nothing is committed and no file is left.
        NotADeltaTable: There is no table.
        UnsupportedFeature: The table needs a feature that we do not write.
        CommitConflict: Another writer changed the table in a way that contradicts this.
        MissingDependency: The executors' Python has no `variantlake`.
    """
    started = time.perf_counter()
    chosen = LoadOptions.of(**options)
    snapshot = Snapshot.load(table, applies=READER_FEATURES)
    replacing = None if overwrite is None else overwrite.of(snapshot)
    target = replace(Target.of(snapshot, evaluated=True), replacing=replacing)
    if (known := found(target, chosen)) is not None:
        return known
    frame, json_columns = evaluated(frame, snapshot, json_columns)
    check_columns(frame.columns, target.schema.fields, json_columns, target.store.uri)
    _check_variants(frame, target, json_columns)
    shreddings = target.shreddings()
    with refusals():
        shreddings |= _inferred(spark, frame, target, json_columns, chosen.inference)
    task = AppendTask(
        plan=target.file_plan(new_load_id(), chosen),
        shreddings=shreddings,
        json_columns=frozenset(json_columns),
        inference=chosen.inference,
    )
    description = f"variantlake: append to {os.fspath(table)}"
    with refusals():
        results = collect(
            task.plan, target, lambda: run_over(spark, frame, task, description=description)
        )
    if replacing is None and not any(result.adds or result.bad_rows for result in results):
        return LoadResult(version=snapshot.version)
    return land(target.with_shreddings(shreddings), task.plan, results, chosen, started)


@dataclass(frozen=True, slots=True)
class AppendTask:
    """What the tasks of one append have in common, and the body of each; pickles."""

    plan: FilePlan
    shreddings: dict[str, ShreddingSchema]
    json_columns: frozenset[str]
    inference: InferenceOptions

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterable[bytes]:
        """Write the rows of one partition."""
        # On an executor; a client of Spark Connect need not have it.
        from pyspark import TaskContext

        first = next(batches, None)
        if first is None:
            return ()
        context = TaskContext.get()
        number = 0 if context is None else context.partitionId()
        every = itertools.chain([first], batches)
        return guarded(
            self.plan, number, lambda check: self._write(number, first.schema, every, check)
        )

    def _write(
        self,
        number: int,
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        check: Callable[[], None],
    ) -> TaskResult:
        with self.plan.bad_row_log(number) as bad_rows:
            rows = TableRows(
                schema,
                batches,
                self.plan,
                shreddings=self.shreddings,
                json_columns=self.json_columns,
                bad_rows=bad_rows,
                inference=self.inference,
            )
            return write_rows(rows, self.plan, number, check)


def _check_variants(frame: DataFrame, target: Target, json_columns: Collection[str]) -> None:
    """Raise InvalidSchema for a column that should be a Variant, or JSON text, and is not."""
    for field in target.schema.fields:
        if not isinstance(field.type, VariantType) or field.name not in frame.columns:
            continue
        given = frame.schema[field.name].dataType.simpleString()
        wanted = ("string",) if field.name in json_columns else _VARIANTS
        if given not in wanted:
            raise InvalidSchema(
                f"column {field.name!r} is a VARIANT; it is given as {given}, expected {wanted[0]}",
                hint="name columns of JSON text in json_columns",
            )


_VARIANTS = (
    "variant",
    "struct<metadata:binary,value:binary>",
    "struct<value:binary,metadata:binary>",
)


def _inferred(
    spark: SparkSession,
    frame: DataFrame,
    target: Target,
    json_columns: Collection[str],
    inference: InferenceOptions,
) -> dict[str, ShreddingSchema]:
    """Schemas for the VARIANT columns that have none, from a sample of the rows."""
    known = target.shreddings()
    fields = [
        field
        for field in target.schema.fields
        if isinstance(field.type, VariantType)
        and field.physical_name not in known
        and field.name in frame.columns
    ]
    if not fields:
        return {}
    sampler = _Sampler(tuple(fields), frozenset(json_columns))
    sample = frame.select(*(sf.col(_quoted(field.name)) for field in fields)).limit(SAMPLE_ROWS)
    merged = {field.physical_name: Profile() for field in fields}
    for payload in run_over(spark, sample, sampler, description="variantlake: sample"):
        for name, part in pickle.loads(payload).items():  # noqa: S301 - of our own tasks
            merged[name].merge(part)
    return {name: infer(found, inference).schema for name, found in merged.items()}


@dataclass(frozen=True, slots=True)
class _Sampler:
    """Profiles the VARIANT columns of a sample; pickles."""

    fields: tuple[StructField, ...]
    json_columns: frozenset[str]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
        for batch in batches:
            profiles = {}
            for field in self.fields:
                column = batch.column(field.name)
                encoder = VariantColumn(
                    field,
                    column.type,
                    lambda _: UNSHREDDED,
                    from_json=field.name in self.json_columns,
                )
                # What is bad is left out here: the append itself reports it.
                profiles[field.physical_name] = profile(encoder.tape(column))
            yield pickle.dumps(profiles)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
