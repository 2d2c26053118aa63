"""Parse DELETE, UPDATE and MERGE into spans of their text.

Only the words between the parts are read, by tokens: conditions and expressions stay as they are
written. Parsers return None for statements of other forms, which are left to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from sqlglot.tokenizer_core import TokenType

from variantlake.errors import InvalidQuery
from variantlake.quoting import quote_identifier
from variantlake.sql.token_cursor import TokenCursor
from variantlake.sql.tokens import kind_at, tokenize

Assignments = tuple[tuple[str, str], ...]
"""Column names as written, and expressions; see STAR."""

STAR: Assignments = (("*", "*"),)
"""All columns, by their names in the source."""


@dataclass(frozen=True, slots=True)
class Named:
    """A table or query in a statement: its text, and its alias or name."""

    text: str
    alias: str


@dataclass(frozen=True, slots=True)
class DeleteText:
    """`DELETE FROM target WHERE where`; `where` is None for all rows."""

    target: Named
    where: str | None


@dataclass(frozen=True, slots=True)
class UpdateText:
    """`UPDATE target SET set WHERE where`."""

    target: Named
    set: Assignments
    where: str | None


@dataclass(frozen=True, slots=True)
class Clause:
    """One WHEN of a MERGE.

    `when` is "matched", "not matched" or "not matched by source"; `then` is "update", "insert" or
    "delete". `condition` is None without AND.
    """

    when: str
    condition: str | None
    then: str
    set: Assignments = ()


@dataclass(frozen=True, slots=True)
class MergeText:
    """`MERGE INTO target USING source ON on` and its clauses, in order.

    `evolves` is WITH SCHEMA EVOLUTION: the table gets the columns of the source that it lacks.
    """

    target: Named
    source: Named
    on: str
    clauses: tuple[Clause, ...]
    evolves: bool = False


ChangeText = DeleteText | UpdateText | MergeText


def parse_change(text: str) -> ChangeText | None:
    """Parse a statement that changes rows; None for any other text."""
    reader = _ChangeCursor(text)
    if reader.take("DELETE", "FROM"):
        target = reader.named(("WHERE",))
        where = reader.rest() if reader.take("WHERE") else None
        return DeleteText(target, where) if target and reader.done else None
    if reader.take("UPDATE"):
        target = reader.named(("SET",))
        if target is None or not reader.take("SET"):
            return None
        assignments = reader.assignments(("WHERE",))
        where = reader.rest() if reader.take("WHERE") else None
        if not reader.read or any(_reads_another(value) for _, value in assignments):
            return None
        return UpdateText(target, assignments, where) if assignments else None
    tables = reader.until("MERGE", "SELECT") if reader.word(reader.at) == "WITH" else ""
    merge = reader.merge() if reader.take("MERGE") else None
    if merge is None or not tables:
        return merge
    # Only the source can read them: a subquery of a condition does not see them.
    query = f"({tables} SELECT * FROM {merge.source.text})"  # noqa: S608 - the user's own text
    return replace(merge, source=replace(merge.source, text=query))


def change_text(parsed: ChangeText) -> str:
    """Write the statement as text, for an engine that runs it whole."""
    target = f"{parsed.target.text} AS {quote_identifier(parsed.target.alias)}"
    match parsed:
        case DeleteText():
            return f"DELETE FROM {target}{_where(parsed.where)}"  # noqa: S608 - the user's own text
        case UpdateText():
            return f"UPDATE {target} SET {_assignments(parsed.set)}{_where(parsed.where)}"  # noqa: S608
    source = f"{parsed.source.text} AS {quote_identifier(parsed.source.alias)}"
    clauses = " ".join(map(_clause_text, parsed.clauses))
    start = "MERGE WITH SCHEMA EVOLUTION INTO" if parsed.evolves else "MERGE INTO"
    return f"{start} {target} USING {source} ON {parsed.on} {clauses}"


def with_texts(parsed: ChangeText, change: Callable[[str], str]) -> ChangeText:
    """Apply `change` to every condition, expression and column name of a statement."""

    def where(text: str | None) -> str | None:
        return None if text is None else change(text)

    def pairs(given: Assignments) -> Assignments:
        return given if given == STAR else tuple((change(a), change(b)) for a, b in given)

    match parsed:
        case DeleteText():
            return replace(parsed, where=where(parsed.where))
        case UpdateText():
            return replace(parsed, set=pairs(parsed.set), where=where(parsed.where))
    clauses = tuple(
        replace(each, condition=where(each.condition), set=pairs(each.set))
        for each in parsed.clauses
    )
    return replace(parsed, on=change(parsed.on), clauses=clauses)


def _reads_another(value: str) -> bool:
    """Whether FROM and another table follow the value of an UPDATE."""
    cursor = TokenCursor(value)
    cursor.until("FROM")
    return not cursor.done and cursor.word(cursor.at - 1) != "DISTINCT"


def has_star(text: str) -> bool:
    """Whether a star stands for columns in an expression, outside its subqueries."""
    opened = list[bool]()
    tokens = tokenize(text)
    for at, token in enumerate(tokens):
        kind, before = token.token_type, kind_at(tokens, at - 1)
        if kind is TokenType.L_PAREN:
            opened.append(kind_at(tokens, at + 1) in (TokenType.SELECT, TokenType.WITH))
        elif kind is TokenType.R_PAREN:
            del opened[-1:]
        elif kind is TokenType.STAR and before in _BEFORE_STAR and not any(opened):
            return True
    return False


def conjuncts(text: str) -> tuple[str, ...]:
    """Split a condition at its ANDs, also within parentheses around all of it."""
    return _ChangeCursor(text).conjuncts()


_BEFORE_STAR = (None, TokenType.DOT, TokenType.L_PAREN, TokenType.COMMA)


def _where(condition: str | None) -> str:
    return "" if condition is None else f" WHERE {condition}"


def _assignments(given: Assignments) -> str:
    return "*" if given == STAR else ", ".join(f"{name} = {value}" for name, value in given)


def _clause_text(clause: Clause) -> str:
    condition = "" if clause.condition is None else f" AND {clause.condition}"
    start = f"WHEN {clause.when.upper()}{condition} THEN {clause.then.upper()}"
    if clause.then == "update":
        return f"{start} SET {_assignments(clause.set)}"
    if clause.then == "insert" and clause.set != STAR:
        names, values = (", ".join(part) for part in zip(*clause.set, strict=True))
        return f"{start} ({names}) VALUES ({values})"
    return f"{start} *" if clause.then == "insert" else start


def parse_clauses(text: str) -> tuple[Clause, ...] | None:
    """Parse the WHEN clauses of a MERGE; None for any other text."""
    reader = _ChangeCursor(text)
    clauses = reader.clauses()
    return clauses if clauses and reader.read else None


UPSERT = ("WHEN MATCHED THEN UPDATE SET *", "WHEN NOT MATCHED THEN INSERT *")


def merge_clauses(texts: Iterable[str]) -> tuple[Clause, ...]:
    """Parse the clauses of a MERGE, in order; UPSERT for none.

    Raises InvalidQuery for a text that is not a clause, and for one that is never reached.
    """
    found: list[Clause] = []
    for text in tuple(texts) or UPSERT:
        parsed = parse_clauses(text) if isinstance(text, str) else None
        if parsed is None:
            raise InvalidQuery(
                f"{text!r} is not a clause of a MERGE",
                hint="WHEN [NOT] MATCHED [BY SOURCE] [AND …] THEN UPDATE SET …, DELETE or INSERT …",
            )
        found += parsed
    check_clauses(found)
    return tuple(found)


def check_clauses(clauses: Iterable[Clause]) -> None:
    """Raise InvalidQuery for a clause that is never reached, as Spark does."""
    open_ended = set()
    for clause in clauses:
        if clause.when in open_ended:
            raise InvalidQuery(
                f"only the last WHEN {clause.when.upper()} clause of a MERGE may have no condition"
            )
        if clause.condition is None:
            open_ended.add(clause.when)


class _ChangeCursor(TokenCursor):
    """Reads the parts of statements that change rows."""

    def conjuncts(self) -> tuple[str, ...]:
        """Split the rest at its ANDs."""
        if self.kind() is TokenType.L_PAREN:
            self.close()
            if self.done:
                return _ChangeCursor(self.span(1, self.at - 1)).conjuncts()
            self.at = 0
        start, between, found = 0, False, list[str]()
        while not self.done:
            self.until("AND", "OR", "BETWEEN")
            word = self.word(self.at)
            if word == "OR":
                return (self.span(0, len(self.tokens)),)
            if word != "BETWEEN" and not between:
                found.append(self.span(start, self.at))
                start = self.at + 1
            between = word == "BETWEEN"
            self.at += 1
        return tuple(found)

    def named(self, ends: tuple[str, ...]) -> Named | None:
        """Read a table or a query in parentheses, with its alias if it has one."""
        start = self.at
        if self.kind() is TokenType.L_PAREN:
            self.close()
        elif self.name() is None:
            return None
        stop = self.at
        last = self.tokens[stop - 1]
        if self.take("AS") or (not self.done and self.word(self.at) not in ends):
            if self.done:
                return None
            last = self.tokens[self.at]
            self.at += 1
        if not self.done and self.word(self.at) not in ends:
            return None
        return Named(self.span(start, stop), last.text)

    def assignments(self, ends: tuple[str, ...]) -> Assignments:
        """Read `a = x, b = y` or `*`; empty for anything else."""
        if self.kind() is TokenType.STAR:
            self.at += 1
            return STAR
        found = []
        while True:
            name = self.name()
            if name is None or self.kind() is not TokenType.EQ:
                return ()
            self.at += 1
            found.append((name, self.until(",", *ends)))
            if self.done or self.word(self.at) != ",":
                return tuple(found)
            self.at += 1

    def merge(self) -> MergeText | None:
        """Read the part after MERGE."""
        evolves = self.take("WITH", "SCHEMA", "EVOLUTION")
        if not self.take("INTO"):
            return None
        target = self.named(("USING",))
        if target is None or not self.take("USING"):
            return None
        source = self.named(("ON",))
        if source is None or not self.take("ON"):
            return None
        on = self.until("WHEN")
        clauses = self.clauses()
        if not clauses or not self.read:
            return None
        return MergeText(target, source, on, clauses, evolves)

    def clauses(self) -> tuple[Clause, ...]:
        """Read the WHEN clauses; empty if one has another form, or is out of order."""
        found = list[Clause]()
        while self.take("WHEN"):
            clause = self._clause()
            # Spark's grammar has an order of kinds, in which each name is longer than the last.
            if clause is None or (found and len(clause.when) < len(found[-1].when)):
                return ()
            found.append(clause)
        return tuple(found)

    def _clause(self) -> Clause | None:
        when = "not matched" if self.take("NOT", "MATCHED") else ""
        if when and self.take("BY", "SOURCE"):
            when = "not matched by source"
        elif when:
            self.take("BY", "TARGET")
        elif self.take("MATCHED"):
            when = "matched"
        condition = self.until("THEN") if self.take("AND") else None
        if not when or not self.take("THEN"):
            return None
        if when != "not matched" and self.take("DELETE"):
            return Clause(when, condition, "delete")
        if when != "not matched" and self.take("UPDATE", "SET"):
            assigned = self.assignments(("WHEN",))
            return Clause(when, condition, "update", assigned) if assigned else None
        if when == "not matched" and self.take("INSERT"):
            assigned = self._inserted()
            return Clause(when, condition, "insert", assigned) if assigned else None
        return None

    def _inserted(self) -> Assignments:
        """Read `*` or `(a, b) VALUES (x, y)`."""
        if self.kind() is TokenType.STAR:
            self.at += 1
            return STAR
        names = self.items()
        values = self.items() if self.take("VALUES") else []
        return tuple(zip(names, values, strict=True)) if len(names) == len(values) else ()
