"""Turn DELETE, UPDATE and MERGE into Statements for `ChangeRunner`, and results into rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson
from pyspark.sql import SparkSession
from pyspark.sql import types as st

from variantlake.delta.actions.actions import AddFile
from variantlake.delta.log.snapshot import Snapshot
from variantlake.dml.found_rows import finds_any
from variantlake.dml.merge.evolution import Evolution
from variantlake.dml.result import ChangeResult
from variantlake.dml.row_change import clause_predicates, predicate_parameter
from variantlake.errors import UnsupportedFeature, VariantLakeError
from variantlake.expressions.tree import Predicate
from variantlake.quoting import quote_identifier
from variantlake.spark.dml.change import Runner, Statement
from variantlake.spark.dml.changed_rows import (
    TARGET,
    RowsText,
    deleted_rows_text,
    updated_rows_text,
)
from variantlake.spark.dml.determinism import (
    check_deterministic,
    check_of_one_row,
    sees_only,
)
from variantlake.spark.dml.merged_rows import evolution_by_spark, merged_rows_text
from variantlake.spark.dml.stored_values import StoredValues, TypeOf
from variantlake.spark.load.append_target import columns_of
from variantlake.spark.query.names import Resolve
from variantlake.spark.session.schemas import spark_schema
from variantlake.sql.changes import (
    STAR,
    ChangeText,
    DeleteText,
    MergeText,
    Named,
    UpdateText,
    conjuncts,
    has_star,
    with_texts,
)
from variantlake.sql.select import QueryText


def statement_of(
    spark: SparkSession, parsed: ChangeText, args: Any = None, *, ansi: bool = True
) -> Statement:
    """Return the Statement for a parsed text; `args` are the parameters of the text.

    `ansi`: the session's CAST fails for a value that does not fit.
    """
    _check_stars(parsed)
    if isinstance(parsed, MergeText):
        return _merge(spark, parsed, args, ansi=ansi)
    updates = isinstance(parsed, UpdateText)

    def rows(snapshot: Snapshot, runner: Runner, resolve: Resolve) -> RowsText:
        decisive = [] if parsed.where is None else [parsed.where]
        sides = [(parsed.target.alias, _columns(snapshot))]
        if isinstance(parsed, UpdateText):
            values = [value for _, value in parsed.set]
            check_of_one_row(spark, sides, values, args)
            decisive += values  # as in Delta Spark, new values must be deterministic, too
        check_deterministic(spark, sides, decisive, args)
        if isinstance(parsed, UpdateText):
            of = {"matched": f"{TARGET} AS {quote_identifier(parsed.target.alias)}"}
            types = _types_in(of, runner, resolve, args)
            return updated_rows_text(
                snapshot, parsed, StoredValues(_columns(snapshot), ansi, types)
            )
        return deleted_rows_text(parsed)

    return Statement(
        "UPDATE" if updates else "DELETE",
        {"predicate": "[]" if updates and not parsed.where else predicate_parameter(parsed.where)},
        rows,
        finds_of(parsed.target, parsed.where),
        args=args,
    )


def _merge(spark: SparkSession, parsed: MergeText, args: Any, *, ansi: bool) -> Statement:
    def source_columns(runner: Runner, resolve: Resolve) -> st.StructType:
        query = f"SELECT * FROM {parsed.source.text} LIMIT 0"  # noqa: S608 - the user's own text
        return runner.run(query, args, resolve).schema

    def evolved(snapshot: Snapshot, runner: Runner, resolve: Resolve) -> Evolution | None:
        given = columns_of(source_columns(runner, resolve), ())
        return evolution_by_spark(snapshot, given, parsed.clauses)

    def rows(snapshot: Snapshot, runner: Runner, resolve: Resolve) -> RowsText:
        columns = source_columns(runner, resolve)
        source = (parsed.source.alias, columns)
        target = (parsed.target.alias, _columns(snapshot))
        sides = {
            "matched": [target, source],
            "not matched": [source],
            "not matched by source": [target],
        }
        for kind, seen in sides.items():
            clauses = [each for each in parsed.clauses if each.when == kind]
            values = [value for each in clauses for _, value in each.set if each.set != STAR]
            check_of_one_row(spark, seen, values, args)
            conditions = [each.condition for each in clauses if each.condition]
            conditions += [parsed.on] if kind == "matched" else []
            check_deterministic(spark, seen, conditions, args)
        counted = _counted(spark, parsed, target, args)
        own = f"{TARGET} AS {quote_identifier(parsed.target.alias)}"
        other = f"(SELECT * FROM {parsed.source.text}) AS {quote_identifier(parsed.source.alias)}"  # noqa: S608
        of = {
            "matched": f"{own} CROSS JOIN {other}",
            "not matched": other,
            "not matched by source": own,
        }
        stored = StoredValues(_columns(snapshot), ansi, _types_in(of, runner, resolve, args))
        return merged_rows_text(snapshot, parsed, columns.names, stored, counted)

    others = [each for each in parsed.clauses if each.when != "not matched"]
    matched = [(each.then, each.condition) for each in others if each.when == "matched"]
    return Statement(
        "MERGE",
        {
            "predicate": predicate_parameter(parsed.on),
            "matchedPredicates": clause_predicates(parsed.clauses, "matched"),
            "notMatchedPredicates": clause_predicates(parsed.clauses, "not matched"),
            "notMatchedBySourcePredicates": clause_predicates(
                parsed.clauses, "not matched by source"
            ),
        },
        rows,
        lambda _snapshot, _add: True,  # only the source could tell, and it is not read again
        # As in Delta Spark, several source rows may match one row if the only matched clause is an
        # unconditional DELETE, or if the MERGE only inserts.
        multiple=not others or matched == [("delete", None)],
        inserts=any(each.then == "insert" for each in parsed.clauses),
        args=args,
        evolved=evolved if parsed.evolves else None,
    )


def _counted(
    spark: SparkSession, parsed: MergeText, target: tuple[str, st.StructType], args: Any
) -> str:
    """Return the condition under which a match counts even if no clause takes it.

    As in Delta Spark, all matches do if there is a clause other than WHEN MATCHED. Otherwise a
    match counts if, for some clause, the conjuncts on the table alone are all true.
    """
    if any(each.when != "matched" for each in parsed.clauses):
        return "true"
    each_clause = []
    for clause in parsed.clauses:
        parts = () if clause.condition is None else conjuncts(clause.condition)
        own = [f"({part})" for part in parts if sees_only(spark, *target, part, args)]
        each_clause.append(f"({' AND '.join(own or ['true'])})")
    return " OR ".join(each_clause)


def _check_stars(parsed: ChangeText) -> None:
    """Raise UnsupportedFeature for a star in an expression, which would include our columns."""

    def checked(text: str) -> str:
        if has_star(text):
            raise UnsupportedFeature(
                f"{text} has a star, which is only supported in queries",
                hint="name the columns",
                cli_hint="name the columns",
            )
        return text

    with_texts(parsed, checked)


def _columns(snapshot: Snapshot) -> st.StructType:
    return spark_schema(st.StructType.fromJson(orjson.loads(snapshot.schema.to_json())))


def _types_in(of: Mapping[str, str], runner: Runner, resolve: Resolve, args: Any) -> TypeOf:
    """Return a function for the types of expressions; `of` is what each kind of clause sees."""

    def type_of(kind: str, text: str) -> st.DataType:
        query = f"SELECT ({text}) AS __vl_value FROM {of[kind]}"  # noqa: S608 - the user's own text
        return runner.run(query, args, resolve).schema[0].dataType

    return type_of


def finds_of(target: Named, where: str | None) -> Callable[[Snapshot, AddFile], bool]:
    """Return a function that tells whether a file may have a row that fulfils a condition.

    It returns True if the local engine does not support the condition.
    """

    def finds(snapshot: Snapshot, add: AddFile) -> bool:
        if where is None or "\\" in where or '"' in where:  # their meaning depends on settings
            return True
        try:
            condition: Predicate = QueryText(snapshot.schema, target.alias, utc=False).condition(
                where
            )
        except VariantLakeError:
            return True
        return finds_any(snapshot, condition, add)

    return finds


def result_of(parsed: ChangeText, row: Mapping[str, int], version: int) -> ChangeResult:
    """Return the counts of a statement that Delta Spark ran; it reports none of files."""
    rows = row.get("num_affected_rows", 0)
    match parsed:
        case DeleteText():
            return ChangeResult(version=version, rows_deleted=rows)
        case UpdateText():
            return ChangeResult(version=version, rows_updated=rows)
    return ChangeResult(
        version=version,
        rows_deleted=row.get("num_deleted_rows", 0),
        rows_updated=row.get("num_updated_rows", 0),
        rows_inserted=row.get("num_inserted_rows", 0),
    )


def result_rows(spark: SparkSession, operation: str, done: ChangeResult) -> Any:
    """Return a DataFrame of the one row of counts that Delta Spark returns."""
    if operation != "MERGE":
        return spark.createDataFrame([(done.rows_changed,)], "num_affected_rows bigint")
    return spark.createDataFrame(
        [(done.rows_changed, done.rows_updated, done.rows_deleted, done.rows_inserted)],
        "num_affected_rows bigint, num_updated_rows bigint, num_deleted_rows bigint, "
        "num_inserted_rows bigint",
    )
