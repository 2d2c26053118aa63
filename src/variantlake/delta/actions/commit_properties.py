"""The user's notes on a commit: who made it and why, for readers of the history.

A context variable carries them from a verb to its commits, not the signatures in between, so every
commit of the verb has them. As in Delta Spark, they are the commit's `userMetadata`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ParamSpec, TypedDict, TypeVar

import orjson

from variantlake.errors import InvalidValue

USER_METADATA = "userMetadata"
"""The field of `commitInfo` with the user's notes on the commit."""

CommitProperties = Mapping[str, str] | str | None
"""A mapping of names to texts, one text that is stored as it is, or None."""

_current: ContextVar[CommitProperties] = ContextVar("commit_properties", default=None)

P = ParamSpec("P")
R = TypeVar("R")


class CommitKeywords(TypedDict, total=False):
    """The keyword that all writing verbs share."""

    commit_properties: CommitProperties


@contextmanager
def committed_with(properties: CommitProperties) -> Iterator[None]:
    """Give all commits of this context these properties; None keeps the present ones.

    Raises InvalidValue for anything but text.
    """
    if properties is None:
        yield
        return
    token = _current.set(_checked(properties))
    try:
        yield
    finally:
        _current.reset(token)


def takes_commit_properties(verb: Callable[P, R]) -> Callable[P, R]:
    """Add the keyword `commit_properties` to a verb, whose commits then have these properties."""

    @functools.wraps(verb)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given: Any = kwargs.pop("commit_properties", None)
        with committed_with(given):
            return verb(*args, **kwargs)

    return call


def described(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `commitInfo` on an operation: its parameters and `userMetadata`.

    The user's properties are among the parameters too; those of the operation take precedence.
    """
    properties, text = _current.get(), user_metadata()
    if text is None:
        return {"operationParameters": dict(parameters)}
    named = {} if properties is None or isinstance(properties, str) else properties
    return {"operationParameters": {**named, **parameters}, USER_METADATA: text}


def user_metadata() -> str | None:
    """Return the properties of this context as text for `userMetadata`; None without any."""
    properties = _current.get()
    if properties is None or isinstance(properties, str):
        return properties
    return orjson.dumps(properties).decode()


def properties_in(info: Mapping[str, Any]) -> dict[str, str]:
    """Return the named properties in `userMetadata`; empty if it is any other text."""
    text = info.get(USER_METADATA)
    try:
        found = orjson.loads(text) if isinstance(text, str) else None
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) and set(map(type, found.values())) <= {str} else {}


def _checked(properties: object) -> Mapping[str, str] | str:
    if is_text(properties):
        return str(properties)
    if isinstance(properties, Mapping):
        pairs = dict(properties)
        if all(is_text(each) for pair in pairs.items() for each in pair):
            return pairs
    raise InvalidValue(
        f"commit_properties is {properties!r:.60}",
        hint='names and texts: {"job": "nightly"}',
        cli_hint="",
    )


def is_text(value: object) -> bool:
    """Whether a value is text without lone surrogates, which a log cannot hold."""
    return isinstance(value, str) and value == value.encode(errors="replace").decode()
