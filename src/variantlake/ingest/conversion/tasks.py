"""The tasks of a conversion: each adds, copies or rewrites its files.

What rewriting a file would refuse is found by a dry run too, without writing.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from variantlake.delta.actions.actions import AddFile
from variantlake.delta.schema.table_schema import StructType, VariantType
from variantlake.errors import InvalidSchema, StoreFailed, VariantLakeError, in_file
from variantlake.ingest.commit_load import TaskResult, run_load_task
from variantlake.ingest.conversion.plan import Action, Step
from variantlake.ingest.conversion.request import Request
from variantlake.ingest.encode.encode import ColumnEncoder, VariantColumn, joined_notes
from variantlake.ingest.encode.micros import batch_in_micros, lossy_timestamp
from variantlake.ingest.encode.nested import column_encoder
from variantlake.ingest.target.file_plan import FilePlan
from variantlake.ingest.target.files import load_file
from variantlake.kernels.tape.tape import Tape
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.metadata.old_times import OldTimes
from variantlake.parquet.read.nanoseconds import first_below_micros
from variantlake.parquet.read.reader import iter_batches
from variantlake.parquet.stats.facts import FileFacts, read_facts
from variantlake.parquet.write.file_writer import WrittenFile
from variantlake.shredding.schema import ShreddingSchema
from variantlake.storage.opening import open_store, store_of
from variantlake.storage.store import LocalStore, Store


def check_timestamps(steps: Sequence[Step], request: Request) -> None:
    """Raise what rewriting files would raise for their timestamps."""
    if request.truncate_timestamps:
        return
    for step in steps:
        if step.action is Action.REWRITE and (
            found := first_below_micros(step.path, request.variant_columns)
        ):
            with in_file(step.path):
                raise lossy_timestamp(*found)


def check_old_times(steps: Sequence[Step], request: Request) -> None:
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
            with in_file(step.path):
                for path, facts in self._convert_file(place, step, check):
                    adds.append(self.files.add_at(path, facts))
                    rows += facts.num_records
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
        check_timestamps([step], self.request)
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
            if error.row is not None:
                error.row += rows
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
