"""Queries that are asked again: the same answers, of the same version, and no more than a few."""

from __future__ import annotations

import copy
from pathlib import Path

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.engine import prepared
from variantlake.errors import InvalidQuery


def table(place: Path) -> vl.Table:
    made = vl.Table.create(place, "n BIGINT, s STRING")
    made.append(pa.table({"n": [1, 2, 3], "s": ["a", "b", "a"]}))
    return vl.Table.open(place)


def test_a_query_that_is_asked_again_gives_the_same(tmp_path: Path) -> None:
    opened = table(tmp_path / "t")
    for text in ("SELECT sum(n) AS n FROM t", "SELECT n FROM t WHERE s = 'a' ORDER BY n LIMIT 1"):
        first = opened.sql(text)
        assert opened.sql(text) is first
        assert opened.sql(text).to_arrow() == first.to_arrow()
    assert opened.sql("SELECT n FROM t WHERE s = 'b'").to_arrow().to_pydict() == {"n": [2]}


def test_a_newer_handle_has_queries_of_its_own(tmp_path: Path) -> None:
    opened = table(tmp_path / "t")
    text = "SELECT count(*) AS n FROM t"
    assert opened.sql(text).to_arrow().to_pydict() == {"n": [3]}
    older = vl.Table(opened.snapshot)
    opened.append(pa.table({"n": [4], "s": ["c"]}))
    assert opened.sql(text).to_arrow().to_pydict() == {"n": [4]}
    assert older.sql(text).to_arrow().to_pydict() == {"n": [3]}


def test_few_queries_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "MOST", 2)
    opened = table(tmp_path / "t")
    texts = [f"SELECT n FROM t WHERE n > {least}" for least in range(3)]
    asked = [opened.sql(text) for text in texts]
    assert opened.sql(texts[2]) is asked[2]
    assert opened.sql(texts[1]) is asked[1]
    assert opened.sql(texts[0]) is not asked[0]


def test_a_query_that_is_refused_is_refused_again(tmp_path: Path) -> None:
    opened = table(tmp_path / "t")
    for _ in range(2):
        with pytest.raises(InvalidQuery, match="nothing"):
            opened.sql("SELECT nothing FROM t")


def test_a_copy_of_a_handle_begins_without_queries() -> None:
    kept = copy.deepcopy(prepared.PreparedQueries())
    assert isinstance(kept, prepared.PreparedQueries)
