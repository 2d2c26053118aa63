"""The entry point: exit codes, and errors and interrupts without tracebacks.

Exit codes: 0 fine, 1 what was asked for failed, 2 wrong usage, 3 some files failed (autoload),
130 interrupted.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys

TYPE_CHECKING = False  # type checkers take it for true; `typing` itself loads slowly
if TYPE_CHECKING:
    from typing import Any, NoReturn


def main() -> None:
    """Run the command that the arguments name, and exit with its code."""
    _leave_on_interrupt()
    # Takes the better part of a second: Ctrl-C ends it too.
    from variantlake.cli.commands import run

    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):
        # A terminal of another encoding gets what it cannot show as escapes.
        _set_errors(stream, "backslashreplace")
    atexit.register(_leave_on_interrupt)  # while the interpreter ends
    sys.exit(run())


def _leave_on_interrupt() -> None:
    """Let Ctrl-C end the process at once, where nothing is to be tidied up."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else ignored, say by nohup
        signal.signal(signal.SIGINT, _leave)


def _leave(_signal: int, _frame: object) -> NoReturn:
    os.write(2, b"Interrupted.\n")
    os._exit(130)


def _set_errors(stream: Any, errors: str) -> None:
    if hasattr(stream, "reconfigure"):  # what tests put in its place need not have it
        stream.reconfigure(errors=errors)


if __name__ == "__main__":
    main()
