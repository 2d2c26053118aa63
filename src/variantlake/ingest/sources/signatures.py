"""Tell by the first bytes of a file whether it is text, compressed text, or something else."""

from __future__ import annotations

import enum

from variantlake.errors import UnsupportedFeature

HEAD_BYTES = 16
"""The number of first bytes that tell the type of a file."""


class Compression(enum.Enum):
    """The compression of a source; the value is Arrow's name of the codec."""

    NONE = ""
    GZIP = "gzip"
    ZSTD = "zstd"
    BZ2 = "bz2"


_READ = (
    (b"\x1f\x8b", Compression.GZIP),
    (b"\x28\xb5\x2f\xfd", Compression.ZSTD),
    (b"BZh", Compression.BZ2),
    # Skippable frames, with which pzstd and seekable files begin.
    *((bytes([0x50 + i]) + b"\x2a\x4d\x18", Compression.ZSTD) for i in range(16)),
)

_UNPACK = "unpack it first; plain text, gzip, zstd and bz2 are read"
_TO_UTF8 = "convert it first: iconv -f UTF-16 -t UTF-8"
_NAMED = (
    (b"\xfd7zXZ\0", "xz data", _UNPACK),
    (b"\x5d\0\0", "lzma data", _UNPACK),
    (b"\x04\x22\x4d\x18", "lz4 data", _UNPACK),
    (b"\x1f\x9d", "data of compress (.Z)", _UNPACK),
    (b"\xff\x06\0\0sNaPpY", "snappy data", _UNPACK),
    (b"PK\x03\x04", "a zip archive", _UNPACK),
    (b"PK\x05\x06", "an empty zip archive", _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    (b"PAR1", "a Parquet file", "lake.convert and `variantlake convert` take Parquet files"),
    (b"Obj\x01", "an Avro file", 'format="avro" reads it'),
    (b"ARROW1", "an Arrow file", "read it with Arrow, and use Table.append"),
    (b"\0\0\xfe\xff", "text in UTF-32", "convert it first: iconv -f UTF-32 -t UTF-8"),
    (b"\xff\xfe", "text in UTF-16", _TO_UTF8),
    (b"\xfe\xff", "text in UTF-16", _TO_UTF8),
)
_ZLIB = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
_FIRST = b'{["-0123456789tfn \t\r\n'
"""The first characters of JSON text."""


def known_compression(head: bytes) -> Compression:
    """Return the compression of a file by its first bytes, NONE for others."""
    found = (compression for magic, compression in _READ if head.startswith(magic))
    return next(found, Compression.NONE)


def compression_of(head: bytes, file: str) -> Compression:
    """Return the compression of a file of JSON documents, by its first HEAD_BYTES bytes.

    Raises UnsupportedFeature, with the file, for bytes that are known to be something else.
    """
    if (found := known_compression(head)) is not Compression.NONE:
        return found
    what, hint = next(((w, h) for magic, w, h in _NAMED if head.startswith(magic)), ("", ""))
    is_binary = any(byte < 9 or byte > 126 for byte in head)
    if is_binary and head.startswith(_ZLIB):
        what, hint = "zlib data", _UNPACK
    elif is_binary and not what and file.lower().endswith(".snappy"):
        what, hint = "snappy data", _UNPACK  # Hadoop's frames have no magic bytes
    elif not what and head[:2].count(0) == 1 and max(head[:2]) in _FIRST:
        what, hint = "text in UTF-16 without a byte order mark", _TO_UTF8
    if what:
        raise UnsupportedFeature(f"the file is {what}, not JSON in UTF-8", file=file, hint=hint)
    return Compression.NONE
