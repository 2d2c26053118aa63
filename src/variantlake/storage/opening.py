"""Open a file or a table's store by location: a path, a `file:` URL, or an object store's URL."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from variantlake.errors import MissingSource
from variantlake.storage.input_file import InputFile
from variantlake.storage.schemes import check_location
from variantlake.storage.store import LocalStore, Store, is_local, local_path, location_text
from variantlake.storage.unreachable import disk_hint

Source = str | os.PathLike[str] | BinaryIO | InputFile
"""A file to read: its location, or an open file."""


def open_store(location: str | os.PathLike[str]) -> Store:
    """Open the store of a table: a path, `file://...`, or a URL that obstore supports (`s3://`).

    Credentials and endpoints are those of `storage_options`. Raises StoreFailed for a URL that
    cannot be understood, else as `check_location`.
    """
    text = check_location(location_text(location))
    if is_local(text):
        return LocalStore(Path(local_path(text)).absolute())
    # obstore loads slowly, and local tables do not need it.
    from variantlake.storage.objects import ObjectStore, check_url

    check_url(text.rstrip("/"))
    return ObjectStore(text.rstrip("/"))


def store_of(location: str) -> tuple[Store, str]:
    """Return the store that holds a file, and the file's path in it."""
    if is_local(location):
        path = Path(local_path(location)).absolute()
        return LocalStore(path.parent), path.name
    from variantlake.storage.objects import open_object

    return open_object(location)


def open_file(source: Source) -> InputFile:
    """Open a file for reading. Closing the result leaves a file open that the caller opened.

    Raises MissingSource if there is none, StoreFailed.
    """
    if isinstance(source, InputFile):
        return source.borrowed()
    if not isinstance(source, str | os.PathLike):
        handle: Any = source  # any BinaryIO
        return InputFile(name_of(source), pa.PythonFile(handle, mode="r"), is_ours=False)
    location = os.fspath(source)
    if is_local(location):
        return _open_local(local_path(location))
    from variantlake.storage.objects import open_object

    store, name = open_object(location)
    return store.open(name)


def name_of(source: Source) -> str:
    """Return a file's name for errors; empty for a nameless stream."""
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    name = getattr(source, "name", "")
    return name if isinstance(name, str) else ""


def _open_local(path: str) -> InputFile:
    try:
        return InputFile(path, pa.OSFile(path, mode="r"))
    except FileNotFoundError:
        raise MissingSource("no such file", file=path) from None
    except (OSError, pa.ArrowInvalid) as error:
        if Path(path).is_dir():
            raise MissingSource(
                "a folder, not a file",
                file=path,
                hint="name one file; vl.Table.open opens a Delta table",
                cli_hint="name one file, or the folder of a Delta table",
            ) from None
        number = error.errno if isinstance(error, OSError) else None
        reason = str(error) if number is None else os.strerror(number)
        raise MissingSource(reason, file=path, hint=disk_hint(error)) from error
