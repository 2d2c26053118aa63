"""Which files a load reads, and how they are split among tasks.

A source is a file, a glob or a directory of newline-delimited JSON, plain or compressed (gzip,
zstd, bz2). What a file is compressed with is told by its first bytes, not by its name: no JSON
text starts like one of them.
"""

from __future__ import annotations

import enum
import glob
import itertools
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from variantlake.errors import InvalidJson, MissingSource, UnsupportedFeature, VariantLakeError

SUFFIXES = (".ndjson", ".jsonl", ".json")
"""Names that a directory's files must end with to be read; globs and single files may have any."""

COMPRESSED_SUFFIXES = ("", ".gz", ".zst", ".bz2")
"""What may follow one of SUFFIXES."""

SourceSpec = str | os.PathLike[str]
"""A file, a glob or a directory, as a path or a `file:` URI."""


class Compression(enum.Enum):
    """How a source's bytes become text; the value is Arrow's name of the codec."""

    NONE = ""
    GZIP = "gzip"
    ZSTD = "zstd"
    BZ2 = "bz2"


_MAGIC = {
    b"\x1f\x8b": Compression.GZIP,
    b"\x28\xb5\x2f\xfd": Compression.ZSTD,
    b"BZh": Compression.BZ2,
}


@dataclass(frozen=True, slots=True)
class Source:
    """One file of newline-delimited JSON.

    `path` is absolute, as tasks run elsewhere. `size` is in bytes as stored, compressed or not.
    """

    path: str
    size: int
    compression: Compression = Compression.NONE


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a source that one task reads: the lines that *start* in [start, end) bytes.

    Compressed sources are never divided: their one split has `start` 0 and `end` their size.
    """

    source: Source
    start: int
    end: int

    @property
    def size(self) -> int:
        """Bytes of the source, as stored."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class NdJson:
    """Documents to load: the files that `ndjson` found, in order."""

    sources: tuple[Source, ...]


def ndjson(*sources: SourceSpec) -> NdJson:
    """Newline-delimited JSON files as something to append to a table.

    Args:
        *sources: Files, globs (`**` enters directories) or directories, plain, gzip, zstd or bz2.

    Raises:
        MissingSource: A source does not exist, or a glob or directory holds no file to read.
        InvalidJson: A file of zero bytes.
    """
    return NdJson(expand(sources))


def expand(sources: SourceSpec | Iterable[SourceSpec]) -> tuple[Source, ...]:
    """The files that `sources` name: in the order given, sorted within a glob or directory.

    A file that is named more than once is read once. In globs and directories names that start
    with `_` or `.` are left out, as Spark does (`_SUCCESS`); a directory is read with its
    subdirectories, and only files that end with one of SUFFIXES (and a compression's suffix).

    Raises MissingSource and InvalidJson as `ndjson`.
    """
    given = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    if not given:
        raise MissingSource("no source was given", hint="name a file, a glob or a directory")
    found: dict[str, Source] = {}
    for spec in given:
        try:
            for path in _files(_local_path(os.fspath(spec))):
                found.setdefault(os.path.realpath(path), _source(path))
        except VariantLakeError:
            raise  # some are OSErrors too
        except (OSError, ValueError) as error:
            # Names that no file can have: too long, or with a NUL.
            raise MissingSource(
                f"the source cannot be looked up: {getattr(error, 'strerror', None) or error}",
                file=os.fspath(spec),
                hint="name a file, a glob or a directory",
            ) from error
    return tuple(found.values())


def split_sources(sources: Iterable[Source], target_bytes: int) -> tuple[Split, ...]:
    """Divide plain sources into ranges of about `target_bytes`, in order; compressed stay whole."""
    splits: list[Split] = []
    for source in sources:
        if source.compression is not Compression.NONE:
            splits.append(Split(source, 0, source.size))
            continue
        parts = max(1, round(source.size / target_bytes))
        edges = [source.size * i // parts for i in range(parts + 1)]
        splits.extend(Split(source, start, end) for start, end in itertools.pairwise(edges))
    return tuple(splits)


def group_splits(splits: Sequence[Split], target_bytes: int) -> tuple[tuple[Split, ...], ...]:
    """Neighbouring splits as the work of one task, while they stay within `target_bytes` together.

    Keeps many small files from becoming as many small Parquet files, and keeps their order.
    """
    groups: list[list[Split]] = []
    filled = 0
    for split in splits:
        if not groups or filled + split.size > target_bytes:
            groups.append([])
            filled = 0
        groups[-1].append(split)
        filled += split.size
    return tuple(map(tuple, groups))


def empty_source(path: str) -> InvalidJson:
    """A source of zero bytes, said rather than skipped: most often it is an upload that failed."""
    return InvalidJson(
        "the file is empty: it holds no document",
        file=path,
        line=1,
        column=1,
        hint="leave it out of the sources",
    )


def _local_path(text: str) -> str:
    """The path of a `file:` URI; other text is a path already."""
    if "://" not in text and not text.startswith("file:"):
        return text
    uri = urlsplit(text)
    if uri.scheme != "file" or uri.netloc not in ("", "localhost"):
        raise UnsupportedFeature(
            f"cannot read sources from {uri.scheme}://",
            file=text,
            hint="name a local path, or read with Spark and use append",
        )
    return unquote(uri.path)


def _files(path: str) -> Iterator[str]:
    """The files that one path, glob or directory means. Raises MissingSource when none."""
    # A file whose own name looks like a pattern (`a[1].json`) is that file.
    if glob.has_magic(path) and not os.path.lexists(path):
        yield from _glob(path)
    elif Path(path).is_dir():
        yield from _directory(path, required=True)
    else:
        yield path


def _glob(pattern: str) -> Iterator[str]:
    hidden = Path(pattern).name.startswith(("_", "."))
    found = False
    for path in sorted(glob.glob(pattern, recursive=True)):  # noqa: PTH207 - absolute patterns
        if not hidden and Path(path).name.startswith(("_", ".")):
            continue
        if Path(path).is_dir():
            # `**` gives directories and their files: the files are matched on their own.
            below = [] if "**" in pattern else list(_directory(path, required=False))
            found = found or bool(below)
            yield from below
        else:
            found = True
            yield path
    if not found:
        raise MissingSource(
            "no file matches this pattern", file=pattern, hint="quote it from the shell? spelling?"
        )


def _directory(path: str, *, required: bool) -> Iterator[str]:
    found = False
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith(("_", ".")))
        for name in sorted(names):
            if not name.startswith(("_", ".")) and _is_ndjson(name):
                found = True
                yield os.path.join(folder, name)  # noqa: PTH118 - keeps a relative path as given
    if required and not found:
        raise MissingSource(
            "the directory holds no newline-delimited JSON",
            file=path,
            hint=f"files must end with {', '.join(SUFFIXES)} (and .gz, .zst, .bz2); "
            "use a glob for others",
        )


def _is_ndjson(name: str) -> bool:
    return any(name.endswith(json + packed) for json in SUFFIXES for packed in COMPRESSED_SUFFIXES)


def _source(path: str) -> Source:
    """The file at `path` with its size and compression. Raises MissingSource, InvalidJson."""
    path = str(Path(path).absolute())
    try:
        status = os.stat(path)  # noqa: PTH116 - one call for kind and size
        if not stat.S_ISREG(status.st_mode):
            raise MissingSource(
                "the source is not a regular file",
                file=path,
                hint="name a file, a glob or a directory",
            )
        if not status.st_size:
            raise empty_source(path)
        with Path(path).open("rb") as file:
            head = file.read(4)
    except VariantLakeError:
        raise  # some are OSErrors too
    except (FileNotFoundError, NotADirectoryError) as error:
        raise MissingSource(
            "the source does not exist", file=path, hint="check the spelling; globs need quotes"
        ) from error
    except PermissionError as error:
        raise MissingSource(
            "no permission to read the source", file=path, hint="check the file's mode and owner"
        ) from error
    codec = next((c for magic, c in _MAGIC.items() if head.startswith(magic)), Compression.NONE)
    return Source(path, status.st_size, codec)
