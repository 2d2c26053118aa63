"""The package's loggers, all below `variantlake`, silent until a program configures logging.

| level | records |
|---|---|
| WARNING | what needs action: bad documents, files that failed, values that Spark lacks |
| INFO | commits and removals, with counts and seconds |
| DEBUG | what a plan reads and skips, how files are rewritten, conflicts of commits |
"""

from __future__ import annotations

import logging

NAME = "variantlake"

IN_RESULT = {"in_result": True}
"""`extra` of a record whose facts are also in the caller's result, which commands print."""

# Without a handler Python prints warnings in programs that have not configured logging.
logging.getLogger(NAME).addHandler(logging.NullHandler())


def logger(part: str) -> logging.Logger:
    """The logger of one part of the work: `load` gives `variantlake.load`."""
    return logging.getLogger(f"{NAME}.{part}")
