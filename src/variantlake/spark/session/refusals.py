"""What Spark refuses, as one sentence about the user's own text."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

from variantlake.errors import InvalidQuery

T = TypeVar("T")

REFUSALS = (PySparkException, Py4JJavaError)
"""What parsing and analysis raise; Py4JJavaError where Spark fails to word its own error."""

_SUGGESTIONS = re.compile(r" Did you mean one of the following\? \[(.*?)\]\.")
_NAME = re.compile(r"`(?:[^`]|``)*`(?:\.`(?:[^`]|``)*`)*")

_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def or_invalid(run: Callable[[], T], sources: Mapping[str, str]) -> T:
    """Run Spark's parser or analyser; `sources` maps names of our views to what the user wrote.

    Raises InvalidQuery with Spark's sentence.
    """
    try:
        with quiet():
            return run()
    except REFUSALS as error:
        raise InvalidQuery(sentence(error, sources)) from None


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep PySpark from writing the JVM's trace of a refusal to stderr before anyone handles it.

    Of this thread alone: what others run is said as ever.
    """
    for name in _LOGGERS:
        PySparkLogger.getLogger(name).addFilter(_is_said)  # once, however often it is added
    token = _IS_QUIET.set(True)
    try:
        yield
    finally:
        _IS_QUIET.reset(token)


_IS_QUIET: ContextVar[bool] = ContextVar("is_quiet", default=False)


def _is_said(_record: object) -> bool:
    return not _IS_QUIET.get()


def sentence(error: Exception, sources: Mapping[str, str]) -> str:
    """An error's first line, in the words of the user's text; see `or_invalid`."""
    message = str(error)
    if isinstance(error, Py4JJavaError):
        message = str(error.java_exception.getMessage())
    lines = [line.strip() for line in message.splitlines()]
    text = next((line for line in lines if line), "Spark refused the query")
    for view, source in sources.items():
        text = text.replace(view, source).replace(_quoted_parts(view), source)
    return _SUGGESTIONS.sub(_without_inner_names, text).rstrip(";")


def _without_inner_names(suggestions: re.Match[str]) -> str:
    """The names that Spark suggests, less those of columns that we read beside the user's."""
    kept = [name for name in _NAME.findall(suggestions[1]) if "`__vl_" not in name]
    return f" Did you mean one of the following? [{', '.join(kept)}]." if kept else ""


def _quoted_parts(view: str) -> str:
    return ".".join(f"`{part}`" for part in view.split("."))
