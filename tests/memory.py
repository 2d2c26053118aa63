"""Where tests keep their files: in memory, on a machine that has the room."""

from __future__ import annotations

import os
from pathlib import Path

SHARED = Path("/dev/shm")  # noqa: S108 - Linux mounts it for every user

ROOM = 6 << 30
"""Bytes of the files of a whole run, several times over: it is half of the memory or less."""


def place_in_memory(folder: Path = SHARED, room: int = ROOM) -> str | None:
    """The folder, if programs run from it and this much fits in; else None.

    A disk may take a millisecond to remove a file: a third of the time of tests that write many.
    """
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    is_fit = not found.f_flag & os.ST_NOEXEC and os.access(folder, os.W_OK)
    return str(folder) if is_fit and found.f_bavail * found.f_frsize >= room else None
