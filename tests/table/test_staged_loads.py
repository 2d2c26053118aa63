"""Staged loads: invisible, checked, published once or dropped."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.ingest.stage import Stage
from variantlake.storage.store import LocalStore
from variantlake.writing.commit_files import commit_files
from variantlake.writing.staged_files import FOLDER, publish_stage

ROWS = pa.table({"event": ['{"a": 1}', '{"a": 2}', '{"a": -3}'], "k": ["x", "y", "x"]})


@pytest.fixture
def table(tmp_path: Path) -> vl.Table:
    return vl.Table.create(tmp_path / "t", "event VARIANT, k STRING", partition_by="k")


def _stage(table: vl.Table, **options: str) -> Stage:
    return table.stage(ROWS, json_columns=["event"], **options)  # type: ignore[arg-type]  # load_id


def _values(rows: vl.Table | Stage) -> list[int]:
    found = rows.scan(["event:a::int AS a"]).to_arrow().sort_by("a")["a"].to_pylist()
    return [number for number in found if number is not None]


def test_staged_rows_are_seen_once_they_are_published(table: vl.Table) -> None:
    stage = _stage(table)
    assert (stage.rows, stage.files) == (3, 2)
    assert (table.version, table.refresh().version, _values(table)) == (0, 0, [])
    assert _values(stage) == [-3, 1, 2]
    assert stage.scan(where="k = 'y'").to_arrow().num_rows == 1
    assert stage.scan("k", limit=2).count() == 2
    assert stage.check("event:a::int < 5", "k IS NOT NULL") == 3
    with pytest.raises(vl.InvalidValue, match=r"1 row of the staged load .* does not fulfil"):
        stage.check("event:a::int > 0")
    table.append(ROWS.slice(0, 1), json_columns=["event"])  # others go on meanwhile
    done = stage.publish()
    assert (done.version, done.rows_written, done.files_written) == (2, 3, 2)
    assert _values(table.refresh()) == [-3, 1, 1, 2]
    again = pickle.loads(pickle.dumps(stage)).publish()  # noqa: S301 - our own bytes
    assert (again.version, again.already_loaded) == (2, True)
    assert table.refresh().version == 2
    assert table.stages() == []
    with pytest.raises(vl.InvalidValue, match="was published as version 2"):
        stage.drop()


def test_the_first_rows_bring_the_schema_that_they_are_shredded_by(table: vl.Table) -> None:
    _stage(table).publish()
    assert any(name.startswith("variantlake.shredding.") for name in table.refresh().properties)


def test_a_dropped_load_leaves_nothing(table: vl.Table) -> None:
    stage = _stage(table)
    assert stage.drop() == 2
    for path in Path(table.uri).rglob("*"):
        os.utime(path, (0, 0))
    assert table.vacuum(0, force=True).files_unneeded == 2
    assert not list(Path(table.uri).rglob("*.parquet"))
    assert not list(Path(table.uri).rglob("*.jsonl"))
    for use in (stage.publish, stage.scan, stage.drop):
        with pytest.raises(vl.MissingSource, match=r"no load .* is staged"):
            use()


def test_a_load_that_is_dropped_while_it_is_published_is_whole(
    table: vl.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = _stage(table)

    def dropped_first(*given: Any, **named: Any) -> Any:
        stage.drop()
        return commit_files(*given, **named)

    monkeypatch.setattr("variantlake.writing.staged_files.commit_files", dropped_first)
    stage.publish()
    assert len(_values(table.refresh())) == 3


def test_another_process_finds_a_staged_load_by_its_id(table: vl.Table) -> None:
    stage = _stage(table, load_id="day/2026-11-26")
    assert vl.Table.open(table.uri).stages() == [stage]
    with pytest.raises(vl.InvalidValue, match="is staged already"):
        _stage(table, load_id="day/2026-11-26")
    assert len(list(Path(table.uri).rglob("*.parquet"))) == 2
    vl.Table.open(table.uri).stages()[0].publish()
    with pytest.raises(vl.InvalidValue, match="was published as version 1"):
        _stage(table, load_id="day/2026-11-26")


def test_vacuum_keeps_staged_files(table: vl.Table) -> None:
    stage = _stage(table)
    for path in Path(table.uri).rglob("*"):
        os.utime(path, (0, 0))
    assert table.vacuum(0, force=True).files_unneeded == 0
    stage.publish()
    assert len(_values(table.refresh())) == 3


def test_a_table_with_another_schema_takes_no_staged_rows(table: vl.Table) -> None:
    stage = _stage(table)
    table.append(pa.table({"event": ["{}"], "new": [1]}), json_columns=["event"], merge_schema=True)
    with pytest.raises(vl.CommitConflict, match="schema of the table changed"):
        stage.publish()
    assert stage.drop() == 2
    with pytest.raises(vl.InvalidValue, match="cannot add columns"):
        table.stage(ROWS, json_columns=["event"], merge_schema=True)


def test_a_load_whose_files_are_gone_is_not_published(table: vl.Table) -> None:
    stage = _stage(table, load_id="a")
    next(Path(table.uri).rglob("*.parquet")).unlink()
    with pytest.raises(vl.MissingSource, match="a file of the staged load 'a' is not there"):
        stage.publish()
    assert table.refresh().version == 0


def test_a_load_of_an_older_contract_is_not_published(table: vl.Table) -> None:
    stage = _stage(table)
    table.set_contract({"properties": {"a": {"minimum": 0}}})
    with pytest.raises(vl.CommitConflict, match="the contract of the table changed"):
        stage.publish()


def test_documents_are_staged_as_well(tmp_path: Path) -> None:
    (tmp_path / "rows.ndjson").write_text('{"a": 1}\n{"a": 2}\n')
    table = vl.Table.create(tmp_path / "t", "event VARIANT")
    stage = table.stage(tmp_path / "rows.ndjson")
    assert _values(stage) == [1, 2]
    stage.publish()
    assert _values(table.refresh()) == [1, 2]


def test_row_ids_are_given_out_when_rows_are_published(tmp_path: Path) -> None:
    properties = {"delta.enableRowTracking": "true"}
    table = vl.Table.create(tmp_path / "t", "n INT", properties=properties)
    rows = pa.table({"n": pa.array([1, 2], pa.int32())})
    stage = table.stage(rows)
    table.append(rows)
    stage.publish()
    assert set(table.refresh().files()["base_row_id"].to_pylist()) == {0, 2}


def test_numbers_of_an_identity_column_are_given_out_once(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "id BIGINT GENERATED ALWAYS AS IDENTITY, n INT")
    rows = pa.table({"n": pa.array([1, 2], pa.int32())})
    first, second = table.stage(rows), table.stage(rows)
    first.publish()
    with pytest.raises(vl.CommitConflict, match="schema of the table changed"):
        second.publish()
    assert second.drop() == 1
    table.append(rows)
    numbered = table.refresh().scan("id").to_arrow().sort_by("id")
    assert numbered["id"].to_pylist() == [1, 2, 3, 4]


def test_shredded_files_are_not_published_to_a_table_that_forbids_them(table: vl.Table) -> None:
    stage = _stage(table)
    table.unshred()
    with pytest.raises(vl.CommitConflict, match=r"property delta\.enableVariantShredding"):
        stage.publish()


def test_no_rows_are_no_load(table: vl.Table) -> None:
    with pytest.raises(vl.InvalidValue, match="no rows to stage"):
        table.stage(ROWS.slice(0, 0), json_columns=["event"])
    bad = pa.table({"event": ["nope", "{"]})
    with pytest.raises(vl.InvalidValue, match="no rows to stage: all 2 are bad") as caught:
        table.stage(bad, json_columns=["event"], mode="quarantine")
    assert "mode='strict'" in caught.value.hint
    assert table.stages() == []


def test_a_stage_whose_put_was_answered_twice_stands(
    table: vl.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client repeats a put whose answer was lost, and hears that the file is there: its own."""
    put = LocalStore.put_if_absent

    def answer_twice(store: LocalStore, path: str, data: bytes) -> bool:
        return put(store, path, data) and not path.startswith(FOLDER)

    monkeypatch.setattr(LocalStore, "put_if_absent", answer_twice)
    stage = _stage(table)
    assert stage.scan().count() == 3
    assert stage.publish().rows_written == 3
    assert _values(table.refresh()) == [-3, 1, 2]


def test_of_two_that_publish_at_once_the_second_finds_the_first(
    table: vl.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seed 145 of the simulation with 1,000 actors: the file was gone, the rows were there."""
    stage = _stage(table)
    newest = table.snapshot.refresh()  # what the second one has read
    first = stage.publish()
    monkeypatch.setattr(Stage, "_newest", lambda _self: newest)
    second = stage.publish()
    assert (second.version, second.already_loaded) == (first.version, True)
    assert _values(table.refresh()) == [-3, 1, 2]
    _stage(table, load_id="dropped").drop()
    with pytest.raises(vl.MissingSource, match="no load 'dropped' is staged"):
        publish_stage(newest, "dropped")
