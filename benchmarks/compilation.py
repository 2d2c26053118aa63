"""What the first use of the kernels costs: seconds of processor time and of the clock.

    python -m benchmarks.compilation [PROCESSES]

Compiles every kernel ahead as `python -m variantlake.kernels` does, then loads them in a new
process, then lets PROCESSES (8) processes that use all of them start at once without any compiled
code: one compiles, the others wait.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

AHEAD = ["-m", "variantlake.kernels"]
IMPORTS = ["-c", "import numpy, pyarrow"]
LOAD_ALL = """
import pkgutil
from variantlake import kernels
from variantlake.kernels._machine import engine_of, entries_of
for module in pkgutil.iter_modules(kernels.__path__):
    if not module.name.startswith("_") and entries_of(module.name):
        engine_of(module.name)
"""
LOAD = ["-c", LOAD_ALL]


def measure(arguments: list[str], cache: str, *, processes: int = 1) -> tuple[float, float]:
    """Seconds of the processors and of the clock until all processes are done."""
    env = os.environ | {"NUMBA_CACHE_DIR": cache}
    before, started = os.times(), time.perf_counter()
    running = [subprocess.Popen([sys.executable, *arguments], env=env) for _ in range(processes)]
    codes = [one.wait() for one in running]
    if any(codes):
        sys.exit("the kernels do not compile")
    seconds, after = time.perf_counter() - started, os.times()
    user, system = (
        after.children_user - before.children_user,
        after.children_system - before.children_system,
    )
    return user + system, seconds


def main() -> None:
    """Measure each step once; loading is the least of five."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    with tempfile.TemporaryDirectory(prefix="variantlake-bench-") as folder:
        ahead, together = str(Path(folder) / "ahead"), str(Path(folder) / "together")
        rows = {
            "compile all, on all cores": measure(AHEAD, ahead),
            "NumPy and PyArrow alone": min(measure(IMPORTS, ahead) for _ in range(5)),
            "load all": min(measure(LOAD, ahead) for _ in range(5)),
            f"{count} processes at once, nothing compiled": measure(
                LOAD, together, processes=count
            ),
        }
    print("| step | s of CPU | s |\n|---|---|---|")
    for name, (processor, clock) in rows.items():
        print(f"| {name} | {processor:.2f} | {clock:.2f} |")


if __name__ == "__main__":
    main()
