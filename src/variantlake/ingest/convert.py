"""Parquet files into a Delta table: planned here, run by somebody, committed here in one commit.

Files in the published layout stay as they are: added where they lie when that is below the table's
root, else copied byte for byte. All others are rewritten, their Variants shredded: columns of
Spark's older layout, Variants that are not marked, JSON text. See `convert_plan`.
"""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self, TypedDict, Unpack

import pyarrow as pa

from variantlake.delta.actions.log_lines import AddFile
from variantlake.delta.schema.table_schema import StructType, VariantType
from variantlake.errors import InvalidSchema, MalformedFile, StoreFailed, VariantLakeError
from variantlake.ingest.commit_load import (
    LoadResult,
    TaskResult,
    collect,
    commit_load,
    run_load_task,
)
from variantlake.ingest.convert_plan import (
    Action,
    SourceFile,
    Step,
    find_sources,
    open_target,
    plan_steps,
    read_source,
)
from variantlake.ingest.encode.encode import ColumnEncoder, VariantColumn, joined_notes
from variantlake.ingest.encode.micros import batch_in_micros, lossy_timestamp
from variantlake.ingest.encode.nested import column_encoder
from variantlake.ingest.load import LoadProgress, Runner, watcher
from variantlake.ingest.local_run import run_in_threads
from variantlake.ingest.sources.sources import SourceSpec
from variantlake.ingest.target.file_plan import FilePlan
from variantlake.ingest.target.files import load_file, new_load_id
from variantlake.ingest.target.options import LoadOptions, no_option
from variantlake.ingest.target.write_target import UNSHREDDED, Target
from variantlake.kernels.tape.tape import Tape
from variantlake.kernels.variant.profiler import profile
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.metadata.old_times import OldTimes
from variantlake.parquet.read.nanoseconds import first_below_micros
from variantlake.parquet.read.reader import iter_batches
from variantlake.parquet.stats.facts import FileFacts, read_facts
from variantlake.parquet.write.file_writer import WrittenFile
from variantlake.shredding.ddl import format_ddl, parse_ddl
from variantlake.shredding.inference.infer import InferenceOptions, infer
from variantlake.shredding.layout import check_writable
from variantlake.shredding.schema import ShreddingSchema
from variantlake.storage.opening import open_store, store_of
from variantlake.storage.store import LocalStore, Store, location_text

GROUP_BYTES = 128 << 20
"""Bytes of files that one task converts, about."""

_READERS = 8
_DRY_RUN = -1


@dataclass(frozen=True, kw_only=True, repr=False)
class ConvertResult(LoadResult):
    """What was done with which file, or would be: then `version` is -1.

    `shredding` is the DDL of each Variant column that has rewritten files.
    """

    steps: tuple[Step, ...] = ()
    shredding: Mapping[str, str] = field(default_factory=dict)

    __hash__ = LoadResult.__hash__

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing was done."""
        return self.version == _DRY_RUN

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, for JSON."""
        steps = [{**asdict(step), "action": step.action.value} for step in self.steps]
        return {**asdict(self), "steps": steps}


def convert(
    sources: SourceSpec | Iterable[SourceSpec],
    table: str | os.PathLike[str],
    *,
    json_columns: Collection[str] = (),
    variant_columns: Collection[str] = (),
    shredding: str | Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
    rewrite: bool = False,
    truncate_timestamps: bool = False,
    dry_run: bool = False,
    skip_empty: bool = True,
    progress: Callable[[LoadProgress], None] | None = None,
) -> ConvertResult:
    """Convert Parquet files into a Delta table, in one commit, in this process.

    Args:
        sources: Files, globs or folders of Parquet files, on a disk or in an object store.
        table: The table's location; it is made, with the files' columns, when there is none. A
            folder that holds the files themselves becomes a table in place.
        json_columns: Columns of JSON text that become Variants.
        variant_columns: Groups to read as Variants although neither a mark nor their members say
            so.
        shredding: DDL for the Variants of files that are rewritten, for all columns or by column.
            None takes the table's own schema, else that of the first file which is shredded, else
            one inferred from the first rows.
        properties: Table properties for a table that is made here.
        rewrite: Rewrite files too that could be added as they are.
        truncate_timestamps: Cut the digits of timestamps below microseconds, which a table does
            not hold; without it they are an error, which a dry run finds too.
        dry_run: Say what would be done with each file, and do nothing.
        skip_empty: Files of zero bytes beside others are skipped and counted, else refused.
        progress: Called a few times a second while files are converted.

    Raises:
        MissingSource, MalformedFile, MalformedVariant, InvalidJson: A file that is missing or bad,
            with file, row and path. Nothing is committed and no file is left.
        InvalidSchema: Columns that the table does not have or cannot hold.
        InvalidValue: A folder that is a Delta table.
        NotADeltaTable: The location holds other files and no log.
        UnsupportedFeature: A partitioned table, Variants inside of other columns, and what we do
            not write.
        CommitConflict: Another writer changed the table in a way that contradicts this.
    """
    request = Request.of(
        json_columns=json_columns,
        variant_columns=variant_columns,
        shredding=shredding,
        properties=properties,
        rewrite=rewrite,
        truncate_timestamps=truncate_timestamps,
        dry_run=dry_run,
        skip_empty=skip_empty,
    )
    return run_convert(
        sources,
        location_text(table),
        run_in_threads,
        request,
        progress=progress,
        parallelism=os.cpu_count() or 1,
    )


class ConvertKeywords(TypedDict, total=False):
    """The keywords that converting here and on Spark share; their meaning is that of `convert`."""

    json_columns: Collection[str]
    variant_columns: Collection[str]
    shredding: str | Mapping[str, str] | None
    properties: Mapping[str, str] | None
    rewrite: bool
    truncate_timestamps: bool
    dry_run: bool
    skip_empty: bool


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for; see `convert`."""

    json_columns: tuple[str, ...] = ()
    variant_columns: tuple[str, ...] = ()
    shredding: str | Mapping[str, str] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    rewrite: bool = False
    truncate_timestamps: bool = False
    dry_run: bool = False
    skip_empty: bool = True

    @classmethod
    def of(cls, **keywords: Unpack[ConvertKeywords]) -> Self:
        """The request as users give it. Raises InvalidValue for an option that nobody knows."""
        known = ConvertKeywords.__annotations__
        if unknown := keywords.keys() - known.keys():
            raise no_option(min(unknown), known)
        return cls(
            json_columns=tuple(keywords.get("json_columns", ())),
            variant_columns=tuple(keywords.get("variant_columns", ())),
            shredding=keywords.get("shredding"),
            properties=dict(keywords.get("properties") or {}),
            rewrite=keywords.get("rewrite", False),
            truncate_timestamps=keywords.get("truncate_timestamps", False),
            dry_run=keywords.get("dry_run", False),
            skip_empty=keywords.get("skip_empty", True),
        )


def run_convert(
    sources: SourceSpec | Iterable[SourceSpec],
    table: str,
    run: Runner,
    request: Request,
    *,
    progress: Callable[[LoadProgress], None] | None,
    parallelism: int,
) -> ConvertResult:
    """Convert with somebody who runs the tasks; see `convert`."""
    started = time.perf_counter()
    named = find_sources(sources)
    given = [source for source in named if source.size]
    empty = [source for source in named if not source.size]
    if empty and not (given and request.skip_empty):
        raise MalformedFile(
            "the file is empty",
            file=empty[0].path,
            hint="skip_empty=True leaves such files out, and counts them" if given else "",
            cli_hint="--skip-empty leaves such files out, and counts them" if given else "",
        )
    with ThreadPoolExecutor(_READERS) as pool:
        files = list(pool.map(lambda source: _read(source, request), given))
    target = open_target(table, files, request.properties)
    steps = plan_steps(files, target, rewrite=request.rewrite)
    if request.dry_run:
        _check_timestamps(steps, request)
        _check_old_times(steps, request)
        rows = sum(step.rows for step in steps)
        return ConvertResult(version=_DRY_RUN, rows=rows, steps=steps, empty_sources=len(empty))
    target, schemas = _with_shredding(target, files, steps, request)
    ddl = {name: format_ddl(schema) for name, schema in schemas.items()}
    work = [step for step in steps if step.action is not Action.SKIP]
    if not work and target.snapshot is not None:
        return ConvertResult(version=target.snapshot.version, steps=steps, empty_sources=len(empty))
    options = LoadOptions()
    task = ConvertTask(
        files=target.file_plan(new_load_id(), options),
        request=replace(request, shredding=None),
        schemas=schemas,
        groups=_groups(work, parallelism),
    )
    watch = watcher(task, target.store, progress)
    results = collect(task.files, target, lambda: run(task, watch))
    done = commit_load(target, task.files, results, options, started, empty_sources=len(empty))
    common = {each.name: getattr(done, each.name) for each in fields(LoadResult)}
    return ConvertResult(**common, steps=steps, shredding=ddl)


def _read(source: Any, request: Request) -> SourceFile:
    return read_source(source, request.json_columns, request.variant_columns)


def _check_timestamps(steps: Sequence[Step], request: Request) -> None:
    """Raise what rewriting files would raise for their timestamps."""
    if request.truncate_timestamps:
        return
    for step in steps:
        if step.action is Action.REWRITE and (
            found := first_below_micros(step.path, request.variant_columns)
        ):
            error = lossy_timestamp(*found)
            error.file = step.path
            raise error


def _check_old_times(steps: Sequence[Step], request: Request) -> None:
    """Raise what rewriting files would raise for dates and timestamps of older writers."""
    for step in steps:
        if step.action is not Action.REWRITE:
            continue
        footer = read_footer(step.path)
        old = OldTimes.of(footer)
        columns = [top.name for top in footer.schema.children if old.concern([*top.leaves()])]
        if columns:
            batches = iter_batches(
                step.path, columns=columns, variant_columns=request.variant_columns
            )
            for _ in batches:
                pass


def _groups(steps: Sequence[Step], parallelism: int) -> tuple[tuple[Step, ...], ...]:
    """The files of each task, in order."""
    total = sum(step.size for step in steps)
    limit = min(GROUP_BYTES, total // max(parallelism, 1) + 1)
    groups: list[list[Step]] = []
    filled = 0
    for step in steps:
        if not groups or filled + step.size > limit:
            groups.append([])
            filled = 0
        groups[-1].append(step)
        filled += step.size
    return tuple(map(tuple, groups))


# --- Shredding ------------------------------------------------------------------------------------


def _with_shredding(
    target: Target, files: Sequence[SourceFile], steps: Sequence[Step], request: Request
) -> tuple[Target, dict[str, ShreddingSchema]]:
    """The schemas of the columns that have rewritten files; the table keeps them."""
    rewritten = [
        file for file, step in zip(files, steps, strict=True) if step.action is Action.REWRITE
    ]
    schemas: dict[str, ShreddingSchema] = {}
    variants = [each for each in target.schema.fields if isinstance(each.type, VariantType)]
    _check_requested(request.shredding, {each.name for each in variants}, target)
    for each in variants:
        having = [file for file in rewritten if each.name in file.arrow.names]
        if not having:
            continue
        requested = request.shredding
        text = requested.get(each.name) if isinstance(requested, Mapping) else requested
        own = target.shredding(each.physical_name)
        schema = parse_ddl(text) if text is not None else own
        if schema is None:
            schema = _schema_of_files(files, each.name) or _inferred(having[0], each.name, target)
        schemas[each.name] = schema
        if schema != own:
            target = target.with_shredding(each.physical_name, schema, requested=text is not None)
    return target, schemas


def _check_requested(
    requested: str | Mapping[str, str] | None, columns: Collection[str], target: Target
) -> None:
    if requested is None:
        return
    for name in requested if isinstance(requested, Mapping) else ():
        if name not in columns:
            raise InvalidSchema(
                f"{name!r} is not a VARIANT column of the table", file=target.store.uri
            )
    texts = requested.values() if isinstance(requested, Mapping) else [requested]
    if not target.shredding_enabled and any(parse_ddl(text) != UNSHREDDED for text in texts):
        raise InvalidSchema(
            "the table does not allow shredded files",
            file=target.store.uri,
            hint="set its property delta.enableVariantShredding to true",
        )


def _schema_of_files(files: Sequence[SourceFile], column: str) -> ShreddingSchema | None:
    """How the first file that shreds the column does it, if that may be written."""
    for file in files:
        schema = file.shredding(column)
        if schema is None:
            continue
        try:
            check_writable(schema)
        except InvalidSchema:
            continue
        return schema
    return None


def _inferred(file: SourceFile, column: str, target: Target) -> ShreddingSchema:
    """From the first rows of a file."""
    found = UNSHREDDED

    def decide(tape: Tape) -> ShreddingSchema:
        nonlocal found
        found = infer(profile(tape), options).schema
        return found

    own = target.schema.get(column)
    if own is None:
        return found
    options = target.inference(own.physical_name, InferenceOptions())
    from_json = column in file.json
    try:
        for batch in iter_batches(file.source.path, columns=[column]):
            given = batch.schema.field(0).type
            VariantColumn(own, given, decide, from_json=from_json).encode(batch.column(0))
            break
    except VariantLakeError as error:
        error.file = error.file or file.source.path
        raise
    return found


# --- The tasks ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConvertTask:
    """What the tasks of one conversion have in common, and the body of each; pickles.

    `groups` are the files by task number, `schemas` the shredding by column.
    """

    files: FilePlan
    request: Request
    schemas: Mapping[str, ShreddingSchema]
    groups: tuple[tuple[Step, ...], ...]

    def __call__(self, number: int) -> Iterable[bytes]:
        """Run one task."""
        return run_load_task(self.files, number, lambda check: self._convert(number, check))

    def _convert(self, number: int, check: Callable[[], None]) -> TaskResult:
        first = sum(len(group) for group in self.groups[:number])
        adds: list[AddFile] = []
        rows = 0
        for place, step in enumerate(self.groups[number], start=first):
            check()
            try:
                for path, facts in self._convert_file(place, step, check):
                    adds.append(self.files.add_at(path, facts))
                    rows += facts.num_records
            except VariantLakeError as error:
                error.file = error.file or step.path
                raise
        return TaskResult(tuple(adds), rows)

    def _convert_file(
        self, place: int, step: Step, check: Callable[[], None]
    ) -> Iterable[tuple[str, FileFacts]]:
        """The files that come of one, by their paths in the table."""
        if step.action is Action.ADD:
            return [(step.inside, read_facts(step.path))]
        if step.action is Action.COPY:
            name = load_file(place, self.files.load_id, uuid.uuid4().hex[:8], 0, "copied")
            _copy(step.path, open_store(self.files.location), name)
            return [(name, read_facts(step.path))]
        return [(Path(file.path).name, file.facts) for file in self._rewrite(place, step, check)]

    def _rewrite(self, place: int, step: Step, check: Callable[[], None]) -> list[WrittenFile]:
        _check_timestamps([step], self.request)
        batches = iter_batches(step.path, variant_columns=self.request.variant_columns)
        if self.request.truncate_timestamps:
            batches = map(batch_in_micros, batches)
        first = next(batches)
        encoders = self._encoders(first.schema)
        rows = 0
        stored = self._encode(first, encoders, rows)
        variants = [path for _, each in encoders for path in each.variants]
        with self.files.file_set(place, stored.schema, variants, check) as files:
            while True:
                files.write(stored, joined_notes(encoder for _, encoder in encoders))
                rows += stored.num_rows
                check()
                batch = next(batches, None)
                if batch is None:
                    break
                stored = self._encode(batch, encoders, rows)
            return files.close()

    def _encoders(self, given: pa.Schema) -> list[tuple[str, ColumnEncoder]]:
        table: StructType = self.files.schema
        found: list[tuple[str, ColumnEncoder]] = []
        for item in given:
            own = table.get(item.name)
            if own is None:
                raise InvalidSchema(f"the table has no column {item.name!r}")
            if not isinstance(own.type, VariantType):
                found.append((item.name, column_encoder(own, item.type)))
                continue
            schema = self.schemas[item.name]
            from_json = item.name in self.request.json_columns
            encoder = VariantColumn(own, item.type, _always(schema), from_json=from_json)
            found.append((item.name, encoder))
        return found

    @staticmethod
    def _encode(
        batch: pa.RecordBatch, encoders: Sequence[tuple[str, ColumnEncoder]], rows: int
    ) -> pa.RecordBatch:
        try:
            columns = [encoder.encode(batch.column(name)) for name, encoder in encoders]
        except VariantLakeError as error:
            error.row = rows + (error.row or 0)
            raise
        return pa.record_batch(columns, names=[encoder.name for _, encoder in encoders])


def _always(schema: ShreddingSchema) -> Callable[[Tape], ShreddingSchema]:
    return lambda _: schema


def _copy(path: str, store: Store, name: str) -> None:
    source, inside = store_of(path)
    if isinstance(source, LocalStore):
        store.upload(name, Path(path))
        return
    with tempfile.TemporaryDirectory(prefix="variantlake-") as folder:
        file = Path(folder) / "copied"
        try:
            with file.open("wb") as sink:
                for piece in source.stream(inside):
                    sink.write(piece)
        except VariantLakeError:
            raise  # some are OSErrors too
        except OSError as error:
            raise StoreFailed(f"the file cannot be copied: {error}", file=path) from error
        store.upload(name, file)
