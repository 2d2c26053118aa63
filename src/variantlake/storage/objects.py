"""Object stores through obstore: S3 and compatible stores, Google, Azure, HTTP."""

from __future__ import annotations

import contextlib
import urllib.parse
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import ObjectStore as Backend
from obstore.store import from_url

from variantlake.errors import MissingSource, StoreFailed
from variantlake.storage.input_file import WINDOW_BYTES, InputFile, ObjectFile
from variantlake.storage.options import client_arguments, storage_options
from variantlake.storage.store import CHUNK, Entry
from variantlake.storage.unreachable import check_reachable, explained

if TYPE_CHECKING:
    from obstore import ObjectMeta


class ObjectStore:
    """A table in an object store; `put_if_absent` is a conditional put (If-None-Match: *).

    Without a `backend`, it uses the storage options of the calling process, which in a Spark task
    is the task's process.
    """

    __slots__ = ("_backend", "uri")

    def __init__(self, uri: str, backend: Backend | None = None) -> None:
        self.uri = uri
        self._backend = backend

    @property
    def backend(self) -> Backend:
        """The obstore client."""
        return _client(self.uri) if self._backend is None else self._backend

    def __reduce__(self) -> tuple[type[ObjectStore], tuple[str]]:
        # A pickled client would lack the options that come from the environment.
        return ObjectStore, (self.uri,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectStore) and (self.uri, self._backend) == (
            other.uri,
            other._backend,
        )

    def __hash__(self) -> int:
        return hash(self.uri)

    def read(self, path: str) -> bytes:
        """See Store."""
        with self.failures(path):
            return bytes(obstore.get(self.backend, path).bytes())

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """See Store."""
        with self.failures(path):
            return bytes(obstore.get_range(self.backend, path, start=start, length=length))

    def read_ranges(
        self, path: str, starts: Sequence[int], lengths: Sequence[int]
    ) -> list[memoryview]:
        """Read ranges within the object, near ones with one request."""
        with self.failures(path):
            return [
                memoryview(data)
                for data in obstore.get_ranges(self.backend, path, starts=starts, lengths=lengths)
            ]

    def read_tail(self, path: str, length: int) -> tuple[bytes, int]:
        """Return the last `length` bytes, or all if there are fewer, and the object's size."""
        with self.failures(path):
            try:
                found = obstore.get(self.backend, path, options={"range": {"suffix": length}})
                return bytes(found.bytes()), found.meta["size"]
            except FileNotFoundError:
                raise
            except BaseError:
                # An empty object has no suffix, and some stores do not support suffix requests.
                size = obstore.head(self.backend, path)["size"]
                start = max(size - length, 0)
                return self.read_range(path, start, size - start) if size else b"", size

    def stream(self, path: str) -> Iterator[bytes]:
        """See Store."""
        with self.failures(path):
            for piece in obstore.get(self.backend, path).stream(min_chunk_size=CHUNK):
                yield bytes(piece)

    def open(self, path: str) -> InputFile:
        """See Store."""
        return InputFile.of_object(self._file(path))

    def open_in_order(self, path: str, size: int) -> ObjectFile:
        """Open an object of `size` bytes for a read from start to end."""
        return self._file(path, size, CHUNK)

    def _file(self, path: str, size: int | None = None, window: int = WINDOW_BYTES) -> ObjectFile:
        tail, ranges = partial(self.read_tail, path), partial(self.read_ranges, path)
        return ObjectFile(self.join(path), tail, ranges, size, window)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """See Store."""
        with self.failures(path):
            try:
                obstore.put(self.backend, path, data, mode="create", use_multipart=False)
            except (AlreadyExistsError, PreconditionError):
                return False
            return True

    def put(self, path: str, data: bytes) -> None:
        """See Store."""
        with self.failures(path):
            obstore.put(self.backend, path, data)

    def upload(self, path: str, file: Path) -> None:
        """See Store."""
        with self.failures(path):
            obstore.put(self.backend, path, file)

    def flush(self, path: str) -> None:
        """See Store."""

    def delete(self, path: str) -> None:
        """See Store."""
        with self.failures(path), contextlib.suppress(FileNotFoundError):
            obstore.delete(self.backend, path)

    def delete_all(self, paths: Sequence[str]) -> None:
        """See Store."""
        try:
            with self.failures(""):
                obstore.delete(self.backend, list(paths))
        except (MissingSource, StoreFailed):
            # The store has no bulk delete, or some file failed: then the error names the file.
            for path in paths:
                self.delete(path)

    def list_from(self, folder: str, after: str = "") -> Iterator[Entry]:
        """See Store."""
        start = len(folder) + 1 if folder else 0
        offset = (f"{folder}/{after}" if folder else after) if after else None
        found: list[Entry] = []
        with self.failures(folder):
            for page in obstore.list(self.backend, folder or None, offset=offset, chunk_size=1000):
                found += [entry_of(meta) for meta in page if "/" not in meta["path"][start:]]
        # Object stores list names in order; the backends for tests may not.
        yield from sorted(found, key=lambda entry: entry.path)

    def entry(self, path: str) -> Entry | None:
        """See Store."""
        try:
            with self.failures(path):
                return entry_of(obstore.head(self.backend, path))
        except MissingSource:
            return None

    def join(self, path: str) -> str:
        """See Store."""
        return f"{self.uri}/{path}"

    @contextlib.contextmanager
    def failures(self, path: str) -> Iterator[None]:
        """Raise the backend's errors as ours, naming the object."""
        try:
            yield
        except StoreFailed:
            raise
        except FileNotFoundError as error:
            raise MissingSource("no such object", file=self.join(path)) from error
        except (BaseError, OSError, ValueError) as error:
            raise explained(error, self.join(path), storage_options(self.uri)) from error


def open_object(url: str) -> tuple[ObjectStore, str]:
    """Return the store of a URL's bucket or container, and the object's name in it, verbatim.

    The store's first request raises StoreFailed for a URL that cannot be understood.
    """
    bucket, _, name = _split(url)
    return ObjectStore(bucket), name


def _split(url: str) -> tuple[str, str, str]:
    """Split a URL at the slash after its host."""
    scheme, slashes, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return scheme + slashes + host, slash, path


def check_url(url: str) -> None:
    """Raise StoreFailed for a URL that cannot be understood."""
    _client(url)


def _client(url: str) -> Backend:
    """Return a client rooted at a URL (path not percent-encoded), with the current options."""
    return _cached_client(url, frozenset(storage_options(url).items()))


@lru_cache(maxsize=256)  # a client keeps its connections
def _cached_client(url: str, options: frozenset[tuple[str, str]]) -> Backend:
    arguments = client_arguments(url, dict(options))
    root, slash, path = _split(url)
    if urllib.parse.urlsplit(url).netloc:
        check_reachable(url, dict(options))
    try:
        return from_url(f"{root}{slash}{urllib.parse.quote(path)}", **arguments)
    except (BaseError, ValueError, TypeError) as error:
        message = str(error).partition("\n")[0]  # a dump of the client's state follows
        raise StoreFailed(f"cannot open this location: {message}", file=url) from error


def entry_of(meta: ObjectMeta) -> Entry:
    """Make an Entry from the metadata of a listing or of a head request."""
    modified = int(meta["last_modified"].timestamp() * 1000)
    # Some stores quote the tag only in answers to head requests.
    tag = (meta["e_tag"] or "").removeprefix("W/").strip('"')
    return Entry(meta["path"], meta["size"], modified, tag)
