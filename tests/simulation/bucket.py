"""An object store that fails as real ones do, behind the functions of obstore that the package has.

Writes are atomic, reads see the last write, and of conditional puts one wins: what S3 promises.
Everything else may go wrong, by the kinds of `scenario.FAULTS`.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import traceback
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from unittest.mock import patch

from obstore.exceptions import AlreadyExistsError, GenericError

from tests.simulation.world import Actor, Violation, World
from variantlake.autoloading import listing
from variantlake.ingest.sources import objects as source_objects
from variantlake.storage import list_files, objects

SOURCES = "in"
"""The folder of the bucket in which files to be loaded appear."""

_FOR_EVER = 1 << 62
_PAGE = 7
"""Objects of one page of a listing, so few that listings have several."""


class Watcher(Protocol):
    """What looks at each change of the bucket; raises `world.Violation`."""

    def before_put(self, path: str, data: bytes, old: bytes | None, work: Any) -> None:
        """An object is about to be there, put by what the actor did when it asked for it."""

    def before_delete(self, path: str) -> None:
        """An object is about to be gone."""


@dataclass(frozen=True, slots=True)
class Blob:
    """An object. `listed` is the step from which on listings show it."""

    data: bytes
    modified: int
    tag: str
    listed: int = 0


@dataclass(frozen=True, slots=True)
class Client:
    """What `from_url` gives: the objects below a path."""

    bucket: Bucket
    prefix: str

    def full(self, path: str) -> str:
        """A path from the bucket's root."""
        return f"{self.prefix}/{path}".strip("/") if path else self.prefix


class Bucket:
    """The objects, by path, and obstore's functions on clients of them."""

    def __init__(self, world: World, *, page: int = _PAGE) -> None:
        self.world = world
        self.page = page
        self.blobs: dict[str, Blob] = {}
        self._names: list[str] = []
        self.watcher: Watcher | None = None
        self.work: Callable[[Actor], Any] = lambda _: None
        self._tags = 0

    # obstore's functions

    def get(self, client: Client, path: str, *, options: Any = None) -> Answer:
        """The object, or its end."""
        blob = self._read("get", client, path)
        suffix = (options or {}).get("range", {}).get("suffix")
        return Answer(self, blob.data if suffix is None else blob.data[-suffix:], len(blob.data))

    def get_range(self, client: Client, path: str, *, start: int, length: int) -> bytes:
        """Some bytes."""
        return self._read("get range", client, path).data[start : start + length]

    def get_ranges(
        self, client: Client, path: str, *, starts: Sequence[int], lengths: Sequence[int]
    ) -> list[bytes]:
        """Some bytes of several places."""
        data = self._read("get ranges", client, path).data
        return [data[at : at + size] for at, size in zip(starts, lengths, strict=True)]

    def head(self, client: Client, path: str) -> dict[str, Any]:
        """What is said of the object."""
        return _meta(path, self._read("head", client, path))

    def list(
        self, client: Client, prefix: str | None = None, *, offset: str | None = None, **_: Any
    ) -> Iterator[list[dict[str, Any]]]:
        """Pages of what is there when each is asked for."""
        start = len(client.prefix) + 1 if client.prefix else 0
        below = f"{client.full(prefix or '')}/".lstrip("/")
        last = client.full(offset) if offset else ""
        while True:
            self._begin("list", below)
            page = list(itertools.islice(self._listed(below, last), self.page + 1))
            names, page = page, page[: self.page]
            yield [_meta(path[start:], self.blobs[path]) for path in page]
            if len(names) <= self.page:
                return
            last = page[-1]
            if self.world.hits("half"):
                self._lost_connection("the listing ends in its middle")

    def _listed(self, below: str, last: str) -> Iterator[str]:
        """The names below a prefix that come after `last`, as listings show them."""
        shown = self.world.step if not self.world.calm else _FOR_EVER
        for at in range(bisect_right(self._names, max(below, last)), len(self._names)):
            path = self._names[at]
            if not path.startswith(below):
                return
            if self.blobs[path].listed <= shown:
                yield path

    def put(
        self, client: Client, path: str, file: bytes | Path, *, mode: str = "", **_: Any
    ) -> None:
        """Write an object; with the mode "create" only if none is there."""
        data = file.read_bytes() if isinstance(file, Path) else bytes(file)
        full = client.full(path)
        creates = mode == "create"
        self._check_writes(full)
        self._begin("create" if creates else "put", full)
        work = None if (actor := self.world.actor) is None else self.work(actor)
        if actor is not None and isinstance(file, Path) and self.world.hits("slow upload"):
            self.world.stall(actor)
        if full.endswith(".crc") and self.world.hits("refuse checksums"):
            self._lost_connection("this writer writes no checksums")
        if self.world.hits("arrive late") or (creates and self.world.hits("commit late")):
            self.world.later(lambda: self._put(full, data, creates=creates, work=work))
            self._lost_connection("it will arrive late")
        done = self._put(full, data, creates=creates, work=work)
        if done and creates and actor and self.world.hits("kill after a commit"):
            actor.killed = True
            self.world.say(f"{actor.name} {actor.work}: KILLED after {full}")
        if done and self.world.hits("lose the answer"):
            self._lost_connection("it was done")
        if not done or (creates and self.world.hits("answer twice")):
            raise AlreadyExistsError(f"there is an object {path}")

    def delete(self, client: Client, paths: str | Sequence[str]) -> None:
        """Remove objects; those that are not there are not an error."""
        names = [paths] if isinstance(paths, str) else list(paths)
        self._check_writes(", ".join(names))
        self._begin("delete", ", ".join(names))
        if (actor := self.world.actor) is not None and self.world.hits("slow delete"):
            self.world.stall(actor, 300)
        for name in names:
            if len(names) > 1 and self.world.hits("half"):
                self._lost_connection("some are gone")
            self._delete(client.full(name))
        if self.world.hits("lose the answer"):
            self._lost_connection("it was done")

    def copy(self, client: Client, source: str, target: str) -> None:
        """A second object with the same bytes."""
        data = self._read("copy", client, source).data
        self._put(client.full(target), data, creates=False, work=None)

    # What is done, and what goes wrong

    def _begin(self, what: str, path: str) -> None:
        self.world.request(what, path)
        if self.world.actor is not None and self.world.hits("refuse"):
            self._lost_connection("nothing was done")

    def _check_writes(self, path: str) -> None:
        actor = self.world.actor
        if actor is not None and not actor.writes:
            self.world.fail(f"{actor.work} only reads, and writes or deletes {path}")

    def _lost_connection(self, what: str) -> None:
        actor = self.world.actor
        if actor is not None:
            actor.faults += 1
            self.world.say(f"{actor.name}: the call fails, {what}")
        raise GenericError(f"the connection was lost ({what})")

    def _read(self, what: str, client: Client, path: str) -> Blob:
        full = client.full(path)
        self._begin(what, full)
        if full not in self.blobs:
            raise FileNotFoundError(full)
        return self.blobs[full]

    def _put(self, path: str, data: bytes, *, creates: bool, work: Any) -> bool:
        old = self.blobs.get(path)
        if creates and old is not None:
            return False
        if self.watcher is not None:
            self._watch(lambda w: w.before_put(path, data, old.data if old else None, work))
        self._tags += 1
        world = self.world
        # Listings of S3 and its like know whole seconds.
        modified = world.now // 1000 * 1000
        if world.hits("wrong times"):
            modified += world.chance.randrange(-300, 300) * 1000
        late = path.startswith(f"{SOURCES}/") and world.hits("list late")
        listed = world.step + world.chance.randrange(1, 60) if late else 0
        self.keep(path, Blob(data, modified, f"tag-{self._tags}", listed))
        return True

    def keep(self, path: str, blob: Blob) -> None:
        """An object is there from now on."""
        if path not in self.blobs:
            insort(self._names, path)
        self.blobs[path] = blob

    def _delete(self, path: str) -> None:
        if path in self.blobs:
            if self.watcher is not None:
                self._watch(lambda w: w.before_delete(path))
            self.remove(path)

    def remove(self, path: str) -> None:
        """An object is gone, and nobody asked for it."""
        del self.blobs[path]
        del self._names[bisect_left(self._names, path)]

    def remove_below(self, prefix: str) -> None:
        """All objects of a folder are gone, at once."""
        for path in [path for path in self.blobs if path.startswith(f"{prefix}/")]:
            self.remove(path)

    def _watch(self, look: Callable[[Watcher], None]) -> None:
        try:
            if self.watcher is not None:
                look(self.watcher)
        except Violation as error:
            self.world.fail(str(error))
        except Exception as error:  # noqa: BLE001 - else it would look like one of the store
            self.world.fail("".join(traceback.format_exception(error)))

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Within it every URL of the package leads here, whatever its host."""

        def client(url: str, _options: object) -> Client:
            return Client(self, url.partition("://")[2].partition("/")[2].strip("/"))

        with contextlib.ExitStack() as stack:
            stack.enter_context(patch.object(objects, "_cached_client", client))
            for module in (objects, list_files, listing, source_objects):
                stack.enter_context(patch.object(module, "obstore", self))
            yield


@dataclass(frozen=True, slots=True)
class Answer:
    """What `get` gives: the bytes, at once or in pieces, and the size of the object."""

    bucket: Bucket
    data: bytes
    size: int

    @property
    def meta(self) -> dict[str, int]:
        """What is said of the object."""
        return {"size": self.size}

    def stream(self, min_chunk_size: int) -> Iterator[bytes]:
        """In pieces; two, so that one can be missing."""
        half = min(len(self.data) // 2, min_chunk_size)
        yield self.data[:half]
        if self.bucket.world.hits("half"):
            self.bucket._lost_connection("half of the object was read")
        yield self.data[half:]

    def bytes(self) -> bytes:
        """All of it."""
        return self.data


def _meta(path: str, blob: Blob) -> dict[str, Any]:
    moment = dt.datetime.fromtimestamp(blob.modified / 1000, dt.UTC)
    return {"path": path, "size": len(blob.data), "last_modified": moment, "e_tag": blob.tag}
