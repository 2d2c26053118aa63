"""Load the machine code of all kernels from a shared library in this module's folder.

`variantlake.kernels.compile` makes it when the package is built. It has each kernel once for each
level of processor, under the name `symbol_of`, and in a checkout the digests of its sources
(`SOURCES`). It needs nothing but `memset`.
"""

from __future__ import annotations

import ctypes
import functools
import json
import platform
import sys
from collections.abc import Callable
from pathlib import Path

from variantlake.errors import NotCompiled
from variantlake.kernels.native.declared import BOUNDS_CHECKED, Kernel
from variantlake.kernels.native.levels import level_of, levels
from variantlake.kernels.native.sources import digest_of

SOURCES = "sources"
"""The symbol of a JSON text with the digest of each unit. An installed package has none."""

_CALL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)  # releases the GIL
_BUILD = "run `make setup`, or in its environment `python -m variantlake.kernels.compile`"
_PURE = "with VARIANTLAKE_PURE_PYTHON=1 in the environment kernels run as plain Python: very slowly"


def symbol_of(level: str, entry: Kernel) -> str:
    """Return the name of an entry's machine code for a level of processor."""
    return f"{level}.{entry.unit}.{entry.name}"


def library_file() -> Path:
    """Return the path of the library; one with checked bounds has another name."""
    ending = "dylib" if sys.platform == "darwin" else "so"
    checked = "-checked" if BOUNDS_CHECKED else ""
    return Path(__file__).with_name(f"libkernels{checked}.{ending}")


def code_of(entry: Kernel) -> Callable[[int], int]:
    """Return the function that takes the address of an entry's words; it returns 0 on success.

    Raises NotCompiled when there is no library for this machine, or an older one of a checkout.
    """
    library = _library()
    sources = _sources()
    if sources is not None and sources.get(entry.unit) != digest_of(entry.unit):
        raise NotCompiled(
            f"the compiled kernels are older than the source of {entry.unit!r}", hint=_BUILD
        )
    return _CALL((symbol_of(_level(), entry), library))


def is_current(units: list[str]) -> bool:
    """Whether the library of a checkout has exactly these units, from their current sources."""
    try:
        sources = _sources()
    except NotCompiled:
        return False
    return sources is not None and sources == {unit: digest_of(unit) for unit in units}


@functools.cache
def _library() -> ctypes.CDLL:
    file = library_file()
    try:
        return ctypes.CDLL(str(file))
    except OSError as error:
        if not levels():
            machine = f"{platform.system()} on {platform.machine()}"
            raise NotCompiled(f"no kernels are compiled for {machine}", hint=_PURE) from error
        if not file.parent.is_dir():
            raise NotCompiled(
                "the package is in an archive, and machine code cannot be loaded from one",
                file=str(file),
                hint="unpack it; Spark does so for its workers with spark.archives, and does not"
                " with spark.submit.pyFiles (docs/deploying.md)",
            ) from None
        if file.exists():
            raise NotCompiled(
                f"the compiled kernels cannot be loaded: {error}", hint=_BUILD
            ) from None
        raise NotCompiled("the kernels are not compiled", file=str(file), hint=_BUILD) from None


@functools.cache
def _sources() -> dict[str, str] | None:
    try:
        text = ctypes.c_char.in_dll(_library(), SOURCES)
    except ValueError:
        return None
    sources: dict[str, str] = json.loads(ctypes.string_at(ctypes.addressof(text)))
    return sources


@functools.cache
def _level() -> str:
    """Return the level of this processor; with checked bounds the lowest, the only one compiled."""
    library = _library()
    known = levels()
    if len(known) == 1:
        return known[0]
    found = level_of(_CALL(("cpuid", library)), _CALL(("xgetbv", library)))
    if found is None:
        raise NotCompiled(f"this processor is older than {known[0]}", hint=_PURE)
    return known[0] if BOUNDS_CHECKED else found
