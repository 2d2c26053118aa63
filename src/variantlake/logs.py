"""The package's loggers, all below `variantlake`, and silent until a program asks for them.

| level | what it says |
|---|---|
| WARNING | what needs action: bad documents, files that failed, values that Spark lacks |
| INFO | what was committed or removed, with counts and seconds |
| DEBUG | what a plan reads and skips, how files are rewritten, what a commit lost against |
"""

from __future__ import annotations

import logging

NAME = "variantlake"

IN_RESULT = {"in_result": True}
"""`extra` of a record that says what the caller's result says too: a command prints it there."""

# Without a handler Python would print warnings in programs that have set up no logging.
logging.getLogger(NAME).addHandler(logging.NullHandler())


def logger(part: str) -> logging.Logger:
    """The logger of one part of the work: `load` gives `variantlake.load`."""
    return logging.getLogger(f"{NAME}.{part}")
