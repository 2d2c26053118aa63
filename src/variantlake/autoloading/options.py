"""Options of an autoload, besides those of every load of documents."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, TypedDict, Unpack

from variantlake.errors import InvalidValue, wrong_option
from variantlake.units import Duration, Size, Time, milliseconds, seconds, size_bytes
from variantlake.writing.options.keywords import check_keywords

MAX_FILES = 10_000
"""Default of the most files in one batch."""

MAX_BYTES = 1 << 30
"""Default of the most bytes, as stored, in one batch."""

BACKFILL_SECONDS = 3600.0
SETTLE_SECONDS = 1.0
"""How long a file on a disk must be unchanged; in object stores files appear complete."""


class Ascending(enum.StrEnum):
    """Whether the names of new files sort after all existing ones."""

    AUTO = "auto"
    YES = "yes"
    NO = "no"


class OnChange(enum.StrEnum):
    """What to do with a file that was written again after it was loaded."""

    IGNORE = "ignore"
    ERROR = "error"
    RELOAD = "reload"


class AutoloadKeywords(TypedDict, total=False):
    """The keywords of an autoload; `AutoloadOptions` describes them."""

    max_files: int
    max_bytes: Size
    ascending: Literal["auto", "yes", "no"]
    backfill: Duration
    settle: Duration | None
    on_change: Literal["ignore", "error", "reload"]
    after: str
    since: Time | None
    max_file_age: Duration | None
    auto_compact: bool | None
    moved: bool


@dataclass(frozen=True, slots=True)
class AutoloadOptions:
    """How an autoload finds files, and what becomes of them.

    max_files, max_bytes: The bounds of a batch, which is one commit; it holds one file at least.
    ascending: Whether new files have names after all that are there, so that a listing can begin
        after the last one. "auto" lists everything until there are many files in an object store
        whose names have always come in order; "no" always does.
    backfill: Everything is listed at least this often, so that late names are found.
    settle: Only files that did not change for so long are loaded; None means a second on a disk,
        nothing in an object store.
    on_change: What becomes of a file that was written again after it was loaded: it is counted,
        and a warning is logged ("ignore"), the autoload stops ("error"), or it is loaded again as a
        whole beside the rows that it gave before ("reload").
    after: What becomes of loaded files: "keep", "delete", or "move:PATH". It is done after the
        commit, and repeated until it is done.
    since: Files older than this are not loaded; counts for files that were not seen before. A
        datetime or text in ISO form, in UTC if it names no zone.
    max_file_age: Files that changed longer ago are not loaded, and what is recorded of them is
        dropped, so that the records do not grow for ever. It counts from the newest loaded file,
        after a complete listing; once set, what was dropped stays unloaded. None keeps all records.
    auto_compact: Whether small files are joined after a batch once a partition has 50 of them; None
        leaves it to the table property `delta.autoOptimize.autoCompact`.
    moved: The source is at another place than it was, or is reached by another path: names that are
        known there are known here.
    """

    max_files: int = MAX_FILES
    max_bytes: int = MAX_BYTES
    ascending: Literal["auto", "yes", "no"] = "auto"
    backfill: float = BACKFILL_SECONDS
    settle: float | None = None
    on_change: Literal["ignore", "error", "reload"] = "ignore"
    delete: bool = False
    move_to: str | None = None
    since: int | None = None
    max_file_age: float | None = None
    auto_compact: bool | None = None
    moved: bool = False

    @classmethod
    def of(cls, **keywords: Unpack[AutoloadKeywords]) -> Self:
        """The options from users' keywords. Raises InvalidValue for invalid ones."""
        check_keywords(keywords, AutoloadKeywords.__annotations__)
        after = keywords.get("after", "keep")
        if after not in ("keep", "delete") and not _move_target(after):
            raise wrong_option("after", after, "keep, delete, or move: with a path behind it")
        settle, since = keywords.get("settle"), keywords.get("since")
        age = keywords.get("max_file_age")
        return cls(
            max_files=_count("max_files", keywords.get("max_files", MAX_FILES)),
            max_bytes=_count(
                "max_bytes", size_bytes("max_bytes", keywords.get("max_bytes", MAX_BYTES))
            ),
            ascending=_one_of("ascending", keywords.get("ascending", "auto"), Ascending),
            backfill=seconds("backfill", keywords.get("backfill", BACKFILL_SECONDS)),
            settle=None if settle is None else seconds("settle", settle),
            on_change=_one_of("on_change", keywords.get("on_change", "ignore"), OnChange),
            delete=after == "delete",
            move_to=_move_target(after),
            since=None if since is None else milliseconds("since", since),
            max_file_age=None if age is None else seconds("max_file_age", age),
            auto_compact=keywords.get("auto_compact"),
            moved=keywords.get("moved", False),
        )

    @property
    def keeps(self) -> bool:
        """Whether loaded files stay where they are."""
        return not self.delete and self.move_to is None


def split_keywords(
    options: Mapping[str, Any],
) -> tuple[AutoloadOptions, dict[str, Any]]:
    """Split off the options of an autoload from those of its loads. Raises InvalidValue."""
    own = {key: value for key, value in options.items() if key in AutoloadKeywords.__annotations__}
    others = {key: value for key, value in options.items() if key not in own}
    if others.pop("load_id", None) is not None:
        raise InvalidValue(
            "an autoload takes no load id", hint="its name is what the table remembers"
        )
    return AutoloadOptions.of(**own), others


def _move_target(after: object) -> str | None:
    if isinstance(after, str) and after.startswith("move:"):
        return after.removeprefix("move:") or None
    return None


def _count(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise wrong_option(name, value, "a whole number from 1 on")
    return value


def _one_of(name: str, value: object, choices: type[enum.StrEnum]) -> Any:
    if value not in list(choices):
        raise wrong_option(name, value, f"one of {', '.join(choices)}")
    return value
