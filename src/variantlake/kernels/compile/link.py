"""Link object files to a shared library, with the system's linker or that of a Python package."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def link(objects: Sequence[Path], library: Path) -> None:
    """Make a shared library without dependencies: every process has the `memset` that it calls.

    Raises CalledProcessError, and FileNotFoundError when there is no linker.
    """
    if sys.platform == "darwin":
        options = ["-dynamiclib", "-Wl,-x"]
    else:
        options = ["-shared", "-nostdlib", "-s", "-Wl,-z,relro", "-Wl,-z,now"]
    subprocess.run(  # noqa: S603 - the linker that was found
        [*_linker(), *options, "-o", str(library), *map(str, objects)], check=True
    )


def _linker() -> list[str]:
    if found := shutil.which("cc"):
        return [found]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    raise FileNotFoundError("no linker: install a C compiler (`cc`), or `pip install ziglang`")
