"""Find sources in object stores: one object, a glob, or all below a prefix."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import obstore
from obstore.exceptions import BaseError

from variantlake.errors import MissingSource, StoreFailed
from variantlake.storage.objects import ObjectStore, open_object

MAGIC = re.compile(r"[*?[]")
"""What makes a name a pattern."""


def find_objects(url: str, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, int]]:
    """The objects that a URL means, with their sizes in bytes, sorted by name.

    A URL with `*`, `?` or `[` is a pattern, in which `**` enters folders, unless an object has just
    that name. Else it is an object, or the prefix of all objects below it of which `is_wanted`
    takes the last name. Names that start with `_` or `.` below a prefix or pattern are left out.

    Raises MissingSource when there is none, StoreFailed when the store does not answer.
    """
    store, name = open_object(url)
    if name and not name.endswith("/"):
        try:
            yield url, store.size(name)
        except MissingSource:
            pass
        else:
            return
    if MAGIC.search(name):
        found = _matching(store, name)
    else:
        found = _below(store, f"{name.rstrip('/')}/" if name else "", is_wanted)
    listed = sorted(found)
    if not listed:
        raise MissingSource(
            "no object is there, and none below or matching",
            file=url,
            hint="check the spelling; patterns need quotes in a shell",
        )
    for path, size in listed:
        yield store.join(path), size


def _matching(store: ObjectStore, pattern: str) -> Iterator[tuple[str, int]]:
    folder = pattern[: _first_magic(pattern)].rpartition("/")[0]
    matches = re.compile(pattern_regex(pattern)).fullmatch
    hidden = pattern.rpartition("/")[2].startswith(("_", "."))
    for path, size in _listed(store, folder):
        *folders, name = path.removeprefix(folder).split("/")
        shown = hidden or not name.startswith(("_", "."))
        if matches(path) and shown and not any(each.startswith(("_", ".")) for each in folders):
            yield path, size


def _below(
    store: ObjectStore, prefix: str, is_wanted: Callable[[str], bool]
) -> Iterator[tuple[str, int]]:
    for path, size in _listed(store, prefix.rstrip("/")):
        names = path[len(prefix) :].split("/")
        if is_wanted(names[-1]) and not any(name.startswith(("_", ".")) for name in names):
            yield path, size


def _listed(store: ObjectStore, folder: str) -> Iterator[tuple[str, int]]:
    try:
        for page in obstore.list(store.backend, folder or None):
            for meta in page:
                yield meta["path"], meta["size"]
    except (BaseError, OSError, ValueError) as error:
        message = str(error).partition("\n")[0]
        raise StoreFailed(message, file=store.join(folder)) from error


def _first_magic(pattern: str) -> int:
    found = MAGIC.search(pattern)
    return len(pattern) if found is None else found.start()


def pattern_regex(pattern: str) -> str:
    """The pattern as a regular expression: `*` and `?` stay within a name, `**/` does not."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[[!^]?\]?[^\]]*\])", pattern)
    known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(
        known[part]
        if part in known
        else re.sub(r"^\[!", "[^", part).replace("\\", "\\\\")
        if len(part) > 1 and part.startswith("[")
        else re.escape(part)
        for part in parts
    )
