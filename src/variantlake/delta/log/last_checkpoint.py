"""`_last_checkpoint`: a hint to the newest checkpoint, with a checksum of its own.

Spec: PROTOCOL, "Last Checkpoint File Schema", "JSON checksum".
"""

from __future__ import annotations

import hashlib
import urllib.parse
from typing import Any

import orjson

from variantlake.errors import MissingSource, StoreFailed
from variantlake.storage.store import Store

LAST_CHECKPOINT = "_delta_log/_last_checkpoint"

MAX_HINT_BYTES = 1 << 20
"""The most bytes of the hint that are read; a longer one counts as damaged."""


def read_last_checkpoint(store: Store) -> int | None:
    """Read the version that the hint names; None if the hint is absent, unreadable or invalid.

    It is only a hint: a listing decides which checkpoints exist.
    """
    try:
        document = orjson.loads(store.read_range(LAST_CHECKPOINT, 0, MAX_HINT_BYTES))
        if not isinstance(document, dict):
            return None
        sound = document.get("checksum") in (None, checksum(document))
    except (MissingSource, StoreFailed, orjson.JSONDecodeError, RecursionError):
        return None
    version = document.get("version")
    return version if sound and type(version) is int and 0 <= version < 10**19 else None


def write_last_checkpoint(
    store: Store, *, version: int, size: int, size_in_bytes: int, num_of_add_files: int
) -> None:
    """Point to the checkpoint of `version`, which has `size` actions."""
    document = {
        "version": version,
        "size": size,
        "sizeInBytes": size_in_bytes,
        "numOfAddFiles": num_of_add_files,
    }
    store.put(LAST_CHECKPOINT, orjson.dumps({**document, "checksum": checksum(document)}))


def checksum(document: dict[str, Any]) -> str:
    """Return the MD5 of the canonical form, without the top-level key `checksum`."""
    text = canonical({key: value for key, value in document.items() if key != "checksum"})
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def canonical(document: Any) -> str:
    """Return the canonical form of a JSON value, as the protocol defines it."""
    pairs = sorted(_pairs(document, ""), key=lambda pair: pair[0].encode())
    return ",".join(f"{path}={value}" for path, value in pairs)


def _pairs(value: Any, path: str) -> list[tuple[str, str]]:
    if isinstance(value, dict):
        items = [(_quoted(key), item) for key, item in value.items()]
    elif isinstance(value, list):
        items = [(str(i), item) for i, item in enumerate(value)]
    else:
        text = _quoted(value) if isinstance(value, str) else orjson.dumps(value).decode()
        return [(path, text)]
    return [
        pair for name, item in items for pair in _pairs(item, f"{path}+{name}" if path else name)
    ]


def _quoted(text: str) -> str:
    return f'"{urllib.parse.quote(text, safe="-._~")}"'
