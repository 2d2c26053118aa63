"""Statements that change rows, as what `ChangeRunner` runs and the history tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson
from pyspark.sql import SparkSession
from pyspark.sql import types as st

from variantlake.delta.actions.actions import AddFile
from variantlake.delta.log.snapshot import Snapshot
from variantlake.dml.found_rows import finds_any
from variantlake.dml.result import ChangeResult
from variantlake.dml.row_change import predicate_parameter
from variantlake.errors import VariantLakeError
from variantlake.expressions.tree import Predicate
from variantlake.quoting import quote_string
from variantlake.spark.dml.change import Runner, Statement
from variantlake.spark.dml.changed_rows import (
    Cast,
    RowsText,
    deleted_rows_text,
    merged_rows_text,
    updated_rows_text,
)
from variantlake.spark.load.constraints import REFUSED
from variantlake.spark.query.references import Resolve
from variantlake.spark.session.schemas import spark_schema, type_ddl
from variantlake.sql.changes import ChangeText, Clause, DeleteText, MergeText, Named, UpdateText
from variantlake.sql.select import QueryText


def statement_of(parsed: ChangeText, args: Any = None, *, ansi: bool = True) -> Statement:
    """What is run for a statement; `args` are parameters of its text.

    `ansi` tells that a CAST of the session raises an error for a value that does not fit.
    """
    match parsed:
        case DeleteText():
            return Statement(
                "DELETE",
                {"predicate": predicate_parameter(parsed.where)},
                lambda _snapshot, _runner, _resolve: deleted_rows_text(parsed),
                finds_of(parsed.target, parsed.where),
                args=args,
            )
        case UpdateText():
            return Statement(
                "UPDATE",
                {"predicate": predicate_parameter(parsed.where)},
                lambda snapshot, _runner, _resolve: updated_rows_text(
                    snapshot, parsed, casts_of(snapshot, ansi=ansi)
                ),
                finds_of(parsed.target, parsed.where),
                updates=True,
                args=args,
            )
    return _merge(parsed, args, ansi=ansi)


def _merge(parsed: MergeText, args: Any, *, ansi: bool) -> Statement:
    def rows(snapshot: Snapshot, runner: Runner, resolve: Resolve) -> RowsText:
        source = f"SELECT * FROM {parsed.source.text} LIMIT 0"  # noqa: S608 - the user's own text
        columns = runner.run(source, args, resolve).columns
        return merged_rows_text(snapshot, parsed, columns, casts_of(snapshot, ansi=ansi))

    matched = [each for each in parsed.clauses if each.when == "matched"]
    return Statement(
        "MERGE",
        {
            "predicate": predicate_parameter(parsed.on),
            "matchedPredicates": _predicates(parsed.clauses, "matched"),
            "notMatchedPredicates": _predicates(parsed.clauses, "not matched"),
            "notMatchedBySourcePredicates": _predicates(parsed.clauses, "not matched by source"),
        },
        rows,
        lambda _snapshot, _add: True,  # the source decides, which is not read again
        # Rows that go whatever matches them may be matched again.
        multiple=[(each.then, each.condition) for each in matched] == [("delete", None)],
        updates=any(each.then == "update" for each in parsed.clauses),
        args=args,
    )


def _predicates(clauses: Sequence[Clause], when: str) -> str:
    found = [
        {"actionType": clause.then}
        | ({} if clause.condition is None else {"predicate": clause.condition})
        for clause in clauses
        if clause.when == when
    ]
    return orjson.dumps(found).decode()


def casts_of(snapshot: Snapshot, *, ansi: bool) -> Cast:
    """The casts to the types of the table's columns, which raise for a value that does not fit.

    So Delta Spark stores values whatever `spark.sql.ansi.enabled` says. Without it a CAST would
    make another value of such a one, or NULL: TRY_CAST does not.
    """
    columns = spark_schema(st.StructType.fromJson(orjson.loads(snapshot.schema.to_json())))

    def cast(name: str, text: str) -> str:
        type_ = columns[name].dataType
        ddl = type_ddl(type_)
        if ansi or text == "NULL" or isinstance(type_, st.StructType | st.ArrayType | st.MapType):
            return f"CAST(({text}) AS {ddl})"
        refused = quote_string(f"{REFUSED}a value does not fit column {name!r}, which is {ddl}")
        return (
            f"coalesce(TRY_CAST(({text}) AS {ddl}), "
            f"IF(({text}) IS NULL, NULL, raise_error({refused})))"
        )

    return cast


def finds_of(target: Named, where: str | None) -> Callable[[Snapshot, AddFile], bool]:
    """Whether a condition is true of a row of a file, where the local engine takes it."""

    def finds(snapshot: Snapshot, add: AddFile) -> bool:
        if where is None or "\\" in where or '"' in where:  # settings say what these mean
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
    """The counts of a statement that Delta Spark ran; of files it tells none."""
    rows = row.get("num_affected_rows", 0)
    match parsed:
        case DeleteText():
            return ChangeResult(version=version, deleted=rows)
        case UpdateText():
            return ChangeResult(version=version, updated=rows)
    return ChangeResult(
        version=version,
        deleted=row.get("num_deleted_rows", 0),
        updated=row.get("num_updated_rows", 0),
        inserted=row.get("num_inserted_rows", 0),
    )


def result_rows(spark: SparkSession, operation: str, done: ChangeResult) -> Any:
    """The row that Delta Spark's statement gives."""
    if operation != "MERGE":
        return spark.createDataFrame([(done.rows,)], "num_affected_rows bigint")
    return spark.createDataFrame(
        [(done.rows, done.updated, done.deleted, done.inserted)],
        "num_affected_rows bigint, num_updated_rows bigint, num_deleted_rows bigint, "
        "num_inserted_rows bigint",
    )
