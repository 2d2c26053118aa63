"""Statements that are not queries: what is to be done instead, by surface."""

from __future__ import annotations

import pytest

from variantlake.sql.statements import not_a_query


@pytest.mark.parametrize(
    ("text", "name", "python", "shell"),
    [
        ("DELETE FROM t", "DELETE", "lake.delete", "variantlake delete"),
        ("-- gone\n /* x */ delete from t", "DELETE", "lake.delete", "variantlake delete"),
        ("OPTIMIZE t", "OPTIMIZE", "Table.optimize", "variantlake optimize"),
        ("vacuum t", "VACUUM", "Table.vacuum", "variantlake vacuum"),
        ("RESTORE t TO VERSION AS OF 1", "RESTORE", "Table.restore", "variantlake restore"),
        ("INSERT INTO t VALUES (1)", "INSERT", "lake.append", "variantlake ingest"),
        ("DESCRIBE HISTORY t", "DESCRIBE HISTORY", "Table.history", "variantlake history"),
        ("describe t", "DESCRIBE", "schema", "variantlake info"),
        ("SHOW TABLES", "SHOW", "Table.open", "variantlake info"),
    ],
)
def test_what_is_no_query_says_what_to_do(text: str, name: str, python: str, shell: str) -> None:
    error = not_a_query(text)
    assert error is not None
    assert error.message.startswith(f"{name} is not supported")
    assert python in error.hint
    assert shell in (error.cli_hint or "")


def test_many_comments_take_no_time_to_pass() -> None:
    # With a choice for each comment this would be 2 ** 64 attempts.
    assert not_a_query("/**/" * 64 + "1") is None


@pytest.mark.parametrize(
    "text",
    ["SELECT 1", "(SELECT 1)", "WITH a AS (SELECT 1) TABLE a", "-- DELETE\nSELECT 1", ""],
)
def test_queries_are_queries(text: str) -> None:
    assert not_a_query(text) is None
