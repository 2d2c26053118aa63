"""Parse INSERT; the query stays as it is written.

The parser returns None for statements of other forms, which are left to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from variantlake.errors import InvalidQuery
from variantlake.sql.statements import first_word, verb_of
from variantlake.sql.token_cursor import TokenCursor

_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(")


@dataclass(frozen=True, slots=True)
class InsertText:
    """A statement: the name of the table as written, the rows, and what they replace.

    `columns` are those of the rows, in order; empty for those of the table. `partition` has the
    named partition columns and the texts of their values, None for values that the rows have.
    `where` is the condition of REPLACE WHERE. `replaces_by` is `USING` or `ON` after REPLACE, forms
    that Spark parses and Delta does not run. With `evolves` the table gets the columns of the rows
    that it lacks. `also` are the INSERTs that follow over the same FROM.
    """

    table: str
    query: str
    columns: tuple[str, ...] = ()
    by_name: bool = False
    overwrites: bool = False
    partition: Mapping[str, str | None] | None = None
    where: str | None = None
    replaces_by: str = ""
    evolves: bool = False
    also: tuple[InsertText, ...] = ()


def parse_insert(text: str) -> InsertText | None:
    """Parse an INSERT; None for any other text.

    Raises InvalidQuery for an order of its parts that Spark does not accept.
    """
    verb, rest = verb_of(text)
    if verb in ("WITH", "FROM"):
        if "insert" not in text.lower():
            return None
        return _with_tables(text) if verb == "WITH" else _from_tables(text)
    return _InsertCursor(rest).insert() if verb == "INSERT" else None


def _with_tables(text: str) -> InsertText | None:
    """Parse `WITH ... INSERT INTO ...`: WITH becomes part of the query."""
    cursor = TokenCursor(text)
    tables = cursor.until("INSERT", "SELECT", "FROM", "VALUES", "TABLE")
    if not cursor.take("INSERT"):
        return None
    insert = _InsertCursor(cursor.rest()).insert()
    if insert is None or first_word(insert.query) == "WITH":
        return None
    return replace(insert, query=f"{tables} {insert.query}")


def _from_tables(text: str) -> InsertText | None:
    """Parse `FROM ... INSERT INTO t SELECT ... [INSERT ...]`: FROM becomes part of each query."""
    cursor = TokenCursor(text)
    tables = cursor.until("INSERT", "SELECT")
    inserts = list[InsertText]()
    while cursor.take("INSERT"):
        insert = _InsertCursor(cursor.until("INSERT")).insert()
        if insert is None or first_word(insert.query) != "SELECT":
            return None
        inserts.append(replace(insert, query=f"{tables} {insert.query}"))
    if not inserts or not cursor.done:
        return None
    return replace(inserts[0], also=tuple(inserts[1:]))


def with_defaults(query: str, default: Callable[[int], str]) -> str:
    """Replace each DEFAULT in VALUES by `default` of the column's place."""
    cursor = TokenCursor(query)
    if not cursor.take("VALUES"):
        return query
    rows = list[str]()
    while not cursor.done:
        items = cursor.items()
        if not items:
            return query
        values = (
            default(at) if item.upper() == "DEFAULT" else item for at, item in enumerate(items)
        )
        rows.append(f"({', '.join(values)})")
        if not cursor.done and not cursor.take(","):
            return query
    return f"VALUES {', '.join(rows)}"


class _InsertCursor(TokenCursor):
    """Reads the parts after INSERT."""

    def insert(self) -> InsertText | None:
        evolves = self.take("WITH", "SCHEMA", "EVOLUTION")
        overwrites = self.take("OVERWRITE")
        if not overwrites and not self.take("INTO"):
            return None
        self.take("TABLE")
        table = self.name()
        partition = self._partition()
        columns = tuple[str, ...]()
        if self.word(self.at) == "(" and self.word(self.at + 1) not in _QUERIES:
            parts = [TokenCursor(item).word_or_name() for item in self.items()]
            columns = tuple(name for name in parts if name is not None)
        by_name = self.take("BY", "NAME")
        where, replaces_by = None, ""
        if self.take("REPLACE", "WHERE"):
            where = self.until("BY", *_QUERIES[:-1])
            if self.take("BY", "NAME"):
                raise InvalidQuery(
                    "BY NAME stands behind REPLACE WHERE",
                    hint="INSERT INTO t BY NAME REPLACE WHERE",
                )
        elif self.word(self.at) == "REPLACE" and self.word(self.at + 1) in ("USING", "ON"):
            replaces_by = self.word(self.at + 1)
            self.until(*_QUERIES[:-1])
        starts = self.word(self.at) in _QUERIES
        query = self.rest()
        if table is None or not starts or (by_name and columns):
            return None
        return InsertText(
            table, query, columns, by_name, overwrites, partition, where, replaces_by, evolves
        )

    def _partition(self) -> dict[str, str | None] | None:
        if not self.take("PARTITION"):
            return None
        found = dict[str, str | None]()
        for item in self.items():
            cursor = TokenCursor(item)
            name = cursor.word_or_name()
            if name is not None:
                found[name] = cursor.rest() if cursor.take("=") else None
        return found
