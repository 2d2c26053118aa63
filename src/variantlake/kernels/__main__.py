"""`python -m variantlake.kernels`: compile every kernel now, for an image or a fresh machine.

Kernels compile when their module is imported and are kept in a cache folder of the user; without
this the first load of a machine does it.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import time

from variantlake import kernels
from variantlake.kernels._jit import cache_folder


def main() -> None:
    """Import every kernel module, which compiles or loads it, and say where the code is kept."""
    started = time.perf_counter()
    for module in pkgutil.iter_modules(kernels.__path__):
        if module.name != "__main__":
            importlib.import_module(f"{kernels.__name__}.{module.name}")
    seconds = time.perf_counter() - started
    sys.stdout.write(f"kernels ready in {seconds:.1f} s, kept in {cache_folder()}\n")


if __name__ == "__main__":
    main()
