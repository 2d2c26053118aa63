"""The entry point: exit codes, and errors and interrupts without tracebacks.

`docs/cli.md` has the table of exit codes.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys

TYPE_CHECKING = False  # type checkers take it for true; `typing` itself loads slowly
if TYPE_CHECKING:
    from typing import Any, NoReturn

_ENDINGS = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end a process: commands clean up as after Ctrl-C."""

_INTERRUPTED = 130
_OBJECTS = 200_000
"""The number of new objects after which Python collects garbage."""
_ended_by: list[int] = []


def main() -> None:
    """Run the command that the arguments name, and exit with its code."""
    if sys.argv[1:] == ["--version"]:
        _print_version()
        return
    _leave_on_interrupt()
    # Imports leave no garbage, and collecting it takes a sixth of their time.
    gc.set_threshold(_OBJECTS)
    # This import takes most of a second; Ctrl-C ends it too.
    from variantlake.cli.commands import run

    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in _ENDINGS:
        if signal.getsignal(number) is _leave:
            signal.signal(number, _interrupt)
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # Escape characters that the terminal's encoding lacks.
        _set_errors(stream, "backslashreplace")
    atexit.register(_leave_on_interrupt)  # while the interpreter ends
    code = run()
    sys.exit(128 + _ended_by[0] if code == _INTERRUPTED and _ended_by else code)


def _print_version() -> None:
    """Print the version without loading anything else, for scripts."""
    import variantlake

    sys.stdout.write(f"{variantlake.__version__}\n")


def _leave_on_interrupt() -> None:
    """Let Ctrl-C and similar signals end the process at once; there is nothing to clean up yet."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # nohup may ignore it
        signal.signal(signal.SIGINT, _leave)
    for number in _ENDINGS:
        if signal.getsignal(number) in (signal.SIG_DFL, _interrupt):
            signal.signal(number, _leave)


def _leave(number: int, _frame: object) -> NoReturn:
    os.write(2, b"Interrupted.\n")
    os._exit(128 + number)


def _interrupt(number: int, frame: Any) -> NoReturn:
    """Do the same as Ctrl-C: call its handler, since Spark's cancels its jobs."""
    _ended_by[:] = [number]
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)
    raise KeyboardInterrupt


def _open_closed_streams() -> None:
    """Discard output to closed streams, for which Python has no object."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - until the end


def _set_errors(stream: Any, errors: str) -> None:
    if hasattr(stream, "reconfigure"):  # streams of tests may lack it
        stream.reconfigure(errors=errors)


if __name__ == "__main__":
    main()
