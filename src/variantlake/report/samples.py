"""Take a bounded sample of rows: a profile of its paths, and some rows as JSON text.

A sample of a table comes from several of its files, without deleted rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.delta.log.snapshot import Snapshot
from variantlake.ingest.encode.documents import sample_batches, sample_records
from variantlake.ingest.learning.sample import spread
from variantlake.ingest.sources.sources import Documents
from variantlake.kernels.json.json_reader import JsonReader
from variantlake.kernels.variant.profiler import Profiler
from variantlake.kernels.variant.variant_reader import VariantReader
from variantlake.kernels.variant.variant_writer import write_variant
from variantlake.parquet.read.json_column import to_json
from variantlake.parquet.read.reader import iter_batches
from variantlake.quoting import quote_identifier
from variantlake.scan.table_scan import Scan
from variantlake.shredding.arrays import struct_of
from variantlake.shredding.inference.profile import Profile
from variantlake.sql.select import QueryText

SAMPLE_ROWS = 10_000
"""The default number of rows of a sample."""

SAMPLE_FILES = 8
"""The number of files of a table to sample, evenly chosen."""

MAX_TEXTS = 2_000
"""The most rows whose text is kept, for examples and distinct values."""

MAX_TEXT_BYTES = 1 << 20
"""The most characters of a text that is kept; the paths of longer ones are counted all the same."""


@dataclass(slots=True)
class Sample:
    """A sample of rows: `profile` counts all of them, `texts` has some as JSON.

    `bad_rows` counts documents that are not JSON, or that a Variant cannot hold: they are left out.
    """

    profile: Profile = field(default_factory=Profile)
    texts: list[str] = field(default_factory=list)
    bad_rows: int = 0

    @property
    def rows(self) -> int:
        """The number of rows with a value."""
        return self.profile.rows


def sample_table(snapshot: Snapshot, column: str, rows: int = SAMPLE_ROWS) -> Sample:
    """Sample a VARIANT column of a table. Raises as `Scan.to_batches`."""
    taker, files = _Taker(rows), spread(range(snapshot.files.num_rows), SAMPLE_FILES)
    items = QueryText(snapshot.schema).items(quote_identifier(column))
    for done, row in enumerate(files):
        one = replace(snapshot, files=snapshot.files.take(np.array([row])))
        most = -(-(rows - taker.rows) // (len(files) - done))
        for batch in Scan(one, items, None, most).to_batches():
            taker.add(batch.column(0))
    return taker.sample()


def sample_file(path: str, column: str, rows: int = SAMPLE_ROWS) -> Sample:
    """Sample the first rows of a VARIANT column of a file. Raises as `parquet.iter_batches`."""
    taker = _Taker(rows)
    for batch in iter_batches(path, min(rows, SAMPLE_ROWS), [column]):
        taker.add(batch.column(0).slice(0, rows - taker.rows))
        if taker.rows >= rows:
            break
    return taker.sample()


def sample_documents(documents: Documents, rows: int = SAMPLE_ROWS) -> Sample:
    """Sample documents from several places of several sources, without bad ones.

    Raises MissingSource, StoreFailed and MalformedFile for sources that cannot be read,
    MissingDependency for a format whose library is not installed.
    """
    if not all(source.format.is_json for source in documents.sources):
        return _sample_records(documents, rows)
    reader, profiler, texts = JsonReader(), Profiler(), _Texts()
    bad_rows = 0
    for batch in sample_batches(documents.sources, rows):
        tape = reader.read(batch.block.padded, batch.starts, batch.ends)
        bad_rows += int(np.count_nonzero(tape.status))
        profiler.add(tape)
        texts.add(batch.text(row).decode(errors="replace") for row in range(len(batch.starts)))
    return Sample(profiler.result(), texts.kept, bad_rows)


def _sample_records(documents: Documents, rows: int) -> Sample:
    taker, bad_rows = _Taker(rows), 0
    for tape in sample_records(documents.sources, rows):
        variants = write_variant(tape)
        bad_rows += variants.null_count
        taker.add(variants.drop_null().slice(0, rows - taker.rows))
    sample = taker.sample()
    sample.bad_rows = bad_rows
    return sample


class _Taker:
    """Adds Variants to a sample until it has enough rows."""

    def __init__(self, rows: int) -> None:
        self.rows = 0
        self._most = rows
        self._reader, self._profiler, self._texts = VariantReader(), Profiler(), _Texts()

    def add(self, column: pa.Array[Any]) -> None:
        self.rows += len(column)
        self._profiler.add(self._reader.read(struct_of(column)))
        wanted = column.slice(0, MAX_TEXTS)
        self._texts.add(text for text in to_json(wanted).to_pylist() if text is not None)

    def sample(self) -> Sample:
        return Sample(self._profiler.result(), self._texts.kept)


class _Texts:
    """Keeps at most MAX_TEXTS texts; each text has the same chance to be kept."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self._seen = 0
        self._random = np.random.default_rng(0)  # the same sample every time

    def add(self, texts: Iterator[str]) -> None:
        for text in texts:
            if len(text) > MAX_TEXT_BYTES:
                continue
            self._seen += 1
            if len(self.kept) < MAX_TEXTS:
                self.kept.append(text)
            elif (place := int(self._random.integers(self._seen))) < MAX_TEXTS:
                self.kept[place] = text
