"""Declarations for kernels: types of arguments, casts, the switches of the compiler."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, cast, get_type_hints

import numpy as np
import pyarrow as pa

from variantlake import kernels


def _switched_on(name: str) -> bool:
    return os.environ.get(name, "0") not in ("", "0")


PURE_PYTHON = _switched_on("VARIANTLAKE_PURE_PYTHON")
"""Kernels run as plain Python functions (VARIANTLAKE_PURE_PYTHON=1)."""

BOUNDS_CHECKED = _switched_on("VARIANTLAKE_BOUNDS_CHECKED")
"""Compiled array accesses raise IndexError when outside (VARIANTLAKE_BOUNDS_CHECKED=1)."""

int64 = cast("Callable[[Any], int]", np.int64)
"""The casts of kernels. In plain mode they make NumPy scalars, which mypy takes for int."""
uint64 = cast("Callable[[Any], int]", np.uint64)
float64 = cast("Callable[[Any], float]", np.float64)


_SOUND = 0x0001 | 0x0100
"""NumPy's flags C_CONTIGUOUS and ALIGNED as one number: much faster to test than one by one."""
_WRITEABLE = 0x0400


@dataclass(frozen=True)
class KernelArray:
    """A contiguous one-dimensional array, writable unless the kernel only reads it."""

    dtype: np.dtype[Any]
    readonly: bool = False

    def words(self, value: object) -> tuple[int, int]:
        """Return address and length.

        Raises TypeError for any other array: machine code would not notice.
        """
        if not isinstance(value, np.ndarray) or value.dtype != self.dtype or value.ndim != 1:
            raise TypeError(f"a kernel wants one dimension of {self.dtype}, and not {value!r}")
        needed = _SOUND if self.readonly else _SOUND | _WRITEABLE
        if value.flags.num & needed != needed:
            raise TypeError(f"a kernel cannot use an array with these flags: {value.flags}")
        # NumPy takes twenty times as long to return an array's address.
        return pa.py_buffer(cast("Any", value)).address, value.size


@dataclass(frozen=True)
class KernelResult:
    """The result of a kernel, an int64 or nothing; also an int64 argument."""

    name: Literal["int64", "void"]

    def words(self, value: int) -> tuple[int]:
        """Return the word of an argument of this type."""
        return (value,)


@dataclass(frozen=True)
class RecordType:
    """Arguments that belong together: a NamedTuple of arrays and integers; kernels only read it."""

    kind: type[tuple[Any, ...]]
    fields: tuple[tuple[str, KernelArray | KernelResult], ...]

    def words(self, value: object) -> list[int]:
        """Return the words of the fields. Raises TypeError for anything but this record."""
        if not isinstance(value, self.kind):
            raise TypeError(f"a kernel wants a {self.kind.__name__}, and not {value!r}")
        found: list[int] = []
        for (_, type_), item in zip(self.fields, value, strict=True):
            found += type_.words(item)
        return found


Argument = KernelArray | KernelResult | RecordType


@dataclass(frozen=True)
class Signature:
    """The signature of an entry: each argument is an array, an int64, or a record of these."""

    result: KernelResult
    arguments: tuple[Argument, ...]


def _simple(hint: Any) -> KernelArray | KernelResult:
    """Return the type of an annotation: `int`, or the alias of an array."""
    return i64 if hint is int else cast("KernelArray", hint.__metadata__[0])


def _argument(hint: Any) -> Argument:
    if isinstance(hint, type) and issubclass(hint, tuple):
        members = get_type_hints(hint, include_extras=True)
        return RecordType(hint, tuple((name, _simple(each)) for name, each in members.items()))
    return _simple(hint)


i64, void = KernelResult("int64"), KernelResult("void")
uint8s = KernelArray(np.dtype(np.uint8))
int32s = KernelArray(np.dtype(np.int32))
int64s = KernelArray(np.dtype(np.int64))
bytes_in = KernelArray(np.dtype(np.uint8), readonly=True)
int32s_in = KernelArray(np.dtype(np.int32), readonly=True)
int64s_in = KernelArray(np.dtype(np.int64), readonly=True)

Bytes = Annotated[np.ndarray[tuple[int], np.dtype[np.uint8]], uint8s]
Int32s = Annotated[np.ndarray[tuple[int], np.dtype[np.int32]], int32s]
Int64s = Annotated[np.ndarray[tuple[int], np.dtype[np.int64]], int64s]
# Arrays that a kernel only reads; it takes writable ones as well.
BytesIn = Annotated[np.ndarray[tuple[int], np.dtype[np.uint8]], bytes_in]
Int32sIn = Annotated[np.ndarray[tuple[int], np.dtype[np.int32]], int32s_in]
Int64sIn = Annotated[np.ndarray[tuple[int], np.dtype[np.int64]], int64s_in]
Records = Any
"""A one-dimensional np.recarray; attribute access to its records has no static type."""


@dataclass(frozen=True, eq=False)
class Inner:
    """A function that only kernels call; Python cannot call it unless kernels run as plain Python.

    A `machine` function is the LLVM snippet of its name in `compile.snippets`.
    """

    function: Callable[..., Any]
    kind: Literal["helper", "tiny", "machine"]


class Kernel:
    """A compiled function that Python calls.

    `unit` is the name of its module below the package, such as `json.numbers`.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.unit = function.__module__.removeprefix(f"{kernels.__name__}.")
        self.name: str = function.__name__

    @cached_property
    def signature(self) -> Signature:
        """The types of its arguments and result, from its annotations."""
        names = dict(self.function.__annotations__)
        result = void if names.pop("return") == "None" else i64
        # The annotations are names of the module: `typing.get_type_hints` takes ten times as long.
        known = self.function.__globals__
        hints = [_BUILTINS.get(name) or known[name] for name in names.values()]
        return Signature(result, tuple(map(_argument, hints)))


_BUILTINS: dict[str, type] = {"int": int, "float": float, "bool": bool}
