"""Turns Spark's parse and analysis errors into one sentence about the user's own text."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

from variantlake.errors import Hints, InvalidQuery

T = TypeVar("T")

REFUSALS = (PySparkException, Py4JJavaError)
"""The errors of parsing and analysis; Py4JJavaError if Spark fails to format its own error."""

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
        raise InvalidQuery(sentence(error, sources), **_hints(error)) from None


_PATHS = "a path in a VARIANT column is written event:a.b[0]['odd key']::string"
_TYPES = "a path has the type VARIANT until it is given one, as in event:a.b::string"
_OF_TYPES = ("DATATYPE_MISMATCH", "GROUP_EXPRESSION_TYPE_IS_NOT_ORDERABLE", "UNSUPPORTED_FEATURE")
_METADATA = (
    "_metadata (files, row ids) is of Spark's own reader of Delta tables: spark.sql(...) with"
    " Delta's jar, and without vl.spark.accelerate, reads it"
)
_TABLES = "a table is named by its location, as in delta.`path`, or as the catalog knows it"
_SYNTAX = "PARSE_SYNTAX_ERROR"
_HINTS = {
    "UNRESOLVED_COLUMN": Hints(hint=_PATHS, cli_hint=_PATHS),
    "INVALID_EXTRACT_BASE_FIELD_TYPE": Hints(hint=_PATHS, cli_hint=_PATHS),
    _SYNTAX: Hints(hint=_PATHS, cli_hint=_PATHS),
    "UNRESOLVABLE_TABLE_VALUED_FUNCTION": Hints(
        hint="lake.changes(table, 0) gives the changes of a table in the place of table_changes",
        cli_hint="variantlake changes gives the changes of a table",
    ),
    "TABLE_OR_VIEW_NOT_FOUND": Hints(
        hint=f"{_TABLES}; `tables` and `lake.register` give names to locations",
        cli_hint="the table is `t` here; others are named by their location, as in delta.`path`",
    ),
}


def _hints(error: Exception) -> Hints:
    """Return the hints for an error, by the first part of Spark's error condition."""
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    if condition is not None and "_metadata`" in str(error).partition("\n")[0]:
        return Hints(hint=_METADATA, cli_hint=_METADATA)
    name = _SYNTAX if _has_no_words(error) else (condition or "").partition(".")[0]
    if name in _OF_TYPES and '"VARIANT"' in str(error).partition("\n")[0]:
        return Hints(hint=_TYPES, cli_hint=_TYPES)
    return _HINTS.get(name, Hints(hint="", cli_hint=""))


def _has_no_words(error: Exception) -> bool:
    """Whether Spark failed to describe a syntax error, as for `event:a[b]`."""
    return f"error class: '{_SYNTAX}'" in str(error)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep PySpark from writing the JVM's trace of a refusal to stderr before anyone handles it.

    This affects only the current thread.
    """
    for name in _LOGGERS:
        PySparkLogger.getLogger(name).addFilter(_is_said)  # adds it only once
    token = _IS_QUIET.set(True)
    try:
        yield
    finally:
        _IS_QUIET.reset(token)


_IS_QUIET: ContextVar[bool] = ContextVar("is_quiet", default=False)


def _is_said(_record: object) -> bool:
    return not _IS_QUIET.get()


def sentence(error: Exception, sources: Mapping[str, str]) -> str:
    """Return an error's first line, in the user's names; `sources` as in `or_invalid`."""
    message = str(error)
    if _has_no_words(error):
        return f"[{_SYNTAX}] Spark finds a syntax error, but does not name its position"
    if isinstance(error, Py4JJavaError):
        message = str(error.java_exception.getMessage())
    lines = [line.strip() for line in message.splitlines()]
    text = next((line for line in lines if line), "Spark refused the query")
    for view, source in sources.items():
        text = text.replace(view, source).replace(_quoted_parts(view), source)
    return _SUGGESTIONS.sub(_without_inner_names, text).rstrip(";")


def _without_inner_names(suggestions: re.Match[str]) -> str:
    """Return the names that Spark suggests, without those of our internal columns."""
    kept = [name for name in _NAME.findall(suggestions[1]) if "`__vl_" not in name]
    return f" Did you mean one of the following? [{', '.join(kept)}]." if kept else ""


def _quoted_parts(view: str) -> str:
    return ".".join(f"`{part}`" for part in view.split("."))
