"""The record of fuzzing as the page of the documentation."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from tests.fuzz.targets import TARGETS

_ABOUT = """
`make fuzz SECONDS=600` changes bytes of everything that Variantlake reads from outside, each
target below for as many seconds. An input survives if the outcome is an answer or one of the
package's errors, within a second of CPU time and in memory that its size bounds. If a target has a
plain twin, both must give the same answer.

[atheris](https://github.com/google/atheris) chooses the changes: it goes on from inputs that take a
branch of the package's Python code that no input took before. Without it (it has no wheel for the
Python or the system), chance chooses. An input that fails is printed with what went wrong, and
stays in `.work/fuzz`. Each fault that was found so has become a test.

The targets `many-…` change thousands of inputs in one call, as kernels over columns take them.
Chance alone chooses. Each input gets an answer or an error of its own, and for some of each call
the plain twin must say the same.

The recorded runs (`python -m tests.fuzz --record FILE` adds to them):
"""


def page(record: Mapping[str, Mapping[str, Any]]) -> str:
    """The page, in Markdown."""
    lines = [
        "| Target | Inputs are | Inputs | CPU time | Branches |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for name, (_, _, about) in TARGETS.items():
        if (done := record.get(name)) is not None:
            hours = f"{done['seconds'] / 3600:.2f} h"
            lines.append(
                f"| {name} | {about} | {done['inputs']:,} | {hours} | {done['branches']:,} |"
            )
    count = sum(done["inputs"] for done in record.values())
    hours = sum(done["seconds"] for done in record.values()) / 3600
    until = max((done["until"] for done in record.values()), default="")
    lines.append(f"| all | | {count:,} | {hours:.2f} h | |")
    paragraphs = (textwrap.fill(each, 120) for each in _ABOUT.strip().split("\n\n"))
    end = f"The last of them ended on {until}. No input fails."
    return "\n\n".join(["# Fuzzing", *paragraphs, "\n".join(lines), end]) + "\n"
