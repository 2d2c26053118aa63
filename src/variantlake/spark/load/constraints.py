"""Evaluate a table's SQL for new rows: defaults, generated columns, constraints, invariants.

Spark evaluates the expressions, as in Delta Spark; they may use paths of Variants (`variant_get`).
A row that breaks a rule fails the job with a message that names the rule.
Spec: PROTOCOL, "CHECK Constraints", "Column Invariants", "Generated Columns", "Default Columns".
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as st

from variantlake import errors
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.identity_columns import IdentityColumn, identity_columns
from variantlake.delta.protocol.properties import constraints
from variantlake.delta.schema.table_schema import StructField, StructType
from variantlake.errors import InvalidQuery, InvalidValue, MalformedLog, VariantLakeError
from variantlake.ingest.encode.numbers import unnumbered_columns
from variantlake.quoting import quote_identifier
from variantlake.spark.session.jobs import functions_of
from variantlake.spark.session.jvm import is_connect
from variantlake.spark.session.refusals import quiet, sentence
from variantlake.spark.session.schemas import nullable_type
from variantlake.sql.tokens import tokenize
from variantlake.storage.store import Store

REFUSED = "variantlake refuses the row: "
"""The start of the message of a job's error about a row; see `refusals`."""

_SENTENCE = re.compile(re.escape(REFUSED) + r"(.*?)(?: SQLSTATE: \w+)?$", re.MULTILINE)
_IN_A_TASK = re.compile(
    r"^variantlake\.errors\.(\w+): (.*?)(?: SQLSTATE: \w+)?(?:\nHint: (.*))?$", re.MULTILINE
)
"""Matches the end of a traceback if one of our functions refused a row."""

_ROW_LENGTH = 300
_NOT_APPENDED = "nothing was appended; correct the row or leave it out"


MAX_PARTITIONS = 1 << 16
"""The assumed number of partitions of a frame on Spark Connect, which does not tell it."""


@dataclass(frozen=True, slots=True)
class RowConstraint:
    """A condition that must be true in every row; errors use its `name`."""

    name: str
    expression: str


def numbered(frame: DataFrame, snapshot: Snapshot) -> DataFrame:
    """Add numbers for identity columns that the frame lacks.

    Each partition of the frame has its own share of the numbers, so there may be gaps. Raises
    InvalidSchema as `unnumbered_columns`.
    """
    columns = unnumbered_columns(snapshot.schema, frame.columns)
    if not columns:
        return frame
    count = MAX_PARTITIONS if is_connect(frame.sparkSession) else frame.rdd.getNumPartitions()
    for column in columns:
        value = _number(frame, column, functions_of(frame.sparkSession).lit(True), count)
        frame = frame.withColumn(column.name, value)
    return frame


def numbered_where(
    frame: DataFrame, snapshot: Snapshot, conditions: Mapping[str, str]
) -> DataFrame:
    """Set identity columns to their next numbers in rows for which a condition is true.

    `conditions` maps columns to conditions in SQL. The frame is coalesced to at most as many
    partitions as may run at once.
    """
    if not conditions:
        return frame
    spark = frame.sparkSession
    sf = functions_of(spark)
    # Counting a frame's partitions would run its joins.
    count = (
        int(spark.conf.get("spark.sql.shuffle.partitions") or MAX_PARTITIONS)
        if is_connect(spark)
        else spark.sparkContext.defaultParallelism
    )
    frame = frame.coalesce(count)
    for column in identity_columns(snapshot.schema):
        if column.name in conditions:
            own = sf.col(quote_identifier(column.name))
            is_new = sf.expr(conditions[column.name])
            value = sf.when(is_new, _number(frame, column, is_new, count)).otherwise(own)
            frame = frame.withColumn(column.name, value)
    return frame


def _number(frame: DataFrame, column: IdentityColumn, is_new: Column, count: int) -> Column:
    """Return the next number of a row, where only rows with `is_new` get numbers.

    Each of `count` partitions has its own share of the numbers.
    """
    column.number(0)
    sf = functions_of(frame.sparkSession)
    place = sf.when(is_new, sf.monotonically_increasing_id())
    partition, row = sf.shiftright(place, 33), place.bitwiseAND((1 << 33) - 1)
    # With more partitions than `count`, two rows would get one number, so such a row is refused.
    failed = sf.raise_error(sf.lit(f"{REFUSED}the rows came in other parts; repeat the load"))
    index = sf.when(partition < count, row * count + partition).otherwise(failed.cast("bigint"))
    first, step = (sf.lit(number).cast("bigint") for number in (column.next, column.step))
    value: Column = first + index * step
    return value


class Expressed(Protocol):
    """A table whose SQL expressions are evaluated: a Snapshot, or a TableWrite."""

    @property
    def store(self) -> Store:
        """Where the table is."""

    @property
    def schema(self) -> StructType:
        """Its columns."""

    @property
    def properties(self) -> Mapping[str, str]:
        """Its properties."""


def has_expressions(table: Expressed) -> bool:
    """Whether rows for the table must go through `evaluated`."""
    generated = any(field.generation for field in table.schema.fields)
    defaults = any(field.default for field in table.schema.fields)
    return generated or defaults or any(_rules(table))


def evaluated(
    frame: DataFrame,
    table: Expressed,
    json_columns: Collection[str] = (),
    *,
    only: str | None = None,
) -> tuple[DataFrame, frozenset[str]]:
    """Add defaults and generated columns to a frame, and check every rule of the table.

    Args:
        frame: Columns by name, any of the table's.
        table: The table, or the one to make.
        json_columns: VARIANT columns that the frame has as JSON text.
        only: A condition in SQL; rules apply only to rows for which it is true. None for all rows.

    Returns:
        The frame, and those of `json_columns` that are still text in it. It has the columns of
        `frame`, and those that were generated or have a default. Computing a row that breaks a rule
        fails; `refusals` turns that failure into our error.

    Raises:
        MalformedLog: An invariant does not follow the protocol.
    """
    if not has_expressions(table):
        return frame, frozenset(json_columns)
    sf = functions_of(frame.sparkSession)
    for name in json_columns:
        # Rules expect Variants.
        frame = frame.withColumn(name, sf.parse_json(sf.col(quote_identifier(name)).cast("string")))
    types = st.StructType.fromJson(json.loads(table.schema.to_json()))
    for field in table.schema.fields:
        if field.default is not None and field.name not in frame.columns:
            value = sf.expr(field.default).cast(types[field.name].dataType)
            frame = frame.withColumn(field.name, value)
    given = list(frame.columns)
    for field in table.schema.fields:
        if field.name not in given and not field.generation:
            null = sf.lit(None).cast(types[field.name].dataType)
            frame = frame.withColumn(field.name, null)
    rules = list(_rules(table))
    for field in table.schema.fields:
        if field.generation and field.name not in given:
            value = sf.expr(field.generation).cast(types[field.name].dataType)
            frame = frame.withColumn(field.name, value)
            given.append(field.name)
        elif field.generation:
            equal = f"{quote_identifier(field.name)} <=> ({field.generation})"
            rules.append(RowConstraint(f"the generated column {field.name!r}", equal))
    for rule in rules:
        frame = frame.filter(holds(rule, frame, only))
    return frame.select(*map(quote_identifier, given)), frozenset()


class SparkChecks:
    """Checks with Spark that rows and expressions allow a change of a table.

    `read` returns the rows of a table at the version of its snapshot.
    """

    def __init__(self, spark: SparkSession, read: Callable[[Snapshot], DataFrame]) -> None:
        self._spark, self._read = spark, read

    def constraint(self, snapshot: Snapshot, name: str, expression: str) -> None:
        """Raise InvalidQuery unless it is a condition on a row, InvalidValue if a row breaks it."""
        frame = self._read(snapshot)
        try:
            with quiet():
                frame.filter(f"({expression}\n)").schema  # noqa: B018 # analysed here
        except PySparkException as error:
            why = sentence(error, {})
            raise InvalidQuery(
                f"the constraint {name!r} is not a condition on a row: {why}"
            ) from error
        if not _deterministic(frame, expression):
            raise InvalidQuery(
                f"the constraint {name!r} has a subquery, or is not deterministic", hint=_OF_A_ROW
            )
        _check_rows(frame, RowConstraint(f"the CHECK constraint {name!r}", expression))

    def not_null(self, snapshot: Snapshot, column: str) -> None:
        """Raise InvalidValue if a row is NULL in this column."""
        is_there = f"{quote_identifier(column)} IS NOT NULL"
        rule = RowConstraint(f"NOT NULL of column {column!r}", is_there)
        _check_rows(self._read(snapshot), rule)

    def default(self, field: StructField, expression: str) -> None:
        """Raise InvalidQuery if the expression is not a constant of the column's type."""
        row = st.StructType.fromJson(json.loads(StructType((field,)).to_json()))
        if any(token.text.upper() == "SELECT" for token in tokenize(expression)):
            raise InvalidQuery(
                f"the default of column {field.name!r} has a subquery",
                hint="a constant expression, as in SET DEFAULT 'unknown'",
            )
        try:
            with quiet():
                # Cast it like the assignment of a constant to a column.
                given = self._spark.sql(f"SELECT ({expression}\n) AS v")
                given.selectExpr(f"CAST(v AS {row[0].dataType.simpleString()}) AS v").collect()
        except PySparkException as error:
            raise InvalidQuery(
                f"the default of column {field.name!r} is no constant of its type:"
                f" {sentence(error, {})}",
                hint="a constant expression, as in SET DEFAULT 'unknown'",
            ) from error

    def generated(self, schema: StructType, field: StructField) -> None:
        """Raise InvalidQuery unless other columns of a row determine the generated column.

        The type of its expression must be the column's.
        """
        others = StructType(tuple(each for each in schema.fields if each.name != field.name))
        types = st.StructType.fromJson(json.loads(others.to_json()))
        own = st.StructType.fromJson(json.loads(StructType((field,)).to_json()))[0].dataType
        frame = self._spark.createDataFrame([], types)
        try:
            with quiet():
                given = frame.selectExpr(f"({field.generation}\n) AS v").schema[0].dataType
        except PySparkException as error:
            raise InvalidQuery(
                f"the expression of column {field.name!r}: {sentence(error, {})}"
            ) from error
        if not _deterministic(frame, field.generation or ""):
            raise InvalidQuery(
                f"the expression of column {field.name!r} has a subquery, or is not deterministic",
                hint=_OF_A_ROW,
            )
        if nullable_type(given) != nullable_type(own):
            raise InvalidQuery(
                f"column {field.name!r} is {own.simpleString()}, and its expression is "
                f"{given.simpleString()}",
                hint=f"cast the expression to {own.simpleString().upper()}",
            )


_OF_A_ROW = "it may use columns of the row, constants and deterministic functions"


def _deterministic(frame: DataFrame, expression: str) -> bool:
    try:
        with quiet():
            # Together, an aggregate and a lambda function refuse all that it must not contain.
            inside = f"count_if(exists(array(0), __vl_any -> ({expression}\n) IS NOT NULL))"
            frame.selectExpr(inside).schema  # noqa: B018 # analysed here
    except PySparkException:
        return False
    return True


def _check_rows(frame: DataFrame, rule: RowConstraint) -> None:
    """Raise InvalidValue for a row that breaks the rule."""
    with refusals("the table has rows that break it; nothing was changed"):
        frame.filter(holds(rule, frame)).count()


@contextlib.contextmanager
def refusals(hint: str = _NOT_APPENDED) -> Iterator[None]:
    """Replace Spark's error about a refused row by InvalidValue.

    An error that one of our functions raised in a task is raised again, without the worker's
    traceback. Other errors pass unchanged.
    """
    try:
        yield
    except VariantLakeError:
        raise
    except Exception as error:
        refused = _SENTENCE.search(str(error))
        if refused is not None:
            raise InvalidValue(refused[1], hint=hint) from error
        found = _raised_in_a_task(str(error), hint)
        if found is None:
            raise
        raise found from None


def _raised_in_a_task(text: str, hint: str) -> VariantLakeError | None:
    """Return our error at the end of a worker's traceback, None if there is none."""
    for name, message, more in reversed(_IN_A_TASK.findall(text)):
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, VariantLakeError):
            return kind(message, hint=more or hint)
    return None


def _rules(table: Expressed) -> Iterator[RowConstraint]:
    for name, expression in constraints(table.properties).items():
        yield RowConstraint(f"the CHECK constraint {name!r}", expression)
    for field in table.schema.walk():
        text = field.metadata.get("delta.invariants")
        if text is None:
            continue
        try:
            yield RowConstraint(
                f"the invariant of column {field.name!r}",
                json.loads(text)["expression"]["expression"],
            )
        except (ValueError, KeyError, TypeError) as error:
            raise MalformedLog(
                f"the invariant of column {field.name!r} is not understood: {text!r}",
                file=table.store.uri,
            ) from error


def holds(rule: RowConstraint, frame: DataFrame, only: str | None = None) -> Column:
    """Return a column that is true if the rule holds or `only` is not true, and fails otherwise.

    As in Delta Spark, a condition that is NULL does not hold.
    """
    sf = functions_of(frame.sparkSession)
    shown = [sf.col(quote_identifier(name)) for name in _shown(rule, frame.schema)]
    row = sf.left(sf.to_json(sf.struct(*shown)), sf.lit(_ROW_LENGTH)) if shown else sf.lit("{}")
    sentence = f"{REFUSED}it breaks {rule.name} ({_flat(rule.expression)}): "
    failed = sf.raise_error(sf.concat(sf.lit(sentence), row)).cast("boolean")
    holds = sf.coalesce(sf.expr(rule.expression).cast("boolean"), sf.lit(False))
    if only is not None:
        holds = sf.coalesce(~sf.expr(only), sf.lit(True)) | holds
    checked: Column = sf.when(holds, sf.lit(True)).otherwise(failed)
    return checked


def _shown(rule: RowConstraint, columns: st.StructType) -> list[str]:
    """Return the columns to show of a refused row, those that the rule uses first.

    The order matters because the text is cut off. Our internal columns are left out.
    """
    words = {token.text.lower() for token in tokenize(rule.expression)}
    names = [
        field.name
        for field in columns.fields
        if isinstance(field.dataType, _SHOWN) and not field.name.startswith("__vl_")
    ]
    return sorted(names, key=lambda name: name.lower() not in words)


_SHOWN = (
    st.NumericType, st.StringType, st.BooleanType, st.DateType, st.TimestampType,
    st.TimestampNTZType, st.VariantType, st.BinaryType,
)  # fmt: skip


def _flat(text: str) -> str:
    return " ".join(text.split())
