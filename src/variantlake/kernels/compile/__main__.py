"""`python -m variantlake.kernels.compile`: compile the kernels of this checkout, if they changed.

    python -m variantlake.kernels.compile [--into FOLDER]

With FOLDER it compiles them for a package to install: its sources do not change, so the library
does not record their digests. With VARIANTLAKE_BOUNDS_CHECKED=1 the kernels check every access to
an array, for tests. VARIANTLAKE_KERNEL_OBJECTS names the folder of object files, also for a
package: their names have the digest of their sources and of the compiler, and existing ones are
used again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from variantlake import kernels
from variantlake.kernels.compile.about import about
from variantlake.kernels.compile.link import link
from variantlake.kernels.compile.units import compile_unit
from variantlake.kernels.native.declared import BOUNDS_CHECKED, PURE_PYTHON, Kernel
from variantlake.kernels.native.levels import levels
from variantlake.kernels.native.library import is_current, library_file
from variantlake.kernels.native.sources import digest_of

_FOLDER = Path(kernels.__file__).parent
OBJECTS = "VARIANTLAKE_KERNEL_OBJECTS"
_KEPT = Path(os.environ.get(OBJECTS) or _FOLDER.parents[2] / "build" / "kernels")
"""Where a checkout keeps object files, so that a change recompiles only units that it affects."""


def main() -> None:
    """Compile on all cores, and link."""
    parser = argparse.ArgumentParser(prog="python -m variantlake.kernels.compile")
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="compile for a package")
    parser.add_argument("--objects", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("units", nargs="*", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if PURE_PYTHON or not levels():
        sys.exit(
            "kernels are compiled on Linux (x86-64, arm64) and macOS (arm64); elsewhere set"
            " VARIANTLAKE_PURE_PYTHON=1, which needs no compiled kernels"
        )
    if arguments.objects is not None:
        _compile(arguments.units, arguments.objects)
    else:
        _make(library_file() if arguments.into is None else arguments.into / library_file().name)


def _make(library: Path) -> None:
    started = time.perf_counter()
    units = [unit for unit in _modules() if entries_of(unit)]
    in_place = library == library_file()
    if in_place and is_current(units):
        return
    with tempfile.TemporaryDirectory(prefix="variantlake-kernels-") as folder:
        objects = _KEPT if in_place or OBJECTS in os.environ else Path(folder)
        objects.mkdir(parents=True, exist_ok=True)
        missing = [unit for unit in units if not all(map(Path.exists, _files(unit, objects)))]
        _compile_on_all_cores(missing, objects)
        about_file = Path(folder) / "about.o"
        sources = {unit: digest_of(unit) for unit in units} if in_place else {}
        about_file.write_bytes(about(levels()[0], sources))
        # Replace the file instead of overwriting it: processes may be using the library.
        made = library.with_name(f"{library.name}.{os.getpid()}")
        link([about_file, *(file for unit in units for file in _files(unit, objects))], made)
        made.replace(library)
    if in_place:
        _remove_old_objects(units)
    sys.stdout.write(f"kernels compiled in {time.perf_counter() - started:.1f} s: {library}\n")


def _modules() -> list[str]:
    """Return the modules that may hold kernels, by their names below the package."""
    found = (path.relative_to(_FOLDER).with_suffix("").parts for path in _FOLDER.glob("*/[!_]*.py"))
    return sorted(".".join(parts) for parts in found if parts[0] not in ("compile", "native"))


def _levels() -> tuple[str, ...]:
    return levels()[:1] if BOUNDS_CHECKED else levels()


def _files(unit: str, objects: Path) -> list[Path]:
    """Return a unit's object files, one for each level; their names have the unit's digest."""
    checked = "checked-" if BOUNDS_CHECKED else ""
    name = f"{unit}.{checked}{digest_of(unit)[:16]}"
    return [objects / f"{name}.{level}.o" for level in _levels()]


def _remove_old_objects(units: Sequence[str]) -> None:
    current = {file for unit in units for file in _files(unit, _KEPT)}
    for file in _KEPT.glob("*.o"):
        if file not in current and (".checked-" in file.name) is BOUNDS_CHECKED:
            file.unlink(missing_ok=True)


def entries_of(unit: str) -> list[Kernel]:
    """Return the kernels that a module declares."""
    module = import_module(f"{kernels.__name__}.{unit}")
    found = [value for value in vars(module).values() if isinstance(value, Kernel)]
    return [entry for entry in found if entry.unit == unit]


def _compile_on_all_cores(units: Sequence[str], objects: Path) -> None:
    command = [sys.executable, "-m", f"{kernels.__name__}.compile", "--objects", str(objects)]
    if not units:
        return
    shares = _shares(units, os.cpu_count() or 1)
    others = [subprocess.Popen([*command, *share]) for share in shares[1:]]  # noqa: S603 - us
    _compile(shares[0], objects)
    codes = [other.wait() for other in others]
    if any(codes):
        sys.exit("the kernels do not compile")


def _shares(units: Sequence[str], count: int) -> list[list[str]]:
    """Divide the units into at most `count` parts with sources of about equal length."""
    files = {unit: _FOLDER.joinpath(*unit.split(".")).with_suffix(".py") for unit in units}
    sizes = {unit: file.stat().st_size for unit, file in files.items()}
    shares: list[list[str]] = [[] for _ in range(min(count, len(sizes)))]
    for unit in sorted(sizes, key=lambda unit: -sizes[unit]):
        min(shares, key=lambda share: sum(map(sizes.__getitem__, share))).append(unit)
    return shares


def _compile(units: Sequence[str], objects: Path) -> None:
    for unit in units:
        codes = compile_unit(entries_of(unit), _levels())
        for file, code in zip(_files(unit, objects), codes, strict=True):
            part = file.with_name(f"{file.name}.{os.getpid()}")
            part.write_bytes(code)
            part.replace(file)


if __name__ == "__main__":
    main()
