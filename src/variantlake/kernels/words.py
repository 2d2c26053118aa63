"""The few machine-level operations: unaligned words, block copies, SIMD scans.

Each has two forms. The compiled one is an LLVM snippet without bounds checks: callers guarantee
that arrays which are read hold PADDING readable bytes after the last position they ask for, and
arrays that are copied into PADDING writable ones. The plain one is Python with array indexing; it
runs when the JIT is off, and compiled when bounds are checked. Both give the same results.
"""

# Signatures are the callers' contract; Numba calls intrinsics with a typing context first.
# mypy sees the plain forms.
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from variantlake.kernels._jit import (
    BOUNDS_CHECKED,
    JIT_OFF,
    Bytes,
    helper,
    int64,
    tiny,
    uint64,
)

PADDING = 64
"""Bytes that block operations may touch after the last byte that matters."""

F = TypeVar("F", bound=Callable[..., Any])

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_BLOCK = ir.VectorType(_I8, 32)


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    proxy: Any = cgutils.create_struct_proxy  # the stubs leave it untyped
    data = proxy(array_type)(context, builder, array).data
    return builder.gep(builder.bitcast(data, _I8.as_pointer()), [index])


def _load(builder: Any, address: Any, type_: Any) -> Any:
    value = builder.load(builder.bitcast(address, type_.as_pointer()))
    value.align = 1
    return value


def _store(builder: Any, address: Any, value: Any) -> None:
    builder.store(value, builder.bitcast(address, value.type.as_pointer())).align = 1


def _either(memory_access: bool, make: Callable[[], Any]) -> Callable[[F], F]:
    """Replace a plain function by the compiled form that `make` builds, where that may run."""

    def choose(plain: F) -> F:
        if JIT_OFF:
            return plain
        if BOUNDS_CHECKED and memory_access:
            return cast("F", helper(plain))
        return cast("F", make())

    return choose


def _loader(bits: int) -> Callable[[], Any]:
    def make() -> Any:
        @intrinsic
        def load(_context: Any, array: Any, _index: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                address = _address(context, builder, signature.args[0], *args)
                value = _load(builder, address, ir.IntType(bits))
                return value if bits == 64 else builder.zext(value, _I64)

            return types.int64(array, types.int64), generate

        return load

    return make


def _storer(bits: int) -> Callable[[], Any]:
    def make() -> Any:
        @intrinsic
        def store(_context: Any, array: Any, _index: Any, _value: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                address = _address(context, builder, signature.args[0], args[0], args[1])
                value = args[2] if bits == 64 else builder.trunc(args[2], ir.IntType(bits))
                _store(builder, address, value)
                return context.get_dummy_value()

            return types.void(array, types.int64, types.int64), generate

        return store

    return make


@_either(True, _loader(8))
def load8(array: Bytes, index: int) -> int:
    """The byte at `index`, as int64."""
    return int64(array[uint64(index)])


@_either(True, _loader(32))
def load32(array: Bytes, index: int) -> int:
    """4 bytes from `index` on, little-endian, unsigned."""
    word = int64(0)
    for k in range(4):
        word |= int64(array[uint64(index + k)]) << int64(8 * k)
    return word


@_either(True, _loader(64))
def load64(array: Bytes, index: int) -> int:
    """8 bytes from `index` on, little-endian, two's complement."""
    word = uint64(0)
    for k in range(8):
        word |= uint64(array[uint64(index + k)]) << uint64(8 * k)
    return int64(word)


def _plain_store(array: Bytes, index: int, value: int, width: int) -> None:
    for k in range(width):
        array[uint64(index + k)] = np.uint8((int64(value) >> int64(8 * k)) & int64(255))


_stored = _plain_store if JIT_OFF else helper(_plain_store)


@_either(True, _storer(8))
def store8(array: Bytes, index: int, value: int) -> None:
    """Write the low byte of `value`."""
    _stored(array, index, value, 1)


@_either(True, _storer(16))
def store16(array: Bytes, index: int, value: int) -> None:
    """Write the low 2 bytes of `value`, little-endian."""
    _stored(array, index, value, 2)


@_either(True, _storer(32))
def store32(array: Bytes, index: int, value: int) -> None:
    """Write the low 4 bytes of `value`, little-endian."""
    _stored(array, index, value, 4)


@_either(True, _storer(64))
def store64(array: Bytes, index: int, value: int) -> None:
    """Write the 8 bytes of `value`, little-endian."""
    _stored(array, index, value, 8)


def _make_copy_block() -> Any:
    @intrinsic
    def copy(_context: Any, target: Any, _to: Any, source: Any, _start: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            block = _load(
                builder,
                _address(context, builder, signature.args[2], args[2], args[3]),
                _BLOCK,
            )
            _store(builder, _address(context, builder, signature.args[0], args[0], args[1]), block)
            return context.get_dummy_value()

        return types.void(target, types.int64, source, types.int64), generate

    return copy


@_either(True, _make_copy_block)
def copy_block(target: Bytes, to: int, source: Bytes, start: int) -> None:
    """Copy 32 bytes; the ranges may not overlap."""
    for k in range(32):
        target[uint64(to + k)] = source[uint64(start + k)]


def _make_scan_string() -> Any:
    @intrinsic
    def scan(_context: Any, array: Any, _index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            block = _load(builder, _address(context, builder, signature.args[0], *args), _BLOCK)

            def constant(byte: int) -> Any:
                return ir.Constant(_BLOCK, [byte] * 32)

            special = builder.or_(
                builder.or_(
                    builder.icmp_unsigned("==", block, constant(34)),
                    builder.icmp_unsigned("==", block, constant(92)),
                ),
                builder.icmp_unsigned("<", block, constant(32)),
            )
            high = builder.icmp_signed("<", block, constant(0))
            low_word = builder.zext(builder.bitcast(special, _I32), _I64)
            high_word = builder.zext(builder.bitcast(high, _I32), _I64)
            return builder.or_(low_word, builder.shl(high_word, ir.Constant(_I64, 32)))

        return types.int64(array, types.int64), generate

    return scan


@_either(True, _make_scan_string)
def scan_string(array: Bytes, index: int) -> int:
    """Look at 32 bytes of a JSON string.

    Bit i of the result is set where byte i ends a run of plain text (quote, backslash, control
    character), bit 32 + i where byte i is not ASCII.
    """
    word = int64(0)
    for k in range(32):
        byte = int64(array[uint64(index + k)])
        if byte == 34 or byte == 92 or byte < 32:
            word |= int64(1) << int64(k)
        if byte >= 128:
            word |= int64(1) << int64(32 + k)
    return word


def _make_equal_block() -> Any:
    @intrinsic
    def equal(_context: Any, first: Any, _start: Any, second: Any, _other: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            one = _load(
                builder,
                _address(context, builder, signature.args[0], args[0], args[1]),
                _BLOCK,
            )
            two = _load(
                builder,
                _address(context, builder, signature.args[2], args[2], args[3]),
                _BLOCK,
            )
            same = builder.icmp_unsigned("==", one, two)
            return builder.zext(builder.bitcast(same, _I32), _I64)

        return types.int64(first, types.int64, second, types.int64), generate

    return equal


@_either(True, _make_equal_block)
def equal_block(first: Bytes, start: int, second: Bytes, other: int) -> int:
    """Bit i is set where first[start + i] == second[other + i], for 32 bytes."""
    word = int64(0)
    for k in range(32):
        if first[uint64(start + k)] == second[uint64(other + k)]:
            word |= int64(1) << int64(k)
    return word


def _make_match_block() -> Any:
    vector = ir.VectorType(_I8, 64)

    @intrinsic
    def match(_context: Any, array: Any, _index: Any, _byte: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            block = _load(builder, _address(context, builder, signature.args[0], *args[:2]), vector)
            byte = builder.trunc(args[2], _I8)
            single = builder.insert_element(
                ir.Constant(vector, ir.Undefined), byte, ir.Constant(_I32, 0)
            )
            mask = ir.Constant(ir.VectorType(_I32, 64), [0] * 64)
            wanted = builder.shuffle_vector(single, ir.Constant(vector, ir.Undefined), mask)
            return builder.bitcast(builder.icmp_unsigned("==", block, wanted), _I64)

        return types.int64(array, types.int64, types.int64), generate

    return match


@_either(True, _make_match_block)
def match_block(array: Bytes, index: int, byte: int) -> int:
    """Bit i is set where array[index + i] == byte, for 64 bytes."""
    word = uint64(0)
    for k in range(64):
        if int64(array[uint64(index + k)]) == byte:
            word |= uint64(1) << uint64(k)
    return int64(word)


def _make_trailing_zeros() -> Any:
    @intrinsic
    def zeros(_context: Any, _word: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

        return types.int64(types.int64), generate

    return zeros


@_either(False, _make_trailing_zeros)
def trailing_zeros(word: int) -> int:
    """Zero bits below the lowest set bit; 64 for 0."""
    bits = int(word) & 0xFFFFFFFFFFFFFFFF
    return int64((bits & -bits).bit_length() - 1 if bits else 64)


def _make_leading_zeros() -> Any:
    @intrinsic
    def zeros(_context: Any, _word: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

        return types.int64(types.uint64), generate

    return zeros


@_either(False, _make_leading_zeros)
def leading_zeros(word: int) -> int:
    """Zero bits above the highest set bit of a uint64; 64 for 0."""
    return int64(64 - int(word).bit_length())


def _make_shift_right() -> Any:
    @intrinsic
    def shift(_context: Any, _word: Any, _bits: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return builder.lshr(args[0], args[1])

        return types.int64(types.int64, types.int64), generate

    return shift


@_either(False, _make_shift_right)
def shift_right(word: int, bits: int) -> int:
    """Logical shift of an int64 by 0 to 63 bits."""
    return int64(uint64(int64(word)) >> uint64(bits))


def _make_multiply_high() -> Any:
    @intrinsic
    def multiply(_context: Any, _one: Any, _two: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            wide = ir.IntType(128)
            product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
            return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), _I64)

        return types.uint64(types.uint64, types.uint64), generate

    return multiply


@_either(False, _make_multiply_high)
def multiply_high(one: int, two: int) -> int:
    """The upper 64 bits of the product of two uint64."""
    return uint64(int(one) * int(two) >> 64)


def _make_float_bits() -> Any:
    @intrinsic
    def bits(_context: Any, _number: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], _I64)

        return types.int64(types.float64), generate

    return bits


@_either(False, _make_float_bits)
def float_bits(number: float) -> int:
    """The IEEE 754 bits of a double."""
    return int64(np.float64(number).view(np.int64))


@tiny
def copy_bytes(target: Bytes, to: int, source: Bytes, start: int, count: int) -> None:
    """Copy `count` bytes in blocks of 32: touches up to 31 bytes after both ends."""
    done = int64(0)
    while done < count:
        copy_block(target, to + done, source, start + done)
        done += 32
