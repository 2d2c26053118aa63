"""The parts of a library besides its kernels: functions to query the processor, and its sources."""

from __future__ import annotations

import json
from collections.abc import Mapping

import llvmlite.binding as llvm

from variantlake.kernels.compile.units import target_machine
from variantlake.kernels.native.library import SOURCES

# `native.levels.level_of` describes their arguments and results.
_X86_64 = (
    """
define i32 @cpuid(ptr %words) {
  %part = getelementptr i64, ptr %words, i64 1
  %leaf64 = load i64, ptr %words
  %part64 = load i64, ptr %part
  %leaf32 = trunc i64 %leaf64 to i32
  %part32 = trunc i64 %part64 to i32
  %all = call { i32, i32, i32, i32 } asm sideeffect "cpuid",
    "={ax},={bx},={cx},={dx},{ax},{cx}"(i32 %leaf32, i32 %part32)
"""
    + "".join(
        f"""
  %register{place} = extractvalue {{ i32, i32, i32, i32 }} %all, {place}
  %wide{place} = zext i32 %register{place} to i64
  %to{place} = getelementptr i64, ptr %words, i64 {place}
  store i64 %wide{place}, ptr %to{place}
"""
        for place in range(4)
    )
    + """
  ret i32 0
}
define i32 @xgetbv(ptr %words) {
  %both = call { i32, i32 } asm sideeffect "xgetbv", "={ax},={dx},{cx}"(i32 0)
  %low32 = extractvalue { i32, i32 } %both, 0
  %high32 = extractvalue { i32, i32 } %both, 1
  %low = zext i32 %low32 to i64
  %high = zext i32 %high32 to i64
  %shifted = shl i64 %high, 32
  %word = or i64 %low, %shifted
  store i64 %word, ptr %words
  ret i32 0
}
"""
)


def about(level: str, sources: Mapping[str, str]) -> bytes:
    """Return object code for the lowest `level`; `sources` is empty for a package to install."""
    text = f'target triple = "{llvm.get_process_triple()}"\n'
    if level.startswith("x86-64"):
        text += _X86_64
    if sources:
        content = json.dumps(sources, sort_keys=True).encode() + b"\0"
        escaped = "".join(f"\\{byte:02x}" for byte in content)
        text += f'@{SOURCES} = constant [{len(content)} x i8] c"{escaped}"\n'
    machine = target_machine(level)
    llvm.initialize_native_asmparser()
    return bytes(machine.emit_object(llvm.parse_assembly(text)))
