"""Queries through Spark Connect, which shows no plan and no JVM: native, exact, files skipped.

The tables of a text are found by its tokens, and become DataFrames that Spark reads by its own
Variant reader. Conditions of a plain SELECT skip files; everything else is Spark's.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlglot
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]  # re-exported there

from variantlake.arrow.query_text import QueryText
from variantlake.errors import InvalidQuery
from variantlake.planning.plan import ScanPlan, plan_scan
from variantlake.planning.predicates import map_refs, refs
from variantlake.spark.kernel_scan import Task, batches
from variantlake.spark.references import Resolve
from variantlake.spark.scan import scan
from variantlake.spark.schemas import type_ddl
from variantlake.spark.session import ROW_INDEX, KnownFile
from variantlake.spark.tables import Tables, TableVersion
from variantlake.spark.text import Splice, quote_identifier, quote_string, splice

NATIVE = "Spark Connect shows no plans: paths are read natively"


@dataclass(frozen=True, slots=True)
class RemoteTable:
    """One place where a text reads a table, and what is read of it."""

    source: str
    table: TableVersion
    plan: ScanPlan
    start: int
    stop: int


class RemoteQueries:
    """Runs the queries of one Spark Connect session."""

    def __init__(self, spark: SparkSession, tables: Tables) -> None:
        self._spark: Any = spark
        self._tables = tables
        self._files = RemoteFiles(spark)

    def run(self, text: str, args: Any, resolve: Resolve) -> DataFrame:
        """The query's DataFrame. Raises InvalidQuery with Spark's sentence."""
        tables = self.plan(text, resolve)
        frames = {
            f"__vl_{at}": scan(self._files, found.table, found.plan, {})
            for at, found in enumerate(tables)
        }
        # What stands in braces is a frame's name for PySpark: braces of the text are doubled.
        changes = [Splice(at, at + 1, char * 2) for at, char in enumerate(text) if char in "{}"]
        places = [(found.start, found.stop) for found in tables]
        outside = [
            change
            for change in changes
            if not any(start <= change.start < stop for start, stop in places)
        ]
        names = [
            Splice(start, stop, f"{{{name}}}")
            for name, (start, stop) in zip(frames, places, strict=True)
        ]
        try:
            if not frames:
                return self._spark.sql(text, args)  # type: ignore[no-any-return]
            frame: DataFrame = self._spark.sql(splice(text, [*outside, *names]), args, **frames)
            frame.schema  # noqa: B018 # analysed here, so that a mistake is said here
        except PySparkException as error:
            raise InvalidQuery(str(error).strip().splitlines()[0]) from None
        return frame

    def read(self, table: TableVersion) -> DataFrame:
        """A whole table."""
        return scan(self._files, table, plan_scan(table.files, ()), {})

    def plan(self, text: str, resolve: Resolve) -> list[RemoteTable]:
        """The tables that a text reads, each with its files."""
        return [
            self._planned(text, location, version, start, stop)
            for location, version, start, stop in find_tables(text, resolve)
        ]

    def _planned(
        self, text: str, location: str, version: int | None, start: int, stop: int
    ) -> RemoteTable:
        table = self._tables.load(location, version)
        predicate = QueryText(table.snapshot.schema, utc=False).skipping(text)
        if predicate is not None:
            predicate = map_refs(predicate, table.stored_ref)
        files = self._tables.with_facts(table, refs(predicate))
        plan = plan_scan(files, (), predicate, partition_types=table.partition_types)
        return RemoteTable(text[start:stop], table, plan, start, stop)


def find_tables(text: str, resolve: Resolve) -> Iterator[tuple[str, int | None, int, int]]:
    """Location, version, start and stop of each place in the text that reads a table of ours."""
    try:
        tokens = sqlglot.tokenize(text, read="databricks")
    except sqlglot.errors.SqlglotError:
        return
    for at, token in enumerate(tokens):
        path = tokens[at + 2] if at + 2 < len(tokens) else None
        if (
            token.text.lower() == "delta"
            and path is not None
            and tokens[at + 1].token_type is TokenType.DOT
            and path.token_type is TokenType.IDENTIFIER
            and _is_relation(tokens, at)
        ):
            location = resolve((token.text, path.text))
            last = at + 2
        elif token.token_type in _NAMES and _is_relation(tokens, at, named=True):
            location = resolve((token.text,))
            last = at
        else:
            continue
        if location is not None:
            version, last = _version(tokens, last)
            yield location, version, token.start, tokens[last].end + 1


def _is_relation(tokens: Sequence[Token], at: int, *, named: bool = False) -> bool:
    """Whether a table stands here; a plain name after a comma may be a column as well."""
    before = tokens[at - 1].token_type if at else None
    after = tokens[at + 1].token_type if at + 1 < len(tokens) else None
    if named:
        return before in (TokenType.FROM, TokenType.JOIN) and after is not TokenType.DOT
    return before in (TokenType.FROM, TokenType.JOIN, TokenType.COMMA)


def _version(tokens: Sequence[Token], last: int) -> tuple[int | None, int]:
    """The version of `VERSION AS OF 3` behind a table, and the last token of it all."""
    words = [token.text.upper() for token in tokens[last + 1 : last + 5]]
    if words[:3] == ["VERSION", "AS", "OF"] and len(words) == 4 and words[3].isdigit():
        return int(words[3]), last + 4
    # sqlglot knows some of the words as one token.
    if words[:2] == ["VERSION", "AS OF"] and len(words) > 2 and words[2].isdigit():
        return int(words[2]), last + 3
    return None, last


_GLOB = re.compile(r"[\\{}\[\]*?^]")
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)


class RemoteFiles:
    """Files as DataFrames of a Spark Connect session; see `session.Files`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def empty(self, schema: StructType) -> DataFrame:
        """See Files."""
        nothing = ", ".join(
            f"CAST(NULL AS {type_ddl(item.dataType)}) AS {quote_identifier(item.name)}"
            for item in schema.fields
        )
        return self._spark.sql(f"SELECT {nothing} WHERE false")

    def read_parquet(
        self,
        files: Sequence[KnownFile],
        schema: StructType,
        constants: StructType,
        *,
        row_index: bool = False,
    ) -> DataFrame:
        """See Files."""
        groups: dict[tuple[str | None, ...], list[str]] = {}
        for file in files:
            groups.setdefault(file.constants, []).append(file.path)
        frames = [
            self._read(paths, schema).selectExpr(
                "*",
                *_constants(constants, values),
                *([f"_metadata.row_index AS {ROW_INDEX}"] if row_index else []),
            )
            for values, paths in groups.items()
        ]
        return functools.reduce(lambda one, other: one.unionAll(other), frames)

    def _read(self, paths: Iterable[str], schema: StructType) -> DataFrame:
        reader = self._spark.read.schema(schema)
        # No columns from the names of folders, no globs.
        reader = reader.option("recursiveFileLookup", "true")
        return reader.parquet(*(_GLOB.sub(r"\\\g<0>", path) for path in paths))

    def batches(self, task: Task, count: int, schema: StructType) -> DataFrame:
        """See Files."""
        return batches(self._spark, task, count, schema)

    @property
    def parallelism(self) -> int:
        """See Files; the server does not say."""
        return 8

    def deleted(self, vectors: bytes, schema: StructType) -> DataFrame:
        """See Files."""
        rows, position = [], 0
        while position < len(vectors):
            number, words = np.frombuffer(vectors, "<i4", 2, position).tolist()
            bits = np.frombuffer(vectors, "<i8", words, position + 8).tolist()
            rows.append((number, bits))
            position += 8 + 8 * words
        return self._spark.createDataFrame(rows, schema)


def _constants(constants: StructType, values: Sequence[str | None]) -> Iterator[str]:
    for item, value in zip(constants.fields, values, strict=True):
        text = "NULL" if value is None else quote_string(value)
        yield f"TRY_CAST({text} AS {type_ddl(item.dataType)}) AS {quote_identifier(item.name)}"
