"""Find and digest the sources of a unit: in a checkout they may change after it was compiled."""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from variantlake import kernels
from variantlake.kernels.native.declared import Inner, Kernel, KernelArray

_FOLDER = Path(kernels.__file__).parent

CONSTANTS = (int, float, str, bytes, tuple, np.dtype, np.ndarray, np.generic, KernelArray)
"""Types of the constants that a kernel may use: the machine code has their values frozen in."""


def digest_of(unit: str) -> str:
    """Digest the text and constants of each module that a unit's kernels use, and the compiler.

    Constants count by value, as many come from modules that have no kernels.
    """
    digest = hashlib.sha256(_compiler())
    for module in modules_of(unit):
        digest.update(_constants(module.__name__))
    return digest.hexdigest()


def modules_of(unit: str) -> list[ModuleType]:
    """Return the module of a unit, and the modules of all functions that its kernels call."""
    found: dict[str, ModuleType] = {}
    waiting = [f"{kernels.__name__}.{unit}"]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = import_module(name)
            waiting.extend(function.__module__ for function in _functions(found[name]))
    return [found[name] for name in sorted(found)]


def _functions(module: ModuleType) -> Iterator[Any]:
    for value in vars(module).values():
        if isinstance(value, Inner):
            yield value.function


@functools.cache
def _compiler() -> bytes:
    sources = (*(_FOLDER / "native").glob("*.py"), *(_FOLDER / "compile").glob("*.py"))
    texts = (path.name.encode() + b"\0" + path.read_bytes() for path in sorted(sources))
    return hashlib.sha256(b"\0".join(texts)).digest()


@functools.cache
def _constants(name: str) -> bytes:
    module = sys.modules[name]
    digest = hashlib.sha256(Path(str(module.__file__)).read_bytes())
    for key, value in sorted(vars(module).items(), key=lambda item: item[0]):
        if key.startswith("__"):
            continue
        if isinstance(value, np.ndarray):
            digest.update(f"\0{key}={value.dtype}".encode() + value.tobytes())
        elif isinstance(value, CONSTANTS):
            digest.update(f"\0{key}={value!r}".encode())
        elif isinstance(value, Kernel):
            digest.update(f"\0{key}={value.signature!r}".encode())
    return digest.digest()
