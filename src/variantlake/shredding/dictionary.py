"""The key dictionary of one row, in which shredding and unshredding look up keys."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from variantlake.encoding.metadata import VariantMetadata, decode_metadata, encode_metadata
from variantlake.encoding.tree import encode_object
from variantlake.encoding.value import basic_type, find
from variantlake.paths import Path
from variantlake.types import BasicType


class RowDictionary:
    """A row's `metadata` with a map from keys to ids, to which missing keys can be added.

    Rows share the decoded metadata, but not added keys.
    """

    __slots__ = ("_added", "_bytes", "_ids", "decoded")

    def __init__(self, metadata: bytes) -> None:
        """Raises MalformedVariant for bytes that are not metadata."""
        self._bytes = metadata
        self.decoded, self._ids = _decoded(metadata)
        self._added: dict[str, int] = {}

    def has(self, key: str) -> bool:
        """Whether the row's dictionary holds a key, without added ones."""
        return key in self._ids

    def id_of(self, key: str) -> int:
        """Return the id of a key, the first one if it is repeated; adds a missing key."""
        found = self._ids.get(key)
        if found is None:
            found = self._added.setdefault(key, len(self.decoded.keys) + len(self._added))
        return found

    def object_of(self, fields: Mapping[str, bytes]) -> bytes:
        """Encode an object of encoded values; adds missing keys."""
        # The encoding requires the order of UTF-8 bytes, which is that of code points.
        names = sorted(fields)
        return encode_object([self.id_of(name) for name in names], [fields[n] for n in names])

    def encode(self) -> bytes:
        """Return metadata for all ids: the row's bytes if no key was added."""
        if not self._added:
            return self._bytes
        return encode_metadata([*self.decoded.keys, *self._added])


def value_at(metadata: bytes | None, value: bytes, path: Path) -> bytes | None:
    """Return the value at a path of a Variant, None if missing; decodes metadata only if needed."""
    if not path.steps:
        return value
    if basic_type(value) not in (BasicType.OBJECT, BasicType.ARRAY):
        return None
    found = find(RowDictionary(metadata or b"").decoded, value, path)
    return None if found is None else value[found[0] : found[1]]


@lru_cache(maxsize=8)  # rows share few; one may take a gigabyte
def _decoded(metadata: bytes) -> tuple[VariantMetadata, dict[str, int]]:
    decoded = decode_metadata(metadata)
    ids: dict[str, int] = {}
    for i, key in enumerate(decoded.keys):
        ids.setdefault(key, i)
    return decoded, ids
