"""`python -m variantlake.kernels`: compile every kernel now, for an image or a fresh machine.

Kernels compile when they are first called and are kept in a cache folder of the user; without
this the first load of a machine does it. With names of modules only those are compiled.
"""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from variantlake import kernels
from variantlake.kernels._cache import cache_folder
from variantlake.kernels._machine import engine_of, entries_of


def main() -> None:
    """Compile every module's kernels, or load them, and say where the code is kept."""
    started = time.perf_counter()
    if len(sys.argv) > 1:
        _make_ready(sys.argv[1:])
        return
    shares = _shares(os.cpu_count() or 1)
    command = [sys.executable, "-m", "variantlake.kernels"]
    others = [subprocess.Popen([*command, *share]) for share in shares[1:]]  # noqa: S603 - us
    _make_ready(shares[0])
    codes = [other.wait() for other in others]
    if any(codes):
        sys.exit("the kernels do not compile")
    seconds = time.perf_counter() - started
    sys.stdout.write(f"kernels ready in {seconds:.1f} s, kept in {cache_folder()}\n")


def _shares(count: int) -> list[list[str]]:
    """The modules with kernels, in at most `count` parts whose sources are about as long."""
    folder = Path(kernels.__file__).parent
    sizes = {
        module.name: (folder / f"{module.name}.py").stat().st_size
        for module in pkgutil.iter_modules([str(folder)])
        if not module.name.startswith("_") and entries_of(module.name)
    }
    shares: list[list[str]] = [[] for _ in range(min(count, len(sizes)))]
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        min(shares, key=lambda share: sum(map(sizes.__getitem__, share))).append(name)
    return shares


def _make_ready(units: Iterable[str]) -> None:
    for unit in units:
        engine_of(unit)


if __name__ == "__main__":
    main()
