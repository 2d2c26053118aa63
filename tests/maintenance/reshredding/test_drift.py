"""What a report says of residuals and of new columns."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import variantlake as vl
from tests.cli.command import run
from variantlake.errors import InvalidSchema
from variantlake.maintenance.reshredding import drift as module


@pytest.fixture
def table(tmp_path: Path) -> vl.Table:
    """A table whose later documents have a new path, and another type at an old one."""
    never = {"variantlake.maxResidualShare": "1"}
    table = vl.Table.create(tmp_path / "t", "event VARIANT, n INT", properties=never)
    old = [{"kind": "a", "ts": i} for i in range(200)]
    new = [{"kind": "a", "ts": f"{i}", "price": i * 7919 % 1000} for i in range(200)]
    for number, docs in enumerate([old, new, new]):
        source = tmp_path / f"{number}.ndjson"
        source.write_text("".join(json.dumps(doc) + "\n" for doc in docs))
        table.append(vl.ndjson(str(source)))
    return table.refresh()


def test_residuals_are_told_by_version_and_path(table: vl.Table) -> None:
    report = table.drift()
    assert [(each.first_version, each.last_version) for each in report.versions] == [
        (1, 1),
        (2, 2),
        (3, 3),
    ]
    first, second, _ = ({p.path: p for p in each.paths} for each in report.versions)
    assert first["$['ts']"].residual_rows == 0
    assert second["$['ts']"].residual_rows == second["$"].residual_rows == 200
    assert second["$['kind']"].residual_rows == 0
    assert report.versions[0].residual_share < report.versions[1].residual_share


def test_new_columns_are_those_that_inference_would_make(table: vl.Table) -> None:
    (column,) = table.drift("event").columns
    assert column.shredding == "kind STRING, ts BIGINT"
    assert column.proposed == "kind STRING, price BIGINT, ts STRING"
    found = {new.path: new for new in column.new_columns}
    assert set(found) == {"$['price']", "$['ts']"}
    assert found["$['price']"].type == "BIGINT"
    assert found["$['price']"].saves_bytes > 0


def test_tiny_tables_are_not_to_be_rewritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    made = vl.Table.create(tmp_path / "t", "event VARIANT", shredding={"event": "kind STRING"})
    said = {}
    for rows in (10, 2000):
        docs = pa.table({"event": [f'{{"kind": "a", "ts": {n}}}' for n in range(rows)]})
        made.overwrite(docs, json_columns=["event"])
        (column,) = made.refresh().drift().columns
        shown = run(monkeypatch, capfd, "drift", made.uri).out
        said[rows] = (column.pays_off, column.bytes_ratio > 1, "not worth a rewrite yet" in shown)
    assert said == {10: (False, True, True), 2000: (True, False, False)}


def test_many_versions_share_groups_and_few_footers_are_read(
    table: vl.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_GROUPS", 2)
    monkeypatch.setattr(module, "MAX_FILES", 2)
    seen: list[vl.Progress] = []
    report = table.drift(progress=seen.append)
    assert [(e.first_version, e.last_version, e.files, e.examined) for e in report.versions] == [
        (1, 2, 2, 1),
        (3, 3, 1, 1),
    ]
    assert [(at.done, at.total) for at in seen] == [(n, 5) for n in range(1, 6)]


def test_a_table_without_files_or_drift_has_nothing_to_report(tmp_path: Path) -> None:
    empty = vl.Table.create(tmp_path / "t", "event VARIANT").drift()
    assert empty.versions == ()
    assert empty.columns[0].new_columns == ()


def test_a_column_that_is_no_variant_is_named(table: vl.Table) -> None:
    with pytest.raises(InvalidSchema, match="no VARIANT column 'n'"):
        table.drift("n")


def test_the_command_prints_the_report(
    table: vl.Table, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    done = run(monkeypatch, capfd, "drift", table.uri, "--json")
    document = json.loads(done.out)
    assert [each["first_version"] for each in document["versions"]] == [1, 2, 3]
    assert document["columns"][0]["new_columns"][0]["path"] == "$['price']"
    shown = run(monkeypatch, capfd, "drift", table.uri, "--column", "event")
    assert "version 2: 1 file," in shown.out
    assert "$['price']" in shown.out
