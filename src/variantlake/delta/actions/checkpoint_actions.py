"""The actions that only V2 checkpoints hold. Spec: PROTOCOL, "V2 Spec"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from variantlake.delta.actions.json_fields import Record, StringMap


@dataclass(frozen=True, slots=True)
class Sidecar(Record):
    """A file of a V2 checkpoint with `add` and `remove` actions."""

    KEY: ClassVar[str] = "sidecar"
    path: str
    size_in_bytes: int
    modification_time: int
    tags: StringMap | None = None


@dataclass(frozen=True, slots=True)
class CheckpointMetadata(Record):
    """What makes a checkpoint one of the V2 spec."""

    KEY: ClassVar[str] = "checkpointMetadata"
    version: int
    tags: StringMap | None = None
