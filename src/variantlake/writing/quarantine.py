"""Bad rows of a load: raised, counted, or stored in the table's folder with their reasons.

A quarantine file is newline-delimited JSON, one object for a bad row:

    {"reason": …, "file": …, "line": …, "column": …, "offset": …, "text": …}

`line` and `column` say where the mistake was noticed, `offset` the byte of the source's text where
the document starts; `text` is the document, or `base64` if it is not UTF-8. Rows of Arrow data
have `row` instead of a file's position, and `values` with their other columns.

The files lie in `_quarantine/<load>/` in the table's folder. Delta and Spark leave out names that
start with an underscore: no reader takes them for data, and no VACUUM removes them.
"""

from __future__ import annotations

import base64
import contextlib
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self, TypeAlias

import orjson
import pyarrow as pa

from variantlake.errors import StoreFailed, VariantLakeError
from variantlake.shown import utf8_text
from variantlake.storage.store import LocalStore, Store, make_folder
from variantlake.storage.unreachable import disk_failure
from variantlake.writing.options.max_bad import MaxBad
from variantlake.writing.options.row_policies import BadRows

Buffer: TypeAlias = bytes | pa.Buffer

_CHECK_ROWS = 1_000

FOLDER = "_quarantine"
"""Where quarantine files lie, from the table's root."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """One row that cannot be loaded: the reason, its position, and its content if known.

    `text` is the document's bytes; `values` are other columns of the row in JSON types.
    """

    error: VariantLakeError
    offset: int | None = None
    text: bytes | None = None
    values: dict[str, Any] | None = None

    def to_json(self) -> bytes:
        """The line of the quarantine file, with its newline."""
        error = self.error
        file = utf8_text(error.file) or None
        record: dict[str, Any] = {"reason": utf8_text(error.message), "file": file}
        record |= {"line": error.line, "column": error.column, "row": error.row}
        record |= {"offset": self.offset, "values": self.values}
        record = {name: value for name, value in record.items() if value is not None}
        if self.text is not None:
            try:
                record["text"] = self.text.decode()
            except UnicodeDecodeError:
                record["base64"] = base64.b64encode(self.text).decode()
        return orjson.dumps(record, default=str, option=orjson.OPT_APPEND_NEWLINE)


@dataclass(slots=True)
class BadRowLog:
    """Handles the bad rows of one task by the load's mode; a context manager.

    `count` is the number of bad rows so far, among `seen` rows; more than `max_bad` end the task.
    `first` says what is wrong with the first one. `check` is called now and then, and ends the task
    by raising. The first row of a quarantine creates its file; leaving by an exception removes it.
    """

    mode: BadRows
    store: Store
    load_id: str
    task: int
    max_bad: MaxBad | None = None
    check: Callable[[], None] | None = None
    count: int = 0
    seen: int = 0
    first: str = ""
    path: str | None = None
    """The quarantine file, from the table's root, once there is one."""
    _file: IO[bytes] | None = None
    _scratch: str | None = None
    _local: Path = field(default_factory=Path)

    def add(self, bad: BadRow) -> None:
        """Record one bad row; in the mode "null" only count it.

        Raises the row's error in strict mode, LimitExceeded if there are too many.
        """
        if self.mode is BadRows.STRICT:
            raise bad.error
        self.add_null(1, lambda: bad)
        if self.check is not None and not self.count % _CHECK_ROWS:
            self.check()
        if self.mode is BadRows.QUARANTINE:
            self._write(bad.to_json())

    def add_lines(
        self, count: int, first: Callable[[], BadRow], lines: Callable[[], Iterable[Buffer]]
    ) -> None:
        """As `add` for many rows; `lines` returns their lines of the quarantine, in pieces."""
        if self.mode is BadRows.STRICT:
            raise first().error
        if self.check is not None:
            self.check()
        self.add_null(count, first)
        if self.mode is BadRows.QUARANTINE:
            for piece in lines():
                self._write(piece)

    def add_null(self, count: int, first: Callable[[], BadRow]) -> None:
        """Count bad rows; `first` returns the first of them. Raises LimitExceeded for too many."""
        self.count += count
        if self.max_bad is not None:
            self.first = self.first or first().error.sentence()
            self.max_bad.check(self.count, self.seen, self.first)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if self._file is not None:
                with contextlib.suppress(OSError) if kind else contextlib.nullcontext():
                    self._file.close()
            if self.path is not None and kind is not None:
                self._local.unlink(missing_ok=True)
            elif self.path is not None and self._scratch is not None:
                self.store.upload(self.path, self._local)
            elif self.path is not None:
                self.store.flush(self.path)
        except OSError as failure:
            raise self._failed(failure) from failure
        finally:
            if self._scratch is not None:
                shutil.rmtree(self._scratch, ignore_errors=True)

    def _write(self, data: Buffer) -> None:
        file = self._file or self._begin()
        try:
            file.write(data)
        except OSError as error:
            raise self._failed(error) from error

    def _begin(self) -> IO[bytes]:
        # Spark may run two attempts of a task; each writes a file of its own.
        self.path = f"{folder_of(self.load_id)}/part-{self.task:05d}-{uuid.uuid4().hex[:8]}.ndjson"
        if isinstance(self.store, LocalStore):
            self._local = self.store.root / self.path
        else:
            self._scratch = tempfile.mkdtemp(prefix="variantlake-")
            self._local = Path(self._scratch, "quarantine.ndjson")
        try:
            make_folder(self._local.parent)
            self._file = self._local.open("xb")
        except OSError as error:
            raise self._failed(error) from error
        return self._file

    def _failed(self, error: OSError) -> StoreFailed:
        if isinstance(error, StoreFailed):
            return error
        return disk_failure(
            error, self.store.join(self.path or FOLDER), "the quarantine cannot be written"
        )


def folder_of(load_id: str) -> str:
    """The folder of a load's quarantine, from the table's root."""
    return f"{FOLDER}/{load_id}"


def delete_quarantine(store: Store, load_id: str, keep: frozenset[str] = frozenset()) -> None:
    """Delete a load's quarantine files, except `keep`, and folders that become empty."""
    for entry in list(store.list_from(folder_of(load_id))):
        if entry.path not in keep:
            store.delete(entry.path)
    if isinstance(store, LocalStore) and not keep:
        for folder in (folder_of(load_id), FOLDER):
            with contextlib.suppress(OSError):  # not empty, or not there
                (store.root / folder).rmdir()
