"""Splices of SQL text."""

from __future__ import annotations

import pytest

from variantlake.quoting import quote_identifier, quote_string
from variantlake.sql.splice import Splice, splice, with_origins


def test_what_is_not_changed_stays_as_it_was_written() -> None:
    text = "SELECT  'it''s', event:a -- 😀\nFROM t"
    changes = [Splice(17, 24, "e.p"), Splice(35, 36, "v"), Splice(36, 36, " AS t")]
    assert splice(text, changes) == "SELECT  'it''s', e.p -- 😀\nFROM v AS t"


def test_equal_changes_are_made_once() -> None:
    assert splice("abc", [Splice(1, 2, "x"), Splice(1, 2, "x")]) == "axc"


def test_overlapping_changes_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap at 1"):
        splice("abcd", [Splice(0, 2, "x"), Splice(1, 3, "y")])


def test_quotes_are_escaped() -> None:
    assert quote_identifier("a`b") == "`a``b`"
    assert quote_string("it's \\") == r"'it\'s \\'"


def test_positions_of_a_message_are_those_of_the_text() -> None:
    text = "SELECT x\nFROM delta.`/a` JOIN t\nON nope"
    start = text.index("delta")
    changes = [Splice(start, start + 10, "global_temp.a_long_name AS `a`")]
    rewritten = splice(text, changes)
    for word in ("SELECT", "JOIN", "t\n", "nope"):
        before = rewritten[: rewritten.index(word)]
        place = (before.count("\n") + 1, len(before) - before.rfind("\n") - 1)
        before = text[: text.index(word)]
        wanted = (before.count("\n") + 1, len(before) - before.rfind("\n") - 1)
        for form in ("[X] y; line {} pos {}", "(line {}, pos {})"):
            assert with_origins(form.format(*place), text, changes) == form.format(*wanted)
    assert with_origins("line 2 pos 12", text, changes) == "line 2 pos 5"
