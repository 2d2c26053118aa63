"""`-` among the sources stands for standard input."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

import variantlake as vl


def piped(text: bytes, *arguments: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "variantlake.cli.main", *map(str, arguments)]
    return subprocess.run(command, input=text, capture_output=True, check=False, timeout=120)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_documents_come_from_a_pipe(tmp_path: Path, packed: bool) -> None:
    text = b'{"n": 1}\n{"n": 2}\n'
    done = piped(
        gzip.compress(text) if packed else text, "ingest", "--local", "--json", "-", tmp_path / "t"
    )
    assert json.loads(done.stdout)["rows"] == 2
    assert vl.Table.open(tmp_path / "t").scan("event:n::int").to_arrow().num_rows == 2


def test_a_bad_document_of_a_pipe_is_named(tmp_path: Path) -> None:
    done = piped(b'{"n": 1}\n{"n":\n', "ingest", "--local", "-", tmp_path / "t")
    assert done.returncode == 1
    assert b"stdin, line 2, column 6" in done.stderr
    assert not (tmp_path / "t").exists()


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    done = piped(b"", "ingest", "--local", "-", "-", tmp_path / "t")
    assert done.returncode == 2
    assert b"can be read once" in done.stderr


def test_a_pipe_has_a_profile() -> None:
    done = piped(b'{"n": 1}\n' * 20, "profile", "-", "--json")
    assert json.loads(done.stdout)["rows"] == 20


def test_shells_can_complete_commands() -> None:
    done = piped(b"", "--show-completion", "bash")
    assert done.returncode == 0
    assert b"COMPREPLY" in done.stdout
