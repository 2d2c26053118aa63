"""Measure the first kernel of a process: seconds of CPU and of wall-clock time.

    python -m benchmarks.cold_start [PROCESSES]

From the start of Python to the answer of the first kernel, then of all the kernels that a load
needs, then in PROCESSES (8) processes that start at once. NumPy and PyArrow alone stand beside.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

IMPORTS = "import numpy, pyarrow"
FIRST = """
import variantlake, numpy as np
from variantlake.kernels.json.lines import split_lines
split_lines(np.frombuffer(b'{"a": 1}', np.uint8))
"""
LOAD = """
import variantlake, numpy as np
from variantlake.kernels.json.json_reader import JsonReader
from variantlake.kernels.json.lines import split_lines
from variantlake.kernels.variant.profiler import profile
from variantlake.kernels.variant.variant_writer import write_variant
from variantlake.kernels.tape.words import PADDING
text = b'{"a": 1}'
lines = split_lines(np.frombuffer(text, np.uint8))
padded = np.frombuffer(text + bytes(PADDING), np.uint8)
tape = JsonReader().read(padded, lines.starts, lines.ends)
write_variant(tape), profile(tape)
"""
RUNS = 5


def measure(code: str, *, processes: int = 1) -> tuple[float, float]:
    """Seconds of CPU and of wall-clock time until all processes are done."""
    before, started = os.times(), time.perf_counter()
    running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(processes)]
    if any([one.wait() for one in running]):  # noqa: C419 - each has to be waited for
        sys.exit("a process failed")
    seconds, after = time.perf_counter() - started, os.times()
    user, system = (
        after.children_user - before.children_user,
        after.children_system - before.children_system,
    )
    return user + system, seconds


def main() -> None:
    """Print the fastest of a few runs of each."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    rows = {
        "NumPy and PyArrow alone": (IMPORTS, 1),
        "the first kernel": (FIRST, 1),
        "the kernels of a load": (LOAD, 1),
        f"the kernels of a load, {count} processes at once": (LOAD, count),
    }
    print("| from the start of Python | s of CPU | s |\n|---|---|---|")
    for name, (code, processes) in rows.items():
        processor, clock = min(measure(code, processes=processes) for _ in range(RUNS))
        print(f"| {name} | {processor:.2f} | {clock:.2f} |")


if __name__ == "__main__":
    main()
