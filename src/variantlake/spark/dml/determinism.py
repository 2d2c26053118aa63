"""Delta Spark's rules for expressions in statements that change rows.

Expressions that decide which rows change must be deterministic, and a new value must be computed
from one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from variantlake.errors import InvalidQuery
from variantlake.quoting import quote_identifier
from variantlake.spark.session.refusals import REFUSALS, quiet
from variantlake.spark.session.schemas import type_ddl

_CHANGING = "INVALID_NON_DETERMINISTIC_EXPRESSIONS"
_OF_SEVERAL = "UNSUPPORTED_EXPR_FOR_OPERATOR"


def check_deterministic(
    spark: SparkSession,
    sides: Sequence[tuple[str, StructType]],
    expressions: Sequence[str],
    args: Any = None,
) -> None:
    """Raise InvalidQuery if one of the expressions is not deterministic.

    Args:
        spark: The session that resolves functions.
        sides: The one or two tables that the expressions see: an alias, and the columns.
        expressions: In SQL.
        args: Their parameters.
    """
    if _refused(spark, sides, [text for text in expressions if "(" in text], args) == _CHANGING:
        raise InvalidQuery(
            f"[{_CHANGING}] which rows change must not depend on functions whose value changes"
            " with each call",
            hint="write the values of rand() or uuid() to a column first",
            cli_hint="",
        )


def check_of_one_row(
    spark: SparkSession,
    sides: Sequence[tuple[str, StructType]],
    expressions: Sequence[str],
    args: Any = None,
) -> None:
    """Raise InvalidQuery if an expression has a window. Arguments as in `check_deterministic`.

    Spark itself refuses aggregates and generators.
    """
    windows = [text for text in expressions if "over" in text.lower()]
    if _refused(spark, sides, windows, args) == _OF_SEVERAL:
        raise InvalidQuery(
            f"[{_OF_SEVERAL}] a new value is computed from one row, not over a window of rows",
            hint="compute it in a query, and merge that",
        )


def sees_only(spark: SparkSession, alias: str, schema: StructType, text: str, args: Any) -> bool:
    """Whether a condition uses no table but this one."""
    try:
        with quiet():
            frame = spark.sql(f"SELECT 1 FROM {_nulls(alias, schema)} WHERE ({text})", args)  # noqa: S608
            frame.schema  # noqa: B018 # analysed here
    except REFUSALS:
        return False
    return True


def _refused(
    spark: SparkSession,
    sides: Sequence[tuple[str, StructType]],
    expressions: Sequence[str],
    args: Any,
) -> str | None:
    """Return the condition of Spark's error for these in the condition of a join, None for none.

    The join is over NULLs, so Spark reads nothing. For any other error the statement itself will
    fail.
    """
    if not expressions:
        return None
    tables = [_nulls(alias, schema) for alias, schema in sides]
    second = tables[1] if len(tables) > 1 else "(SELECT 1)"
    conditions = " AND ".join(f"(({text}) IS NULL)" for text in expressions)
    try:
        with quiet():
            text = f"SELECT 1 FROM {tables[0]} JOIN {second} ON {conditions}"  # noqa: S608
            spark.sql(text, args).schema  # noqa: B018 # analysed here
    except REFUSALS as error:
        return error.getCondition() if isinstance(error, PySparkException) else None
    return None


def _nulls(alias: str, schema: StructType) -> str:
    columns = ", ".join(
        f"CAST(NULL AS {type_ddl(field.dataType)}) AS {quote_identifier(field.name)}"
        for field in schema.fields
    )
    return f"(SELECT {columns or '1'}) AS {quote_identifier(alias)}"
