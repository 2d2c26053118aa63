"""Write the rows of a result in the requested format: a table, JSON, CSV or Parquet."""

from __future__ import annotations

import contextlib
import enum
import errno
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, Protocol

import pyarrow as pa
import typer

from variantlake.cli.terminal.output import (
    MAX_SHOWN,
    escaped,
    print_rows,
    visible,
)

TextRow = tuple[str | None, ...]


class ResultRows(Protocol):
    """The rows of a result, from any engine."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns."""

    def text(self) -> Iterator[TextRow]:
        """Yield rows with each value as text; None for NULL."""

    def json(self) -> Iterator[str]:
        """Yield every row as a JSON object, with NULLs."""

    def arrow(self) -> pa.RecordBatchReader:
        """Return all rows."""


class OutputFormat(enum.StrEnum):
    """The formats of a result."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


OutputFormatOption = Annotated[
    OutputFormat | None,
    typer.Option(
        metavar="|".join(OutputFormat),
        help="The form of the rows: by default that of the name of the file, else a table. In a "
        "pipe, a table is text with tabs.",
        show_default=False,
    ),
]

OutputOption = Annotated[
    str | None,
    typer.Option(
        "-o", "--output", metavar="FILE", help="Write the rows to this file.", show_default=False
    ),
]

_ENDINGS = {".ndjson": OutputFormat.JSONL, ".tsv": OutputFormat.TABLE}
_QUOTED = re.compile(r'[",\r\n]')


def chosen_format(form: OutputFormat | None, output: str | None, *, as_json: bool) -> OutputFormat:
    """Choose the format by the options. Raises BadParameter if they contradict each other."""
    if as_json and form not in (None, OutputFormat.JSONL):
        raise typer.BadParameter("--json and --output-format contradict each other")
    if as_json:
        return OutputFormat.JSONL
    if form is None and output is not None:
        ending = Path(output).suffix.lower()
        known = {f".{each}": each for each in OutputFormat} | _ENDINGS
        form = known.get(ending)
    if form is OutputFormat.PARQUET and output is None:
        raise typer.BadParameter("Parquet is for files: give -o FILE")
    return form or OutputFormat.TABLE


class Printer:
    """Prints a result; reads its first rows at once, so that most errors are raised early.

    Raises the errors of reading the rows.
    """

    def __init__(self, rows: ResultRows, form: OutputFormat) -> None:
        self._rows, self._form = rows, form
        is_json = form in (OutputFormat.JSON, OutputFormat.JSONL)
        each: Iterator[Any] = iter(())
        if form is not OutputFormat.PARQUET:
            each = rows.json() if is_json else rows.text()
        self._all = chain(list(islice(each, MAX_SHOWN + 1)), each)

    def print(self, output: str | None = None) -> None:
        """Write the rows to a file, or to standard output. Raises OSError, and as the class."""
        if self._form is OutputFormat.PARQUET:
            from variantlake.export.export import export_rows  # few commands write files

            rows = self._rows.arrow()
            export_rows(rows.schema, rows, output or "", "parquet", overwrite=True)
            return
        with _written_to(output):
            if self._form is OutputFormat.TABLE:
                print_rows(self._rows.names, self._all)
            elif self._form is OutputFormat.CSV:
                sys.stdout.writelines(map(_csv, chain([self._rows.names], self._all)))
            elif self._form is OutputFormat.JSONL:
                sys.stdout.writelines(f"{escaped(line)}\n" for line in self._all)
            else:
                sys.stdout.writelines(_json_array(self._all))


def _csv(row: Iterable[str | None]) -> str:
    """Write a line as in RFC 4180; an empty text is quoted, NULL is an empty cell."""
    shown = [None if text is None else _plain(text) for text in row]
    return ",".join("" if text is None else _cell(text) for text in shown) + "\n"


def _cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if not text or _QUOTED.search(text) else text


def _plain(text: str) -> str:
    """Return the text for a program; escape control characters for a terminal."""
    return visible(text) if sys.stdout.isatty() else text


def _json_array(lines: Iterable[str]) -> Iterator[str]:
    before = "[\n"
    for line in lines:
        yield before + escaped(line)
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


@contextlib.contextmanager
def _written_to(output: str | None) -> Iterator[None]:
    """Redirect standard output to a file in the block; the file appears at the end."""
    if output is None:
        yield
        return
    target = Path(output)
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "a folder, not a file", output)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(target.parent))
    part = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with (
            part.open("w", encoding="utf-8", errors="backslashreplace") as file,
            contextlib.redirect_stdout(file),
        ):
            yield
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


class PlainRows:
    """Rows of a command, as values by name."""

    def __init__(self, documents: Iterable[dict[str, Any]]) -> None:
        self._documents = list(documents)
        self.names = list(self._documents[0]) if self._documents else []

    def text(self) -> Iterator[TextRow]:
        """Yield rows with each value as text, nested ones as JSON."""
        for each in self._documents:
            yield tuple(None if value is None else _text_of(value) for value in each.values())

    def json(self) -> Iterator[str]:
        """Yield every row as a JSON object."""
        for each in self._documents:
            yield json.dumps(each, ensure_ascii=False, default=str)

    def arrow(self) -> pa.RecordBatchReader:
        """Return all rows, with nested values as JSON text."""
        texts = [
            {name: _text_of(v) if isinstance(v, dict | list) else v for name, v in each.items()}
            for each in self._documents
        ]
        return pa.Table.from_pylist(texts).to_reader()


def _text_of(value: Any) -> str:
    nested = isinstance(value, dict | list | bool)
    return json.dumps(value, ensure_ascii=False) if nested else str(value)
