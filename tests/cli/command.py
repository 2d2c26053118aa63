"""Run the command line as a shell would see it: in this process, or in another one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from variantlake.cli.main import main


@dataclass(frozen=True, slots=True)
class Outcome:
    """Exit code and both streams."""

    code: int
    out: str
    err: str


def run(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *arguments: object
) -> Outcome:
    """`variantlake ARGUMENTS...`."""
    monkeypatch.setattr(sys, "argv", ["variantlake", *map(str, arguments)])
    capfd.readouterr()
    code = 0
    try:
        main()
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else int(done.code is not None)
    out, err = capfd.readouterr()
    return Outcome(code, out, err)


END = re.compile(r"=== end: (\d+) ===\r?\n")
"""What `IN_TURN` writes to both streams behind each command."""

IN_TURN = """
import json, sys
from variantlake.cli.main import main
for command in json.loads(sys.argv[1]):
    sys.argv = ["variantlake", *command]
    code = 0
    try:
        main()
    except SystemExit as done:
        code = done.code or 0
    for stream in (sys.stdout, sys.stderr):
        print(f"=== end: {code} ===", file=stream, flush=True)
"""
"""Commands one after the other in one process, which starts one JVM at most."""


def in_turn(commands: Sequence[Sequence[object]]) -> list[str]:
    """The command line of a process that runs such commands in turn."""
    given = [[str(argument) for argument in command] for command in commands]
    return [sys.executable, "-c", IN_TURN, json.dumps(given)]


def run_in_turn(*commands: Sequence[object]) -> list[Outcome]:
    """`variantlake ARGUMENTS...` for each of the commands, in a process of its own."""
    done = subprocess.run(
        in_turn(commands), capture_output=True, text=True, check=True, timeout=1200
    )
    *outs, _ = END.split(done.stdout)
    *errs, _ = END.split(done.stderr)
    texts = zip(outs[::2], outs[1::2], errs[::2], strict=True)
    return [Outcome(int(code), out, err) for out, code, err in texts]
