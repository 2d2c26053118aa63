"""DELETE, UPDATE and MERGE taken apart by their tokens."""

from __future__ import annotations

import pytest

from variantlake.sql.changes import (
    STAR,
    Clause,
    DeleteText,
    MergeText,
    Named,
    UpdateText,
    change_text,
    conjuncts,
    has_star,
    parse_change,
    parse_clauses,
)


def test_delete() -> None:
    assert parse_change("delete from delta.`/a b` as t where t.`where` = 1;") == DeleteText(
        Named("delta.`/a b`", "t"), "t.`where` = 1"
    )
    assert parse_change("DELETE FROM db.events") == DeleteText(Named("db.events", "events"), None)


def test_update() -> None:
    text = (
        "UPDATE t SET a = CASE WHEN x = 1 THEN 'set, where' ELSE (b) END, t.`c d` = f(1, 2) "
        "WHERE event:k[0]::string = 'x'"
    )
    assert parse_change(text) == UpdateText(
        Named("t", "t"),
        (
            ("a", "CASE WHEN x = 1 THEN 'set, where' ELSE (b) END"),
            ("t.`c d`", "f(1, 2)"),
        ),
        "event:k[0]::string = 'x'",
    )


def test_merge() -> None:
    text = """
        MERGE INTO delta.`/t` t USING (SELECT * FROM s WHERE a IN (1, 2)) AS s
        ON t.id = s.id AND CASE WHEN s.x THEN true END
        WHEN MATCHED AND CASE WHEN s.gone THEN true ELSE false END THEN DELETE
        WHEN MATCHED THEN UPDATE SET a = s.a, b = t.b + 1
        WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.id, coalesce(s.a, (1)))
        WHEN NOT MATCHED BY TARGET AND s.z > 1 THEN INSERT *
        WHEN NOT MATCHED BY SOURCE AND t.old THEN UPDATE SET a = NULL
        WHEN NOT MATCHED BY SOURCE THEN DELETE
    """
    found = parse_change(text)
    assert isinstance(found, MergeText)
    assert parse_change(change_text(found)) == found
    assert found.target == Named("delta.`/t`", "t")
    assert found.source == Named("(SELECT * FROM s WHERE a IN (1, 2))", "s")
    assert found.on == "t.id = s.id AND CASE WHEN s.x THEN true END"
    assert found.clauses == (
        Clause("matched", "CASE WHEN s.gone THEN true ELSE false END", "delete"),
        Clause("matched", None, "update", (("a", "s.a"), ("b", "t.b + 1"))),
        Clause("not matched", None, "insert", (("id", "s.id"), ("a", "coalesce(s.a, (1))"))),
        Clause("not matched", "s.z > 1", "insert", STAR),
        Clause("not matched by source", "t.old", "update", (("a", "NULL"),)),
        Clause("not matched by source", None, "delete"),
    )


def test_words_of_clauses_are_names_behind_a_dot() -> None:
    assert parse_change("UPDATE t SET a = s.where, b = event:set::int WHERE t.where = 1") == (
        UpdateText(Named("t", "t"), (("a", "s.where"), ("b", "event:set::int")), "t.where = 1")
    )
    found = parse_change("MERGE INTO t USING s ON t.when = s.when WHEN MATCHED THEN DELETE")
    assert isinstance(found, MergeText)
    assert found.on == "t.when = s.when"


def test_words_of_case_are_names_elsewhere() -> None:
    assert parse_change("UPDATE t SET a = s.end, b = event:case::int, end = 1 WHERE c") == (
        UpdateText(Named("t", "t"), (("a", "s.end"), ("b", "event:case::int"), ("end", "1")), "c")
    )
    within = "CASE WHEN span.end > 1 THEN 2 END"
    assert parse_change(f"UPDATE t SET a = {within}, b = 2") == UpdateText(
        Named("t", "t"), (("a", within), ("b", "2")), None
    )
    found = parse_change(
        "MERGE INTO t USING s ON t.end = s.end WHEN MATCHED THEN UPDATE SET a = s.end, b = s.b"
    )
    assert isinstance(found, MergeText)
    assert found.clauses == (Clause("matched", None, "update", (("a", "s.end"), ("b", "s.b"))),)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "DELETE FROM t AS",
        "DELETE FROM a.",
        "UPDATE t SET a = CASE WHEN b THEN 1, c = 2 WHERE d",
        "UPDATE t SET a = case + 1, b = 2",
        "UPDATE t SET a = (1, b = 2 WHERE c",
        "UPDATE t SET a = 1), b = (2",
        "DELETE t",
        "DELETE FROM a b c",
        "UPDATE t SET",
        "UPDATE t SET a",
        "MERGE INTO t USING s ON a",
        "MERGE INTO t USING s ON a WHEN MATCHED THEN INSERT *",
        "MERGE INTO t USING s ON a WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)",
        "",
    ],
)
def test_other_texts_are_left_to_spark(text: str) -> None:
    assert parse_change(text) is None


def test_clauses_alone() -> None:
    assert parse_clauses("WHEN MATCHED THEN DELETE") == (Clause("matched", None, "delete"),)
    assert parse_clauses("WHEN MATCHED THEN DELETE or so") is None


def test_schema_evolution() -> None:
    text = "MERGE WITH SCHEMA EVOLUTION INTO t AS `t` USING s AS `s` ON a WHEN MATCHED THEN DELETE"
    parsed = parse_change(text)
    assert isinstance(parsed, MergeText)
    assert parsed.evolves
    assert change_text(parsed) == text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a = 1", ("a = 1",)),
        ("a AND b", ("a", "b")),
        ("((a AND (b OR c)) )", ("a", "(b OR c)")),
        ("a OR b AND c", ("a OR b AND c",)),
        ("x BETWEEN 1 AND 2 AND y", ("x BETWEEN 1 AND 2", "y")),
        ("(a) AND NOT (b)", ("(a)", "NOT (b)")),
        ("CASE WHEN a AND b THEN c END AND t.`and`", ("CASE WHEN a AND b THEN c END", "t.`and`")),
    ],
)
def test_conjuncts(text: str, parts: tuple[str, ...]) -> None:
    assert conjuncts(text) == parts


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("to_json(struct(*))", True),
        ("struct(s.*)", True),
        ("*", True),
        ("a * b", False),
        ("f(a) * (b)", False),
        ("(SELECT count(*) FROM s)", False),
        ("x IN (SELECT * FROM s) AND hash(t.*) = 1", True),
        ("'*'", False),
    ],
)
def test_stars_of_an_expression(text: str, found: bool) -> None:
    assert has_star(text) == found


def test_clauses_have_an_order() -> None:
    assert parse_clauses("WHEN NOT MATCHED THEN INSERT * WHEN MATCHED THEN DELETE") is None
    assert (
        parse_clauses("WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED THEN INSERT *")
        is None
    )


def test_a_merge_with_tables_of_its_own() -> None:
    text = "WITH q AS (SELECT 1 AS a) MERGE INTO t USING q ON t.a = q.a WHEN MATCHED THEN DELETE"
    found = parse_change(text)
    assert isinstance(found, MergeText)
    assert found.source == Named("(WITH q AS (SELECT 1 AS a) SELECT * FROM q)", "q")
    assert parse_change("WITH q AS (SELECT 1 AS a) SELECT * FROM q") is None
