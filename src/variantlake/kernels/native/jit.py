"""Declare kernels. Numba compiles them when the package is built, and is not needed later.

Three kinds of functions: an `entry` is called from Python (its annotations are its signature, and
the GIL is released); a `helper` is called from kernels; a `tiny` is inlined into its callers
(measured: 1.3 times the speed of the JSON reader). It is LLVM that inlines: when Numba does it
(`inline="always"`), compiling takes 1.5 times as long. The entries of one module are compiled
together (`compile`); the machine code is loaded when the first of them is called (`library`).

A kernel takes at most 12 arguments: arrays that belong together are fields of a record (a
NamedTuple), which kernels read and pass on, but never make.

Rules inside kernels: every integer is int64. An index is cast to uint64 where it is used (no
wraparound test; measured 30 %). Mixing the two gives float64 and is a bug. Kernels allocate nothing
and never raise. Fast-math is never on.

With VARIANTLAKE_PURE_PYTHON=1 everything runs as plain Python. With VARIANTLAKE_BOUNDS_CHECKED=1
every access to an array is checked (words.py replaces its raw accesses by checked ones), by a
library that is compiled for it.
"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable
from typing import Any, Literal, ParamSpec, TypeVar, cast

import numpy as np

from variantlake.kernels.native.declared import (
    BOUNDS_CHECKED,
    PURE_PYTHON,
    Inner,
    Kernel,
    i64,
)

P = ParamSpec("P")
R = TypeVar("R")


class KernelEntry(Kernel):
    """A kernel that Python calls, with positional arguments.

    Arguments go to the machine code as int64 words: address and length of an array, an integer, the
    fields of a record one after another. The result comes back in the first word.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        functools.update_wrapper(self, function)

    def __reduce__(self) -> str:
        """Pickle the kernel by its name in its module, like any function."""
        return self.name

    @functools.cached_property
    def _machine_code(self) -> Callable[[int], int]:
        from variantlake.kernels.native.library import code_of

        return code_of(self)

    def __call__(self, *arguments: Any) -> int | None:
        """Run the machine code; load it on the first call."""
        plain = [0]
        for type_, value in zip(self.signature.arguments, arguments, strict=True):
            plain += type_.words(value)
        words = array("q", plain)
        if self._machine_code(words.buffer_info()[0]):
            raise IndexError(f"{self.unit}.{self.name} went outside of an array")
        return words[0] if self.signature.result is i64 else None


def entry(function: Callable[P, R]) -> Callable[P, R]:
    """Declare a kernel that Python calls: its annotations are its signature."""
    return _plain(function) if PURE_PYTHON else cast("Callable[P, R]", KernelEntry(function))


def helper(function: Callable[P, R]) -> Callable[P, R]:
    """Declare a function that only kernels call."""
    return _inner(function, "helper")


def tiny(function: Callable[P, R]) -> Callable[P, R]:
    """Declare a function that is inlined into the kernels that call it."""
    return _inner(function, "tiny")


def machine(*, memory: bool) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare a function that is compiled from the LLVM snippet of its name.

    With `memory` it reads or writes arrays: if bounds are checked, its Python form is compiled.
    """
    return functools.partial(_inner, kind="helper" if memory and BOUNDS_CHECKED else "machine")


def _inner(function: Callable[P, R], kind: Literal["helper", "tiny", "machine"]) -> Callable[P, R]:
    return function if PURE_PYTHON else cast("Callable[P, R]", Inner(function, kind))


def _plain(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a kernel to run as plain Python: NumPy's scalars must overflow without a warning."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(over="ignore"):
            return function(*args, **kwargs)

    return call
