"""`-` among the sources stands for standard input."""

from __future__ import annotations

import errno
import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import variantlake as vl
from variantlake.cli.loads.standard_input import with_standard_input
from variantlake.errors import StoreFailed


def piped(text: bytes, *arguments: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "variantlake.cli.main", *map(str, arguments)]
    return subprocess.run(command, input=text, capture_output=True, check=False, timeout=120)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_documents_come_from_a_pipe(tmp_path: Path, packed: bool) -> None:
    text = b'{"n": 1}\n{"n": 2}\n'
    done = piped(gzip.compress(text) if packed else text, "ingest", "--json", "-", tmp_path / "t")
    assert json.loads(done.stdout)["rows_written"] == 2
    assert vl.Table.open(tmp_path / "t").scan("event:n::int").to_arrow().num_rows == 2


def test_a_bad_document_of_a_pipe_is_named(tmp_path: Path) -> None:
    done = piped(b'{"n": 1}\n{"n":\n', "ingest", "-", tmp_path / "t")
    assert done.returncode == 1
    assert b"stdin, line 2, column 6" in done.stderr
    assert not (tmp_path / "t").exists()


def test_a_pipe_is_called_stdin_in_the_table(tmp_path: Path) -> None:
    done = piped(
        b'{"n": 1}\n{"n":\n', "ingest", "-", tmp_path / "t", "--file-column", "f",
        "--mode", "quarantine",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert vl.Table.open(tmp_path / "t").scan("f").to_arrow()["f"].to_pylist() == ["stdin"]
    (bad,) = (tmp_path / "t" / "_quarantine").rglob("*.ndjson")
    assert json.loads(bad.read_text())["file"] == "stdin"


def shell(line: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command, written `variantlake` in a line for a shell."""
    line = line.replace("variantlake", f"{sys.executable} -m variantlake.cli.main", 1)
    command = ["bash", "-c", line, "bash", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_closed_and_full_streams_are_said(tmp_path: Path) -> None:
    """Each is a process of its own, as it needs streams of its own."""
    table = tmp_path / "t"
    done = shell("variantlake ingest - $1 <&-", table)
    assert (done.returncode, done.stderr.count("\n")) == (1, 2)
    assert "stdin: standard input is closed" in done.stderr
    (tmp_path / "a.json").write_text("1")
    assert shell("variantlake ingest $1 $2 >&-", tmp_path / "a.json", table).returncode == 0
    done = shell("variantlake history --json $1 > /dev/full", table)
    assert (done.returncode, done.stderr.count("\n")) == (1, 2)
    assert "Error: No space left on device" in done.stderr
    assert "free some space" in done.stderr


def test_a_full_temporary_folder_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def isatty(self) -> bool:
            return False

        @property
        def buffer(self) -> Full:
            return self

        def read(self, _size: int) -> bytes:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", Full())
    with (
        pytest.raises(StoreFailed, match=r"copied .*: No space") as caught,
        with_standard_input("-"),
    ):
        pass
    assert "TMPDIR" in caught.value.hint
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(StoreFailed, match="temporary file: No such file"), with_standard_input("-"):
        pass


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    done = piped(b"", "ingest", "-", "-", tmp_path / "t")
    assert done.returncode == 2
    assert b"can be read once" in done.stderr


def test_a_pipe_has_a_profile() -> None:
    done = piped(b'{"n": 1}\n' * 20, "profile", "-", "--json")
    assert json.loads(done.stdout)["rows"] == 20


def test_shells_can_complete_commands() -> None:
    done = piped(b"", "--show-completion", "bash")
    assert done.returncode == 0
    assert b"COMPREPLY" in done.stdout
