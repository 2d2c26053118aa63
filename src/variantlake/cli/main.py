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
"""What ends a process from outside: commands tidy up as after Ctrl-C."""

_INTERRUPTED = 130
_OBJECTS = 200_000
"""So many new objects before Python looks for garbage among them."""
_ended_by: list[int] = []


def main() -> None:
    """Run the command that the arguments name, and exit with its code."""
    if sys.argv[1:] == ["--version"]:
        _print_version()
        return
    _leave_on_interrupt()
    # Looking for garbage takes a sixth of the time of loading, which leaves none.
    gc.set_threshold(_OBJECTS)
    # Takes the better part of a second: Ctrl-C ends it too.
    from variantlake.cli.commands import run

    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in _ENDINGS:
        if signal.getsignal(number) is _leave:
            signal.signal(number, _interrupt)
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # A terminal of another encoding gets what it cannot show as escapes.
        _set_errors(stream, "backslashreplace")
    atexit.register(_leave_on_interrupt)  # while the interpreter ends
    code = run()
    sys.exit(128 + _ended_by[0] if code == _INTERRUPTED and _ended_by else code)


def _print_version() -> None:
    """At once: scripts ask it."""
    import variantlake

    sys.stdout.write(f"{variantlake.__version__}\n")


def _leave_on_interrupt() -> None:
    """Let Ctrl-C and its like end the process at once, if nothing is to be tidied up."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else ignored, say by nohup
        signal.signal(signal.SIGINT, _leave)
    for number in _ENDINGS:
        if signal.getsignal(number) in (signal.SIG_DFL, _interrupt):
            signal.signal(number, _leave)


def _leave(number: int, _frame: object) -> NoReturn:
    os.write(2, b"Interrupted.\n")
    os._exit(128 + number)


def _interrupt(number: int, frame: Any) -> NoReturn:
    """Do what Ctrl-C does: Spark has a handler of its own, which cancels its jobs."""
    _ended_by[:] = [number]
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)
    raise KeyboardInterrupt


def _open_closed_streams() -> None:
    """Throw away what goes to a closed stream, which Python has no object for."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - until the end


def _set_errors(stream: Any, errors: str) -> None:
    if hasattr(stream, "reconfigure"):  # what tests put in its place need not have it
        stream.reconfigure(errors=errors)


if __name__ == "__main__":
    main()
