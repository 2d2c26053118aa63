"""How kernels are declared. Loads no Numba: that takes longer than most loads of a small file.

Three kinds of functions: an `entry` is called from Python (explicit signature, GIL released); a
`helper` is called from kernels; a `tiny` is inlined into its callers (measured: 1.3 times the speed
of the JSON reader). It is LLVM that inlines: when Numba does it (`inline="always"`), compiling
takes 1.5 times as long. The entries of one module are compiled together, or loaded, when the first
of them is called (`_machine`, `_compiler`).

Rules inside kernels: every integer is int64, an index is cast to uint64 where it is used (no
wraparound test; measured 30 %), mixing the two gives float64 and is a bug. Kernels allocate
nothing and never raise. Fast-math is never on.

With NUMBA_DISABLE_JIT=1 everything runs as plain Python, with NUMBA_BOUNDSCHECK=1 every access to
an array is checked (words.py replaces its raw accesses by checked ones).
"""

from __future__ import annotations

import functools
import os
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, ParamSpec, TypeVar, cast

import numpy as np
import pyarrow as pa

P = ParamSpec("P")
R = TypeVar("R")


def _switched_on(name: str) -> bool:
    return os.environ.get(name, "0") not in ("", "0")


JIT_OFF = _switched_on("NUMBA_DISABLE_JIT")
"""Kernels run as plain Python functions (NUMBA_DISABLE_JIT=1)."""

BOUNDS_CHECKED = _switched_on("NUMBA_BOUNDSCHECK")
"""Compiled array accesses raise IndexError when outside (NUMBA_BOUNDSCHECK=1)."""

int64 = cast("Callable[[Any], int]", np.int64)
"""The casts of kernels. They make NumPy scalars in plain mode, which mypy takes for int."""
uint64 = cast("Callable[[Any], int]", np.uint64)
float64 = cast("Callable[[Any], float]", np.float64)

Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]
Int32s = np.ndarray[tuple[int], np.dtype[np.int32]]
Int64s = np.ndarray[tuple[int], np.dtype[np.int64]]
Records = Any
"""A one-dimensional np.recarray; attribute access to its records has no static type."""


@dataclass(frozen=True)
class ArrayType:
    """A contiguous one-dimensional array; one that is only read may be read-only."""

    dtype: np.dtype[Any]
    readonly: bool = False

    def words(self, value: object) -> tuple[int, int]:
        """Address and length; TypeError for any other array: machine code would not notice."""
        if not isinstance(value, np.ndarray) or value.dtype != self.dtype or value.ndim != 1:
            raise TypeError(f"a kernel wants one dimension of {self.dtype}, and not {value!r}")
        flags = value.flags
        if not (flags.c_contiguous and flags.aligned and (self.readonly or flags.writeable)):
            raise TypeError(f"a kernel cannot use an array with these flags: {flags}")
        # NumPy takes twenty times as long to say where an array is.
        return pa.py_buffer(cast("Any", value)).address, value.size


@dataclass(frozen=True)
class Result:
    """What a kernel returns: an int64 or nothing. Called with types, a signature."""

    name: Literal["int64", "void"]

    def __call__(self, *arguments: ArrayType | Result) -> Signature:
        """The signature of a kernel that takes `arguments` and returns this."""
        return Signature(self, arguments)


@dataclass(frozen=True)
class Signature:
    """Of an entry: each argument is an array or an int64."""

    result: Result
    arguments: tuple[ArrayType | Result, ...]


i64, void = Result("int64"), Result("void")
uint8s = ArrayType(np.dtype(np.uint8))
int32s = ArrayType(np.dtype(np.int32))
int64s = ArrayType(np.dtype(np.int64))
bytes_in = ArrayType(np.dtype(np.uint8), readonly=True)
"""Bytes that a kernel only reads; takes writable arrays as well."""
int32s_in = ArrayType(np.dtype(np.int32), readonly=True)
int64s_in = ArrayType(np.dtype(np.int64), readonly=True)


def records(dtype: np.dtype[Any], *, readonly: bool = False) -> ArrayType:
    """The type of a contiguous record array."""
    return ArrayType(dtype, readonly)


@dataclass(frozen=True, eq=False)
class Inner:
    """A function that only kernels call: it has no other use when it is compiled.

    A `machine` function is an LLVM snippet of its name in `_snippets`.
    """

    function: Callable[..., Any]
    kind: Literal["helper", "tiny", "machine"]


class Entry:
    """A kernel that Python calls, by position.

    Arguments go to the machine code as int64 words: address and length of an array, an integer;
    the result comes back in the first word.
    """

    def __init__(self, function: Callable[..., Any], signature: Signature) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.signature = signature
        self.unit = function.__module__.rpartition(".")[2]
        self.name: str = function.__name__

    def __reduce__(self) -> str:
        """Pickled as the name that it has in its module, like any function."""
        return self.name

    @functools.cached_property
    def _machine_code(self) -> Callable[[int], int]:
        from variantlake.kernels._machine import code_of

        return code_of(self)

    def __call__(self, *arguments: Any) -> int | None:
        """Run the machine code; compile or load it first if need be."""
        words = array("q", [0])
        for type_, value in zip(self.signature.arguments, arguments, strict=True):
            if isinstance(type_, ArrayType):
                words.extend(type_.words(value))
            else:
                words.append(value)
        if self._machine_code(words.buffer_info()[0]):
            raise IndexError(f"{self.unit}.{self.name} went outside of an array")
        return words[0] if self.signature.result is i64 else None


def entry(signature: Signature) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare a kernel that Python calls. `signature` is one of types: `i64(bytes_in)`."""

    def declared(function: Callable[P, R]) -> Callable[P, R]:
        if JIT_OFF:
            return _plain(function)
        return cast("Callable[P, R]", Entry(function, signature))

    return declared


def helper(function: Callable[P, R]) -> Callable[P, R]:
    """Declare a function that only kernels call."""
    return _inner(function, "helper")


def tiny(function: Callable[P, R]) -> Callable[P, R]:
    """Declare a function that is inlined into the kernels that call it."""
    return _inner(function, "tiny")


def machine(*, memory: bool) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare a function that is compiled from the LLVM snippet of its name.

    With `memory` it reads or writes arrays: where bounds are checked it is compiled as it stands.
    """
    return functools.partial(_inner, kind="helper" if memory and BOUNDS_CHECKED else "machine")


def _inner(function: Callable[P, R], kind: Literal["helper", "tiny", "machine"]) -> Callable[P, R]:
    return function if JIT_OFF else cast("Callable[P, R]", Inner(function, kind))


def _plain(function: Callable[P, R]) -> Callable[P, R]:
    """Machine integers wrap around without a word; so must NumPy's scalars in their place."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(over="ignore"):
            return function(*args, **kwargs)

    return call
