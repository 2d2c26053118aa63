"""Find the files of a folder or glob, by one rule for loads and autoloads, disks and object stores.

Like Spark, it leaves out files and folders whose names start with `_` or `.` (`_SUCCESS`), unless
the glob's part for them starts with the same character.
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
"""The ends of names that are read in a folder; globs and single files may have any name."""

COMPRESSED_SUFFIXES = ("", ".gz", ".zst", ".bz2")
"""Suffixes that may follow one of SUFFIXES."""

_MAGIC = re.compile(r"[*?[]|\{(?=[^}]*,.*\})")
"""The characters of a glob; as in a shell, braces without a comma are part of a name."""

_MOST_GLOBS = 1_000
"""Our limit on the globs to which the braces of one glob expand."""

_HIDDEN = ("_", ".")


@dataclass(frozen=True, slots=True)
class SourceKind:
    """The files to read in a folder: those whose names end with `suffixes`, in any case."""

    suffixes: tuple[str, ...]
    noun: str
    hint: str

    def accepts(self, name: str) -> bool:
        """Whether a file of a folder is of this kind."""
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
"""The kinds of files of records that are not JSON, by the names of their formats."""

PARQUET = SourceKind(
    (".parquet",), "Parquet file", "files must end with .parquet; use a glob for others"
)


@dataclass(frozen=True, slots=True)
class FilePattern:
    """Selects files below a folder: those of a glob, or all of a kind.

    `pattern` and `parts`, its parts by folder, are regular expressions; without parts, any folder
    is entered. `hidden` tells that the glob's last part starts with `_` or `.`; `hidden_folders`
    has for each part the alternatives that do.
    """

    kind: SourceKind = NDJSON
    pattern: str | None = None
    parts: tuple[str, ...] = ()
    hidden: bool = False
    hidden_folders: tuple[str, ...] = ()

    @classmethod
    def of(cls, pattern: str, kind: SourceKind = NDJSON) -> Self:
        """Parse a glob, relative to the folder. Raises InvalidValue as `without_braces`."""
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
        """Select the file with exactly this name."""
        return cls(pattern=re.escape(name), parts=(re.escape(name),), hidden=True)

    @classmethod
    def below(cls, text: str, kind: SourceKind = NDJSON) -> tuple[str, Self]:
        """Split a glob into the folder at its start, and the pattern of the rest.

        A text without a pattern is a folder, of which all files are selected.
        """
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
        # If the pattern matches a folder, all files below it are wanted.
        above = ("/".join(folders[: depth + 1]) for depth in range(len(folders)))
        meant = any(re.fullmatch(self.pattern, folder) for folder in above)
        return meant and self.kind.accepts(last)

    def enters(self, folder: str) -> bool:
        """Whether a wanted file may be below a folder."""
        *above, name = folder.split("/")
        depth = len(above)  # the folders above were checked before
        if self._hides(name, depth):
            return False
        return depth >= len(self.parts) or bool(re.fullmatch(self.parts[depth], name))

    def _hides(self, folder: str, depth: int) -> bool:
        if not folder.startswith(_HIDDEN):
            return False
        named = self.hidden_folders[depth] if depth < len(self.hidden_folders) else ""
        return not (named and re.fullmatch(named, folder))


def names_below(root: str, wanted: FilePattern, after: bytes = b"") -> Iterator[bytes]:
    """Yield the wanted files of a local folder, by their relative paths, in the order of bytes.

    Only paths after `after` are returned. Links to files are followed, and links to folders if a
    glob without `**` names them.

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
    """List a folder in the order of whole paths, for which names of folders end with a slash."""
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
    """Whether a name is a glob, unless a file has exactly this name."""
    return _MAGIC.search(text) is not None


def without_braces(pattern: str) -> list[str]:
    """Expand the alternatives (`{a,b}`) of a glob, as a shell does.

    Raises InvalidValue for more than a thousand globs.
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
    """Find the first pair of braces that directly contains a comma: its ends and alternatives."""
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
    """Join patterns to one regular expression; empty without any."""
    return "|".join(f"(?:{pattern_regex(each)})" for each in patterns)


def pattern_regex(pattern: str) -> str:
    """Convert a glob to a regular expression: `*` and `?` match within a name, `**/` folders."""
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
