"""Arguments of other types than these: what was given, what is wanted, and what takes it."""

from __future__ import annotations

import os
from typing import Any, TypeGuard

from pyspark.sql import DataFrame

from variantlake.errors import InvalidValue


def is_frame(given: object) -> TypeGuard[DataFrame]:
    """Whether this is a DataFrame of Spark, classic or Connect."""
    kinds = type(given).__mro__
    return any(k.__name__ == "DataFrame" and k.__module__.startswith("pyspark.sql") for k in kinds)


def check_session(given: object) -> None:
    """Raise InvalidValue for what is no session, classic or Connect."""
    if not any(each.__name__ == "SparkSession" for each in type(given).__mro__):
        raise InvalidValue(
            f"connect takes a SparkSession; what is given is {_described(given)}",
            hint="vl.spark.connect(SparkSession.builder.getOrCreate())",
            cli_hint="",
        )


def check_text(query: object) -> None:
    """Raise InvalidValue for a query that is no text."""
    if not isinstance(query, str):
        raise InvalidValue(
            f"a query is text; what is given is {_described(query)}",
            hint="lake.sql('SELECT event:kind::string FROM delta.`/lake/events`')",
            cli_hint="",
        )


def check_frame(given: object) -> None:
    """Raise InvalidValue for what is no DataFrame."""
    if not is_frame(given):
        raise InvalidValue(
            f"append takes a DataFrame of Spark; what is given is {_described(given)}",
            hint="lake.ingest(paths, table) loads files of JSON; spark.createDataFrame(...) makes "
            "one of rows, pandas' and Arrow's tables",
            cli_hint="",
        )


def check_sources(given: object) -> None:
    """Raise InvalidValue for a DataFrame in the place of files."""
    if is_frame(given):
        raise InvalidValue(
            "ingest takes files of JSON documents; what is given is a DataFrame",
            hint="lake.append(df, table) writes its rows; json_columns=[...] names columns of JSON",
            cli_hint="",
        )


def check_location(name: object, table: Any) -> None:
    """Raise InvalidValue unless a name is given to the location of a table."""
    if not isinstance(name, str):
        raise InvalidValue(f"names of tables are text; what is given is {_described(name)}")
    if not isinstance(table, str | os.PathLike):
        hint = "give its path or URL"
        if is_frame(table):
            hint = f"df.createOrReplaceTempView({name!r}) lets lake.sql read a DataFrame by a name"
        elif isinstance(getattr(table, "uri", None), str):
            hint = "give its location, as table.uri"
        raise InvalidValue(
            f"the table {name!r} is to be a location; what is given is {_described(table)}",
            hint=hint,
            cli_hint="",
        )


def _described(given: object) -> str:
    return "None" if given is None else f"a {type(given).__name__}"
