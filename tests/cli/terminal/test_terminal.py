"""Values, names and messages never tell a terminal what to do; Ctrl-C is quiet at any time."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import variantlake as vl
from tests.cli.command import END, in_turn, run
from tests.delta.tables import add, first_commit, write_log
from variantlake.cli.terminal.output import escaped, print_error, visible

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch

ACTING = "\x1b]0;x\x07\x1b[31m\x9b2J\x7f\u202e\u2066\u200f"
ACTS = re.compile(
    "[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hostile")
    source = root / f"s{ACTING}.ndjson"
    source.write_text(json.dumps({f"k{ACTING}": ACTING, "s": f"{ACTING}\n\tx"}), encoding="utf-8")
    table = root / f"t{ACTING}"
    columns = "event VARIANT, `c\u202e\x7f` STRING"
    vl.Table.create(table, columns, properties={f"p{ACTING}": ACTING}).append(vl.ndjson(source))
    return table


COMMANDS = [
    ["cat"],
    ["cat", "--json"],
    ["cat", "--column", ACTING],
    ["inspect"],
    ["inspect", "--json"],
    ["check"],
    ["history"],
    ["query", "SELECT event, event:s::string FROM t", "--engine", "local"],
    ["query", "SELECT event:s::string FROM t", "--engine", "local", "--json", "--explain"],
    ["query", f"SELECT {ACTING} FROM t", "--engine", "local"],
    ["cat", f"--{ACTING}"],
]


@pytest.fixture(scope="module")
def on_terminal(table: Path) -> list[str]:
    """What each of the commands writes to a terminal, one after the other in one process."""
    terminal, its_end = pty.openpty()
    process = subprocess.Popen(
        in_turn([[name, table, *rest] for name, *rest in COMMANDS]),
        stdout=its_end,
        stderr=its_end,
        env=os.environ | {"TERM": "dumb", "NO_COLOR": "1"},
    )
    os.close(its_end)
    written = b""
    with contextlib.suppress(OSError):  # what Linux answers when the other end is closed
        while piece := os.read(terminal, 1 << 16):
            written += piece
    process.wait(30)
    os.close(terminal)
    # Each code stands there twice, for either stream.
    return END.split(written.decode("utf-8", "replace"))[::4]


@pytest.mark.parametrize(
    "number", range(len(COMMANDS)), ids=lambda number: visible(" ".join(COMMANDS[number]))
)
def test_nothing_acts_on_a_terminal(on_terminal: list[str], number: int) -> None:
    *written, rest = on_terminal
    assert (len(written), rest) == (len(COMMANDS), "")
    assert len(written[number]) > 10
    assert not ACTS.search(written[number])


def test_a_pipe_gets_the_same_value(table: Path, monkeypatch: Patch, capfd: Capture) -> None:
    done = run(monkeypatch, capfd, "cat", "--column", "event", table)
    assert json.loads(done.out) == {f"k{ACTING}": ACTING, "s": f"{ACTING}\n\tx"}


def test_names_that_are_no_utf8_are_written() -> None:
    assert visible("a\udcff") == "a\\udcff"
    assert json.loads(escaped('"a\udcff"')) == "a\udcff"


@pytest.fixture
def stranger(tmp_path: Path) -> str:
    """A table that names a file of its reader, with all that the log can say of it."""
    (tmp_path / "secret").write_text("root:x:0:0\nqzqz")
    stats = json.dumps({"numRecords": 1})
    path = f"file://{tmp_path}/secret"
    return write_log(tmp_path / "t", first_commit(add(path, stats=stats, size=15)))


@pytest.mark.parametrize("command", ["cat", "check", "inspect"])
def test_absolute_paths_are_listed_and_their_bytes_are_not(
    stranger: str, command: str, monkeypatch: Patch, capfd: Capture
) -> None:
    done = run(monkeypatch, capfd, command, stranger)
    assert "secret" in done.out + done.err
    assert "zqz" not in done.out + done.err


@pytest.mark.parametrize("command", ["cat", "check", "inspect", "history", "analyze"])
def test_one_option_refuses_absolute_paths(
    stranger: str, command: str, monkeypatch: Patch, capfd: Capture
) -> None:
    monkeypatch.setenv("VARIANTLAKE_ABSOLUTE_PATHS", "allow")  # so that it is put back
    done = run(monkeypatch, capfd, command, "--no-absolute-paths", stranger)
    assert done.code == 1
    assert "absolute path: file://" in done.err
    assert "set_absolute_paths" not in done.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_is_quiet_while_modules_are_loaded(tmp_path: Path, number: signal.Signals) -> None:
    script = (
        "import os, signal, sys\n"
        # What starts the tests may ignore the signal (nohup does), and a process inherits that.
        f"if signal.getsignal({number:d}) is signal.SIG_IGN:\n"
        f"    signal.signal({number:d}, signal.SIG_DFL)\n"
        "from variantlake.cli.main import main\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'pyarrow':\n"
        f"            os.kill(os.getpid(), {number:d})\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "sys.argv = ['variantlake', 'cat', 'x']\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", "Interrupted.\n")


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    source = tmp_path / "s.ndjson"
    source.write_text('{"a": "%s"}\n' % ("x" * 500) * 5000)
    table = tmp_path / "t"
    vl.Table.create(table, "event VARIANT").append(vl.ndjson(source))
    command = [sys.executable, "-m", "variantlake.cli.main", "cat", str(table)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    process.wait(30)


def test_an_interrupt_that_is_ignored_stays_so(tmp_path: Path) -> None:
    script = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from variantlake.cli.main import main\n"
        "sys.argv = ['variantlake', '--version']\n"
        "try:\n    main()\n"
        "finally:\n    print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.stdout.endswith("True\n")


def test_too_little_memory_is_said_in_a_sentence(capsys: Capture) -> None:
    print_error(pa.ArrowMemoryError("malloc of size 1020032 failed"))
    said = capsys.readouterr().err
    assert (
        said == "Error: there is not enough memory\nHint: do it on less at a time, or elsewhere\n"
    )
