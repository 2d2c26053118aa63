"""Options as users give them: those of wrong types are refused by name, before anything is done."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from numbers import Integral
from typing import Any

from variantlake.delta.actions.commit_properties import is_text
from variantlake.errors import check_option_names, wrong_option

_TEXT = ("load_id", "shredding", "hints", "file_column", "loaded_at_column")
_NUMBER = ("max_rows_per_file",)
_FLAG = (
    "arrays", "truncate_timestamps", "skip_empty", "merge_schema", "rewrite", "dry_run",
    "auto_compact", "moved",
)  # fmt: skip


def _is_number(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


_CHECKS: dict[str, tuple[Callable[[object], bool], str]] = {
    **dict.fromkeys(_TEXT, (is_text, "text")),
    **dict.fromkeys(_NUMBER, (_is_number, "a whole number")),
    **dict.fromkeys(_FLAG, (lambda value: isinstance(value, bool), "True or False")),
    "column": (is_text, "text, the name of a VARIANT column"),
    "properties": (lambda value: isinstance(value, Mapping), "a mapping of names to texts"),
    "progress": (callable, "a function"),
}


def check_options(**options: object) -> None:
    """Raise InvalidValue for an option of another type than its own.

    None stands for the default. Options that are not known here are left to others.
    """
    for name, value in options.items():
        if name not in _CHECKS or value is None:
            continue
        accepts, wanted = _CHECKS[name]
        if not accepts(value):
            raise wrong_option(name, value, wanted)


def check_keywords(keywords: Mapping[str, object], known: Collection[str]) -> None:
    """Raise InvalidValue for a keyword that is not known, or of another type than its own."""
    # Checked here because mypy's word does not reach who does not use it.
    check_option_names(keywords, known)
    check_options(**keywords)


def names_of(option: str, given: Any) -> tuple[str, ...]:
    """Names that an option takes, one text or several. Raises InvalidValue for anything else."""
    if isinstance(given, str):
        return (given,)
    if isinstance(given, Collection) and not isinstance(given, bytes | Mapping):
        names = tuple(given)
        if all(isinstance(name, str) for name in names):
            return names
    raise wrong_option(option, given, "text, or a list of texts")
