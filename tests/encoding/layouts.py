"""An encoder for tests that takes every freedom which the specification gives a writer."""

from __future__ import annotations

from dataclasses import dataclass

from variantlake.encoding.metadata import encode_dictionary, sorted_keys, unsigned_size
from variantlake.encoding.scalar import Scalar, encode_scalar
from variantlake.encoding.tree import Tree, keys_of
from variantlake.types import Primitive


@dataclass(frozen=True)
class Layouts:
    """How to write. Sizes are at least what is needed; 0 asks for that."""

    offset_size: int = 0
    id_size: int = 0
    is_large: bool = False
    metadata_offset_size: int = 0
    sorted_strings: bool = True
    unused_keys: tuple[str, ...] = ()
    repeat_keys: bool = False  # each key twice in the dictionary; only if it is not sorted
    reverse_values: bool = False  # values of an object in the opposite order of its fields
    utf16_order: bool = False  # fields as Spark's parse_json sorts them
    reserved_bits: bool = False
    short_strings: bool = True

    def encode(self, tree: Tree) -> tuple[bytes, bytes]:
        """(metadata, value), by recursion: for the small trees of tests."""
        keys = list(sorted_keys([*keys_of(tree), *self.unused_keys]))
        if not self.sorted_strings:
            keys = keys[::-1] * (2 if self.repeat_keys else 1)
        texts = [key.encode() for key in keys]
        offset_size = max(
            unsigned_size(max(sum(map(len, texts)), len(texts))), self.metadata_offset_size
        )
        metadata = bytearray(
            encode_dictionary(texts, sorted_strings=self.sorted_strings, offset_size=offset_size)
        )
        if self.reserved_bits:
            metadata[0] |= 0x20
        # The last of repeated ids, so that ids of the second half are used.
        return bytes(metadata), self.encode_value(tree, {key: i for i, key in enumerate(keys)})

    def encode_value(self, tree: Tree, key_ids: dict[str, int]) -> bytes:
        if isinstance(tree, Scalar):
            return self.encode_scalar(tree)
        if isinstance(tree, list):
            values = [self.encode_value(child, key_ids) for child in tree]
            return self.container(values, [], list(range(len(values))), is_object=False)
        names = sorted(
            tree, key=lambda name: name.encode("utf-16-be") if self.utf16_order else name.encode()
        )
        values = [self.encode_value(tree[name], key_ids) for name in names]
        order = list(range(len(values)))
        if self.reverse_values:
            order.reverse()
        return self.container(values, [key_ids[name] for name in names], order, is_object=True)

    def encode_scalar(self, scalar: Scalar) -> bytes:
        encoded = encode_scalar(scalar)
        if scalar.type is not Primitive.STRING or self.short_strings or encoded[0] & 0x03 != 1:
            return encoded
        return (
            bytes([Primitive.STRING << 2]) + (len(encoded) - 1).to_bytes(4, "little") + encoded[1:]
        )

    def container(
        self, values: list[bytes], field_ids: list[int], order: list[int], *, is_object: bool
    ) -> bytes:
        """`order` says which value comes first, second ... in the data."""
        starts = [0] * len(values)
        position = 0
        for i in order:
            starts[i] = position
            position += len(values[i])
        offset_size = max(unsigned_size(position), self.offset_size)
        id_size = max(unsigned_size(max(field_ids, default=0)), self.id_size)
        is_large = self.is_large or len(values) > 255
        if is_object:
            header = 2 | (offset_size - 1 | (id_size - 1) << 2 | is_large << 4) << 2
            header |= 0x80 if self.reserved_bits else 0
        else:
            header = 3 | (offset_size - 1 | is_large << 2) << 2
            header |= 0xE0 if self.reserved_bits else 0
        parts = [bytes([header]), len(values).to_bytes(4 if is_large else 1, "little")]
        parts += [field_id.to_bytes(id_size, "little") for field_id in field_ids]
        parts += [offset.to_bytes(offset_size, "little") for offset in (*starts, position)]
        return b"".join([*parts, *(values[i] for i in order)])
