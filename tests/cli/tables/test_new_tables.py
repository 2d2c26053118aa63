"""`variantlake create`, `set`, `unset`, `alter`, `info`, `update`, and names of tables."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from functools import partial
from itertools import chain
from pathlib import Path

import pytest

import variantlake as vl
from tests.cli.command import run

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


def test_a_table_from_its_creation_on(tmp_path: Path, monkeypatch: Patch, capfd: Capture) -> None:
    variantlake = partial(run, monkeypatch, capfd)
    table = tmp_path / "t"
    made = variantlake(
        "create", table, "id BIGINT NOT NULL, kind STRING, event VARIANT",
        "--partition-by", "kind", "--shredding", "event=n BIGINT",
        "--set", "delta.enableDeletionVectors=true", "--comment", "for tests",
    )  # fmt: skip
    assert (made.code, made.err) == (0, "")
    again = variantlake("create", table, "--if-not-exists", "--json")
    assert json.loads(again.out)["created"] is False
    assert variantlake("create", table).code == 1
    found = json.loads(variantlake("info", table, "--json").out)
    assert found["partition_columns"] == ["kind"]
    assert found["columns"][0] == {"name": "id", "type": "BIGINT", "nullable": False}
    assert (found["rows"], found["files"], "deletionVectors" in found["features"]) == (0, 0, True)
    changed = variantlake("set", table, "delta.appendOnly=true", "user.team=a=b", "--json")
    version = json.loads(changed.out)["version"]
    assert vl.Table.open(table).properties["user.team"] == "a=b"
    assert variantlake("unset", table, "delta.appendOnly", "--json").code == 0
    shown = variantlake("info", table).out
    assert "user.team" in shown
    assert "delta.appendOnly" not in shown
    assert "delta.appendOnly" in variantlake("info", table, "--version", version).out
    assert variantlake("set", table, "delta.appendOnly").code == 2
    assert variantlake("set", table, "delta.appendOnly=perhaps").code == 1
    assert variantlake("create", table, "--replace", "--if-not-exists").code == 2
    replaced = variantlake("create", table, "n INT", "--replace", "--json")
    assert json.loads(replaced.out)["version"] == vl.Table.open(table).version > version
    assert [each.name for each in vl.Table.open(table).schema.fields] == ["n"]


def test_columns_are_changed(tmp_path: Path, monkeypatch: Patch, capfd: Capture) -> None:
    table = tmp_path / "t"
    vl.Table.create(table, "kind STRING, n INT")
    variantlake = partial(run, monkeypatch, capfd)
    changes = ("ADD COLUMN note STRING FIRST", "ALTER COLUMN n COMMENT 'how many'")
    done = variantlake("alter", table, *changes, "--json")
    assert (done.code, json.loads(done.out)) == (0, {"version": 2})
    refused = variantlake("alter", table, "DROP COLUMN kind")
    assert refused.code == 1
    assert "`variantlake set TABLE delta.columnMapping.mode=name` switches it on" in refused.err
    # A mistake in one leaves all of them out.
    assert variantlake("alter", table, "ADD COLUMN m INT", "DROP n").code == 1
    assert vl.Table.open(table).version == 2
    assert variantlake("set", table, "delta.columnMapping.mode=name").code == 0
    assert variantlake("alter", table, "DROP COLUMN kind", "RENAME COLUMN n TO m").code == 0
    assert [field.name for field in vl.Table.open(table).schema.fields] == ["note", "m"]


def test_rows_are_updated(tmp_path: Path, monkeypatch: Patch, capfd: Capture) -> None:
    source = tmp_path / "a.ndjson"
    source.write_text('{"n": 1}\n{"n": 2}\n')
    table = tmp_path / "t"
    vl.Table.create(table, "kind STRING, event VARIANT").append(vl.ndjson(source))
    variantlake = partial(run, monkeypatch, capfd, "update", table)
    new = ("--set", "kind=x", "--set-sql", "event=variant_set(event, '$.m', 1)")
    change = (*new, "--where", "event:n::int = 2")
    planned = variantlake(*change, "--dry-run")
    assert (planned.code, planned.out.startswith("1 row would be updated")) == (0, True)
    assert json.loads(variantlake(*change, "--json").out)["rows_updated"] == 1
    rows = vl.Table.open(table).scan("kind, event:m::int AS m", "event:n::int = 2").to_pylist()
    assert rows == [{"kind": "x", "m": 1}]
    assert variantlake("--set", "event:flags=[1, true]", "--set", "event:who=Ada").code == 0
    told = vl.Table.open(table).scan("event", "event:n::int = 1").to_pylist()
    assert told == [{"event": {"flags": [1, True], "n": 1, "who": "Ada"}}]
    assert variantlake().code == 2


def test_values_of_columns_are_of_their_types(
    tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    table = tmp_path / "t"
    columns = "id INT, price DECIMAL(6, 2), ok BOOLEAN, day DATE, at TIMESTAMP, x DOUBLE, s STRING"
    vl.Table.create(table, columns).append([{"id": 1}])
    new = ("id=7", "price=1.50", "ok=true", "day=2026-01-31", "at=2026-01-31 12:30", "x=2", "s=3")
    variantlake = partial(run, monkeypatch, capfd, "update", table)
    assert variantlake(*chain.from_iterable(("--set", each) for each in new)).code == 0
    assert vl.Table.open(table).scan().to_pylist() == [
        {
            "id": 7,
            "price": Decimal("1.50"),
            "ok": True,
            "day": dt.date(2026, 1, 31),
            "at": dt.datetime(2026, 1, 31, 12, 30, tzinfo=dt.UTC),
            "x": 2.0,
            "s": "3",
        }
    ]
    wrong = variantlake("--set", "id=seven")
    assert (wrong.code, "id is int" in wrong.err and "--set-sql" in wrong.err) == (2, True)


def test_tables_have_names(tmp_path: Path, monkeypatch: Patch, capfd: Capture) -> None:
    variantlake = partial(run, monkeypatch, capfd)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.delenv("VARIANTLAKE_CONFIG", raising=False)
    vl.Table.create(tmp_path / "lake" / "deep", "event VARIANT")
    (tmp_path / "variantlake.toml").write_text('[tables]\nevents = "lake/deep"\n')
    found = variantlake("info", "events", "--json")
    assert json.loads(found.out)["location"] == str(tmp_path / "lake" / "deep")
    assert variantlake("info", "./events").code == 1
    for name in ("t", "deep", "Events"):
        counted = variantlake("query", "events", f"SELECT count(*) AS n FROM {name}", "--json")
        assert (counted.code, counted.out) == (0, '{"n":0}\n')
    (tmp_path / "other.toml").write_text('[table]\nevents = "x"\n')
    monkeypatch.setenv("VARIANTLAKE_CONFIG", str(tmp_path / "other.toml"))
    wrong = variantlake("info", "events")
    assert (wrong.code, "'table' is not a section" in wrong.err) == (1, True)
    (tmp_path / "other.toml").write_text("[tables\n")


def test_rows_of_a_table_are_chosen_and_counted(
    tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    table = tmp_path / "t"
    feed = {"delta.enableChangeDataFeed": "true"}
    vl.Table.create(table, "n BIGINT", properties=feed).append([{"n": n} for n in range(5)])
    variantlake = partial(run, monkeypatch, capfd)
    assert variantlake("cat", table, "--column", "n", "--where", "n > 2").out == "3\n4\n"
    in_csv = variantlake("cat", table, "--where", "n > 2", "--output-format", "csv").out
    assert in_csv.count("\n") == 3
    assert variantlake("cat", table, "--where", "nope > 2").code == 1
    file = next(table.glob("*.parquet"))
    assert variantlake("cat", file, "--where", "n > 2").code == 2
    for limit in (0, 2):
        shown = variantlake("changes", table, "--from", "1", "--limit", str(limit), "--json").out
        assert shown.count("\n") == limit
