"""What a user says about a commit: who made it and why, for those who read the history.

It goes with the context of the call, not through the signatures between a verb and its commit, so
that every commit of the verb has it. As in Delta Spark it is the commit's `userMetadata`.
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
"""Of `commitInfo`: what the user says about the commit."""

CommitProperties = Mapping[str, str] | str | None
"""Names and texts, one text that stands as it is, or nothing."""

_current: ContextVar[CommitProperties] = ContextVar("commit_properties", default=None)

P = ParamSpec("P")
R = TypeVar("R")


class CommitKeywords(TypedDict, total=False):
    """The keyword that all verbs share that write."""

    commit_properties: CommitProperties


@contextmanager
def committed_with(properties: CommitProperties) -> Iterator[None]:
    """Give all commits of this context these properties; None leaves those that they have.

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
    """The verb, whose commits have the properties that the keyword `commit_properties` gives."""

    @functools.wraps(verb)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given: Any = kwargs.pop("commit_properties", None)
        with committed_with(given):
            return verb(*args, **kwargs)

    return call


def described(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `commitInfo` that say what an operation is: its parameters, the user's words.

    The user's properties stand among the parameters as well; those of the operation go first.
    """
    properties, text = _current.get(), user_metadata()
    if text is None:
        return {"operationParameters": dict(parameters)}
    named = {} if properties is None or isinstance(properties, str) else properties
    return {"operationParameters": {**named, **parameters}, USER_METADATA: text}


def user_metadata() -> str | None:
    """The properties of this context as `userMetadata` has them; None for none."""
    properties = _current.get()
    if properties is None or isinstance(properties, str):
        return properties
    return orjson.dumps(properties).decode()


def properties_in(info: Mapping[str, Any]) -> dict[str, str]:
    """The properties that a commit was given by name; none of one with another text."""
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
    """Whether a value is text that a log can hold: without lone surrogates."""
    return isinstance(value, str) and value == value.encode(errors="replace").decode()
