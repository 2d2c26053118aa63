"""Parse pyarrow's expressions, which engines pass to a pyarrow dataset as conditions.

pyarrow shows only the text of an expression. So we parse its pickled form: a record batch with the
parts, in order, as metadata, and the literals as columns.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from variantlake.interop.pushed_scan import NotPushed


@dataclass(frozen=True, slots=True)
class ArrowField:
    """A column, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class ArrowConstant:
    """A literal, a pyarrow scalar."""

    scalar: Any


@dataclass(frozen=True, slots=True)
class ArrowCall:
    """A call of a function of pyarrow.compute, with its options by name."""

    function: str
    arguments: tuple[Node, ...]
    options: dict[str, Any]


Node = ArrowField | ArrowConstant | ArrowCall


def parse_expression(expression: Any) -> Node:
    """Parse an expression or scalar. Raises NotPushed if its form is unknown."""
    if isinstance(expression, pa.Scalar):
        return ArrowConstant(expression)
    try:
        _, (buffer, *_) = expression.__reduce__()
        batch = pa.ipc.open_file(buffer).get_batch(0)
        parts = iter(list(_metadata(batch.schema)))
        return _node(*next(parts), parts, batch)
    except (TypeError, ValueError, StopIteration, IndexError, pa.ArrowException):
        raise NotPushed from None


def _node(kind: str, value: str, parts: Iterator[tuple[str, str]], batch: Any) -> Node:
    if kind == "field_ref":
        return ArrowField(value)
    if kind == "literal":
        return ArrowConstant(batch.column(int(value))[0])
    if kind != "call":
        raise NotPushed
    arguments: list[Node] = []
    options: dict[str, Any] = {}
    for inner, its in parts:
        if inner == "end":
            return ArrowCall(value, tuple(arguments), options)
        if inner == "options":
            options = batch.column(int(its))[0].as_py()
        else:
            arguments.append(_node(inner, its, parts, batch))
    raise NotPushed


class _ArrowSchema(ctypes.Structure):
    """The start of a schema in Arrow's C data interface."""

    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
    )


def _metadata(schema: Any) -> Iterator[tuple[str, str]]:
    """Yield all pairs of the metadata. pyarrow's dict has only one pair for each key."""
    capsule = schema.__arrow_c_schema__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    at = _ArrowSchema.from_address(pointer(capsule, b"arrow_schema")).metadata

    def number() -> int:
        nonlocal at
        found = ctypes.c_int32.from_address(at).value
        at += 4
        return found

    def text() -> str:
        nonlocal at
        length = number()
        found = ctypes.string_at(at, length).decode()
        at += length
        return found

    for _ in range(number() if at else 0):
        yield text(), text()
