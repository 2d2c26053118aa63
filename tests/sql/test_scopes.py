"""Which conditions of a text hold for which table: each case is a rule of EXACTNESS, 18."""

from __future__ import annotations

import json

import pytest

from variantlake.delta.schema.table_schema import StructType
from variantlake.expressions.tree import refs
from variantlake.sql.scopes import PushedFilter, Scopes, TableReference
from variantlake.sql.token_tables import table_names
from variantlake.sql.tokens import ParsedText

_TYPES = {"event": "variant", "k": "integer", "p": "string"}
SCHEMA = StructType.from_json(
    json.dumps(
        {
            "type": "struct",
            "fields": [
                {"name": name, "type": type_, "nullable": True, "metadata": {}}
                for name, type_ in _TYPES.items()
            ],
        }
    )
)


def held(
    text: str,
    *,
    case_sensitive: bool = False,
    quoted_names: bool = False,
    joined_texts: bool = False,
) -> list[PushedFilter]:
    """For the tables `t`, in the order of the text; all others are Spark's."""
    names = [name for name in table_names(ParsedText.of(text)) if name.parts == ("t",)]
    scopes = Scopes(
        ParsedText.of(text),
        case_sensitive=case_sensitive,
        quoted_names=quoted_names,
        joined_texts=joined_texts,
    )
    return [scopes.pushed_filter(TableReference(name.start, SCHEMA)) for name in names]


def shown(text: str, **settings: bool) -> list[str]:
    return [
        "" if found.predicate is None else str(found.predicate) for found in held(text, **settings)
    ]


JOINS = {
    # Of `FROM t a {join} t b ON a.k = 1 AND b.k = 2 WHERE a.p = 'x' AND b.p = 'y'`.
    "JOIN": ("a.p a.k", "b.p b.k"),
    "CROSS JOIN": ("a.p a.k", "b.p b.k"),
    "LEFT JOIN": ("a.p", "b.k"),
    "LEFT OUTER JOIN": ("a.p", "b.k"),
    "RIGHT JOIN": ("a.k", "b.p"),
    "FULL OUTER JOIN": ("", ""),
    "LEFT SEMI JOIN": ("a.p a.k", "b.k"),
    "SEMI JOIN": ("a.p a.k", "b.k"),
    "ANTI JOIN": ("a.p", "b.k"),
    "LEFT ANTI JOIN": ("a.p", "b.k"),
    "ASOF JOIN": ("", ""),
}


@pytest.mark.rule(18)
@pytest.mark.parametrize("join", JOINS)
def test_conditions_go_down_to_the_sides_of_a_join_that_they_may_drop_rows_of(join: str) -> None:
    text = f"SELECT 1 FROM t a {join} t b ON a.k = 1 AND b.k = 2 WHERE a.p = 'x' AND b.p = 'y'"
    words = {"a.k": "k = 1", "a.p": "p = 'x'", "b.k": "k = 2", "b.p": "p = 'y'"}
    for found, own, wanted in zip(shown(text), "ab", JOINS[join], strict=True):
        said = {name for name, part in words.items() if name[0] == own and part in found}
        assert said == set(wanted.split()), found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT k FROM t WHERE event:a::int < 3 GROUP BY k HAVING k > 5 LIMIT 2",
            ["event:a::int < 3"],
        ),
        ("SELECT rank() OVER (ORDER BY k) r FROM t WHERE k < 3 QUALIFY r = 1", ["k < 3"]),
        # A chain of joins: what the second one says of the first one's null-supplying side.
        (
            "SELECT 1 FROM u LEFT JOIN t b ON b.k = 1 JOIN t c ON b.p = 'x' AND c.p = 'y'",
            ["k = 1", "b.p = 'x' AND p = 'y'"],
        ),
        ("SELECT 1 FROM t a JOIN u ON a.k = 1 FULL JOIN v ON true WHERE a.p = 'x'", ["k = 1"]),
        # An ON does not see what stands before a comma.
        ("SELECT 1 FROM t, u JOIN v ON k = 1", [""]),
        ("SELECT 1 FROM u, t JOIN v ON k = 1", ["k = 1"]),
        # USING: which side's column the name is.
        ("SELECT 1 FROM t JOIN u USING (k) WHERE k = 1", ["k = 1"]),
        ("SELECT 1 FROM u JOIN t USING (K) WHERE k = 1 AND t.p = 'x'", ["k = 1 AND p = 'x'"]),
        ("SELECT 1 FROM t RIGHT JOIN u USING (k) WHERE k = 1", [""]),
        ("SELECT 1 FROM t NATURAL JOIN u WHERE k = 1", ["k = 1"]),
        ("SELECT 1 FROM u NATURAL JOIN t WHERE k = 1 AND t.p = 'x'", ["k = 1 AND p = 'x'"]),
        # Each SELECT on its own.
        (
            "SELECT k FROM t WHERE k = 1 UNION ALL (SELECT k FROM t WHERE k = 2 EXCEPT SELECT 3)",
            ["k = 1", "k = 2"],
        ),
        (
            """SELECT 1 FROM t a WHERE a.k = 1
                AND EXISTS (SELECT 1 FROM t b WHERE b.k = 2 AND a.p = 'x')""",
            ["k = 1 AND ", "k = 2 AND a.p = 'x'"],
        ),
        ("SELECT (SELECT max(k) FROM t WHERE p = 'x') FROM t WHERE k < 3", ["p = 'x'", "k < 3"]),
        # A name of the outer query is not the inner table's.
        ("SELECT 1 FROM u k WHERE EXISTS (SELECT 1 FROM t WHERE k.p = 'x')", ["k.p = 'x'"]),
        # Conditions of another table are not understood, and OR keeps what is.
        (
            "SELECT 1 FROM t JOIN u ON (t.k = 1 AND u.x = 2) OR t.k = 3",
            ["((k = 1 AND u.x = 2) OR k = 3)"],
        ),
    ],
)
def test_conditions_of_one_select(text: str, expected: list[str]) -> None:
    for found, wanted in zip(shown(text), expected, strict=True):
        assert found.startswith(wanted), found
        assert bool(found) == bool(wanted)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT * FROM (SELECT k AS q, p FROM t) d WHERE d.q = 1 AND p > 'x'",
            "k = 1 AND p > 'x'",
        ),
        (
            "WITH c AS (SELECT event:id::int AS id FROM t) SELECT 1 FROM c WHERE id = 1",
            "event:id::int = 1",
        ),
        ("WITH c AS (SELECT *, k + 1 AS q FROM t) SELECT 1 FROM c WHERE c.k = 1", "k = 1"),
        ("WITH c AS (SELECT a.* FROM t a JOIN u ON true) SELECT 1 FROM c WHERE k = 1", "k = 1"),
        (
            "WITH c AS (SELECT event:a AS q FROM t) SELECT 1 FROM c WHERE q:b::int = 1",
            "event:a.b::int = 1",
        ),
        (
            """WITH c AS (SELECT k FROM t WHERE p = 'x'), d AS (SELECT k AS j FROM c)
                SELECT 1 FROM d JOIN u ON d.j = 1""",
            "p = 'x' AND k = 1",
        ),
    ],
)
def test_conditions_above_a_select_that_computes_row_by_row(text: str, expected: str) -> None:
    assert shown(text) == [expected]


@pytest.mark.rule(18)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT k FROM (SELECT k FROM t LIMIT 3) WHERE k < 3",
        "SELECT k FROM (SELECT DISTINCT k FROM t) WHERE k < 3",
        "SELECT k FROM (SELECT max(k) AS k FROM t) WHERE k < 3",
        "SELECT k FROM (SELECT k, rank() OVER (ORDER BY p) AS r FROM t) WHERE k < 3",
        "SELECT k FROM (SELECT k, rand() AS r FROM t) WHERE k < 3",
        "SELECT k FROM (SELECT k, my_udf(p) AS r FROM t) WHERE k < 3",
        "SELECT k FROM (SELECT k, explode(array(1)) AS r FROM t) WHERE k < 3",
        "SELECT k FROM (SELECT k FROM t UNION ALL SELECT 1) WHERE k < 3",
        "SELECT k FROM (SELECT k FROM t) TABLESAMPLE (3 ROWS) d WHERE k < 3",
        "SELECT k FROM (SELECT p, k FROM t) AS d(k, p) WHERE k < 3",
        "SELECT k FROM (SELECT k + 1 AS k FROM t) WHERE k < 3",
        "SELECT k FROM (SELECT * EXCEPT (k) FROM t) JOIN u WHERE k < 3",
        "SELECT k FROM (SELECT b.* FROM t a JOIN u b) WHERE k < 3",
        "SELECT k FROM u LEFT JOIN (SELECT k AS j FROM t) d ON true WHERE d.j < 3",
        "WITH c AS (SELECT k FROM t) SELECT 1 FROM c WHERE k < 3 UNION SELECT 1 FROM c",
        "WITH c(p) AS (SELECT k FROM t) SELECT 1 FROM c WHERE p < 3",
        "WITH c AS (SELECT k FROM t) SELECT 1 FROM f(TABLE(c)), c WHERE k < 3",
        "WITH c AS (SELECT k FROM t) SELECT 1 FROM IDENTIFIER('C'), c x WHERE x.k < 3",
        # As it was found in plain SELECTs.
        "FROM t |> LIMIT 3 |> WHERE k < 3",
        "SELECT k FROM t AS u(event, k, p) WHERE k < 3",
        "SELECT * FROM t TABLESAMPLE (10 ROWS) WHERE k < 3",
        "SELECT t.k FROM t LATERAL VIEW explode(sequence(0, k)) e AS j WHERE k < 3",
        "SELECT t.k FROM t JOIN u ON t.p = u.p LATERAL VIEW explode(array(1)) e AS k WHERE k < 3",
        "SELECT * FROM t PIVOT (count(*) FOR p IN ('a', 'b')) WHERE k < 3",
        "SELECT * FROM t JOIN u ON t.p = u.q PIVOT (count(*) FOR p IN ('a', 'b')) WHERE k < 3",
        "SELECT k FROM t FULL JOIN u USING (k) WHERE k < 3",
        "SELECT k FROM t, LATERAL (SELECT 1 AS k) WHERE k < 3",
        "SELECT j.k FROM (t JOIN u ON true) j WHERE k < 3",
        "SELECT k FROM t WHERE p = 'it\\'s' OR k < 3",
        "SELECT k FROM t GROUP BY k HAVING k < 3",
    ],
)
def test_rule_18_a_condition_that_is_not_on_all_rows_says_nothing(text: str) -> None:
    for found in held(text):
        assert not list(refs(found.predicate)), found


def test_names_that_differ_by_case() -> None:
    text = "SELECT 1 FROM t A JOIN u ON a.k = 1 AND A.K = 2 AND K = 3 AND A.k = 4"
    assert shown(text) == ["k = 1 AND k = 2 AND k = 3 AND k = 4"]
    (found,) = shown(text, case_sensitive=True)
    assert found.endswith("AND k = 4")
    assert "k = 1" not in found.replace("a.k = 1", "")
    assert "k = 3" not in found


def test_double_quotes_hold_strings_unless_the_session_says_otherwise() -> None:
    text = 'SELECT 1 FROM t WHERE p = "x" AND k = 1'
    assert shown(text) == ["p = 'x' AND k = 1"]
    assert shown(text, quoted_names=True) == [""]
    assert shown(text.replace("x", 'x""y')) == [""]


def test_a_doubled_quote_is_one_unless_the_session_says_otherwise() -> None:
    text = "SELECT 1 FROM t WHERE p = 'it''s'"
    (condition,) = shown(text)
    assert condition == "p = 'it\\'s'"
    assert shown(text, joined_texts=True) == [""]
    assert shown("SELECT 1 FROM t WHERE p = 'its'", joined_texts=True) == ["p = 'its'"]


def test_why_nothing_is_skipped() -> None:
    (left, right) = held("SELECT 1 FROM t a LEFT JOIN t b ON a.k = 1")
    assert left.note.startswith("no condition skips its files")
    assert right.note.startswith("no condition skips its files") == (right.predicate is None)
    (found,) = held("SELECT 1 FROM t LATERAL VIEW explode(array(1)) e AS j WHERE k < 3")
    assert found.note == "its conditions are ignored: the SELECT has LATERALS"
    (found,) = held("SELECT k FROM t")
    assert found == PushedFilter(None, "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM t", "t"),
        ("SELECT a.* FROM t a JOIN u b", "t"),
        ("SELECT b.* FROM t a JOIN u b", "u"),
        ("SELECT * FROM t a, u b WHERE k IN (SELECT k FROM v)", "t u"),
        ("SELECT s.* FROM t JOIN u", "t u"),
        ("SELECT * FROM (t JOIN u ON true)", "t u"),
        ("WITH c AS (SELECT k FROM t) SELECT *, 2 * k FROM c", "c"),
        ("SELECT * FROM (SELECT k FROM t) JOIN (SELECT * FROM u)", "u"),
        ("SELECT count(*) FROM t", ""),
        ("SELECT to_json(struct(*)) FROM t", None),
        ("SELECT count(DISTINCT *) FROM t", None),
        ("SELECT * FROM t |> LIMIT 3", None),
    ],
)
def test_whose_columns_stars_stand_for(text: str, expected: str | None) -> None:
    starred = Scopes(ParsedText.of(text), case_sensitive=False, quoted_names=False).starred()
    words = None if starred is None else " ".join(text[at] for at in sorted(starred))
    assert words == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1 FROM t JOIN (VALUES (3, 'a')) AS s(j, w) JOIN VALUES (1) AS v(x)", False),
        ("SELECT 1 FROM t AS u(x)", True),
        ("SELECT 1 FROM (SELECT event FROM t) u(x)", True),
        ("SELECT 1 FROM (SELECT * FROM t UNION VALUES (1)) u(x)", True),
        ("WITH c(x) AS (SELECT event FROM t) SELECT 1 FROM c", True),
        ("SELECT 1 FROM t |> AS u", True),
    ],
)
def test_whether_columns_get_names_by_their_place(text: str, expected: bool) -> None:
    assert (
        Scopes(ParsedText.of(text), case_sensitive=False, quoted_names=False).renames() == expected
    )


@pytest.mark.rule(37)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT k FROM t LIMIT 3", "LIMIT 3"),
        ("SELECT k FROM t WHERE k = 1 LIMIT 3 OFFSET 4", "LIMIT 7"),
        ("SELECT p FROM t ORDER BY k LIMIT 3", "ORDER BY k ASC NULLS FIRST LIMIT 3"),
        ("SELECT p FROM t ORDER BY k DESC LIMIT 3", "ORDER BY k DESC NULLS LAST LIMIT 3"),
        (
            "SELECT * FROM t x ORDER BY x.k NULLS LAST, p LIMIT 3",
            "ORDER BY k ASC NULLS LAST LIMIT 3",
        ),
        ("SELECT p AS a, k AS p FROM t ORDER BY a LIMIT 3", "ORDER BY p ASC NULLS FIRST LIMIT 3"),
        ("SELECT p AS a, k AS p FROM t ORDER BY p LIMIT 3", "ORDER BY k ASC NULLS FIRST LIMIT 3"),
        (
            "SELECT 1 FROM u WHERE x IN (SELECT k FROM t ORDER BY event:a::int DESC LIMIT 9)",
            "ORDER BY event:a::int DESC NULLS LAST LIMIT 9",
        ),
        ("WITH c AS (SELECT k FROM t LIMIT 3) SELECT * FROM c WHERE k = 1", "LIMIT 3"),
        # What is chosen among is more, or other, than rows of the table that fulfil the WHERE.
        ("SELECT k FROM t", None),
        ("SELECT count(*) FROM t LIMIT 3", None),
        ("SELECT DISTINCT k FROM t LIMIT 3", None),
        ("SELECT k FROM t GROUP BY k LIMIT 3", None),
        ("SELECT explode(k) FROM t LIMIT 3", None),
        ("SELECT unheard_of(k) FROM t LIMIT 3", None),
        ("SELECT rank() OVER (ORDER BY p) FROM t ORDER BY k LIMIT 3", None),
        ("SELECT k FROM t ORDER BY k, rank() OVER (ORDER BY p) LIMIT 3", None),
        ("SELECT k FROM t TABLESAMPLE (5 ROWS) LIMIT 3", None),
        ("SELECT t.k FROM t, u LIMIT 3", None),
        ("SELECT k FROM t UNION ALL SELECT x FROM u ORDER BY k LIMIT 3", None),
        ("SELECT x FROM u UNION ALL SELECT k FROM t LIMIT 3", None),
        ("SELECT k FROM t SORT BY k LIMIT 3", None),
        ("SELECT k FROM t LIMIT 1 + 2", None),
        ("SELECT k FROM t LIMIT ALL", None),
        # The order is by something else than a column or a path, or that is not sure.
        ("SELECT k FROM t ORDER BY 1 LIMIT 3", None),
        ("SELECT k FROM t ORDER BY ALL LIMIT 3", None),
        ("SELECT k FROM t ORDER BY k + 1 LIMIT 3", None),
        ("SELECT -k AS k FROM t ORDER BY k LIMIT 3", None),
        ("SELECT event:k::int FROM t ORDER BY k LIMIT 3", None),
        ("SELECT p AS event FROM t ORDER BY event:a::int LIMIT 3", None),
        ("SELECT k AS a, p AS a FROM t ORDER BY a LIMIT 3", None),
        ("SELECT k FROM t ORDER BY elsewhere LIMIT 3", None),
        # A name of the result that is not a column of the table: a field, a constant, an alias.
        ("SELECT st.k FROM t ORDER BY k LIMIT 3", None),
        ("SELECT (st).k FROM t ORDER BY k LIMIT 3", None),
        ("SELECT st.a.k FROM t ORDER BY k LIMIT 3", None),
        ("SELECT t.st.k FROM t ORDER BY k LIMIT 3", None),
        ("SELECT st.* FROM t ORDER BY k LIMIT 3", None),
        ("SELECT 'k' FROM t ORDER BY k LIMIT 3", None),
        ("WITH c AS (SELECT st.k FROM t ORDER BY k LIMIT 3) SELECT * FROM c", None),
        # A column of the result whose field is meant, and an alias that has no table's name.
        ("SELECT st AS t FROM t ORDER BY t.k LIMIT 3", None),
        ("SELECT * FROM t p ORDER BY p.k LIMIT 3", None),
        ("SELECT p AS k FROM t ORDER BY t.k LIMIT 3", None),
        ("SELECT *, p AS k FROM t ORDER BY k LIMIT 3", None),
        ("SELECT *, p AS x FROM t ORDER BY x LIMIT 3", "ORDER BY p ASC NULLS FIRST LIMIT 3"),
        (
            "SELECT t.k, t.* EXCEPT (k) FROM t ORDER BY k LIMIT 3",
            "ORDER BY k ASC NULLS FIRST LIMIT 3",
        ),
        ("SELECT x.k FROM t x ORDER BY x.k LIMIT 3", "ORDER BY k ASC NULLS FIRST LIMIT 3"),
    ],
)
def test_a_limit_on_the_rows_of_one_table(text: str, expected: str | None) -> None:
    (found,) = held(text)
    assert (found.first and str(found.first)) == expected


def test_a_limit_of_thousands_of_digits_is_not_looked_at() -> None:
    (found,) = held("SELECT k FROM t LIMIT " + "9" * 5000)
    assert found.first is None


@pytest.mark.rule(37)
def test_rule_37_further_terms_of_an_order_decide_between_rows_that_are_alike() -> None:
    for text, sole in (("k", True), ("event:a::int DESC", True), ("k, p", False), ("k, k", False)):
        (found,) = held(f"SELECT p FROM t ORDER BY {text} LIMIT 3")
        assert found.first is not None
        assert found.first.order is not None
        assert found.first.order.sole == sole


def test_in_a_case_sensitive_session_other_letters_name_no_column() -> None:
    for text in ("1 FROM t ORDER BY K", "p AS K FROM t ORDER BY k"):
        (found,) = held(f"SELECT {text} LIMIT 3", case_sensitive=True)
        assert found.first is None
