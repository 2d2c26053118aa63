"""How many bad documents or rows a load takes before it stops: a number, or a share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from variantlake.errors import InvalidValue, LimitExceeded, wrong_option

MIN_SEEN = 1_000
"""Documents of a task before which a share of them says nothing."""

_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,9})?)\s*%")
_NUMBER = re.compile(r"\d{1,18}")


@dataclass(frozen=True, slots=True)
class MaxBad:
    """The most bad documents that a load takes: `number`, or the `share` of all, from 0 to 1."""

    text: str
    number: int | None = None
    share: float = 1.0

    @classmethod
    def of(cls, given: object) -> Self:
        """What users give: 100, "100" or "5%". Raises InvalidValue for anything else."""
        text = str(given) if isinstance(given, int) and not isinstance(given, bool) else given
        if isinstance(text, str):
            if _NUMBER.fullmatch(text):
                return cls(text, int(text))
            match = _SHARE.fullmatch(text)
            if match is not None and float(match[1]) <= 100:
                return cls(text, share=float(match[1]) / 100)
        raise wrong_option("max_bad", given, "a whole number from 0 on, or a share such as '5%'")

    def check(self, bad: int, seen: int, first: str, *, is_all: bool = False) -> None:
        """Raise LimitExceeded if `bad` of the documents `seen` so far are too many.

        `first` says what is wrong with the first one. A share counts from MIN_SEEN documents on, or
        if these are all.
        """
        if self.number is not None:
            is_beyond = bad > self.number
        else:
            is_beyond = (is_all or seen >= MIN_SEEN) and bad > self.share * seen
        if is_beyond:
            read = "read" if is_all else "read so far"
            raise LimitExceeded(
                f"{bad:,} of the {seen:,} documents {read} are bad, more than max_bad={self.text}"
                + (f"; the first: {first}" if first else ""),
                hint="nothing was loaded: correct the documents, or allow more with max_bad",
                cli_hint="nothing was loaded: correct the documents, or allow more with --max-bad",
            )


def check_mode(max_bad: MaxBad | None, *, is_strict: bool) -> None:
    """Raise InvalidValue for a limit if the first bad document fails the load."""
    if max_bad is not None and is_strict:
        raise InvalidValue(
            "max_bad is given, but in the mode 'strict' the first bad document fails the load",
            hint="add mode='quarantine' or mode='null', or leave max_bad out",
            cli_hint="add --mode quarantine or --mode null, or leave --max-bad out",
        )
