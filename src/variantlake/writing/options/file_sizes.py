"""How large data files become: light to import, as defaults of the public methods are."""

from __future__ import annotations

from dataclasses import dataclass

from variantlake.errors import InvalidValue
from variantlake.units import Size, size_bytes

TARGET_FILE_BYTES = 256 << 20
"""Bytes of a file from which the next one is begun."""

CLUSTERED_FILE_BYTES = 128 << 20
"""Bytes of a file, about, whose rows are in an order with those of other files."""


@dataclass(frozen=True, slots=True)
class FileLimits:
    """When the next file is begun: at about `target_bytes`, and at exactly `max_rows` rows."""

    target_bytes: int = TARGET_FILE_BYTES
    max_rows: int | None = None

    def __post_init__(self) -> None:
        if self.target_bytes < 1 or (self.max_rows is not None and self.max_rows < 1):
            raise InvalidValue("a file holds at least one byte and one row")

    @classmethod
    def of(cls, target_bytes: Size | None, max_rows: int | None) -> FileLimits:
        """The limits as options give them: None is the default."""
        target = TARGET_FILE_BYTES if target_bytes is None else target_bytes
        return cls(size_bytes("target_file_size", target), max_rows)


DEFAULT_LIMITS = FileLimits()
