"""The levels of processor that kernels are compiled for, by LLVM's names; find this machine's."""

from __future__ import annotations

import platform
import sys
from array import array
from collections.abc import Callable

# What a level adds to the one before (x86-64 psABI, "Micro-Architecture Levels"), as bits of the
# registers that `cpuid` fills: the leaf, the register (0 to 3: eax to edx), and the bits.
_EBX, _ECX = 1, 2
_X86_64: dict[str, dict[tuple[int, int], tuple[int, ...]]] = {
    "x86-64-v2": {
        (1, _ECX): (0, 9, 13, 19, 20, 23),  # SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT
        (0x80000001, _ECX): (0,),  # LAHF
    },
    "x86-64-v3": {
        (1, _ECX): (12, 22, 27, 28, 29),  # FMA, MOVBE, OSXSAVE, AVX, F16C
        (7, _EBX): (3, 5, 8),  # BMI1, AVX2, BMI2
        (0x80000001, _ECX): (5,),  # LZCNT
    },
    "x86-64-v4": {
        (7, _EBX): (16, 17, 28, 30, 31),  # AVX512F, DQ, CD, BW, VL
    },
}
# What the system must save for a task (XCR0): the upper halves of vectors, and wider ones.
_SAVED = {"x86-64-v3": 0b110, "x86-64-v4": 0b11100110}
_LEVELS = {
    ("linux", "x86_64"): tuple(_X86_64),
    ("linux", "aarch64"): ("generic",),
    ("darwin", "arm64"): ("apple-m1",),
}


def levels() -> tuple[str, ...]:
    """Return the levels of this kind of machine, in ascending order; none if it is unknown."""
    return _LEVELS.get((sys.platform, platform.machine()), ())


def level_of(cpuid: Callable[[int], int], xgetbv: Callable[[int], int]) -> str | None:
    """Return the best level that an x86-64 processor has, None if it has none of them.

    Both functions take the address of four words. `cpuid` reads a leaf and its part from them and
    writes the registers there; `xgetbv` writes XCR0 there.
    """
    found = None
    for level, wanted in _X86_64.items():
        if not all(_has(cpuid, *place, bits) for place, bits in wanted.items()):
            return found
        if level in _SAVED:
            words = array("Q", [0] * 4)
            xgetbv(words.buffer_info()[0])
            if words[0] & _SAVED[level] != _SAVED[level]:
                return found
        found = level
    return found


def _has(cpuid: Callable[[int], int], leaf: int, register: int, bits: tuple[int, ...]) -> bool:
    words = array("Q", [leaf & 0x80000000, 0, 0, 0])
    cpuid(words.buffer_info()[0])  # the last leaf of this kind
    if words[0] < leaf:
        return False
    words = array("Q", [leaf, 0, 0, 0])
    cpuid(words.buffer_info()[0])
    return all(words[register] >> bit & 1 for bit in bits)
