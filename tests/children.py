"""Processes of which tests measure the memory."""

from __future__ import annotations

import subprocess
import sys

from tests.corpora import REPOSITORY


def run_measured(code: str, *arguments: object) -> str:
    """Run Python code from a small shell, and return what it prints.

    A process begins with the peak (`ru_maxrss`) of the one that it is made of: not that of pytest.
    Raises CalledProcessError if it fails.
    """
    python = [sys.executable, "-c", code, *map(str, arguments)]
    command = ["sh", "-c", '"$@"; exit $?', "sh", *python]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return done.stdout
