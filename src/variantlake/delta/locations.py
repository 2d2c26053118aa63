"""Paths of data files as a log writes them, and where they lead.

A path in the log is a URI: percent-encoded, relative to the table's root or absolute. Relative ones
never leave the table; absolute ones are legal (a shallow clone writes them) and under a policy.
Spec: PROTOCOL, "Add File and Remove File".
"""

from __future__ import annotations

import enum
import re
import urllib.parse
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from variantlake.errors import MalformedLog, UnsupportedFeature
from variantlake.storage.store import is_local

# RFC 2396 allows these unescaped in a path; the colon is escaped so that no relative path looks
# like a URL.
_UNESCAPED = "/!$&'()*+,;=@-._~"
_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")
# What may be special about a path; all others are plain relative names.
_SPECIAL = r"^/|^$|[%:\x00]|(^|/)\.{1,2}(/|$)|//|/$"


class AbsolutePaths(enum.Enum):
    """What to do about files outside of the table's own folder."""

    ALLOW = "allow"
    REFUSE = "refuse"


def encode_path(path: str) -> str:
    """A relative path as the log writes it."""
    return urllib.parse.quote(path, safe=_UNESCAPED)


def decode_path(path: str) -> str:
    """The one form that two spellings of a file share: percent-decoded, `file:` URLs alike.

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
    """`decode_path` of a column; columns without any escape are given back as they are."""
    special = pc.match_substring_regex(paths, "[%:]")
    if not pc.any(special).as_py():
        return paths
    names: list[Any] = paths.to_pylist()
    return pa.chunked_array([pa.array([decode_path(path) for path in names], pa.string())])


def check_paths(paths: pa.ChunkedArray[Any], policy: AbsolutePaths) -> None:
    """Raise for a path that leads where it must not.

    Raises MalformedLog for one that leaves the table by `..` or names no file, UnsupportedFeature
    for an absolute one where the policy refuses them.
    """
    special: list[Any] = paths.filter(pc.match_substring_regex(paths, _SPECIAL)).to_pylist()
    for path in special:
        if _ABSOLUTE.match(path):
            if policy is AbsolutePaths.REFUSE:
                raise UnsupportedFeature(
                    f"the table refers to a file by an absolute path: {path}",
                    hint="a shallow clone does; allow it with absolute_paths=AbsolutePaths.ALLOW",
                )
            decode_path(path)
        else:
            _inside(path)


def locate(path: str, root: str) -> str:
    """Where the file is: a plain path on a local disk, else a URL, neither percent-encoded.

    `root` is the table's own location, in the same form. Raises MalformedLog as `check_paths`.
    """
    if not _ABSOLUTE.match(path):
        return f"{root}/{_inside(path)}"
    decoded = decode_path(path)
    if not decoded.startswith("/"):
        # Decoded already: of a `file:` URL only the scheme is left to take off.
        return decoded.removeprefix("file://")
    if is_local(root):
        return decoded
    parts = urllib.parse.urlsplit(root)
    return f"{parts.scheme}://{parts.netloc}{decoded}"


def located(paths: pa.ChunkedArray[Any], root: str) -> list[str]:
    """`locate` of a column."""
    special = pc.match_substring_regex(paths, _SPECIAL)
    found: list[Any] = pc.binary_join_element_wise(root, paths, "/").to_pylist()  # type: ignore[call-overload]
    rows: list[Any] = pc.indices_nonzero(special).to_pylist()
    for row in rows:
        found[row] = locate(paths[row].as_py(), root)
    return found


def _inside(path: str) -> str:
    """A relative path decoded, without `.` and `..`."""
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
