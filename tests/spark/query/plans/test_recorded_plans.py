"""Catalyst's front end on recorded plans: what a query reads of its tables, without a JVM."""

from __future__ import annotations

from functools import cache

import pytest

from tests.spark.query.plans.recorded_plans import QUERIES, recorded
from variantlake.spark.rule.rule_query import RuleQuery

# What skipping may use, by query and view; None: every row matters.
PREDICATES: dict[str, dict[str, str | None]] = {
    "a path compared": {"e": "event:kind::string = 'commit'"},
    "variant_get and try": {"e": None},
    "a path under NOT, OR and IN": {
        "e": "event:a::int <= 3 AND NOT (event:b::string IN ('x', 'y'))"
    },
    "LIKE with a prefix, a whole text, a tail": {
        "e": "startswith(event:a::string, 'ab') AND "
        "event:b::string = 'ab' AND LIKE 'a%b' AND "
        "startswith(event:c::string, 'a') AND LIKE "
        "'a%b'"
    },
    "NULL tests and null-safe equality": {
        "e": "event:a::int IS NULL AND event:b::int IS NOT NULL AND event:c::int <=> 3"
    },
    "BETWEEN": {"e": "event:t::bigint >= 10 AND event:t::bigint <= 20"},
    "a constant folded": {"e": "day IS NOT NULL AND day >= DATE'2024-02-01'"},
    "a rand() is unknown": {"e": "n IS NOT NULL AND event:a::double < rand() AND n > 1"},
    "a function is unknown": {
        "e": "name IS NOT NULL AND n IS NOT NULL AND upper(name) = 'X' AND n > 1"
    },
    "a boolean path": {"e": "event:ok::boolean = TRUE"},
    "a field of a struct": {"e": "s.a IS NOT NULL AND s.a = 1"},
    "a condition above a LIMIT": {"e": None},
    "a condition above an aggregate": {"e": "n IS NOT NULL AND n = 1"},
    "HAVING": {"e": "n IS NOT NULL AND n = 1"},
    "a condition above a window": {"e": None},
    "a condition above DISTINCT": {"e": "n IS NOT NULL AND n = 1"},
    "a condition above a UNION": {"e": "n IS NOT NULL AND n = 1", "f": "n IS NOT NULL AND n = 1"},
    "a condition through a subquery": {"e": "event:kind::string = 'x'"},
    "a condition through a sort": {"e": "n IS NOT NULL AND n = 1"},
    "an inner join": {
        "e": "e.n = f.n AND n IS NOT NULL AND n > 1 AND n < 9",
        "f": "e.n = f.n AND n IS NOT NULL AND n < 9 AND n > 1",
    },
    "a left join": {
        "e": "n IS NOT NULL AND n < 9 AND n > 2",
        "f": "n IS NOT NULL AND n < 8 AND n > 1",
    },
    "a right join": {"e": "n IS NOT NULL AND n < 9 AND n > 1", "f": "n IS NOT NULL AND n < 8"},
    "a full join": {
        "e": "n IS NOT NULL AND n < 9",
        "f": "e.n > 1 AND e.n = f.n AND n < 9 AND n > 1 AND n IS NOT NULL",
    },
    "a semi join": {
        "e": "e.n = f.n AND n IS NOT NULL AND n > 2 AND n > 1",
        "f": "e.n = f.n AND n IS NOT NULL AND n > 1 AND n > 2",
    },
    "an anti join": {
        "e": "n IS NOT NULL AND n > 2",
        "f": "e.n = f.n AND n IS NOT NULL AND n > 1 AND n > 2",
    },
    "a cross join": {"e": "n IS NOT NULL AND n = 1", "f": "n IS NOT NULL AND n = 2"},
    "a CTE read once": {"e": "n IS NOT NULL AND n = 1"},
    "a CTE read twice": {
        "e": "x.n = y.n AND n IS NOT NULL AND n = 1",
        "e2": "x.n = y.n AND n = 1 AND n IS NOT NULL",
    },
    "a subquery in WHERE": {
        "e": "IN (SELECT n FROM f WHERE n > 3)",
        "f": "n IS NOT NULL AND n > 3",
    },
    "EXISTS": {
        "e": "SELECT n FROM e WHERE EXISTS (SELECT event FROM f WHERE f.n = e.n AND f.n > 3)",
        "f": "n IS NOT NULL AND n > 3",
    },
    "a scalar subquery": {
        "e": "n IS NOT NULL AND n = (SELECT max(n) FROM f WHERE n > 3)",
        "f": "n IS NOT NULL AND n > 3",
    },
    "a whole Variant": {"e": "event:a::int = 1"},
    "a whole Variant and a path": {"e": None},
    "a path of a path": {"e": "event:b::int = 1"},
    "a Variant under GROUP BY of its path": {"e": None},
    "a path in ORDER BY": {"e": None},
    "an unnamed path keeps its name": {"e": None},
    "a Variant in a UNION": {"e": None, "f": None},
    "a Variant of a struct": {
        "e": "SELECT s.v:a::int FROM e WHERE s.v:b::int = 1 AND s.v:b::int = 1"
    },
    "an alias of a table": {"e": "event:b::string = 'y'"},
    "a cast of a column": {"e": "n IS NOT NULL AND n > 30"},
    "a cast between strings and numbers": {"e": "name IS NOT NULL AND name = 3"},
    "constants of each kind": {
        "e": "event:a::timestamp > TIMESTAMP'2024-01-01 00:00:00Z' AND "
        "event:b::decimal(9,2) < 1.50 AND event:c::double >= 2.5 AND "
        "event:d::binary = X'01FF'"
    },
}

# The paths read as columns, and the columns needed whole, by query; of view `e`.
READS: dict[str, tuple[set[str], set[str]]] = {
    "a path compared": ({"event:kind::string"}, {"n"}),
    "variant_get and try": ({"event:a.b::int", "try_variant_get(event, '$.c', 'date')"}, set()),
    "a path under NOT, OR and IN": ({"event:a::int", "event:b::string"}, {"n"}),
    "LIKE with a prefix, a whole text, a tail": (
        {"event:a::string", "event:b::string", "event:c::string"},
        {"n"},
    ),
    "NULL tests and null-safe equality": ({"event:b::int", "event:a::int", "event:c::int"}, {"n"}),
    "BETWEEN": ({"event:t::bigint"}, {"n"}),
    "a constant folded": (set(), {"n", "day"}),
    "a rand() is unknown": ({"event:a::double"}, {"n"}),
    "a function is unknown": (set(), {"name", "n"}),
    "a boolean path": ({"event:ok::boolean"}, {"n"}),
    "a field of a struct": (set(), {"s", "n"}),
    "a condition above a LIMIT": (set(), {"n"}),
    "a condition above an aggregate": (set(), {"n"}),
    "HAVING": (set(), {"n"}),
    "a condition above a window": (set(), {"n"}),
    "a condition above DISTINCT": (set(), {"n"}),
    "a condition above a UNION": (set(), {"n"}),
    "a condition through a subquery": ({"event:kind::string"}, {"n"}),
    "a condition through a sort": (set(), {"n"}),
    "an inner join": (set(), {"n"}),
    "a left join": (set(), {"n"}),
    "a right join": (set(), {"n"}),
    "a full join": (set(), {"n"}),
    "a semi join": (set(), {"n"}),
    "an anti join": (set(), {"n"}),
    "a cross join": (set(), {"n"}),
    "a CTE read once": (set(), {"n"}),
    "a CTE read twice": (set(), {"n"}),
    "a subquery in WHERE": (set(), {"n"}),
    "EXISTS": (set(), {"n"}),
    "a scalar subquery": (set(), {"n"}),
    "a whole Variant": (set(), {"event"}),
    "a whole Variant and a path": (set(), {"event"}),
    "a path of a path": (set(), {"event"}),
    "a Variant under GROUP BY of its path": ({"event:k::string"}, set()),
    "a path in ORDER BY": ({"event:k::string"}, {"n"}),
    "an unnamed path keeps its name": ({"event:b::int", "event:a::int"}, set()),
    "a Variant in a UNION": (set(), {"event"}),
    "a Variant of a struct": (set(), {"s"}),
    "an alias of a table": ({"event:a::int", "event:b::string"}, set()),
    "a cast of a column": (set(), {"n"}),
    "a cast between strings and numbers": (set(), {"name", "n"}),
    "constants of each kind": (
        {"event:a::timestamp", "event:b::decimal(9,2)", "event:c::double", "event:d::binary"},
        {"n"},
    ),
}


@cache
def query_of(name: str) -> tuple[RuleQuery, dict[str, str]]:
    """A query, and the names that its relations have in it by tables; a second one's is `e2`."""
    found = recorded(name)
    names: dict[str, str] = {}
    for mark, table in found.names.items():
        names[f"{table}2" if table in names else table] = mark
    return RuleQuery.of(found.plan, list(found.names), found.text), names


def test_every_query_has_an_expectation() -> None:
    assert PREDICATES.keys() == READS.keys() == QUERIES.keys()


@pytest.mark.parametrize("name", QUERIES)
def test_conditions_reach_the_tables_whose_rows_they_drop(name: str) -> None:
    query, names = query_of(name)
    found = {table: query.predicates[mark] for table, mark in names.items()}
    got = {table: None if each is None else str(each) for table, each in found.items()}
    assert got == PREDICATES[name]


@pytest.mark.parametrize("name", QUERIES)
def test_paths_are_read_by_their_types_and_other_columns_whole(name: str) -> None:
    query, names = query_of(name)
    use = query.table_use(names["e"])
    assert (set(map(str, use.refs)), set(use.whole)) == READS[name]
