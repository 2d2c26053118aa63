"""Variant metadata: the dictionary of object keys. Spec: VariantEncoding, "Metadata encoding"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from variantlake.encoding.limits import MAX_KEYS, MAX_VALUE_BYTES
from variantlake.encoding.scalar import decode_string, encode_string
from variantlake.errors import InvalidValue, LimitExceeded, MalformedVariant
from variantlake.types import EMPTY_METADATA

VERSION = 1
"""The only metadata version so far."""


@dataclass(frozen=True, slots=True)
class VariantMetadata:
    """A decoded dictionary. `keys[i]` is the key of field id `i`.

    Keys are valid UTF-8. If `sorted_strings`, they are unique. Only `check_sorted` checks their
    order, because writers disagree about the order of code points above U+FFFF.
    """

    keys: tuple[str, ...]
    sorted_strings: bool


def decode_metadata_header(metadata: bytes) -> tuple[bool, int]:
    """Return whether keys are sorted and unique, and the bytes of each offset (1-4).

    Raises MalformedVariant when the buffer is empty or its version is not 1.
    """
    if not metadata:
        raise MalformedVariant("metadata is empty", offset=0, hint="an empty one is `01 00 00`")
    header = metadata[0]
    if (version := header & 0x0F) != VERSION:
        raise MalformedVariant(f"metadata version is {version}, expected {VERSION}", offset=0)
    # Bit 5 is reserved, and readers must ignore it.
    return bool(header & 0x10), (header >> 6) + 1


def metadata_size(data: bytes) -> int:
    """Return the bytes of the metadata at the start of `data`; more may follow.

    Raises MalformedVariant when `data` ends before it, or when its offsets are out of order.
    """
    start, offsets = _read_places(data, decode_metadata_header(data)[1])
    return start + offsets[-1]


def decode_metadata(metadata: bytes) -> VariantMetadata:
    """Decode the dictionary that fills `metadata` exactly.

    Raises MalformedVariant for a wrong version, offsets that break the spec's order, bytes missing
    or left over, a key that is not UTF-8, a repeated key although `sorted_strings` is set; raises
    LimitExceeded beyond our limits. Checks sizes against the buffer before allocating.
    """
    sorted_strings, offset_size = decode_metadata_header(metadata)
    if len(metadata) > MAX_VALUE_BYTES:
        raise LimitExceeded(f"metadata of {len(metadata)} bytes is over {MAX_VALUE_BYTES}")
    start, offsets = _read_places(metadata, offset_size)
    if start + offsets[-1] != len(metadata):
        raise MalformedVariant(
            f"{len(metadata) - start - offsets[-1]} bytes follow the dictionary's last key",
            offset=start + offsets[-1],
        )
    keys = tuple(
        decode_string(metadata, start + begin, start + end) for begin, end in pairwise(offsets)
    )
    if sorted_strings and len(set(keys)) != len(keys):
        raise MalformedVariant(
            f"key {_first_repeated(keys)!r} is repeated although sorted_strings is set",
            offset=start,
        )
    return VariantMetadata(keys, sorted_strings)


def check_sorted(dictionary: VariantMetadata) -> None:
    """Check that keys are in the order of their UTF-8 bytes if `sorted_strings` is set.

    Raises MalformedVariant. `decode_metadata` skips this check, since reading does not need it.
    """
    # Python compares strings by code point, and UTF-8 keeps that order.
    if dictionary.sorted_strings:
        for previous, key in pairwise(dictionary.keys):
            if key <= previous:
                raise MalformedVariant(
                    f"key {key!r} follows {previous!r} although sorted_strings is set", offset=0
                )


def encode_metadata(keys: Sequence[str]) -> bytes:
    """Encode metadata whose field ids are the positions in `keys`.

    `sorted_strings` is set if `keys` are sorted and unique. Without keys the result is `01 00 00`.
    Raises InvalidValue for a key with a lone surrogate, LimitExceeded beyond our limits.
    """
    if not keys:
        return EMPTY_METADATA
    texts = [encode_string(key) for key in keys]
    in_order = all(a < b for a, b in pairwise(texts))
    return encode_dictionary(texts, sorted_strings=in_order)


def encode_dictionary(
    texts: Sequence[bytes], *, sorted_strings: bool, offset_size: int | None = None
) -> bytes:
    """Encode metadata of UTF-8 keys; `offset_size` (1-4) is the narrowest unless given."""
    total = sum(map(len, texts))
    if len(texts) > MAX_KEYS:
        raise LimitExceeded(f"{len(texts)} keys are over {MAX_KEYS}")
    if offset_size is None:
        offset_size = unsigned_size(max(total, len(texts)))
    header = VERSION | sorted_strings << 4 | (offset_size - 1) << 6
    size = 1 + (len(texts) + 2) * offset_size + total
    if size > MAX_VALUE_BYTES:
        raise LimitExceeded(f"metadata of {size} bytes is over {MAX_VALUE_BYTES}")
    parts = [bytes([header]), len(texts).to_bytes(offset_size, "little")]
    return b"".join([*parts, *offset_list(texts, offset_size), *texts])


def offset_list(parts: Iterable[bytes], offset_size: int) -> Iterator[bytes]:
    """Yield the encoded offset of each part, and that of the end."""
    for position in accumulate(map(len, parts), initial=0):
        yield position.to_bytes(offset_size, "little")


def sorted_keys(keys: Iterable[str]) -> tuple[str, ...]:
    """Return distinct keys in the order of their UTF-8 bytes, which is that of code points."""
    return tuple(sorted(set(keys)))


def unsigned_size(number: int) -> int:
    """Return the bytes (1 to 4) that an offset, id or size needs. Raises InvalidValue beyond 4."""
    if number >= 1 << 32:
        raise InvalidValue(f"{number} does not fit 4 bytes")
    return max(1, (number.bit_length() + 7) // 8)


def _read_places(metadata: bytes, width: int) -> tuple[int, list[int]]:
    """Return where the keys begin, and the offsets; checks that they start at 0 and never fall.

    The offsets end within the buffer.
    """
    first = 1 + width
    if len(metadata) < first:
        raise MalformedVariant("metadata ends inside of dictionary_size", offset=len(metadata))
    size = int.from_bytes(metadata[1:first], "little")
    start = first + (size + 1) * width
    if start > len(metadata):
        raise MalformedVariant(
            f"metadata of {len(metadata)} bytes cannot hold the offsets of {size} keys", offset=1
        )
    if size > MAX_KEYS:
        raise LimitExceeded(f"dictionary of {size} keys is over {MAX_KEYS}", offset=1)
    offsets = [
        int.from_bytes(metadata[at : at + width], "little") for at in range(first, start, width)
    ]
    previous, last = 0, 0
    for i, offset in enumerate(offsets):
        if not previous <= offset <= last:
            raise MalformedVariant(
                f"dictionary offset {i} is {offset}: offsets start with 0, never fall and end "
                "within the metadata",
                offset=first + i * width,
            )
        previous, last = offset, len(metadata) - start
    return start, offsets


def _first_repeated(keys: Sequence[str]) -> str:
    counts = Counter(keys)
    return next(key for key in keys if counts[key] > 1)
