"""Which level of processor this is: what a level means must be there, and saved by the system."""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from variantlake.kernels.native import levels as _levels
from variantlake.kernels.native import library
from variantlake.kernels.native.levels import level_of, levels

ALL = dict.fromkeys((1, 7, 0x80000001), (1 << 32) - 1)
SAVED = 0b11100110


def processor(bits: dict[int, int], saved: int) -> str | None:
    """The level of a processor whose leaves have these bits, in all registers."""

    def words_at(address: int) -> ctypes.Array[ctypes.c_uint64]:
        return (ctypes.c_uint64 * 4).from_address(address)

    def cpuid(address: int) -> int:
        words = words_at(address)
        leaf = words[0]
        if leaf in (0, 0x80000000):
            words[0] = max(
                (one for one in bits if one >= leaf and one - leaf < 1 << 31), default=leaf
            )
        else:
            words[:] = [bits.get(leaf, 0)] * 4
        return 0

    def xgetbv(address: int) -> int:
        words_at(address)[0] = saved
        return 0

    return level_of(cpuid, xgetbv)


def test_a_processor_with_everything_is_of_the_highest_level() -> None:
    assert processor(ALL, SAVED) == "x86-64-v4"


def test_a_processor_with_nothing_is_of_none() -> None:
    assert processor({}, SAVED) is None
    assert processor(dict.fromkeys(ALL, 0), SAVED) is None


@pytest.mark.parametrize("level", _levels._X86_64)
def test_each_feature_of_a_level_is_needed(level: str) -> None:
    known = list(_levels._X86_64)
    below = [None, *known][known.index(level)]
    for (leaf, _), bits in _levels._X86_64[level].items():
        for bit in bits:
            assert processor(ALL | {leaf: ALL[leaf] & ~(1 << bit)}, SAVED) == below


def test_vectors_that_the_system_does_not_save_are_not_used() -> None:
    assert processor(ALL, 0b1) == "x86-64-v2"
    assert processor(ALL, 0b110) == "x86-64-v3"


def test_leaves_that_a_processor_lacks_are_not_asked() -> None:
    assert processor({1: ALL[1], 0x80000001: ALL[1]}, SAVED) == "x86-64-v2"


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="compares with Linux's flags"
)
def test_this_processor_has_what_linux_says() -> None:
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    flags = set(next(line for line in text.splitlines() if line.startswith("flags")).split())
    wanted = {
        "x86-64-v2": {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"},
        "x86-64-v3": {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"},
        "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    }
    expected = None
    for level in levels():
        if not wanted[level] <= flags:
            break
        expected = level
    assert library._level() == expected


@pytest.mark.parametrize(
    ("system", "machine", "expected"),
    [
        ("linux", "aarch64", ("generic",)),
        ("darwin", "arm64", ("apple-m1",)),
        ("linux", "x86_64", ("x86-64-v2", "x86-64-v3", "x86-64-v4")),
        ("darwin", "x86_64", ()),
        ("linux", "riscv64", ()),
        ("win32", "AMD64", ()),
    ],
)
def test_the_levels_of_other_machines(
    system: str, machine: str, expected: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: Callable[[], str] = lambda: machine
    monkeypatch.setattr(platform, "machine", given)
    monkeypatch.setattr(sys, "platform", system)
    assert levels() == expected
