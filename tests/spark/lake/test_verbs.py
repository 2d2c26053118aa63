"""`Table` and `Lake` have the same verbs, with the same keywords."""

from __future__ import annotations

import inspect

import pytest

import variantlake as vl

pytest.importorskip("pyspark")

from variantlake.spark.lake.lake import Lake

OTHERS = {
    # The table is the handle of the one, and an argument of the other.
    "append": {"shredding", "properties"},
    # A text for Spark may change rows.
    "sql": {"engine", "args", "commit_properties"},
    # Spark's MERGE takes a source by its name in the text, and reads it by Spark's own settings.
    "merge": {"json_columns", "tables", "storage_options"},
    "merge_builder": {"json_columns", "tables", "storage_options"},
}
"""Parameters that only one of the two has."""


def parameters(kind: type, name: str) -> list[str]:
    found = inspect.signature(getattr(kind, name)).parameters
    return [each for each in found if each not in {"self", "cls", "table", "location"}]


def shared() -> list[str]:
    return sorted(
        name
        for name in vars(Lake).keys() & vars(vl.Table).keys()
        if not name.startswith("_") and callable(getattr(Lake, name))
    )


def test_most_verbs_are_those_of_both() -> None:
    assert len(shared()) >= 20


@pytest.mark.parametrize("name", shared())
def test_a_verb_has_the_same_keywords(name: str) -> None:
    own, other = parameters(vl.Table, name), parameters(Lake, name)
    assert set(own) ^ set(other) <= OTHERS.get(name, set())
    # What both have stands in the same order, and is a keyword of both or of neither.
    assert [each for each in own if each in other] == [each for each in other if each in own]
    for each in set(own) & set(other):
        kinds = {
            inspect.signature(getattr(k, name)).parameters[each].kind for k in (vl.Table, Lake)
        }
        assert len(kinds) == 1, each
