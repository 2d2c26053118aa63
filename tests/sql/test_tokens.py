"""Tables and paths of a text by its tokens: what is found, and what is left to Spark."""

from __future__ import annotations

import pytest
from sqlglot import exp

from variantlake.sql.splice import splice
from variantlake.sql.token_paths import Owner, typed_paths
from variantlake.sql.token_tables import qualifier_splices, sure_names, table_names, tags_in
from variantlake.sql.tokens import (
    ParsedText,
    inner_query,
    is_read_only,
    parse_text,
    select_items,
    tokenize,
)


def tables(text: str) -> list[str]:
    found = []
    for name in table_names(ParsedText.of(text)):
        travel = name.version if name.timestamp is None else name.timestamp
        found.append(".".join(name.parts) + ("" if travel is None else f"@{travel}"))
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a, t FROM a, b.c AS x JOIN (d JOIN e ON d.f = e.f)", ["a", "b.c", "d", "e"]),
        ("SELECT f(a, b) FROM delta.`/x y` VERSION AS OF 3 t", ["delta./x y@3"]),
        ("SELECT 1 FROM t FOR SYSTEM_VERSION AS OF 0", ["t@0"]),
        ("SELECT 1 FROM t TIMESTAMP AS OF '2024-01-01'", ["t@'2024-01-01'"]),
        ("SELECT 1 FROM t FOR SYSTEM_TIME AS OF DATE'2024-01-01' x", ["t@DATE'2024-01-01'"]),
        ("SELECT 1 FROM t TIMESTAMP AS OF date_add(now(), 1) x, u", ["t@date_add(now(), 1)", "u"]),
        (
            "SELECT 1 FROM t TIMESTAMP AS OF now() - INTERVAL 1 HOUR WHERE 1 = 1",
            ["t@now() - INTERVAL 1 HOUR"],
        ),
        ("TABLE t UNION ALL TABLE u", ["t", "u"]),
        # The name in the definition of that name is the table's, later it is not.
        ("WITH t AS (SELECT * FROM t) SELECT * FROM t", ["t"]),
        ("WITH RECURSIVE t AS (SELECT 1 UNION ALL SELECT 1 FROM t) SELECT * FROM T", []),
        ("SELECT * FROM (WITH t AS (SELECT 1) SELECT * FROM t), t", ["t"]),
        ("WITH a(x) AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM b, a, c", ["c"]),
        ("SELECT * FROM range(3) JOIN u GROUP BY a, b", ["u"]),
        ("SELECT 'FROM t' -- FROM u\n FROM v WHERE k IN (SELECT k FROM w)", ["v", "w"]),
    ],
)
def test_names_of_tables(text: str, expected: list[str]) -> None:
    assert tables(text) == expected


@pytest.mark.parametrize(
    ("text", "aliased"),
    [
        ("SELECT 1 FROM t x", True),
        ("SELECT 1 FROM t date WHERE date.k = 1", True),
        ("SELECT 1 FROM t AS `where`", True),
        ("SELECT 1 FROM t `left` JOIN u b", True),
        ("SELECT 1 FROM t TIMESTAMP AS OF now() + INTERVAL 1 DAY x", True),
        ("TABLE t", True),
        ("SELECT 1 FROM t MINUS SELECT 2", False),
        ("SELECT 1 FROM t LEFT ANTI JOIN u b ON true", False),
        ("SELECT 1 FROM t TABLESAMPLE (5 ROWS)", False),
        ("SELECT 1 FROM t QUALIFY true", False),
        ("SELECT 1 FROM (t)", False),
    ],
)
def test_whether_a_table_has_a_name_of_the_query(text: str, aliased: bool) -> None:
    first = next(table_names(ParsedText.of(text)))
    assert first.aliased == aliased


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a.t.k, b.k FROM a.t", "SELECT t.k, b.k FROM a.t"),
        ("SELECT c.a.t.e:x::int, A.T.* FROM c.a.t", "SELECT t.e:x::int, T.* FROM c.a.t"),
        ("SELECT delta.`/x y`.k FROM delta.`/x y`", "SELECT `/x y`.k FROM delta.`/x y`"),
        ("SELECT a.t.k, 'a.t.k' FROM a.t AS x", "SELECT a.t.k, 'a.t.k' FROM a.t AS x"),
        ("SELECT s.a.t.k, a.t FROM a.t", "SELECT s.a.t.k, a.t FROM a.t"),
    ],
)
def test_qualifiers_become_the_name_of_a_view(text: str, expected: str) -> None:
    tokens = tokenize(text)
    assert (
        splice(text, qualifier_splices(tokens, list(table_names(ParsedText.of(text))))) == expected
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT event:a.b::bigint", ["$['a']['b'] bigint"]),
        (
            "SELECT e.event:`odd key`['x y'][0]::decimal(10, 2)",
            ["$['odd key']['x y'][0] decimal(10,2)"],
        ),
        (
            "SELECT CAST(event:user AS STRING), try_cast(event:x AS INT)",
            ["$['user'] string", "$['x'] int?"],
        ),
        ("SELECT event:['odd key'].b::int", ["$['odd key']['b'] int"]),
        ("SELECT variant_get(event, '$.a', 'long')", ["$['a'] bigint"]),
        ("SELECT try_variant_get(t.event, '$[\"a\"]', 'date')", ["$['a'] date?"]),
        ("SELECT event:a::bigint::string", ["$['a'] bigint"]),
    ],
)
def test_typed_paths(text: str, expected: list[str]) -> None:
    found = typed_paths(ParsedText.of(text), frozenset({"event"}))
    shown = [f"{path.path} {path.type}{'' if path.strict else '?'}" for path in found.typed]
    assert (shown, found.others, found.stars, found.whole) == (
        expected,
        frozenset(),
        frozenset(),
        "",
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT event, event:a::int FROM t",
        "SELECT event:a FROM t",
        "SELECT event:a::string COLLATE UNICODE FROM t",
        "SELECT event:a::map<string, int> FROM t",
        "SELECT event:a[-1]::int FROM t",
        "SELECT event:a:b::int FROM t",
        "SELECT event:['it''s']::int FROM t",
        "SELECT event:`a.b`::int FROM t",
        "SELECT event:a.`b[0]`::int FROM t",
        "SELECT event:a.` b`::int FROM t",
        "SELECT variant_get(event, p, 'int'), variant_get(event, '$.a') FROM t",
        "SELECT coalesce(`event`, NULL) FROM t",
        "SELECT * FROM t",
        "SELECT t.* FROM t",
        "SELECT to_json(struct(*)) FROM t",
        "SELECT count(t.*) FROM t",
        "SELECT count(DISTINCT *) FROM t",
        "FROM t |> WHERE event:a::int > 3",
        "FROM t SELECT event:a::int",
        "TABLE t",
        "SELECT x:a::int FROM t AS a(x, y)",
        "SELECT x:a::int FROM t a(x, y)",
        "WITH c(x) AS (SELECT event:a::int FROM t) SELECT x FROM c",
        "SELECT IDENTIFIER('ev' || 'ent') FROM t",
    ],
)
def test_other_ways_to_read_a_variant(text: str) -> None:
    found = typed_paths(ParsedText.of(text), frozenset({"event"}))
    assert found.whole or found.others or found.stars


def test_numbers_of_thousands_of_digits_are_no_index_and_no_version() -> None:
    digits = "9" * 5000
    text = f"SELECT event:a[{digits}]::int FROM t VERSION AS OF {digits}"
    assert not typed_paths(ParsedText.of(text), frozenset({"event"})).typed
    assert [name.version for name in table_names(ParsedText.of(text))] == [None]


def test_products_and_counts_are_no_stars() -> None:
    text = "SELECT count(*), 2 * k, (k) * 2 FROM t"
    found = typed_paths(ParsedText.of(text), frozenset({"event"}))
    assert not found.whole
    assert not found.stars


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Which of a and b have to give their Variant, and how many paths are fields.
        ("SELECT a.event, b.event:x::int FROM t a JOIN t b", ("a", 1)),
        ("SELECT a.*, b.event:x::int FROM t a JOIN t b", ("a", 1)),
        ("SELECT o.*, b.event:x::int FROM t a, t b, o", ("", 1)),
        ("SELECT a.event:x::int, b.event:x::int FROM t a JOIN t AS b", ("", 2)),
        # A path that may be of either stays with the one that is read whole.
        ("SELECT a.event FROM t a UNION SELECT event:x::int FROM t b", ("ab", 0)),
        # What else is called so: a subquery, a common table, a column.
        ("SELECT a.event FROM (SELECT * FROM t b) a UNION SELECT a.event FROM t a", ("ab", 0)),
        ("WITH a AS (SELECT * FROM t b) SELECT a.event:x::int FROM t a", ("ab", 0)),
        ("SELECT a.event, b.event:x::int, a FROM t a JOIN t b", ("ab", 0)),
        ("SELECT c.a.event, b.event:x::int FROM t a JOIN t b", ("ab", 0)),
    ],
)
def test_whose_variants_are_read_whole(text: str, expected: tuple[str, int]) -> None:
    tokens = tokenize(text)
    names = list(table_names(ParsedText.of(text)))
    paths = typed_paths(ParsedText.of(text), frozenset({"event"}), sure_names(tokens, names))
    owners = [Owner(name, frozenset({"event"})) for name in "ab"]
    whole = paths.read_whole(owners)
    found = "".join(owner.name for owner, needed in zip(owners, whole, strict=True) if needed)
    assert (found, len(paths.usable(owners, whole))) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INSERT INTO t (a, b) WITH c AS (SELECT 1) SELECT 2", "WITH c AS (SELECT 1) SELECT 2"),
        ("INSERT WITH SCHEMA EVOLUTION INTO t (SELECT 2)", "(SELECT 2)"),
        ("INSERT OVERWRITE t PARTITION (p = 1) SELECT 2", "SELECT 2"),
        ("INSERT INTO t VALUES (1)", None),
        ("INSERT INTO t TABLE u", None),
        ("CREATE OR REPLACE TABLE t USING delta AS SELECT 1", "SELECT 1"),
        ("CREATE TABLE t (a INT, b INT GENERATED ALWAYS AS (a + 1))", None),
        ("CREATE TEMP VIEW v AS SELECT 1", None),
        ("CREATE VIEW table AS SELECT 1", None),
        ("CACHE TABLE t AS SELECT 1", None),
        ("WITH c AS (SELECT 1) INSERT INTO t SELECT 2", None),
        ("SELECT 1", None),
    ],
)
def test_the_query_inside_of_a_statement(text: str, expected: str | None) -> None:
    tokens = tokenize(text)
    first = inner_query(tokens)
    assert (None if first is None else text[tokens[first].start :]) == expected


def test_items_of_the_outermost_select() -> None:
    text = (
        "WITH c AS (SELECT 1, 2) SELECT DISTINCT a, f(b, (SELECT 3)) x, '😀,' FROM c UNION SELECT 5"
    )
    items = [text[start:stop] for start, stop in select_items(tokenize(text))]
    assert items == ["DISTINCT a", "f(b, (SELECT 3)) x", "'😀,'"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(SELECT 1)", True),
        ("WITH c AS (SELECT 1) SELECT 2", True),
        ("INSERT INTO t SELECT 1", False),
        ("FROM t INSERT INTO u SELECT 1", False),
        ("CREATE TABLE t AS SELECT 1", False),
        ("EXPLAIN SELECT 1", False),
        ("", False),
    ],
)
def test_what_only_reads(text: str, expected: bool) -> None:
    assert is_read_only(tokenize(text)) == expected


def test_joins_without_conditions_are_few() -> None:
    """Behind each of them sqlglot parses the rest twice."""
    names = [f"t{number}" for number in range(60)]
    for join in (" JOIN ", " LEFT JOIN ", " NATURAL JOIN "):
        assert ParsedText.of(f"SELECT * FROM {join.join(names)}").tree is None
        assert ParsedText.of(f"SELECT * FROM {join.join(names[:10])}").tree is not None
    nested = f"SELECT * FROM {' JOIN '.join(names)}{' ON true' * 59}"
    assert ParsedText.of(nested).tree is None
    shallow = " JOIN ".join(f"(SELECT 1 FROM u JOIN v ON true) {name} ON true" for name in names)
    for text in (
        f"SELECT * FROM t JOIN {shallow}",
        f"SELECT * FROM {' CROSS JOIN '.join(names)}",
        "SELECT * FROM t0" + "".join(f" JOIN {name} USING (id)" for name in names),
        " UNION ALL ".join(f"SELECT * FROM t JOIN {name} ON t.a = {name}.a" for name in names),
    ):
        assert ParsedText.of(text).tree is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'it''s'", "it's"),
        ("''''", "'"),
        ("'a''''b'", "a''b"),
        ('"a""b"', 'a"b'),
        ("""'a""b'""", 'a""b'),
        ("'it' 's'", None),
        ("""'a'"b\"""", None),
    ],
)
def test_a_quote_is_doubled_in_a_text(text: str, expected: str | None) -> None:
    """Texts in a row are joined by Spark, a doubled quote is one."""
    tree = parse_text(f"SELECT {text}, 1")
    first = tree.expressions[0]
    assert (first.this if isinstance(first, exp.Literal) else None) == expected
    if expected is not None:
        tokens = tokenize(f"SELECT {text}, 1")
        assert (tokens[1].start, tokens[1].end) == (7, 6 + len(text))
        assert [token.text for token in tokens[2:]] == [",", "1"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1 FROM a.b VERSION AS OF 'x-1' c, d", [("a.b", "x-1")]),
        ("SELECT 1 FROM delta.`/x y` FOR SYSTEM_VERSION AS OF 'x'", [("delta.`/x y`", "x")]),
        ("RESTORE TABLE t TO VERSION AS OF 'x'", [("t", "x")]),
        ("RESTORE `a b` VERSION AS OF 'x'", [("`a b`", "x")]),
        ("CREATE TABLE n SHALLOW CLONE t VERSION AS OF 'x'", [("t", "x")]),
        ("SELECT 1 FROM t VERSION AS OF 1, u FOR VERSION AS OF 'y'", [("u", "y")]),
        ("SELECT 1 FROM t VERSION AS OF '1'", []),
        ("SELECT version AS of, 'x' FROM t", []),
        ("VERSION AS OF 'x'", []),
        ("SELECT 1 FROM f(t) VERSION AS OF 'x'", []),
        ("SELECT 1 FROM t TIMESTAMP AS OF '2024-01-01'", []),
    ],
)
def test_tags_after_tables(text: str, expected: list[tuple[str, str]]) -> None:
    found = list(tags_in(ParsedText.of(text)))
    assert [(table, tag) for table, tag, _ in found] == expected
    assert all(text[start:stop] == f"'{tag}'" for _, tag, (start, stop) in found)
