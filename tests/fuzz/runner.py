"""What the fuzzers share: changing bytes, and the bounds in time and memory of one case."""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
import tracemalloc
from collections.abc import Callable, Sequence

MAX_SECONDS = 1.0
"""One case, on a loaded machine too; what compiles is run before."""

MEMORY_FLOOR = 32 * 1024 * 1024
"""Bytes that any case may take: buffers of fixed size."""

INTERESTING = (0x00, 0x01, 0x02, 0x03, 0x0C, 0x10, 0x13, 0x3F, 0x40, 0x7F, 0x80, 0xFC, 0xFE, 0xFF)

Case = Callable[[random.Random], int]
"""Does everything with one input that chance makes; returns the bytes of the input."""


def run(case: Case, memory_multiple: int, arguments: Sequence[str] | None = None) -> int:
    """Run cases until the time is up or one fails; the exit code.

    A case fails by an exception, by taking longer than MAX_SECONDS, or by more memory than
    `memory_multiple` bytes for each byte of its input and the floor.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=None, help="run this one case")
    options = parser.parse_args(arguments)
    case(random.Random(0))  # compiles, imports
    if options.seed is not None:
        return int(not _seed_survives(case, options.seed, memory_multiple))
    end = time.monotonic() + options.seconds
    first = random.randrange(2**40)
    cases = 0
    while time.monotonic() < end:
        if not _seed_survives(case, first + cases, memory_multiple):
            return 1
        cases += 1
    sys.stdout.write(f"{cases} inputs: all read or refused\n")
    return 0


def _seed_survives(case: Case, seed: int, memory_multiple: int) -> bool:
    # Tracing makes Python several times slower: one case in eight is measured.
    name = f"seed {seed}"
    return survives(case, lambda: random.Random(seed), name, memory_multiple, seed % 8 == 0)


def survives(
    case: Case, chance: Callable[[], random.Random], name: str, multiple: int, traced: bool
) -> bool:
    """Whether one case does; what it did is printed if it does not. `traced` measures memory."""
    if traced:
        tracemalloc.start()
    start = time.thread_time()
    try:
        size = case(chance())
        seconds = time.thread_time() - start
        peak = tracemalloc.get_traced_memory()[1] if traced else 0
    except Exception:  # noqa: BLE001  # this is what we are looking for
        sys.stderr.write(f"{name}\n{traceback.format_exc()}")
        return False
    finally:
        tracemalloc.stop()
    if seconds > MAX_SECONDS * (5 if traced else 1):
        sys.stderr.write(f"{name} took {seconds:.1f} s for {size} bytes\n")
        return False
    if peak > MEMORY_FLOOR + multiple * size:
        sys.stderr.write(f"{name} took {peak} bytes of memory for {size} bytes\n")
        return False
    return True


def changed(data: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """The bytes with some set, flipped, cut out, repeated or taken from another input."""
    result = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(result) + 1)
        match chance.randrange(6):
            case 0:
                result[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                result[at : at + 1] = bytes([chance.choice(INTERESTING)])
            case 2 if at < len(result):
                result[at] ^= 1 << chance.randrange(8)
            case 3:
                del result[at : at + chance.randint(1, 6)]
            case 4:
                result[at:at] = result[at : at + chance.randint(1, 40)] * chance.randint(1, 30)
            case _:
                other = chance.choice(others)
                start = chance.randrange(len(other) + 1)
                result[at:at] = other[start : start + chance.randint(1, 40)]
    return bytes(result)


def flipped(data: bytes, chance: random.Random) -> bytes:
    """The bytes with some bits flipped, sometimes cut short."""
    result = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        result[chance.randrange(len(result))] ^= 1 << chance.randrange(8)
    if chance.random() < 0.05:
        del result[chance.randrange(len(result)) :]
    return bytes(result)


def main(arguments: Sequence[str]) -> int:
    """`python -m tests.fuzz.runner NAME` fuzzes a target by chance alone; the exit code."""
    from tests.fuzz.targets import target

    name, *rest = arguments
    return run(*target(name), rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
