"""Read the records of a source into tapes, without bad ones, as `read_tapes` does for JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from variantlake.encoding.variant import Variant
from variantlake.errors import VariantLakeError
from variantlake.ingest.records.avro import read_avro
from variantlake.ingest.records.bson import read_bson
from variantlake.ingest.records.csv import csv_tapes
from variantlake.ingest.records.msgpack import read_msgpack
from variantlake.ingest.records.record import FileRecord
from variantlake.ingest.sources.document_format import DocumentFormat
from variantlake.ingest.sources.sources import Source
from variantlake.kernels.tape.tape import Tape
from variantlake.kernels.variant.arrow_variants import variant_column
from variantlake.kernels.variant.variant_reader import VariantReader
from variantlake.writing.options.row_policies import BadRows
from variantlake.writing.quarantine import BadRow, BadRowLog

_ROWS = 1024
"""The records of one tape."""

_READERS: dict[DocumentFormat, Callable[[Source], Iterator[FileRecord]]] = {
    DocumentFormat.AVRO: read_avro,
    DocumentFormat.MSGPACK: read_msgpack,
    DocumentFormat.BSON: read_bson,
}


def record_tapes(source: Source, bad_rows: BadRowLog) -> Iterator[Tape]:
    """Read the records of a source, many at a time; the bad ones go to `bad_rows`.

    Raises:
        InvalidValue, LimitExceeded, MalformedFile: In strict mode the first bad record, with its
            file and row. In any mode a file in which no further record can be found.
        MissingDependency: The library for the format is not installed.
        MissingSource, StoreFailed: As `open_source`.
    """
    if source.format is DocumentFormat.CSV:
        yield from csv_tapes(source, bad_rows)
        return
    reader = VariantReader()
    records = _READERS[source.format](source)
    while piece := list(islice(records, _ROWS)):
        values: list[Variant | None] = []
        for record in piece:
            bad_rows.seen += 1
            try:
                values.append(_variant(record))
            except VariantLakeError as error:
                error.file, error.row = source.label, record.row
                if bad_rows.mode is BadRows.NULL:
                    values.append(None)
                bad_rows.add(BadRow(error, record.offset, record.raw))
        if values:
            yield reader.read(variant_column(values))


def _variant(record: FileRecord) -> Variant:
    if record.error is not None:
        raise record.error
    return Variant.of(record.value)
