"""One target, guided by coverage: `python -m tests.fuzz.guided NAME CORPUS [libFuzzer's options]`.

Runs in an environment with atheris. Its bytes decide what a `random.Random` answers, so that each
choice of a target (which seed, where, what changes) is one that libFuzzer can keep or vary.
"""

from __future__ import annotations

import random
import sys
import zlib
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from tests.fuzz.runner import survives
from tests.fuzz.targets import target

TRACED = 64
"""One input of so many has its memory measured, which takes several times as long."""


class Drawn(random.Random):
    """Chance whose first answers are the bytes of an input; what follows depends on them."""

    def __init__(self, data: bytes) -> None:
        super().__init__(zlib.crc32(data))
        self._data = data
        self._at = 0

    def getrandbits(self, k: int, /) -> int:
        """See random.Random."""
        size = -(-k // 8)
        if self._at + size > len(self._data):
            return super().getrandbits(k)
        self._at += size
        return int.from_bytes(self._data[self._at - size : self._at]) & ((1 << k) - 1)

    def random(self) -> float:
        """See random.Random."""
        return self.getrandbits(16) / (1 << 16)


def main(arguments: Sequence[str]) -> None:
    """Ends the process: with 0 if each input survived."""
    atheris: Any = import_module("atheris")  # which this environment may lack

    name, *rest = arguments
    with atheris.instrument_imports(
        include=["variantlake"], exclude=["variantlake.kernels.native"]
    ):
        case, multiple = target(name)
        case(random.Random(0))
    count = 0

    def look(data: bytes) -> None:
        nonlocal count
        count += 1
        if not survives(case, lambda: Drawn(data), data.hex(), multiple, count % TRACED == 0):
            raise AssertionError(name)

    atheris.Setup([sys.argv[0], *rest], look)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
