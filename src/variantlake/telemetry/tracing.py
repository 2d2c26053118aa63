"""Spans of OpenTelemetry for loads, plans, reads and commits.

When spans are off, each costs a check of one variable. When they are on, they go to the program's
tracer provider; without one, OpenTelemetry drops them. Only the process that turns them on has
spans; Spark's executors have none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from variantlake.extras import extra_library

P = ParamSpec("P")
R = TypeVar("R")

Value = str | int | float | bool
Attributes = Mapping[str, Value]

VARIABLE = "VARIANTLAKE_TRACING"
"""The environment variable that turns spans on: `true`."""

_PREFIX = "variantlake."
_tracer: Any = None


def set_tracing(on: bool = True, *, provider: Any = None) -> None:
    """Turn spans of OpenTelemetry on or off, for this process; they are off by default.

    Spans are `variantlake.load`, `variantlake.plan`, `variantlake.read` (one for each file) and
    `variantlake.commit`. Their attributes have the table, the version, files, rows and bytes, but
    no values of rows.

    Args:
        on: Whether to make spans.
        provider: The tracer provider that gets them; None for the global one.

    Raises MissingDependency without `variantlake[opentelemetry]`.

    Examples:
        >>> vl.set_tracing(False)
    """
    global _tracer  # noqa: PLW0603 - one switch for the process
    if not on:
        _tracer = None
        return
    api = extra_library("opentelemetry.trace", "opentelemetry", "makes spans")
    _tracer = api.get_tracer("variantlake", tracer_provider=provider)


def is_traced() -> bool:
    """Whether spans are on."""
    return _tracer is not None


def traced(
    name: str,
    attributes: Callable[..., Attributes],
    result: Callable[[Any], Attributes],
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function: make a span of each call, which records an error that the call raises.

    `attributes` gets the call's arguments, and `result` what it returns.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if _tracer is None:
                return function(*args, **kwargs)
            about = _named(attributes(*args, **kwargs))
            with _tracer.start_as_current_span(_PREFIX + name, attributes=about) as span:
                done = function(*args, **kwargs)
                span.set_attributes(_named(result(done)))
                return done

        return call

    return decorate


def begin(name: str, **attributes: Value) -> Callable[[], None] | None:
    """Begin a span around work that is not a single call.

    Returns the function that ends it, None if spans are off.
    """
    if _tracer is None:
        return None
    span = _tracer.start_span(_PREFIX + name, attributes=_named(attributes))
    end: Callable[[], None] = span.end
    return end


def _named(attributes: Attributes) -> dict[str, Value]:
    return {_PREFIX + name: value for name, value in attributes.items()}


if os.environ.get(VARIABLE, "").lower() in ("1", "true"):
    set_tracing()
