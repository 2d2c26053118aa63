"""Find sources in object stores: one object, a glob, or all below a prefix."""

from __future__ import annotations

from collections.abc import Iterator

import obstore

from variantlake.errors import MissingSource
from variantlake.ingest.sources.find_files import FilePattern, SourceKind
from variantlake.storage.objects import open_object


def find_objects(url: str, kind: SourceKind) -> Iterator[tuple[str, int]]:
    """Find the objects of a URL, with their sizes in bytes, sorted by name.

    A URL with `*`, `?` or `[` is a pattern, in which `**` enters folders, unless an object has just
    that name. Else it is an object, or the prefix of all objects of the `kind` below it.

    Raises MissingSource when there is none, StoreFailed when the store does not answer.
    """
    store, name = open_object(url)
    if name and not name.endswith("/"):
        entry = store.entry(name)
        if entry is not None:
            yield url, entry.size
            return
    folder, wanted = FilePattern.below(name, kind)
    start = len(folder) + 1 if folder else 0
    with store.failures(folder):
        found = sorted(
            (meta["path"], meta["size"])
            for page in obstore.list(store.backend, folder or None)
            for meta in page
            if wanted.accepts(meta["path"][start:])
        )
    if not found:
        raise MissingSource(
            "no object has this name, lies below it or matches it",
            file=url,
            hint="check the spelling; patterns need quotes in a shell",
        )
    for path, size in found:
        yield store.join(path), size
