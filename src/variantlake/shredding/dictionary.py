"""The key dictionary of one row, as shredding and rebuilding look keys up in it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from variantlake.encoding.metadata import VariantMetadata, decode_metadata, encode_metadata
from variantlake.encoding.tree import encode_object
from variantlake.encoding.value import basic_type, find
from variantlake.paths import Path
from variantlake.types import BasicType


class RowDictionary:
    """A row's `metadata` with the way from keys to ids; keys that it lacks can be added.

    Rows share the decoded metadata, never the added keys.
    """

    __slots__ = ("_added", "_bytes", "_ids", "decoded")

    def __init__(self, metadata: bytes) -> None:
        """Raises MalformedVariant for bytes that are not metadata."""
        self._bytes = metadata
        self.decoded, self._ids = _decoded(metadata)
        self._added: dict[str, int] = {}

    def has(self, key: str) -> bool:
        """Whether the row's own dictionary holds a key."""
        return key in self._ids

    def id_of(self, key: str) -> int:
        """The id of a key, the first one if it is repeated; a key that is not there gets one."""
        found = self._ids.get(key)
        if found is None:
            found = self._added.setdefault(key, len(self.decoded.keys) + len(self._added))
        return found

    def object_of(self, fields: Mapping[str, bytes]) -> bytes:
        """An object of encoded values, whose keys get ids."""
        # Code point order is the order of the UTF-8 bytes that the encoding asks for.
        names = sorted(fields)
        return encode_object([self.id_of(name) for name in names], [fields[n] for n in names])

    def encode(self) -> bytes:
        """The metadata that all ids given out refer to: the row's own bytes if none was added."""
        if not self._added:
            return self._bytes
        return encode_metadata([*self.decoded.keys, *self._added])


def value_at(metadata: bytes | None, value: bytes, path: Path) -> bytes | None:
    """What stands at a path of a Variant; the metadata is decoded only if a step needs it."""
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
