"""Read CSV with a line of names by Arrow, and convert each row to a JSON document.

A cell that JSON can hold exactly as a number, `true` or `false` becomes that; an empty cell without
quotes is left out; everything else is a string. A file whose name ends with `.tsv` has tabs.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import uuid
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv

from variantlake.errors import InvalidValue, MalformedFile, VariantLakeError
from variantlake.export.row_texts import compute, joined, quoted
from variantlake.ingest.records.record import opened
from variantlake.ingest.sources.signatures import Compression
from variantlake.ingest.sources.sources import Source
from variantlake.kernels.json.json_reader import JsonReader
from variantlake.kernels.tape.tape import Tape
from variantlake.kernels.tape.words import PADDING
from variantlake.kernels.variant.arrow_variants import variant_column
from variantlake.kernels.variant.variant_reader import VariantReader
from variantlake.writing.options.row_policies import BadRows
from variantlake.writing.quarantine import BadRow, BadRowLog

_BLOCK = 8 << 20
"""The bytes that Arrow reads at a time; a longer row is an error."""

_PIECE = 1 << 20

_TEXT = pa.large_string()
_BARE = (
    r"^(?:true|false|0|-?[1-9][0-9]{0,37}"  # as many digits as a decimal has
    r"|-?(?:0|[1-9][0-9]{0,18})\.[0-9]{1,19}"
    r"|-?[0-9](?:\.[0-9]{1,15})?[eE][+-]?[0-9]{1,2})$"  # what a double tells apart
)
"""Cells that have the same value in JSON without quotes."""


def csv_tapes(source: Source, bad_rows: BadRowLog) -> Iterator[Tape]:
    """Read the rows of a file as documents; the bad ones go to `bad_rows`.

    A row is bad if it has more or fewer cells than names, or is not UTF-8. Raises MalformedFile for
    a file whose names cannot be read or repeat, for a row that is too long, and for a file that
    ends within a quoted cell.
    """
    names = _names(source)
    refused: list[Any] = []
    delimiter = _delimiter(source)
    mark = uuid.uuid4().hex
    last = f"{uuid.uuid4().hex}{delimiter * len(names)}"
    ended = False

    def refuse(row: Any) -> Literal["skip"]:
        nonlocal ended
        if row.text == last:
            ended = True
        else:
            refused.append(row)
        return "skip"

    reader, first = JsonReader(), 0
    try:
        with opened(source) as file:
            whole: Any = _CheckedText(file, f"\n{last}" if names else "", mark)
            stream = pyarrow.csv.open_csv(
                whole,
                pyarrow.csv.ReadOptions(use_threads=False, block_size=_BLOCK),
                pyarrow.csv.ParseOptions(
                    delimiter=delimiter,
                    newlines_in_values=True,
                    invalid_row_handler=refuse,
                ),
                pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(names, _TEXT),
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                    null_values=[""],
                ),
            )
            for batch in stream:
                before = bad_rows.count
                _refuse(source, bad_rows, refused, mark)
                good = _in_utf8(source, bad_rows, batch, first, mark)
                first += batch.num_rows
                yield from _nulls(bad_rows, bad_rows.count - before)
                bad_rows.seen += good.num_rows
                if good.num_rows:
                    yield _tape(reader, _documents(good))
            before = bad_rows.count
            _refuse(source, bad_rows, refused, mark)
            yield from _nulls(bad_rows, bad_rows.count - before)
            if names and not ended:
                raise MalformedFile(
                    "the file ends within a quoted cell", file=source.label, hint="is it complete?"
                )
    except VariantLakeError:
        raise
    except pa.ArrowInvalid as error:
        if "Empty CSV" not in str(error):
            raise MalformedFile(
                f"the file cannot be read as CSV: {error}", file=source.label, row=first
            ) from None


class _CheckedText(io.RawIOBase):
    """A file as UTF-8, followed by `row` with one cell too many.

    If Arrow does not report that row, a quote was left open. A byte that is not UTF-8 becomes
    `mark` and two hexadecimal digits, since Arrow fails when it reports a row with such a byte.
    """

    def __init__(self, file: io.BufferedReader, row: str, mark: str) -> None:
        self._file, self._row, self._mark = file, row, mark
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._ready = memoryview(b"")
        self._is_read = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._is_read:
            piece = self._file.read(_PIECE)
            self._is_read = not piece
            text = self._decoder.decode(piece, final=self._is_read)
            self._ready = memoryview(self._encoded(text + (self._row if self._is_read else "")))
        size = min(len(buffer), len(self._ready))
        buffer[:size], self._ready = self._ready[:size], self._ready[size:]
        return size

    def _encoded(self, text: str) -> bytes:
        try:
            return text.encode()
        except UnicodeEncodeError:
            odd = re.compile("[\udc80-\udcff]")
            return odd.sub(lambda byte: f"{self._mark}{ord(byte[0]) - 0xDC00:02x}", text).encode()


def _original(text: str, mark: str) -> bytes:
    """Return the original bytes of a text from `_CheckedText`."""
    parts = text.split(mark)
    return parts[0].encode() + b"".join(
        bytes([int(part[:2], 16)]) + part[2:].encode() for part in parts[1:]
    )


def _delimiter(source: Source) -> str:
    suffixes = [each.lower() for each in PurePath(source.label).suffixes]
    if source.compression is not Compression.NONE:
        suffixes = suffixes[:-1]
    return "\t" if suffixes[-1:] == [".tsv"] else ","


def _names(source: Source) -> list[str]:
    """Read the names of the columns. Raises MalformedFile."""
    try:
        # Only the first line is read here.
        with (
            opened(source) as file,
            io.TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="") as text,
        ):
            names = next(csv.reader(text, delimiter=_delimiter(source)), [])
            "".join(names).encode()
    except (csv.Error, UnicodeEncodeError) as error:
        raise MalformedFile(
            f"the names of the columns cannot be read: {error}", file=source.label
        ) from None
    twice = next((each for each in names if names.count(each) > 1), None)
    if twice is not None:
        raise MalformedFile(f"two columns have the name {twice!r}", file=source.label)
    return names


def _refuse(source: Source, bad_rows: BadRowLog, refused: list[Any], mark: str) -> None:
    """Log the rows that Arrow refused, which have another number of cells."""
    for row in refused:
        bad_rows.seen += 1
        error = InvalidValue(
            f"the row has {row.actual_columns} cells, and there are {row.expected_columns} names",
            file=source.label,
            line=row.number,
        )
        bad_rows.add(BadRow(error, None, _original(row.text, mark)))
    refused.clear()


def _nulls(bad_rows: BadRowLog, count: int) -> Iterator[Tape]:
    """Yield NULLs in place of bad rows in the mode "null"."""
    if count and bad_rows.mode is BadRows.NULL:
        yield VariantReader().read(variant_column([None] * count))


def _in_utf8(
    source: Source, bad_rows: BadRowLog, batch: pa.RecordBatch, first: int, mark: str
) -> pa.RecordBatch:
    """Remove and log the rows that are not UTF-8."""
    odd = np.zeros(batch.num_rows, np.bool_)
    for column in batch.columns:
        marked = compute.match_substring(column, mark).fill_null(fill_value=False)
        odd |= marked.to_numpy(zero_copy_only=False)
    for row in map(int, np.flatnonzero(odd)):
        bad_rows.seen += 1
        error = InvalidValue(
            "the row is not UTF-8", file=source.label, row=first + row,
            hint="convert the file first: iconv -f LATIN1 -t UTF-8",
        )  # fmt: skip
        cells = (cell or "" for cell in batch.slice(row, 1).to_pylist()[0].values())
        bad_rows.add(BadRow(error, None, _original(",".join(cells), mark)))
    return batch.filter(pa.array(~odd)) if odd.any() else batch


def _documents(batch: pa.RecordBatch) -> Any:
    """Write rows as JSON objects, without NULL cells."""
    members = []
    for name, cells in zip(batch.schema.names, batch.columns, strict=True):
        bare = compute.match_substring_regex(cells, _BARE)
        values = compute.if_else(bare, cells, quoted(cells))
        key = f",{json.dumps(name, ensure_ascii=False)}:"
        members.append(joined(key, values).fill_null(""))
    # Remove the comma before the first member.
    return compute.replace_substring(joined("{", *members, "}"), "{,", "{", max_replacements=1)


def _tape(reader: JsonReader, documents: Any) -> Tape:
    """Read texts by the JSON reader."""
    offsets = np.frombuffer(documents.buffers()[1], np.int64)
    offsets = offsets[documents.offset :][: len(documents) + 1]
    size = int(offsets[-1])
    padded = np.zeros(size + PADDING, np.uint8)
    padded[:size] = np.frombuffer(documents.buffers()[2], np.uint8)[:size]
    return reader.read(padded, offsets[:-1].copy(), offsets[1:].copy())
