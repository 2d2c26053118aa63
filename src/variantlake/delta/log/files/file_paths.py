"""Paths of data files as a log writes them, and where they lead.

A path in the log is a URI: percent-encoded, relative to the table's root or absolute. A relative
path must not leave the table. An absolute path is legal (a shallow clone writes them), but a
stranger's table may name any file with one, so a setting of the process can refuse them.
Spec: PROTOCOL, "Add File and Remove File".
"""

from __future__ import annotations

import enum
import os
import re
import urllib.parse
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array, arrow_scalar
from variantlake.errors import AbsolutePathRefused, InvalidValue, MalformedLog
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.storage.store import is_local

# RFC 2396 allows these unescaped in a path; the colon is escaped so that no relative path looks
# like a URL.
_UNESCAPED = "/!$&'()*+,;=@-._~"
_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")
# Matches every path that is not a plain relative name.
_SPECIAL = r"^/|^$|[%:\x00]|(^|/)\.{1,2}(/|$)|//|/$"


class SupportsColumns(Protocol):
    """Files of a table: `logical_files.LogicalFiles`."""

    def __getitem__(self, name: str, /) -> Any: ...


ABSOLUTE_PATHS = "VARIANTLAKE_ABSOLUTE_PATHS"
"""The environment variable that holds the setting: child processes inherit it."""


class AbsolutePaths(enum.StrEnum):
    """What to do about tables that name files by absolute paths."""

    ALLOW = "allow"
    REFUSE = "refuse"

    @classmethod
    def setting(cls) -> AbsolutePaths:
        """Return the setting of this process. Raises InvalidValue for an unknown value."""
        return cls.of(os.environ.get(ABSOLUTE_PATHS) or cls.ALLOW, ABSOLUTE_PATHS)

    @classmethod
    def of(cls, value: str, name: str) -> AbsolutePaths:
        """Return the policy `value`, given for `name`. Raises InvalidValue for an unknown value."""
        try:
            return cls(value)
        except ValueError:
            raise InvalidValue(
                f"{name} is {value!r}", hint=f"one of {', '.join(map(repr, map(str, cls)))}"
            ) from None


def set_absolute_paths(policy: Literal["allow", "refuse"]) -> None:
    """Say whether tables that are opened from now on may name files by absolute paths.

    A shallow clone does, so `"allow"` is the default. Open tables of strangers with `"refuse"`:
    otherwise they can make this process open any file that it may read. The policy holds for data
    files, deletion vectors and sidecars of checkpoints, in this process and its child processes.
    The environment variable VARIANTLAKE_ABSOLUTE_PATHS sets it from outside.

    Raises InvalidValue for another value.
    """
    os.environ[ABSOLUTE_PATHS] = AbsolutePaths.of(policy, "the policy")


def encode_path(path: str) -> str:
    """Return a relative path as the log writes it."""
    return urllib.parse.quote(path, safe=_UNESCAPED)


def decode_path(path: str) -> str:
    """Percent-decode a path, and normalize `file:` URLs, so that all spellings of a file agree.

    Raises MalformedLog for a path that is not a URI of UTF-8 text.
    """
    try:
        decoded = urllib.parse.unquote(path, errors="strict")
    except UnicodeDecodeError as error:
        raise MalformedLog(f"path {path!r} is not UTF-8 when decoded") from error
    if decoded[:5].lower() == "file:":
        return "file:///" + decoded[5:].lstrip("/")
    return decoded


def decoded_paths(paths: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """Apply `decode_path` to a column; returns a column without escapes or URLs unchanged."""
    if not any(_has_byte(_bytes(chunk)[0], b"%:") for chunk in paths.chunks):
        return paths
    names: list[Any] = paths.to_pylist()
    return pa.chunked_array([arrow_array([decode_path(path) for path in names], pa.string())])


def check_paths(paths: pa.ChunkedArray[Any], policy: AbsolutePaths) -> None:
    """Check where paths lead.

    Raises MalformedLog for one that leaves the table by `..` or names no file, AbsolutePathRefused
    for an absolute one if the policy refuses them.
    """
    for path in _special_paths(paths):
        if is_absolute(path):
            check_absolute(path, policy)
            decode_path(path)
        else:
            _inside(path)


def _special_paths(paths: pa.ChunkedArray[Any]) -> list[str]:
    """Return the paths that are not plain relative names."""
    chunks = [chunk for chunk in paths.chunks if len(chunk) and _may_be_special(chunk)]
    some = pa.chunked_array(chunks, pa.string())
    found: list[Any] = some.filter(pc.match_substring_regex(some, _SPECIAL)).to_pylist()
    return found


def are_plain(paths: Any) -> bool:
    """Whether all paths of an array are plain relative names; in rare cases wrongly false."""
    return not len(paths) or not _may_be_special(paths)


def _may_be_special(paths: Any) -> bool:
    """Whether a path of an array may match _SPECIAL. Looks only at bytes, which is fast."""
    data, starts, ends = _bytes(paths)
    if (starts == ends).any() or _has_byte(data, b"%:\0"):
        return True
    slashes = np.flatnonzero(data == ord("/"))
    behind = data[np.minimum(slashes + 1, len(data) - 1)]
    first, last = data[starts], data[ends - 1]
    return _has_byte(behind, b"/.") or _has_byte(first, b"/.") or _has_byte(last, b"/")


def _has_byte(data: npt.NDArray[np.uint8], wanted: bytes) -> bool:
    return any(bool((data == byte).any()) for byte in wanted)


def _bytes(paths: Any) -> tuple[npt.NDArray[np.uint8], Int64s, Int64s]:
    """Return the bytes of an array of strings without nulls, and each string's begin and end."""
    _, offsets, data = paths.buffers()
    if not len(paths) or data is None:
        return np.zeros(0, np.uint8), np.zeros(len(paths), np.int64), np.zeros(len(paths), np.int64)
    places = np.frombuffer(offsets, np.int32)[paths.offset : paths.offset + len(paths) + 1]
    text = np.frombuffer(data, np.uint8)[places[0] : places[-1]]
    places = places.astype(np.int64) - places[0]
    return text, places[:-1], places[1:]


def check_vectors(vectors: pa.ChunkedArray[Any], policy: AbsolutePaths) -> None:
    """Raise AbsolutePathRefused for a deletion vector at an absolute path that the policy refuses.

    `vectors` is the column `deletion_vector` of a table's files.
    """
    if policy is AbsolutePaths.REFUSE:
        for path in absolute_vectors(vectors):
            check_absolute(path, policy)


def check_absolute(path: str, policy: AbsolutePaths) -> None:
    """Raise AbsolutePathRefused for an absolute path if the policy refuses them."""
    if policy is AbsolutePaths.REFUSE and is_absolute(path):
        raise AbsolutePathRefused(
            f"the table refers to a file by an absolute path: {path}",
            hint="a shallow clone does, and hostile tables do; where you know whose table it is, "
            "vl.set_absolute_paths('allow') allows it",
            cli_hint="a shallow clone does, and hostile tables do; where you know whose table it "
            f"is, leave out --no-absolute-paths and {ABSOLUTE_PATHS}",
        )


def is_absolute(path: str) -> bool:
    """Whether a path of a log is absolute: it begins with a slash or with the scheme of a URL."""
    return _ABSOLUTE.match(path) is not None


def absolute_paths(files: SupportsColumns) -> list[str]:
    """Return the distinct absolute paths, as in the log, of data files and deletion vectors."""
    found = [path for path in _special_paths(files["path"]) if is_absolute(path)]
    return list(dict.fromkeys(found + absolute_vectors(files["deletion_vector"])))


def absolute_vectors(vectors: pa.ChunkedArray[Any]) -> list[str]:
    """Return the absolute paths of deletion vectors. Spec: PROTOCOL, storage type `p`."""
    if vectors.null_count == len(vectors):
        return []
    there: Any = vectors.drop_null()
    at_path = pc.equal(pc.struct_field(there, "storage_type"), arrow_scalar("p", pa.string()))
    paths: list[str] = pc.struct_field(there.filter(at_path), "path_or_inline_dv").to_pylist()
    return paths


def locate(path: str, root: str) -> str:
    """Return where the file is: a plain path on a local disk, else a URL, neither percent-encoded.

    `root` is the table's own location, in the same form. Raises MalformedLog as `check_paths`.
    """
    if not is_absolute(path):
        return f"{root}/{_inside(path)}"
    decoded = decode_path(path)
    if not decoded.startswith("/"):
        # Already decoded: only the scheme of a `file:` URL is left to remove.
        return decoded.removeprefix("file://")
    if is_local(root):
        return decoded
    parts = urllib.parse.urlsplit(root)
    return f"{parts.scheme}://{parts.netloc}{decoded}"


def located(paths: pa.ChunkedArray[Any], root: str) -> list[str]:
    """Apply `locate` to a column."""
    if len(paths) == 0:
        return []  # PyArrow 26.0.0 crashes in indices_nonzero without chunks
    special = pc.match_substring_regex(paths, _SPECIAL)
    found = [f"{root}/{path}" for path in paths.to_pylist()]
    rows: list[Any] = pc.indices_nonzero(special).to_pylist()
    for row in rows:
        found[row] = locate(paths[row].as_py(), root)
    return found


def _inside(path: str) -> str:
    """Decode a relative path and remove `.` and `..`. Raises MalformedLog as `check_paths`."""
    steps: list[str] = []
    decoded = decode_path(path)
    for step in decoded.split("/"):
        if step == "..":
            if not steps:
                raise MalformedLog(f"path {path!r} leaves the table's folder")
            steps.pop()
        elif step not in ("", "."):
            steps.append(step)
    if not steps or "\0" in decoded:
        raise MalformedLog(f"path {path!r} names no file")
    return "/".join(steps)
