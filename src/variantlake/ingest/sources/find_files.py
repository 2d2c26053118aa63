"""Which files a folder or a glob means: one rule for loads and autoloads, disks and object stores.

Names that start with `_` or `.` are left out, as Spark does (`_SUCCESS`), of files and of folders,
unless the glob's own part for them starts so as well.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from variantlake.errors import InvalidValue, MissingSource
from variantlake.storage.unreachable import disk_failure

SUFFIXES = (".ndjson", ".jsonl", ".json")
"""Names that a folder's files must end with to be read; globs and single files may have any."""

COMPRESSED_SUFFIXES = ("", ".gz", ".zst", ".bz2")
"""What may follow one of SUFFIXES."""

_MAGIC = re.compile(r"[*?[]|\{(?=[^}]*,.*\})")
"""What makes a name a pattern; braces without a comma are part of a name, as in a shell."""

_MOST_GLOBS = 1_000
"""Our limit on what the braces of one glob stand for."""

_HIDDEN = ("_", ".")


@dataclass(frozen=True, slots=True)
class SourceKind:
    """What a folder is read for: files whose names end so, in letters of any case."""

    suffixes: tuple[str, ...]
    noun: str
    hint: str

    def accepts(self, name: str) -> bool:
        """Whether a folder's file is one of them."""
        return name.lower().endswith(self.suffixes)


NDJSON = SourceKind(
    tuple(json + packed for json in SUFFIXES for packed in COMPRESSED_SUFFIXES),
    "newline-delimited JSON",
    f"files must end with {', '.join(SUFFIXES)} (and .gz, .zst, .bz2); use a glob for others",
)
RECORDS = {
    form: SourceKind(
        tuple(name + packed for name in names for packed in COMPRESSED_SUFFIXES),
        f"file of {form}",
        f"files must end with {', '.join(names)} (and .gz, .zst, .bz2); use a glob for others",
    )
    for form, names in {
        "csv": (".csv", ".tsv"),
        "avro": (".avro",),
        "msgpack": (".msgpack", ".mpk"),
        "bson": (".bson",),
    }.items()
}
"""By the names of formats: files of records that are not JSON."""

PARQUET = SourceKind(
    (".parquet",), "Parquet file", "files must end with .parquet; use a glob for others"
)


@dataclass(frozen=True, slots=True)
class FilePattern:
    """Which files of a folder are meant: those of a glob, or all of a kind.

    `pattern` and `parts`, its parts by folder, are regular expressions; without parts any folder is
    entered. `hidden` says that the glob asks for files that start with `_` or `.`, `hidden_folders`
    for each part those of its alternatives that do.
    """

    kind: SourceKind = NDJSON
    pattern: str | None = None
    parts: tuple[str, ...] = ()
    hidden: bool = False
    hidden_folders: tuple[str, ...] = ()

    @classmethod
    def of(cls, pattern: str, kind: SourceKind = NDJSON) -> Self:
        """A glob, from the folder on. Raises InvalidValue as `without_braces`."""
        globs = [each.split("/") for each in without_braces(pattern)]
        parts: list[list[str]] = []
        if "**" not in pattern and len({len(each) for each in globs}) == 1:
            parts = [sorted(set(part)) for part in zip(*globs, strict=True)]
        return cls(
            kind,
            _any_of("/".join(each) for each in globs),
            tuple(map(_any_of, parts)),
            any(each[-1].startswith(_HIDDEN) for each in globs),
            tuple(_any_of(each for each in part if each.startswith(_HIDDEN)) for part in parts),
        )

    @classmethod
    def one(cls, name: str) -> Self:
        """The file of just this name."""
        return cls(pattern=re.escape(name), parts=(re.escape(name),), hidden=True)

    @classmethod
    def below(cls, text: str, kind: SourceKind = NDJSON) -> tuple[str, Self]:
        """The folder that a glob begins with, and what of it is wanted; else all of a folder."""
        found = _MAGIC.search(text)
        if found is None:
            return text.rstrip("/"), cls(kind)
        folder = text[: found.start()].rpartition("/")[0]
        return folder, cls.of(text[len(folder) :].lstrip("/"), kind)

    def accepts(self, name: str) -> bool:
        """Whether a file is wanted."""
        *folders, last = name.split("/")
        if any(self._hides(folder, depth) for depth, folder in enumerate(folders)):
            return False
        if last.startswith(_HIDDEN) and not self.hidden:
            return False
        if self.pattern is None:
            return self.kind.accepts(last)
        if re.fullmatch(self.pattern, name):
            return True
        # A folder that the pattern means is taken with all that is in it.
        above = ("/".join(folders[: depth + 1]) for depth in range(len(folders)))
        meant = any(re.fullmatch(self.pattern, folder) for folder in above)
        return meant and self.kind.accepts(last)

    def enters(self, folder: str) -> bool:
        """Whether a wanted file may be below a folder."""
        *above, name = folder.split("/")
        depth = len(above)  # each part was looked at on the way here
        if self._hides(name, depth):
            return False
        return depth >= len(self.parts) or bool(re.fullmatch(self.parts[depth], name))

    def _hides(self, folder: str, depth: int) -> bool:
        if not folder.startswith(_HIDDEN):
            return False
        named = self.hidden_folders[depth] if depth < len(self.hidden_folders) else ""
        return not (named and re.fullmatch(named, folder))


def names_below(root: str, wanted: FilePattern, after: bytes = b"") -> Iterator[bytes]:
    """The wanted files of a folder on a disk, by their paths from it, in the order of these bytes.

    Only those after a name. Links to files are followed, and links to folders if a glob without
    `**` names them.

    Raises MissingSource if there is no such folder, StoreFailed for one that cannot be listed.
    """
    yield from _names(os.fsencode(root), b"", wanted, after)


def _names(root: bytes, folder: bytes, wanted: FilePattern, after: bytes) -> Iterator[bytes]:
    follows = folder.count(b"/") < len(wanted.parts)
    for name, is_folder in _entries(root, folder, follows=follows):
        path = folder + name
        if not is_folder:
            if path > after and wanted.accepts(os.fsdecode(path)):
                yield path
        elif (path > after or after.startswith(path)) and wanted.enters(os.fsdecode(path[:-1])):
            yield from _names(root, path, wanted, after)


def _entries(root: bytes, folder: bytes, *, follows: bool) -> list[tuple[bytes, bool]]:
    """What is in a folder, in the order of whole paths: names of folders end with a slash."""
    path = root + b"/" + folder
    found = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=follows):
                    found.append((entry.name + b"/", True))
                elif entry.is_file():
                    found.append((entry.name, False))
    except (FileNotFoundError, NotADirectoryError) as error:
        if not folder:
            raise MissingSource("the source does not exist", file=os.fsdecode(root)) from error
    except OSError as error:
        raise disk_failure(error, os.fsdecode(path), "the folder cannot be listed") from error
    return sorted(found)


def is_pattern(text: str) -> bool:
    """Whether a name is a glob, unless a file has just this name."""
    return _MAGIC.search(text) is not None


def without_braces(pattern: str) -> list[str]:
    """The globs that a glob with alternatives (`{a,b}`) stands for, as in a shell.

    Raises InvalidValue if these are more than a thousand.
    """
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        text = waiting.pop()
        group = _first_group(text)
        if group is None:
            done.append(text)
        else:
            start, end, inner = group
            waiting += [text[:start] + each + text[end:] for each in reversed(inner)]
        if len(done) + len(waiting) > _MOST_GLOBS:
            raise InvalidValue(
                f"the braces of {pattern[:100]!r} expand to more than {_MOST_GLOBS:,} names",
                hint="name folders, or use * and ?",
            )
    return done


def _first_group(text: str) -> tuple[int, int, list[str]] | None:
    """The first pair of braces with a comma of their own: its ends, and its alternatives."""
    for start in (at for at, char in enumerate(text) if char == "{"):
        depth, begin, inner = 0, start + 1, []
        for at in range(start, len(text)):
            char = text[at]
            depth += (char == "{") - (char == "}")
            if (char == "," and depth == 1) or (char == "}" and depth == 0):
                inner.append(text[begin:at])
                begin = at + 1
            if depth == 0:
                break
        if depth == 0 and len(inner) > 1:
            return start, begin, inner
    return None


def _any_of(patterns: Iterable[str]) -> str:
    """Patterns as one regular expression; one that is empty if there is none."""
    return "|".join(f"(?:{pattern_regex(each)})" for each in patterns)


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
