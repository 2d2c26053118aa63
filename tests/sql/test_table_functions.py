"""Calls of table_changes in a text."""

from __future__ import annotations

import pytest

from variantlake.sql.table_functions import TableChanges, table_changes_in


@pytest.mark.parametrize(
    ("call", "first", "last"),
    [
        ("table_changes('a.t', 0)", "0", None),
        ("TABLE_CHANGES( 'a.t' , 2, 5 )", "2", "5"),
        ("table_changes_by_path('a.t', 1 + 1)", "1 + 1", None),
        (
            "table_changes('a.t', '2024-01-01 00:00:00', date_sub(now(), 1))",
            "'2024-01-01 00:00:00'",
            "date_sub(now(), 1)",
        ),
    ],
)
def test_calls_are_taken_apart(call: str, first: object, last: object) -> None:
    text = f"SELECT * FROM {call} AS c JOIN {call} d USING (id)"
    one, two = table_changes_in(text)
    assert isinstance(one, TableChanges)
    assert (one.table, one.first, one.last) == ("a.t", first, last)
    assert [text[slice(*each.span)] for each in (one, two)] == [call, call]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT table_changes FROM t",
        "SELECT * FROM table_changes",
        "SELECT * FROM table_changes(t, 0)",
        "SELECT * FROM table_changes('t')",
        "SELECT * FROM table_changes('t', 1, 2, 3)",
        "SELECT * FROM table_changes('t', 1",
        "SELECT 'table_changes(1)'",
    ],
)
def test_what_is_none_is_left_alone(text: str) -> None:
    assert table_changes_in(text) == []
