"""Read SELECT items and conditions from text, for the local engine.

sqlglot parses the text (dialect databricks, which has the colon paths), and never prints it again.
Expressions that the local engine does not support are refused by name: Spark runs them.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from variantlake.delta.schema.table_schema import StructType
from variantlake.errors import InvalidQuery, InvalidValue, UnsupportedFeature, did_you_mean
from variantlake.expressions.column_names import name_of
from variantlake.expressions.columns import Columns
from variantlake.expressions.from_python import Expr
from variantlake.expressions.from_sqlglot import Expressions, has_aggregate
from variantlake.expressions.literals import WHOLE_NUMBER
from variantlake.expressions.tree import Expression, Predicate, Ref
from variantlake.expressions.typing import SPARK_RUNS_IT, refused
from variantlake.shown import shortened
from variantlake.sql.statements import QUERIES, first_word, not_a_query
from variantlake.sql.tokens import is_one_key, is_word, kind_at, parse_text, tokenize


@dataclass(frozen=True, slots=True)
class Item:
    """One column of a result: its name, and the `ref` by the names of the table."""

    name: str
    ref: Ref


class QueryText:
    """Reads texts over the columns of one table, which they may qualify with the name `table`.

    `utc`: timestamps without a zone are in UTC; otherwise they are refused.
    """

    def __init__(self, schema: StructType, table: str = "", *, utc: bool = True) -> None:
        self._utc = utc
        self._columns = Columns(schema, table.lower(), is_only=True)

    @classmethod
    def over(cls, columns: Columns) -> Self:
        """Make a reader of texts over other columns than those of one table."""
        text = cls(columns.schema)
        text._columns = columns
        return text

    def items(self, select: str | Expr | Iterable[str | Expr]) -> tuple[Item, ...]:
        """Read SELECT lists. Raises InvalidQuery, InvalidValue and UnsupportedFeature."""
        found: list[Item] = []
        for text in _texts(select):
            with about(text):
                select = parse_select(text, "SELECT ")
                only_parts(select, "expressions")
                for part in select.expressions:
                    found += _item(part, self._columns)
        return tuple(found)

    def condition(self, text: str) -> Predicate:
        """Read a condition as after WHERE. Raises InvalidQuery and UnsupportedFeature."""
        with about(text):
            if not text.strip():
                raise InvalidQuery("the condition is empty", hint="leave it out to mean all rows")
            select = parse_select(text, "SELECT 1 WHERE ")
            only_parts(select, "expressions", "where")
            read = Expressions(self._columns, utc=self._utc, now=time.time_ns() // 1000)
            return read.condition(select.args["where"].this)

    def node(self, text: str) -> exp.Expression:
        """Parse an expression to sqlglot's tree. Raises as `value`."""
        with about(text):
            select = parse_select(text, "SELECT ")
            only_parts(select, "expressions")
            if len(select.expressions) != 1:
                raise refused("several values for one column")
            found: exp.Expression = select.expressions[0]
            return found

    def value(self, text: str) -> Expression:
        """Read an expression over columns of a row. Raises InvalidQuery and UnsupportedFeature."""
        with about(text):
            return self.read(self.node(text))

    def read(self, node: exp.Expression) -> Expression:
        """Read an expression of sqlglot's tree over the columns of a row. Raises as `value`."""
        found = Expressions(self._columns, utc=self._utc).expression(node)
        if has_aggregate(found):
            raise InvalidQuery("an aggregate as the value of a row")
        return found


def _texts(select: object) -> list[str]:
    if isinstance(select, str | Expr):
        return [str(select)]
    if isinstance(select, Iterable):
        return list(map(str, select))
    raise InvalidValue(f"select is {select!r:.60}", hint="it takes text, a path or a list of these")


_ESCAPED = re.compile(r"""\\[\\'"]""")
"""The escapes that `quote_string` writes; of the others, sqlglot reads fewer than Spark."""

_TOKEN = re.compile(r"<Token token_type: .*?, text: (.*?), line: .*?>")
_PLACE = re.compile(r"\.? ?Line \d+, Col: \d+\.$")

_BEFORE_KEYS = (TokenType.COLON, TokenType.DOT)

_SHOWN = 500
"""Characters of a text that an error repeats."""


def parse_select(written: str, start: str = "") -> exp.Select:
    """Parse a SELECT, of which the user wrote the part after `start`.

    Raises InvalidQuery and UnsupportedFeature.
    """
    text = start + written
    if "\\" in _ESCAPED.sub("", _without_names(text)):
        raise UnsupportedFeature(
            "the local engine accepts backslashes only before quotes and backslashes",
            **SPARK_RUNS_IT,
        )
    if "|>" in text:
        # sqlglot makes one SELECT of the pipe and forgets whether LIMIT stood before WHERE.
        raise UnsupportedFeature("the local engine does not run pipes", **SPARK_RUNS_IT)
    if first_word(text) not in QUERIES:
        if not text.strip():
            raise InvalidQuery("the query is empty")
        # The parser would report on stderr what it does not know.
        if meant := did_you_mean(first_word(text), QUERIES):
            raise InvalidQuery(f"a query does not begin with {first_word(text)}", hint=meant)
        raise not_a_query(text) or UnsupportedFeature(
            "the local engine runs only queries", **SPARK_RUNS_IT
        )
    try:
        parsed = parse_text(text)
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        raise InvalidQuery(
            f"{shortened(written, _SHOWN)!r} does not parse: {why_unparsed(error)}",
            hint="a path is written event:a.b[0]['odd key']::type, with a type of Spark SQL",
        ) from None
    if not isinstance(parsed, exp.Select):
        several = isinstance(parsed, exp.SetOperation)
        raise refused(parsed.key.upper() if several else "a statement that is not a SELECT")
    if "\\" in text and any(isinstance(key.this, str) for key in parsed.find_all(exp.JSONPathKey)):
        raise refused("a path behind a colon beside a backslash")
    _check_lists(parsed)
    if parsed.find(exp.JSONExtract):
        _check_paths(text)
    return parsed


def _without_names(text: str) -> str:
    """The text without names in backticks, in which a backslash is no escape."""
    if "\\" not in text or "`" not in text:
        return text
    parts, start = [], 0
    for token in tokenize(text):
        if token.token_type is TokenType.IDENTIFIER and text[token.start] == "`":
            parts.append(text[start : token.start])
            start = token.end + 1
    return "".join((*parts, text[start:]))


def why_unparsed(error: Exception) -> str:
    """The parser's reason, without the names of its classes and without a place.

    The place would count from words of ours that may precede a condition.
    """
    reason = str(error).splitlines()[0] if str(error) else "it is nested too deep"
    if reason.startswith("Required keyword"):
        return "an operand is missing"
    reason = _TOKEN.sub(lambda m: "the end" if m[1] == "SENTINEL" else repr(m[1]), reason)
    return _PLACE.sub("", reason)


def _check_lists(select: exp.Select) -> None:
    """Raise InvalidQuery for lists without an item, which the parser accepts."""
    options = ("expressions", "query", "unnest", "field")
    for node in select.find_all(exp.In):
        if not any(node.args.get(name) for name in options):
            raise InvalidQuery("an IN without values")
    if not select.expressions:
        raise InvalidQuery("a SELECT of nothing")


def _check_paths(text: str) -> None:
    """Refuse paths that the parser accepts and Spark refuses or reads differently."""
    tokens = tokenize(text)
    for at, token in enumerate(tokens):
        before = kind_at(tokens, at - 1)
        if before in _BEFORE_KEYS and not is_one_key(token):
            raise refused(
                f"{token.text!r} in backticks in a path: a key is written ['{token.text}']"
            )
        kind = token.token_type
        is_key = is_word(tokens, at) or kind in (TokenType.VAR, TokenType.STAR)
        if before in _BEFORE_KEYS:
            is_path = is_key or (kind, before) == (TokenType.L_BRACKET, TokenType.COLON)
        elif before is TokenType.L_BRACKET:
            is_path = _in_brackets(token, text)
        else:
            continue
        if not is_path:
            raise InvalidQuery(
                f"the path has {text[token.start : token.end + 1]!r} for a key or an index",
                hint="Spark takes event:a, event:['odd key'] and event:a[0]; any other key"
                " needs variant_get, the empty one is variant_get(event, '$[\"\"]')",
            )


def _in_brackets(token: Token, text: str) -> bool:
    """Whether it is an index, or a key in single quotes without escapes."""
    written = text[token.start : token.end + 1]
    if token.token_type is TokenType.NUMBER:
        return not WHOLE_NUMBER.fullmatch(written) or int(written) < 2**31
    if token.token_type is TokenType.STRING:
        return written == f"'{token.text}'" and bool(token.text)
    return token.token_type is not TokenType.R_BRACKET


def only_parts(select: exp.Select, *parts: str) -> None:
    """Refuse a SELECT that has other parts than these."""
    if more := other_part(select, parts):
        raise refused(more)


def other_part(node: exp.Expr, parts: Collection[str]) -> str:
    """Another part of the node than these, as words; empty if it has no other."""
    more = [name for name, value in node.args.items() if value and name not in parts]
    return more[0].strip("_").upper().replace("_", " ") if more else ""


def row_limit(limit: exp.Expression) -> int:
    """The rows of a LIMIT or OFFSET."""
    rows = limit.expression
    if not isinstance(rows, exp.Literal) or rows.is_string or not WHOLE_NUMBER.fullmatch(rows.this):
        raise refused("a LIMIT or OFFSET that is not a number")
    return int(rows.this)


def _item(part: exp.Expression, columns: Columns) -> Iterator[Item]:
    if isinstance(part, exp.Star) and not any(part.args.values()):
        for column in columns.schema.fields:
            yield Item(column.name, columns.whole(column.name))
        return
    inner = part.this if isinstance(part, exp.Alias) else part
    ref = columns.find(inner)
    if ref is None:
        raise UnsupportedFeature(
            "a scan selects columns and paths, and computes nothing of them",
            hint="Table.sql('SELECT … FROM t') computes",
            cli_hint="`variantlake query` computes",
        )
    yield Item(part.alias if isinstance(part, exp.Alias) else name_of(inner, ref), ref)


@contextlib.contextmanager
def about(text: str) -> Iterator[None]:
    """Add the text to the message of an UnsupportedFeature."""
    try:
        yield
    except UnsupportedFeature as error:
        error.message += f", in {shortened(text, _SHOWN)!r}"
        error.args = (error.message,)
        raise
