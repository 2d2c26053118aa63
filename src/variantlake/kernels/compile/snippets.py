"""The compiled forms of `words`: LLVM snippets of the same names, for Numba."""

# Numba calls intrinsics with a typing context first, and requires these exact parameters.
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_I1, _I8, _I32, _I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
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


def _loader(bits: int) -> Any:
    @intrinsic
    def load(_context: Any, array: Any, _index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            address = _address(context, builder, signature.args[0], *args)
            value = _load(builder, address, ir.IntType(bits))
            return value if bits == 64 else builder.zext(value, _I64)

        return types.int64(array, types.int64), generate

    return load


def _storer(bits: int) -> Any:
    @intrinsic
    def store(_context: Any, array: Any, _index: Any, _value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            address = _address(context, builder, signature.args[0], args[0], args[1])
            value = args[2] if bits == 64 else builder.trunc(args[2], ir.IntType(bits))
            _store(builder, address, value)
            return context.get_dummy_value()

        return types.void(array, types.int64, types.int64), generate

    return store


load8, load32, load64 = (_loader(bits) for bits in (8, 32, 64))
store8, store16, store32, store64 = (_storer(bits) for bits in (8, 16, 32, 64))


@intrinsic
def copy_block(_context: Any, target: Any, _to: Any, source: Any, _start: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        start = _address(context, builder, signature.args[2], args[2], args[3])
        to = _address(context, builder, signature.args[0], args[0], args[1])
        _store(builder, to, _load(builder, start, _BLOCK))
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64), generate


@intrinsic
def scan_string(_context: Any, array: Any, _index: Any) -> Any:
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


@intrinsic
def equal_block(_context: Any, first: Any, _start: Any, second: Any, _other: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        one = _address(context, builder, signature.args[0], args[0], args[1])
        two = _address(context, builder, signature.args[2], args[2], args[3])
        blocks = _load(builder, one, _BLOCK), _load(builder, two, _BLOCK)
        same = builder.icmp_unsigned("==", *blocks)
        return builder.zext(builder.bitcast(same, _I32), _I64)

    return types.int64(first, types.int64, second, types.int64), generate


@intrinsic
def match_block(_context: Any, array: Any, _index: Any, _byte: Any) -> Any:
    vector = ir.VectorType(_I8, 64)

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


def _word(result: Any, *arguments: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make an intrinsic on words from a function of a builder and the arguments."""
    signature = result(*arguments)

    def made(build: Callable[..., Any]) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return build(builder, *args)

        if len(arguments) == 1:
            return intrinsic(lambda _context, _word: (signature, generate))
        return intrinsic(lambda _context, _one, _two: (signature, generate))

    return made


@_word(types.int64, types.int64)
def trailing_zeros(builder: Any, word: Any) -> Any:
    return builder.cttz(word, ir.Constant(_I1, 0))


@_word(types.int64, types.uint64)
def leading_zeros(builder: Any, word: Any) -> Any:
    return builder.ctlz(word, ir.Constant(_I1, 0))


@_word(types.uint64, types.uint64, types.uint64)
def multiply_high(builder: Any, one: Any, two: Any) -> Any:
    wide = ir.IntType(128)
    product = builder.mul(builder.zext(one, wide), builder.zext(two, wide))
    return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), _I64)


@_word(types.int64, types.float64)
def float_bits(builder: Any, number: Any) -> Any:
    return builder.bitcast(number, _I64)
