"""Checkpoints that are read part by part although they are small."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from unittest.mock import patch

from variantlake.delta.log import checkpoint_reader


@contextlib.contextmanager
def in_parts() -> Iterator[None]:
    """Every checkpoint that is read meanwhile, some files in each part."""
    with (
        patch.object(checkpoint_reader, "PARTED_BYTES", 0),
        patch.object(checkpoint_reader, "PARTED_FILES", 1),
        patch.object(checkpoint_reader, "PART_FILES", 6),
    ):
        yield
