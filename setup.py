"""What pyproject.toml cannot say of the build: compiled kernels, and the tag of the wheel."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

from setuptools import Command, Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build import build

SOURCES = Path(__file__).resolve().parent / "src"
PURE = os.environ.get("VARIANTLAKE_PURE_PYTHON", "0") not in ("", "0")
"""Build no library: kernels of such a package run as plain Python only."""


class BuildKernels(Command):
    """Compile the kernels into the package; in a checkout, beside its sources."""

    description = "compile the kernels to a shared library"
    user_options: ClassVar[list[tuple[str, str, str]]] = []
    editable_mode = False

    def initialize_options(self) -> None:
        """See Command."""
        self.build_lib: str | None = None

    def finalize_options(self) -> None:
        """See Command."""
        self.set_undefined_options("build_py", ("build_lib", "build_lib"))

    def run(self) -> None:
        """See Command."""
        package = Path(str(self.build_lib)).resolve() / "variantlake"
        into = [] if self.editable_mode else ["--into", str(package / "kernels" / "native")]
        # In the folder, as pip takes an older editable install out of the path that it gives.
        command = [sys.executable, "-m", "variantlake.kernels.compile", *into]
        subprocess.run(command, cwd=SOURCES, check=True)  # noqa: S603 - our own

    def get_source_files(self) -> list[str]:
        """See SubCommand: what an sdist needs, which MANIFEST.in says."""
        return []

    def get_outputs(self) -> list[str]:
        """See SubCommand."""
        return []

    def get_output_mapping(self) -> dict[str, str]:
        """See SubCommand."""
        return {}


class Build(build):
    """The usual steps, and the kernels."""

    sub_commands: ClassVar[list[tuple[str, None]]] = [
        *build.sub_commands,
        *([] if PURE else [("build_kernels", None)]),
    ]


class Platform(Distribution):
    """A package with machine code."""

    def has_ext_modules(self) -> bool:
        """Whether wheels are for a platform."""
        return not PURE


class Wheel(bdist_wheel):
    """A wheel for any Python 3: the library knows nothing of the interpreter."""

    def get_tag(self) -> tuple[str, str, str]:
        """Python, its binary interface, platform."""
        _, _, tag = super().get_tag()
        # The library needs no other and any version of the C library; 2.28 is what PyArrow needs.
        linux = f"manylinux_2_28_{platform.machine()}"
        if PURE:
            return super().get_tag()
        return "py3", "none", linux if tag.startswith("linux") else tag


setup(
    distclass=Platform,
    cmdclass={"build": Build, "build_kernels": BuildKernels, "bdist_wheel": Wheel},
    # Setuptools asks for these before it builds: a linker where the system has none.
    setup_requires=[] if PURE or shutil.which("cc") else ["ziglang==0.17.1"],
)
