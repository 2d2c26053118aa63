"""Parse CREATE TABLE and REPLACE TABLE; columns and queries stay as they are written.

The parser returns None for statements of other forms, which are left to Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot.tokenizer_core import TokenType

from variantlake.errors import UnsupportedFeature
from variantlake.sql.token_cursor import TokenCursor

_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(")


@dataclass(frozen=True, slots=True)
class TableClauses:
    """The clauses after the columns, in any order. `partition_by` and `cluster_by` are names.

    `partition_columns` is the DDL of partition columns that PARTITIONED BY declares.
    """

    provider: str | None = None
    partition_by: tuple[str, ...] = ()
    partition_columns: str = ""
    cluster_by: tuple[str, ...] = ()
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None


@dataclass(frozen=True, slots=True)
class CreateText:
    """A statement: the name of the table as written, and what the table is made of.

    `columns` is DDL, `like` another table, `query` the text after AS; at most one of the last two
    is set. `verb` is `CREATE`, `REPLACE` or `CREATE OR REPLACE`.
    """

    table: str
    verb: str
    exist_ok: bool
    columns: str
    like: str | None
    clauses: TableClauses
    query: str | None

    @property
    def operation(self) -> str:
        """The operation's name in Delta Spark's history."""
        return f"{self.verb} TABLE{'' if self.query is None else ' AS SELECT'}"

    @property
    def replaces(self) -> bool:
        """Whether it replaces an existing table."""
        return "REPLACE" in self.verb


def parse_create(text: str) -> CreateText | None:
    """Parse a statement that creates a Delta table; None for any other text.

    Raises UnsupportedFeature for a Delta table that we cannot create.
    """
    cursor = _CreateCursor(text)
    verb = cursor.verb()
    if verb is None:
        return None
    exist_ok = verb == "CREATE" and cursor.take("IF", "NOT", "EXISTS")
    table = cursor.name()
    if table is None:
        return None
    if verb == "CREATE" and cursor.take("LIKE"):
        like = cursor.name()
        clauses = cursor.clauses()
        made = CreateText(table, verb, exist_ok, "", like, clauses, None)
        return made if like and cursor.read and _is_delta(clauses, table) else None
    columns = cursor.columns()
    clauses = cursor.clauses()
    if not _is_delta(clauses, table):
        return None
    query = cursor.query()
    made = CreateText(table, verb, exist_ok, columns, None, clauses, query)
    if not cursor.read:
        raise UnsupportedFeature(
            f"{cursor.rest()!r:.60} in {made.verb} TABLE is not supported",
            hint="columns, PARTITIONED BY, CLUSTER BY, COMMENT, TBLPROPERTIES, LOCATION and AS are",
        )
    return made


def _is_delta(clauses: TableClauses, table: str) -> bool:
    """Whether the table is Delta's: by USING, or by a name that is its path."""
    if clauses.provider is None:
        parts = TokenCursor(table).parts() or ()
        return len(parts) == 2 and parts[0].lower() == "delta"
    return clauses.provider.lower() == "delta"


class _CreateCursor(TokenCursor):
    """Reads the parts of CREATE TABLE."""

    def verb(self) -> str | None:
        """Read the verb, CREATE or REPLACE; None for another statement."""
        for verb in ("CREATE OR REPLACE", "CREATE", "REPLACE"):
            if self.take(*verb.split(), "TABLE"):
                return verb
        return None

    def columns(self) -> str:
        """Read the declared columns; empty if there are none here."""
        if self.kind() is not TokenType.L_PAREN or self.word(self.at + 1) in _QUERIES:
            return ""
        return self._enclosed()

    def query(self) -> str | None:
        """Read the query that the rows come from."""
        if not self.take("AS") and self.word(self.at) not in _QUERIES:
            return None
        return self.rest() or None

    def clauses(self) -> TableClauses:
        """Read clauses up to a text that is none."""
        found = dict[str, object]()
        while (clause := self._clause()) is not None and not found.keys() & clause.keys():
            found |= clause
        if collation := found.pop("collation", None):
            properties: Any = found.get("properties", {})
            found["properties"] = {**properties, "collation": collation}  # as Delta Spark
        return TableClauses(**found)  # type: ignore[arg-type]

    def _clause(self) -> dict[str, object] | None:
        if self.take("USING"):
            return {"provider": self.word_or_name()}
        if self.take("PARTITIONED BY"):
            return self._partitions()
        if self.take("CLUSTER BY"):
            return {"cluster_by": tuple(each.replace("`", "") for each in self.items())}
        if self.take("COMMENT"):
            return {"comment": self.text()}
        if self.take("TBLPROPERTIES"):
            return {"properties": self.properties() or {}}
        if self.take("OPTIONS"):
            return {"options": self.properties() or {}}
        if self.take("LOCATION"):
            return {"location": self.text()}
        if self.take("DEFAULT", "COLLATION"):
            return self._collation()
        return None

    def _collation(self) -> dict[str, object]:
        """Read the collation that columns also have without this clause; refuse any other."""
        name = self.word_or_name() or ""
        if name.upper() != "UTF8_BINARY":
            raise UnsupportedFeature(
                f"DEFAULT COLLATION {name} is not supported",
                hint="conditions compare by one: name COLLATE UTF8_LCASE = 'x'",
            )
        return {"collation": name.upper()}

    def _partitions(self) -> dict[str, object]:
        """Read names of columns, or columns that are declared here."""
        start = self.at + 1
        items = self.items()
        cursors = list(map(TokenCursor, items))
        names = tuple(cursor.word_or_name() for cursor in cursors)
        if any(cursor.kind() is TokenType.L_PAREN for cursor in cursors):
            raise UnsupportedFeature(
                f"a Delta table cannot be partitioned by {', '.join(items)!r:.60}",
                hint="name columns; a generated column may have what an expression gives",
            )
        declared = any(not cursor.done for cursor in cursors)
        columns = self.span(start, self.at - 1) if declared else ""
        return {"partition_by": names, "partition_columns": columns}

    def _enclosed(self) -> str:
        start = self.at + 1
        self.close()
        return self.span(start, self.at - 1)
