"""Compile kernels to object code with Numba.

By itself, Numba would optimise every function, again within each of its callers, and generate
machine code each time. Here a unit is one LLVM module: its functions are lowered and linked once,
then optimised once for each level of processor.
"""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Iterator, Sequence
from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba.core import (
    codegen,
    compiler,
    descriptors,
    registry,
    typed_passes,
    untyped_passes,
)
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.llvm_bindings import create_pass_builder
from numba.core.typing.context import Context
from numba.extending import models, register_model, typeof_impl
from numba.np import arrayobj

from variantlake.kernels.compile import snippets
from variantlake.kernels.native.declared import (
    BOUNDS_CHECKED,
    Argument,
    Inner,
    Kernel,
    KernelArray,
    RecordType,
)
from variantlake.kernels.native.library import symbol_of
from variantlake.kernels.native.sources import CONSTANTS

# Kernels allocate nothing, so they need no reference counts; those would cost a third of the
# speed and most of the time to compile.
_OPTIONS = {
    "nopython": True,
    "error_model": "numpy",
    "boundscheck": BOUNDS_CHECKED,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "_nrt": False,
}
_WORD = ir.IntType(64)


def compile_unit(entries: Sequence[Kernel], levels: Sequence[str]) -> list[bytes]:
    """Return the object code of a module's kernels for each of these levels of processor.

    Each entry becomes a function named `symbol_of(level, entry)`; `native.jit.KernelEntry`
    describes how Python calls it.
    """
    with global_compiler_lock, _without_collecting():
        unit = _Unit(_target().target_context.codegen(), entries[0].unit)
        for entry in entries:
            signature = _signature(entry)
            dispatcher = _dispatcher(entry)
            dispatcher.compile(signature)
            _export(unit, entry.name, dispatcher.overloads[signature.args])
        unit.finalize()
        return [_emitted(unit.lowered(), entries, level) for level in levels]


def _emitted(module: Any, entries: Sequence[Kernel], level: str) -> bytes:
    """Return the object code of a lowered module for one level of processor."""
    machine = target_machine(level)
    module = module.clone()
    builder = create_pass_builder(machine, opt=3, loop_vectorize=True)
    builder.getModulePassManager().run(module, builder)
    exported = {entry.name: symbol_of(level, entry) for entry in entries}
    # Several units and levels have the same functions: keep all but the entries internal.
    for value in (*module.functions, *module.global_variables):
        if value.name in exported:
            value.name = exported[value.name]
        elif not value.is_declaration:
            value.linkage = llvm.Linkage.internal
    return bytes(machine.emit_object(module))


def target_machine(level: str) -> Any:
    """Return LLVM's generator of object code for a level of processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(cpu=level, opt=3, reloc="pic", codemodel="default")


class _Function(codegen.AOTCodeLibrary):
    """The LLVM code of one function, to be linked into a unit."""

    def _optimize_final_module(self) -> None:
        pass  # Numba's cheap passes are there for reference counts; the others come in `_emitted`

    def get_pointer_to_function(self, _name: str) -> int:
        """Return a dummy address: nothing runs in this process."""
        return 0


class _Unit(_Function):
    """The LLVM code of all entries of a module."""

    def lowered(self) -> Any:
        """Return all functions in one LLVM module."""
        return self._final_module


class _Codegen(codegen.AOTCPUCodegen):
    """A code generator without final optimisation: `_emitted` optimises for each level."""

    _library_class = _Function

    def set_env(self, env_name: str, env: Any) -> None:
        pass


class _Operator(numba.types.Function):
    """A built-in function that caches its signatures: Numba searches a hundred places each time."""

    def __init__(self, templates: Any) -> None:
        self._signatures: dict[Any, Any] = {}
        super().__init__(templates)

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        key = (args, *kws.items())
        if key not in self._signatures:
            self._signatures[key] = super().get_call_type(context, args, kws)
        return self._signatures[key]

    def augment(self, other: Any) -> Any:
        return numba.types.Function(self.templates).augment(other)


register_model(_Operator)(models.OpaqueModel)


class _Typing(Context):
    """Numba's typing of the globals that kernels use."""

    def __init__(self) -> None:
        self._operators: dict[Any, _Operator] = {}
        super().__init__()

    def _lookup_global(self, gv: Any) -> Any:
        found = super()._lookup_global(gv)
        if type(found) is not numba.types.Function:
            return found
        if found not in self._operators:
            self._operators[found] = _Operator(found.templates)
        return self._operators[found]


class _Pipeline(compiler.CompilerBase):
    """The passes that kernels need: they have no closures, contexts or array expressions.

    Half of Numba's passes would find nothing to do, in a tenth of the time.
    """

    def define_pipelines(self) -> list[Any]:
        """Return one list of passes from byte code to LLVM."""
        manager = PassManager("kernel")
        for step in (
            untyped_passes.TranslateByteCode,
            untyped_passes.FixupArgs,
            untyped_passes.IRProcessing,
            untyped_passes.ReconstructSSA,
            typed_passes.NopythonTypeInference,
            typed_passes.PreLowerStripPhis,
            typed_passes.IRLegalization,
            typed_passes.NativeLowering,
            typed_passes.NoPythonBackend,
        ):
            manager.add_pass(step, step.__name__)
        manager.finalize()
        return [manager]


class _Target(descriptors.TargetDescriptor):
    """Numba's CPU target with our code generation."""

    options = registry.cpu_target.options

    def __init__(self) -> None:
        super().__init__("cpu")
        self._typing = _Typing()
        context: Any = registry.cpu_target.target_context
        self._context = context.subtarget(
            typing_context=self._typing, _internal_codegen=_Codegen("variantlake")
        )
        self._context.refresh()

    @property
    def typing_context(self) -> Any:
        return self._typing

    @property
    def target_context(self) -> Any:
        return self._context


@functools.cache
def _target() -> _Target:
    return _Target()


@functools.cache
def _dispatcher(declared: Kernel | Inner) -> Any:
    class Dispatcher(registry.CPUDispatcher):
        targetdescr = _target()  # type: ignore[assignment]

        def get_call_template(self, args: Any, kws: Any) -> Any:
            # Without this, Numba compiles a function for each constant argument.
            return super().get_call_template(tuple(map(numba.types.unliteral, args)), kws)

    _check_globals(declared.function)
    inlined = isinstance(declared, Inner) and declared.kind == "tiny"
    options = _OPTIONS | {"forceinline": inlined}
    return Dispatcher(declared.function, targetoptions=options, pipeline_class=_Pipeline)


def _check_globals(function: Any) -> None:
    """Refuse a constant that the code would freeze but the digest ignore (`native.sources`)."""
    for name in set(function.__code__.co_names) & function.__globals__.keys():
        value = function.__globals__[name]
        home = getattr(value, "__module__", None) or getattr(value, "__name__", None)
        is_ours = str(home).startswith("variantlake")
        if is_ours and not isinstance(value, (*CONSTANTS, Inner)):
            raise TypeError(f"{function.__module__}.{function.__name__} cannot freeze {name!r}")


@typeof_impl.register(Inner)
def _type_of_inner(inner: Inner, _context: Any) -> Any:
    """Let Numba resolve a declared function that a kernel calls."""
    if inner.kind == "machine":
        snippet = getattr(snippets, inner.function.__name__)
        return _target().typing_context.resolve_value_type(snippet)
    return numba.types.Dispatcher(_dispatcher(inner))


def _signature(entry: Kernel) -> Any:
    result, *arguments = map(_type, (entry.signature.result, *entry.signature.arguments))
    return result(*arguments)


def _type(declared: Argument) -> Any:
    if isinstance(declared, RecordType):
        return numba.types.NamedTuple([_type(part) for _, part in declared.fields], declared.kind)
    if isinstance(declared, KernelArray):
        items = numba.from_dtype(declared.dtype)
        return numba.types.Array(items, 1, "C", readonly=declared.readonly)
    return numba.int64 if declared.name == "int64" else numba.void


def _export(unit: _Unit, name: str, compiled: Any) -> None:
    """Add a function to the unit that takes the address of an entry's words.

    It returns 0, or Numba's code of the only possible exception: an index outside of its array, if
    bounds are checked.
    """
    context, described = compiled.target_context, compiled.fndesc
    module = unit.create_ir_module(name)
    type_ = ir.FunctionType(ir.IntType(32), [_WORD.as_pointer()])
    function = ir.Function(module, type_, name)
    builder = ir.IRBuilder(function.append_basic_block())
    (words,) = function.args
    place = 1

    def next_word() -> Any:
        nonlocal place
        word = builder.load(builder.gep(words, [_WORD(place)]))
        place += 1
        return word

    def next_argument(argument: Any) -> Any:
        if isinstance(argument, numba.types.NamedTuple):
            parts = [next_argument(part) for part in argument.types]
            return context.make_tuple(builder, argument, parts)
        if isinstance(argument, numba.types.Array):
            array = arrayobj.make_array(argument)(context, builder)
            data = builder.inttoptr(next_word(), array.data.type)
            size = context.get_abi_sizeof(context.get_data_type(argument.dtype))
            arrayobj.populate_array(array, data, [next_word()], [_WORD(size)], size, None)
            # The number of items is a member of its own.
            array.nitems = builder.extract_value(array.shape, 0)
            return array._getvalue()  # noqa: SLF001 - as Numba does itself
        return next_word()

    arguments = [next_argument(argument) for argument in described.argtypes]
    callee = context.declare_function(module, described)
    status, result = context.call_conv.call_function(
        builder, callee, described.restype, described.argtypes, arguments
    )
    if described.restype == numba.int64:
        builder.store(result, words)
    builder.ret(status.code)
    unit.add_ir_module(module)
    unit.add_linking_library(compiled.library)


@contextlib.contextmanager
def _without_collecting() -> Iterator[None]:
    """Pause garbage collection, a seventh of the time: most objects are not in cycles."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
