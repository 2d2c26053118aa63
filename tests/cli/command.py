"""Run the command line in this process, as a shell would see it."""

from __future__ import annotations

import sys
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
