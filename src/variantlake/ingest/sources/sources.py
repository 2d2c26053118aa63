"""Find the files that a load reads, and split them among tasks.

The user names files, globs or folders of JSON documents, on a disk or in an object store, plain or
compressed (gzip, zstd, bz2). The first bytes of a file tell its compression, not its name: no JSON
text starts with them. The user must say whether a file has one document per line, or is one array
of documents or one document: a line may be an array as well.
"""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from variantlake.errors import (
    InvalidValue,
    MissingSource,
    UnsupportedFeature,
    VariantLakeError,
    describe_type,
)
from variantlake.ingest.sources.document_format import DocumentFormat
from variantlake.ingest.sources.find_files import (
    COMPRESSED_SUFFIXES,
    NDJSON,
    RECORDS,
    FilePattern,
    SourceKind,
    is_pattern,
    names_below,
)
from variantlake.ingest.sources.objects import find_objects
from variantlake.ingest.sources.signatures import (
    HEAD_BYTES,
    Compression,
    compression_of,
    known_compression,
)
from variantlake.shown import Shown
from variantlake.storage.objects import open_object
from variantlake.storage.options import reach_with
from variantlake.storage.schemes import check_scheme
from variantlake.storage.store import is_local, local_path
from variantlake.storage.unreachable import disk_hint

SourceSpec = str | os.PathLike[str]
"""A file, a glob or a folder, as a path or a URL (`file:`, `s3:`, `gs:`, `az:`)."""

_OBJECT_STORES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "http", "https")
_PARALLEL_REQUESTS = 16


@dataclass(frozen=True, slots=True)
class Source:
    """One file of documents.

    `path` is absolute, or a URL, since tasks may run elsewhere. `size` is in bytes as stored,
    compressed or not. `name` is that of the source if the file is a copy of it.
    """

    path: str
    size: int
    compression: Compression = Compression.NONE
    format: DocumentFormat = DocumentFormat.LINES
    name: str = ""

    @property
    def label(self) -> str:
        """The name of the source in errors and columns."""
        return self.name or self.path

    @property
    def divisible(self) -> bool:
        """Whether tasks can share the file, because lines can be found from anywhere in it."""
        return self.compression is Compression.NONE and self.format is DocumentFormat.LINES


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A local copy of a source; errors and columns have the source's name."""

    path: str
    name: str

    def __fspath__(self) -> str:
        """Return the path of the file."""
        return self.path


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a source for one task: the lines that *start* in the bytes [start, end).

    A source that is not divisible has one split, with `start` 0 and `end` its size.
    """

    source: Source
    start: int
    end: int

    @property
    def size(self) -> int:
        """Bytes of the source, as stored."""
        return self.end - self.start


@dataclass(frozen=True, slots=True, repr=False)
class Documents(Shown):
    """Documents to load: the files that `ndjson`, `json_array` or `json_files` found, in order."""

    sources: tuple[Source, ...]

    @classmethod
    def of(
        cls,
        given: Documents | SourceSpec | Iterable[SourceSpec],
        format: str | None = None,  # noqa: A002 - the name that users give it
    ) -> Documents:
        """Find the files that a caller names. By default, the ends of their names tell the format.

        Raises InvalidValue for an argument that names no files, and for an unknown format; else as
        `ndjson`.
        """
        if isinstance(given, Documents):
            if format is not None:
                raise InvalidValue(
                    f"format={format!r} is given, but the documents already have a format",
                    hint="leave it out, or give the paths alone",
                )
            return given
        named = specs(given)
        names = [each.name if isinstance(each, NamedFile) else os.fspath(each) for each in named]
        form = DocumentFormat.of(format, names)
        return cls(tuple(replace(each, format=form) for each in expand(named, form.kind)))


def ndjson(*sources: SourceSpec, storage_options: Mapping[str, str] | None = None) -> Documents:
    """Name newline-delimited JSON files to load into a table.

    Args:
        *sources: Files, globs (`**` enters folders) or folders, plain, gzip, zstd or bz2;
            also URLs of object stores (`s3://`, `gs://`, `az://`), where a prefix is a folder.
        storage_options: Options to access their buckets, as for `Table.open`.

    Raises:
        MissingSource: A source does not exist, or a glob or folder holds no file to read.
        UnsupportedFeature: By its first bytes, a file is not JSON in UTF-8, or has an unsupported
            compression.
        StoreFailed: An object store does not answer.

    Examples:
        >>> t.append(vl.ndjson("more.ndjson")).rows_written
        1
    """
    reach_with(sources, storage_options)
    return Documents.of(sources, DocumentFormat.LINES)


def json_array(*sources: SourceSpec, storage_options: Mapping[str, str] | None = None) -> Documents:
    """Name files that are one JSON array each, whose elements are the documents.

    A file may have many lines, and be larger than memory; one task reads one file.

    Args:
        *sources: As for `ndjson`.
        storage_options: As for `ndjson`.

    Raises:
        MissingSource, StoreFailed: As `ndjson`.
    """
    reach_with(sources, storage_options)
    return Documents.of(sources, DocumentFormat.ARRAY)


def json_files(*sources: SourceSpec, storage_options: Mapping[str, str] | None = None) -> Documents:
    """Name files that are one document each, on any number of lines.

    Args:
        *sources: As for `ndjson`.
        storage_options: As for `ndjson`.

    Raises:
        MissingSource, InvalidJson, StoreFailed: As `ndjson`.
    """
    reach_with(sources, storage_options)
    return Documents.of(sources, DocumentFormat.WHOLE)


def expand(
    sources: SourceSpec | Iterable[SourceSpec], kind: SourceKind = NDJSON
) -> tuple[Source, ...]:
    """Find the files that `sources` name, in the given order, sorted within a glob or folder.

    A file that is named several times is read once. Like Spark, globs and folders leave out names
    that start with `_` or `.` (`_SUCCESS`). A folder includes its subfolders, and only files of the
    `kind`.

    Raises MissingSource as `ndjson`, UnsupportedFeature for a URL of an unknown store.
    """
    given = specs(sources)
    if not given:
        raise MissingSource("no source was given", hint="name a file, a glob or a folder")
    found: dict[str, Source] = {}
    for spec in given:
        text = os.fspath(spec)
        try:
            if is_local(text) and not os.path.lexists(text):
                check_scheme(text)
            if is_local(text):
                name = spec.name if isinstance(spec, NamedFile) else ""
                for path in _files(local_path(text), kind):
                    source = _source(path, kind, name)
                    found.setdefault(os.path.realpath(path), source)
            else:
                found.update((source.path, source) for source in _objects(text, kind))
        except VariantLakeError:
            raise  # some are OSErrors too
        except (OSError, ValueError) as error:
            # The name cannot be that of a file: it is too long, or has a NUL.
            raise MissingSource(
                f"the source cannot be looked up: {getattr(error, 'strerror', None) or error}",
                file=os.fspath(spec),
                hint="name a file, a glob or a folder",
            ) from error
    return tuple(found.values())


def specs(sources: SourceSpec | Iterable[SourceSpec]) -> list[SourceSpec]:
    """Return the named sources as a list. Raises InvalidValue for other arguments."""
    if isinstance(sources, str | os.PathLike):
        return [sources]
    given: Any = sources
    # Tables and frames are iterable, too, by column.
    if isinstance(given, list | tuple | set | frozenset | Iterator):
        specs = list(given)
        wrong = [each for each in specs if not isinstance(each, str | os.PathLike)]
        if not wrong:
            return specs
        if isinstance(wrong[0], list | tuple):
            raise InvalidValue(
                "a list of files cannot contain a list",
                hint="vl.ndjson(*paths), and so for vl.json_array and vl.json_files",
                cli_hint="",
            )
        given = wrong[0]
    raise InvalidValue(
        f"files are named by paths or URLs, not by {describe_type(given)}",
        hint="append data that is in memory: lake.append(table, frame) takes "
        "Spark's DataFrames, Table.append(data) Arrow's tables",
        cli_hint="",
    )


def split_sources(sources: Iterable[Source], target_bytes: int) -> tuple[Split, ...]:
    """Divide sources into ranges of about `target_bytes`, in order; some are not divisible."""
    splits: list[Split] = []
    for source in sources:
        if not source.divisible:
            splits.append(Split(source, 0, source.size))
            continue
        parts = max(1, round(source.size / target_bytes))
        edges = [source.size * i // parts for i in range(parts + 1)]
        splits.extend(Split(source, start, end) for start, end in itertools.pairwise(edges))
    return tuple(splits)


def _files(path: str, kind: SourceKind) -> Iterator[str]:
    """Yield the files of one path, glob or folder. Raises MissingSource when there are none."""
    # An existing file whose name looks like a pattern (`a[1].json`) is not a glob.
    is_glob = is_pattern(path) and not os.path.lexists(path)
    if not is_glob and not Path(path).is_dir():
        yield path
        return
    folder, wanted = path, FilePattern(kind)
    if is_glob:
        folder, wanted = FilePattern.below(str(Path(path).absolute()), kind)
    found = False
    if Path(folder or "/").is_dir():
        for name in names_below(folder, wanted):
            found = True
            yield f"{folder}/{os.fsdecode(name)}"
    if not found and is_glob:
        raise MissingSource(
            "no file matches this pattern",
            file=path,
            hint=_hint_for(path),
            cli_hint="check the spelling; in a shell a pattern needs quotes",
        )
    if not found:
        raise MissingSource(f"the folder holds no {kind.noun}", file=path, hint=kind.hint)


def _hint_for(path: str) -> str:
    """Return the hint for a path that does not exist, for callers in Python."""
    if os.path.basename(path).startswith(("{", "[")):  # noqa: PTH119 - it may be no path
        return "JSON itself is given as bytes: append(text.encode())"
    return "check the spelling"


def _source(path: str, kind: SourceKind, name: str) -> Source:
    """Make the source of the file at `path`, with its size and compression; `name` as in Source.

    Raises MissingSource, UnsupportedFeature as `compression_of`.
    """
    path = str(Path(path).absolute())
    try:
        status = os.stat(path)  # noqa: PTH116 - one call for kind and size
        if not stat.S_ISREG(status.st_mode):
            raise MissingSource(
                "the source is not a regular file",
                file=path,
                hint="name a file, a glob or a folder",
            )
        with Path(path).open("rb") as file:
            head = file.read(HEAD_BYTES)
    except VariantLakeError:
        raise  # some are OSErrors too
    except (FileNotFoundError, NotADirectoryError) as error:
        raise MissingSource(
            "the source does not exist",
            file=path,
            hint=_hint_for(path),
            cli_hint="check the spelling; globs need quotes",
        ) from error
    except PermissionError as error:
        raise MissingSource(
            "no permission to read the source", file=path, hint=disk_hint(error)
        ) from error
    compression = _compression(head, name or path, kind)
    return Source(path, status.st_size, compression, name=name)


def _objects(url: str, kind: SourceKind) -> Iterator[Source]:
    """Yield the objects of a URL. Raises MissingSource, StoreFailed."""
    scheme = url.partition("://")[0].lower()
    if scheme not in _OBJECT_STORES:
        raise UnsupportedFeature(
            f"cannot read sources from {scheme}://",
            file=url,
            hint=f"name a local path or a URL of {', '.join(_OBJECT_STORES)}; or read with Spark "
            "and use lake.append",
            cli_hint=f"name a local path or a URL of {', '.join(_OBJECT_STORES)}",
        )

    def source(found: tuple[str, int]) -> Source:
        path, size = found
        if not size:
            return Source(path, 0)
        store, name = open_object(path)
        head = store.read_range(name, 0, min(size, HEAD_BYTES))
        return Source(path, size, _compression(head, path, kind))

    with ThreadPoolExecutor(_PARALLEL_REQUESTS) as pool:
        yield from pool.map(source, find_objects(url, kind))


def _compression(head: bytes, path: str, kind: SourceKind) -> Compression:
    # For other kinds, their readers raise the errors.
    if kind in RECORDS.values() and path.lower().endswith(COMPRESSED_SUFFIXES[1:]):
        return known_compression(head)
    return compression_of(head, path) if kind is NDJSON else Compression.NONE
