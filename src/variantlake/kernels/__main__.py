"""`python -m variantlake.kernels`: compile every kernel now, for an image or a fresh machine.

Kernels compile when their module is imported and are kept in a cache folder of the user; without
this the first load of a machine does it. With names of modules only those are compiled.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from variantlake import kernels
from variantlake.kernels._jit import cache_folder


def main() -> None:
    """Import every kernel module, which compiles or loads it, and say where the code is kept."""
    started = time.perf_counter()
    if len(sys.argv) > 1:
        _import(sys.argv[1:])
        return
    shares = _shares(os.cpu_count() or 1)
    command = [sys.executable, "-m", "variantlake.kernels"]
    others = [subprocess.Popen([*command, *share]) for share in shares[1:]]  # noqa: S603 - us
    _import(shares[0])
    codes = [other.wait() for other in others]
    if any(codes):
        sys.exit("the kernels do not compile")
    _import(name for share in shares for name in share)
    seconds = time.perf_counter() - started
    sys.stdout.write(f"kernels ready in {seconds:.1f} s, kept in {cache_folder()}\n")


def _shares(count: int) -> list[list[str]]:
    """The modules in `count` parts that take about as long: their sources are as long."""
    folder = Path(kernels.__file__).parent
    sizes = {
        module.name: (folder / f"{module.name}.py").stat().st_size
        for module in pkgutil.iter_modules([str(folder)])
        if module.name != "__main__"
    }
    shares: list[list[str]] = [[] for _ in range(count)]
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        min(shares, key=lambda share: sum(map(sizes.__getitem__, share))).append(name)
    return shares


def _import(names: Iterable[str]) -> None:
    for name in names:
        importlib.import_module(f"{kernels.__name__}.{name}")


if __name__ == "__main__":
    main()
