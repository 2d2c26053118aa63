"""The tasks of a conversion, which add, copy or rewrite their files.

A dry run also finds values that rewriting a file would refuse, without writing.
"""

from __future__ import annotations

import itertools
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from variantlake.delta.actions.actions import AddFile
from variantlake.errors import VariantLakeError, in_file
from variantlake.ingest.conversion.plan import Action, Step
from variantlake.ingest.conversion.request import Request
from variantlake.ingest.encode.micros import lossy_timestamp
from variantlake.ingest.encode.rows import TableRows
from variantlake.jobs.tasks import TaskResult, run_task
from variantlake.jobs.write_rows import write_rows
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.metadata.old_times import OldTimes
from variantlake.parquet.read.nanoseconds import first_below_micros
from variantlake.parquet.read.reader import iter_batches
from variantlake.parquet.stats.facts import read_facts
from variantlake.shredding.inference.infer import InferenceOptions
from variantlake.shredding.schema import ShreddingSchema
from variantlake.storage.opening import open_store, store_of
from variantlake.storage.store import LocalStore, Store
from variantlake.storage.unreachable import disk_failure
from variantlake.writing.file_plan import FilePlan
from variantlake.writing.files import load_file


def check_timestamps(steps: Sequence[Step], request: Request) -> None:
    """Raise the errors that rewriting files would raise for their timestamps."""
    if request.truncate_timestamps:
        return
    for step in steps:
        if step.action is Action.REWRITE and (
            found := first_below_micros(step.path, request.variant_columns)
        ):
            with in_file(step.path):
                raise lossy_timestamp(*found)


def check_old_times(steps: Sequence[Step], request: Request) -> None:
    """Raise the errors of rewriting for dates and timestamps of older writers."""
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
    """The plan of a conversion, which runs any of its tasks; pickles.

    `groups` are the files by task number, `schemas` the shredding by physical name.
    """

    files: FilePlan
    request: Request
    schemas: Mapping[str, ShreddingSchema]
    groups: tuple[tuple[Step, ...], ...]

    def __call__(self, number: int) -> Iterable[bytes]:
        """Run one task."""
        return run_task(self.files, number, lambda check: self._convert(number, check))

    def _convert(self, number: int, check: Callable[[], None]) -> TaskResult:
        first = sum(len(group) for group in self.groups[:number])
        adds: list[AddFile] = []
        rows = 0
        for place, step in enumerate(self.groups[number], start=first):
            check()
            with in_file(step.path):
                done = self._convert_file(place, step, check)
            adds += done.adds
            rows += done.rows
        return TaskResult(tuple(adds), rows)

    def _convert_file(self, place: int, step: Step, check: Callable[[], None]) -> TaskResult:
        """Add, copy or rewrite one file."""
        if step.action is Action.REWRITE:
            return self._rewrite(place, step, check)
        name = step.inside
        if step.action is Action.COPY:
            name = load_file(place, self.files.load_id, uuid.uuid4().hex[:8], 0, "copied")
            _copy(step.path, open_store(self.files.location), name)
        facts = read_facts(step.path)
        return TaskResult((self.files.add_at(name, facts),), facts.num_records)

    def _rewrite(self, place: int, step: Step, check: Callable[[], None]) -> TaskResult:
        check_timestamps([step], self.request)
        batches = iter_batches(step.path, variant_columns=self.request.variant_columns)
        first = next(batches)

        def checked() -> Iterator[pa.RecordBatch]:
            for batch in itertools.chain([first], batches):
                check()
                yield batch

        rows = TableRows(
            first.schema,
            checked(),
            self.files,
            shreddings=self.schemas,
            json_columns=self.request.json_columns,
            bad_rows=self.files.bad_row_log(place),
            inference=InferenceOptions(),
        )
        return write_rows(rows, self.files, place, check)


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
            raise disk_failure(error, path, "the file cannot be copied") from error
        store.upload(name, file)
