"""The actions that only V2 checkpoints hold. Spec: PROTOCOL, "V2 Spec"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from variantlake.delta.fields import Json, StringMap, integer, optional_map, plain, present, text


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A file of a V2 checkpoint with `add` and `remove` actions."""

    KEY: ClassVar[str] = "sidecar"
    path: str
    size_in_bytes: int
    modification_time: int

    @classmethod
    def from_json(cls, fields: Json) -> Sidecar:
        """Parse a `sidecar`."""
        return cls(
            text(fields, "path"),
            integer(fields, "sizeInBytes"),
            integer(fields, "modificationTime"),
        )

    def to_json(self) -> Json:
        """The action's fields."""
        return {
            "path": self.path,
            "sizeInBytes": self.size_in_bytes,
            "modificationTime": self.modification_time,
        }


@dataclass(frozen=True, slots=True)
class CheckpointMetadata:
    """What makes a checkpoint one of the V2 spec."""

    KEY: ClassVar[str] = "checkpointMetadata"
    version: int
    tags: StringMap | None = None

    @classmethod
    def from_json(cls, fields: Json) -> CheckpointMetadata:
        """Parse a `checkpointMetadata`."""
        return cls(integer(fields, "version"), optional_map(fields, "tags"))

    def to_json(self) -> Json:
        """The action's fields."""
        return present(version=self.version, tags=plain(self.tags))
