"""Checks the types of arguments; the errors name the wrong type and the right call."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

from pyspark.sql import DataFrame

from variantlake.errors import InvalidValue, UnsupportedFeature, describe_type
from variantlake.expressions.from_python import Expr, VariantPath
from variantlake.spark.session.settings import ESCAPED, is_on


def is_frame(given: object) -> TypeGuard[DataFrame]:
    """Whether the argument is a DataFrame of Spark, classic or Connect."""
    kinds = type(given).__mro__
    return any(k.__name__ == "DataFrame" and k.__module__.startswith("pyspark.sql") for k in kinds)


def check_session(given: object) -> None:
    """Raise InvalidValue unless the argument is a session, classic or Connect."""
    if not any(each.__name__ == "SparkSession" for each in type(given).__mro__):
        raise InvalidValue(
            f"connect takes a SparkSession, not {describe_type(given)}",
            hint="vl.spark.connect(SparkSession.builder.getOrCreate())",
            cli_hint="",
        )


def check_text(given: object, what: str = "a query") -> None:
    """Raise InvalidValue unless the argument is text; `what` names it in the error."""
    if not isinstance(given, str):
        raise InvalidValue(
            f"{what} is text, not {describe_type(given)}",
            hint="lake.sql('SELECT event:kind::string FROM delta.`/lake/events`')",
            cli_hint="",
        )


def check_expressions(given: Iterable[object], what: str, spark: object) -> None:
    """Raise InvalidValue unless conditions or selected items are texts or made of paths.

    Raises UnsupportedFeature for an item that the session would read as another text than ours.
    """
    for each in given:
        if not isinstance(each, str | Expr | VariantPath):
            raise InvalidValue(
                f"{what} is text or a condition of vl.path(...), not {describe_type(each)}",
                hint="write 'event:n::int > 7', or vl.path('event', '$.n').int() > 7",
                cli_hint="",
            )
        if not isinstance(each, str) and "\\" in str(each) and is_on(spark, ESCAPED):
            raise UnsupportedFeature(
                f"{what} has a quote or a backslash, and the session's {ESCAPED} leaves no way to "
                "write one",
                hint=f"spark.conf.set('{ESCAPED}', 'false')",
                cli_hint="",
            )


def check_table_version(version: object, timestamp: object) -> None:
    """Raise InvalidValue unless one is None, and `version` is a number or a text if it is given."""
    named = isinstance(version, int | str) and not isinstance(version, bool)
    if version is not None and (timestamp is not None or not named):
        raise InvalidValue(
            f"version is {version!r} and timestamp {timestamp!r}",
            hint="give a whole number or a tag as version, or a time as timestamp, not both",
            cli_hint="",
        )


def check_frame(given: object) -> None:
    """Raise InvalidValue unless the argument is a DataFrame."""
    if not is_frame(given):
        raise InvalidValue(
            f"append takes a DataFrame of Spark, not {describe_type(given)}",
            hint="lake.ingest(table, paths) loads files of JSON; spark.createDataFrame(...) makes "
            "one of rows, pandas' and Arrow's tables",
            cli_hint="",
        )


def check_sources(given: object) -> None:
    """Raise InvalidValue for a DataFrame instead of files."""
    if is_frame(given):
        raise InvalidValue(
            "ingest takes files of JSON documents, not a DataFrame",
            hint="lake.append(table, df) writes its rows; json_columns=[...] names columns of JSON",
            cli_hint="",
        )


def check_tables(given: object) -> None:
    """Raise InvalidValue unless the argument is a mapping of names to tables, or None."""
    if given is not None and not isinstance(given, Mapping):
        raise InvalidValue(
            f"tables is a mapping of names to locations, not {describe_type(given)}",
            hint="lake.sql('SELECT * FROM t', tables={'t': '/lake/events'})",
            cli_hint="",
        )


def check_location(name: object, table: Any) -> None:
    """Raise InvalidValue unless `name` is a non-empty text and `table` a location."""
    if not isinstance(name, str):
        raise InvalidValue(f"names of tables are text, not {describe_type(name)}")
    if not name.strip():
        raise InvalidValue("a name of a table is empty")
    if not isinstance(table, str | os.PathLike):
        hint = "give its path or URL"
        if is_frame(table):
            hint = f"df.createOrReplaceTempView({name!r}) lets lake.sql read a DataFrame by a name"
        raise InvalidValue(
            f"the table {name!r} must be a location, not {describe_type(table)}",
            hint=hint,
            cli_hint="",
        )
