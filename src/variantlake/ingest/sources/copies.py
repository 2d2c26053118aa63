"""Copy streams to files: a load reads its sources several times, but a pipe can be read once."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from variantlake.errors import InvalidValue, StoreFailed
from variantlake.ingest.sources.sources import NamedFile
from variantlake.storage.unreachable import disk_failure


@contextmanager
def copied(stream: Any, name: str) -> Iterator[NamedFile]:
    """Copy a file object to a temporary file for the block; errors call it `name`.

    Raises StoreFailed if it cannot be copied, InvalidValue for an object that does not return
    bytes or text.
    """
    with _folder(name) as folder:
        file = Path(folder, "copy")
        try:
            with file.open("wb") as copy:
                while piece := stream.read(1 << 20):
                    copy.write(piece.encode() if isinstance(piece, str) else piece)
        except OSError as error:
            raise _not_copied(error, folder, name) from error
        except (TypeError, ValueError) as error:  # a closed file, text that is not UTF-8
            raise InvalidValue(f"{name} cannot be read: {error}") from error
        yield NamedFile(str(file), name)


@contextmanager
def _folder(name: str) -> Iterator[str]:
    try:
        folder = tempfile.mkdtemp(prefix="variantlake-")
    except OSError as error:
        raise _not_copied(error, "", name) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _not_copied(error: OSError, folder: str, name: str) -> StoreFailed:
    failed = disk_failure(error, folder, f"{name} cannot be copied to a temporary file")
    failed.hint = "give TMPDIR a folder with room for all of the input, or load from a file"
    return failed
