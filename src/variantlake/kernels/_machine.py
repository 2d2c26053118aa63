"""Machine code of kernels in this process: compiled once a machine, loaded once a process."""

from __future__ import annotations

import ctypes
import importlib
import threading
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm

from variantlake import kernels
from variantlake.kernels._cache import kept
from variantlake.kernels._declared import Kernel

_CALL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)  # releases the GIL

compiled: list[str] = []
"""The modules whose kernels this process had to compile."""

_engines: dict[str, Any] = {}
_lock = threading.RLock()


def code_of(entry: Kernel) -> Callable[[int], int]:
    """The function that takes the address of an entry's words and returns 0 if all went well."""
    return _CALL(engine_of(entry.unit).get_function_address(entry.name))


def engine_of(unit: str) -> Any:
    """What holds the machine code of a module's kernels; compiles or loads it the first time."""
    with _lock:
        if unit not in _engines:
            _engines[unit] = _load(kept(f"{unit}.o", lambda: _made(unit)))
        return _engines[unit]


def entries_of(unit: str) -> list[Kernel]:
    """The kernels that a module declares."""
    module = importlib.import_module(f"{kernels.__name__}.{unit}")
    found = [value for value in vars(module).values() if isinstance(value, Kernel)]
    return [entry for entry in found if entry.unit == unit]


def _made(unit: str) -> bytes:
    from variantlake.kernels._compiler import compile_unit

    compiled.append(unit)
    return compile_unit(entries_of(unit))


def _load(code: bytes) -> Any:
    """Object code, linked into this process."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine
