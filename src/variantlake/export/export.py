"""Export rows to one file, batch by batch; the file appears when it is complete."""

from __future__ import annotations

import contextlib
import enum
import os
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from variantlake.errors import InvalidValue, MissingSource, VariantLakeError
from variantlake.export.row_texts import csv_cells, csv_lines, joined, json_lines
from variantlake.parquet.read.parquet_source import BATCH_BYTES, BATCH_ROWS
from variantlake.parquet.write.table_writer import Shredding, find_variants, write_batches
from variantlake.progress import OnProgress, Progress
from variantlake.shown import Result
from variantlake.storage.objects import open_object
from variantlake.storage.store import is_local, local_path, location_text
from variantlake.storage.unreachable import disk_failure

_COMPRESSIONS: dict[str, Literal["gzip", "zstd"]] = {".gz": "gzip", ".zst": "zstd"}


class ExportFormat(enum.StrEnum):
    """File formats of an export."""

    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"


_ENDINGS = {
    **{f".{each}": each for each in ExportFormat},
    ".ndjson": ExportFormat.JSONL,
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExportResult(Result):
    """The result of an export to the file `path`."""

    path: str
    format: str
    rows_written: int = 0
    bytes_written: int = 0


def export_rows(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    path: str | os.PathLike[str],
    form: str | None = None,
    *,
    overwrite: bool = False,
    dry_run: bool = False,
    shredding: Shredding = "infer",
    progress: OnProgress | None = None,
) -> ExportResult:
    """Write rows to one file, see `ArrowStream.export`. Raises InvalidValue, MissingSource."""
    started = time.perf_counter()
    location = location_text(path)
    chosen = chosen_form(location, form)
    check_target(location, overwrite=overwrite)
    if dry_run:
        rows = sum(batch.num_rows for batch in batches)
        return ExportResult(path=location, format=chosen.value, rows_written=rows, dry_run=True)
    counted = _Counted(batches, progress)
    with _target(location, overwrite=overwrite) as part:
        if chosen is ExportFormat.PARQUET:
            has_variants = bool(find_variants(schema, None))
            write_batches(schema, counted, part, shredding=shredding if has_variants else None)
        else:
            _write_text(schema, counted, part, chosen, _ending(location)[1])
        size = part.stat().st_size
    return ExportResult(
        path=location,
        format=chosen.value,
        rows_written=counted.rows,
        bytes_written=size,
        seconds=time.perf_counter() - started,
    )


def chosen_form(location: str, form: str | None) -> ExportFormat:
    """The requested format, else that of the file's name. Raises InvalidValue."""
    known = ", ".join(ExportFormat)
    if form is None:
        ending = _ending(location)[0]
        if ending not in _ENDINGS:
            raise InvalidValue(
                f"the name {Path(location).name!r} does not say a format",
                hint=f'give format=, one of {known}; or a name such as "rows.csv.gz"',
                cli_hint=f"give --format, one of {known}; or a name such as rows.csv.gz",
            )
        return _ENDINGS[ending]
    if form not in list(ExportFormat):
        is_query = str(form).lstrip()[:6].upper() == "SELECT"
        hint = "table.sql(query).export(file)" if is_query else f"one of {known}"
        raise InvalidValue(f"format is {form!r:.60}", hint=hint)
    chosen = ExportFormat(form)
    if chosen is ExportFormat.PARQUET and _ending(location)[1]:
        raise InvalidValue(
            "a Parquet file is compressed inside", hint='leave the ".gz" out of its name'
        )
    return chosen


def _ending(location: str) -> tuple[str, str]:
    """The suffixes of a name for the format and for the compression; empty if there is none."""
    suffixes = [each.lower() for each in Path(location).suffixes]
    packed = suffixes.pop() if suffixes and suffixes[-1] in _COMPRESSIONS else ""
    return (suffixes[-1] if suffixes else ""), packed


def check_target(location: str, *, overwrite: bool) -> None:
    """Raise InvalidValue if the file must not be written, MissingSource if it has no folder."""
    if not is_local(location):
        store, name = open_object(location)
        if not overwrite and store.entry(name) is not None:
            raise _exists(location)
        return
    target = Path(local_path(location))
    if target.exists() and not target.is_file():
        raise InvalidValue("this is no file", file=location, hint="name a new file")
    if target.exists() and not overwrite:
        raise _exists(location)
    if not target.parent.is_dir():
        raise MissingSource("no such folder", file=str(target.parent))


def _exists(location: str) -> InvalidValue:
    return InvalidValue(
        "the file is there already",
        file=location,
        hint="overwrite=True replaces it",
        cli_hint="--overwrite replaces it",
    )


@contextlib.contextmanager
def _target(location: str, *, overwrite: bool) -> Iterator[Path]:
    """A temporary file, which becomes the target when the block ends, or is deleted if it fails."""
    if not is_local(location):
        with tempfile.TemporaryDirectory(prefix="variantlake-export-") as folder:
            part = Path(folder) / "part"
            yield part
            store, name = open_object(location)
            store.upload(name, part)
        return
    target = Path(local_path(location))
    # The id keeps exports of several threads to one target apart.
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
    try:
        yield part
        with part.open("rb") as file:
            os.fsync(file.fileno())
        if overwrite:
            part.replace(target)
            return
        try:
            os.link(part, target)  # fails if the file has been created meanwhile
        except FileExistsError:
            raise _exists(location) from None
    except VariantLakeError:
        raise  # some are OSErrors too
    except OSError as error:
        raise disk_failure(error, location, "the file cannot be written") from error
    finally:
        part.unlink(missing_ok=True)


class _Counted:
    """Cuts batches into pieces of bounded size, and counts their rows once they are written."""

    def __init__(self, batches: Iterable[pa.RecordBatch], progress: OnProgress | None) -> None:
        self.rows = 0
        self._batches, self._progress = batches, progress

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            size = BATCH_BYTES * batch.num_rows // max(batch.nbytes, 1)
            rows = max(1, min(BATCH_ROWS, size))
            for start in range(0, batch.num_rows, rows):
                piece = batch.slice(start, rows)
                yield piece
                self.rows += piece.num_rows
                if self._progress is not None:
                    self._progress(Progress(self.rows, None, "rows", "written"))


def _write_text(
    schema: pa.Schema, batches: _Counted, part: Path, form: ExportFormat, packed: str
) -> None:
    is_csv = form is ExportFormat.CSV
    lines = csv_lines if is_csv else json_lines
    with contextlib.ExitStack() as open_files:
        file: Any = open_files.enter_context(pa.OSFile(str(part), "wb"))
        if packed:
            compressed = pa.CompressedOutputStream(file, _COMPRESSIONS[packed])
            file = open_files.enter_context(compressed)
        if is_csv:
            header = csv_cells(pa.array(schema.names, pa.large_string()))
            file.write(",".join(header.to_pylist()).encode() + b"\n")
        for batch in batches:
            file.write(_ended(lines(batch)))


def _ended(lines: Any) -> memoryview:
    """The bytes of the lines, each with its newline."""
    ended = joined(lines, "\n")
    offsets = np.frombuffer(ended.buffers()[1], np.int64)[ended.offset :][: len(ended) + 1]
    return memoryview(ended.buffers()[2])[int(offsets[0]) : int(offsets[-1])]
