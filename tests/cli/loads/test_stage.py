"""`variantlake stage`: loads that are written first and published later."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

import variantlake as vl
from tests.cli.command import run


def test_a_load_is_staged_looked_at_and_published_or_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    variantlake = partial(run, monkeypatch, capfd)
    table = vl.Table.create(tmp_path / "t", "event VARIANT")
    source = tmp_path / "a.ndjson"
    source.write_text('{"n": 1}\n{"n": 2}\n')
    staged = json.loads(variantlake("stage", table.uri, "one", "--load", source, "--json").out)
    assert (staged["id"], staged["rows"]) == ("one", 2)
    assert table.refresh().scan().count() == 0
    (listed,) = json.loads(variantlake("stage", table.uri, "--json").out)
    assert listed == staged
    assert "one" in variantlake("stage", table.uri).out
    failed = variantlake("stage", table.uri, "one", "--check", "event:n::int > 1", "--publish")
    assert (failed.code, table.refresh().version) == (1, 0)
    assert "1 row of the staged load" in failed.err
    done = variantlake("stage", table.uri, "one", "--check", "event:n::int > 0", "--publish")
    assert (done.code, table.refresh().scan().count()) == (0, 2)
    assert variantlake("stage", table.uri, "one", "--drop").code == 1
    variantlake("stage", table.uri, "two", "--load", source)
    dropped = json.loads(variantlake("stage", table.uri, "two", "--drop", "--json").out)
    assert dropped["files_dropped"] == 1
    assert table.refresh().stages() == []
    assert variantlake("stage", table.uri, "--publish").code == 2
    assert variantlake("stage", table.uri, "two", "--publish", "--drop").code == 2
