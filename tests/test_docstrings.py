"""The examples in docstrings of what people use most run, each on a table of its own."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import pytest

import variantlake as vl
from variantlake.scan.arrow_stream import ArrowStream

ROWS = [{"id": 1, "event": {"kind": "a", "n": 1}}, {"id": 2, "event": {"kind": "b", "n": 2}}]
PLACES: tuple[Any, ...] = (vl.Table, vl.Variant, ArrowStream, vl.Progress)
FUNCTIONS: tuple[Any, ...] = (vl.parse_json, vl.col, vl.path, vl.expr, vl.profile, vl.ndjson)


def examples() -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder()
    found = [
        test
        for place in (*PLACES, *FUNCTIONS)
        for test in finder.find(place, place.__name__, globs={})
    ]
    return [test for test in found if test.examples]


def test_the_names_that_people_use_have_an_example() -> None:
    assert len(examples()) >= 40


@pytest.mark.parametrize("test", examples(), ids=lambda test: str(test.name))
def test_an_example_runs(
    test: doctest.DocTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = vl.Table.create("t", "id BIGINT, event VARIANT")
    table.append(ROWS)
    Path("more.ndjson").write_text('{"kind": "c"}\n')
    test.globs = {name: getattr(vl, name) for name in vl.__all__} | {"vl": vl, "t": table}
    assert doctest.DocTestRunner().run(test).failed == 0
