"""Name the source's files in a clone, or copy them. Spec: PROTOCOL, "Deletion Vectors"."""

from __future__ import annotations

import os
import re
import tempfile
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from variantlake.batches import batched
from variantlake.delta.actions.actions import AddFile, DeletionVectorDescriptor
from variantlake.delta.log.deletion_vectors import vector_location
from variantlake.delta.log.files.file_paths import encode_path, is_absolute
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.stats import z85
from variantlake.errors import MissingSource, StoreFailed
from variantlake.progress import OnProgress, Progress
from variantlake.storage.opening import store_of
from variantlake.storage.store import Store, is_local, local_path

_VECTOR_FILE = re.compile(r"deletion_vector_([0-9a-f-]{36})\.bin")
_THREADS = min(16, 4 * (os.cpu_count() or 1))


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """A file of the source and its path in the clone; `of` is the data file's path in the log."""

    source: str
    target: str
    of: str
    size: int | None = None


def shared(source: Snapshot, add: AddFile) -> AddFile:
    """Name the file by its absolute path, as Delta Spark's SHALLOW CLONE does."""
    vector = add.deletion_vector
    if vector is not None and vector.storage_type == "u":
        place = _absolute(vector_location(source.store, vector))
        vector = replace(vector, storage_type="p", path_or_inline_dv=place)
    return replace(add, path=_absolute(source.location(add.path)), deletion_vector=vector)


def _absolute(location: str) -> str:
    """Return a location as an absolute path of a log: a URI."""
    if is_local(location):
        return f"file:{encode_path(local_path(location))}"
    parts = urlsplit(location)
    return f"{parts.scheme}://{parts.netloc}{encode_path(parts.path)}"


def copied(source: Snapshot, add: AddFile) -> tuple[AddFile, list[CopiedFile]]:
    """Name the file within the clone; returns this action and the files to copy for it."""
    place = source.location(add.path)
    name, path = _within(place, source, add.path)
    files = [CopiedFile(place, name, path, add.size)]
    vector = add.deletion_vector
    if vector is not None and vector.storage_type != "i":
        place = vector_location(source.store, vector)
        written = vector.path_or_inline_dv if vector.storage_type == "p" else ""
        name, _ = _within(place, source, written)
        files.append(CopiedFile(place, name, path))
        vector = _vector_within(vector, name)
    return replace(add, path=path, deletion_vector=vector), files


def _within(place: str, source: Snapshot, path: str) -> tuple[str, str]:
    """Return a file's path in the clone, plain and as a log writes it.

    A file from outside the source's folder gets a unique name; a vector's name is unique already.
    """
    root = f"{source.store.uri}/"
    if not is_absolute(path) or place.startswith(root):
        name = place.removeprefix(root)
        return name, path if path and not is_absolute(path) else encode_path(name)
    base = place.rpartition("/")[2]
    name = (
        base if _VECTOR_FILE.fullmatch(base) else f"{uuid.uuid5(uuid.NAMESPACE_URL, place)}-{base}"
    )
    return name, encode_path(name)


def _vector_within(vector: DeletionVectorDescriptor, name: str) -> DeletionVectorDescriptor:
    """Return the descriptor that names the vector's file in the clone by its id.

    Raises MissingSource if the file's name has no id.
    """
    if vector.storage_type == "u":
        return vector
    folder, _, base = name.rpartition("/")
    match = _VECTOR_FILE.fullmatch(base)
    if match is None or not (folder == "" or folder.isalnum()):
        raise MissingSource(
            f"the deletion vector {vector.path_or_inline_dv!r} has no name that a copy can have",
            hint="clone the table it belongs to, or rewrite its files first (optimize)",
        )
    text = folder + z85.encode(uuid.UUID(match[1]).bytes)
    return replace(vector, storage_type="u", path_or_inline_dv=text)


def copy_files(
    files: Sequence[CopiedFile],
    store: Store,
    *,
    dry_run: bool,
    progress: OnProgress | None,
) -> list[CopiedFile]:
    """Copy the files that are not there in full size yet; returns these with their sizes.

    A dry run only returns them.

    Raises MissingSource for a file that is gone, StoreFailed for a copy of another size.
    """
    files = list({each.target: each for each in files}.values())
    done: list[CopiedFile] = []
    count = 0
    with ThreadPoolExecutor(_THREADS) as pool:
        for some in batched(files, 8 * _THREADS):
            for each in pool.map(lambda file: _copy(file, store, dry_run=dry_run), some):
                count += 1
                done += [] if each is None else [each]
            if progress is not None:
                progress(Progress(count, len(files), "files", "copied"))
    return done


def _copy(file: CopiedFile, store: Store, *, dry_run: bool) -> CopiedFile | None:
    origin, name = store_of(file.source)
    entry = origin.entry(name)
    if entry is None:
        raise MissingSource(
            "no such file",
            file=file.source,
            hint="a vacuum removed it; clone a newer version",
        )
    if file.size is not None and entry.size != file.size:
        raise StoreFailed(
            f"the file has {entry.size:,} bytes, and the log says {file.size:,}", file=file.source
        )
    there = store.entry(file.target)
    if there is not None and there.size == entry.size:
        return None  # an earlier clone that did not finish copied it, and files never change
    if not dry_run:
        _transfer(origin, name, store, file)
        there = store.entry(file.target)
        if there is None or there.size != entry.size:
            raise StoreFailed(
                f"the copy has {0 if there is None else there.size:,} bytes of {entry.size:,}",
                file=store.join(file.target),
                hint="nothing was committed; a repeat copies what is missing",
            )
    return replace(file, size=entry.size)


def _transfer(origin: Store, name: str, store: Store, file: CopiedFile) -> None:
    if is_local(file.source):
        store.upload(file.target, Path(local_path(file.source)))
        return
    with tempfile.NamedTemporaryFile(prefix="variantlake-") as scratch:
        for piece in origin.stream(name):
            scratch.write(piece)
        scratch.flush()
        store.upload(file.target, Path(scratch.name))
