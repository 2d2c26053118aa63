"""Each file of a growing source is in the table once, whatever happens to files in between."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import os
import threading
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import variantlake as vl
from tests.autoloading.sources import ids, put, states
from tests.corpora import library
from tests.telemetry.exposition import samples
from variantlake.autoloading import auto_compact, autoloader, batch, discover
from variantlake.autoloading.autoloader import Autoloader, AutoloadResult
from variantlake.autoloading.listing import LocalFolder
from variantlake.errors import InvalidValue, MissingSource, StoreFailed
from variantlake.ingest.commit_load import commit_load
from variantlake.ingest.load import plan_load


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    put(folder / "a.json", 1, 2)
    put(folder / "b.json", 3)
    put(folder / "sub" / "c.json", 4)
    return folder


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def load(source: Path | str, table: Path, **options: Any) -> AutoloadResult:
    return vl.autoload(table, source, **options)


def test_only_what_is_new_is_loaded(source: Path, table: Path) -> None:
    first = load(source, table)
    assert (first.version, first.files_read, first.rows_written, first.batches) == (0, 3, 4, 1)
    nothing = load(source, table)
    assert (nothing.version, nothing.batches) == (None, 0)
    put(source / "0.json", 5)
    put(source / "d.json", 6)
    assert load(source, table).files_read == 2
    assert ids(table) == [1, 2, 3, 4, 5, 6]


def test_the_log_says_what_became_of_each_file(source: Path, table: Path) -> None:
    put(source / "e.json", data=b"")
    put(source / "f.json.gz", data=gzip.compress(b'{"id": 9}\n')[:-5])
    put(source / "g.json", data=b'{"id": 7}\n{"id": \n')
    result = load(source, table, max_files=2)
    assert (result.files_read, result.files_empty, result.files_failed) == (3, 1, 2)
    rows = {row["file"]: row for row in vl.Table.open(table).loads().to_pylist()}
    assert {name: row["state"] for name, row in rows.items()} == {
        "a.json": "loaded",
        "b.json": "loaded",
        "e.json": "empty",
        "f.json.gz": "failed",
        "g.json": "failed",
        "sub/c.json": "loaded",
    }
    assert [rows[name]["version"] for name in ("a.json", "b.json", "sub/c.json")] == [0, 0, 2]
    assert rows["a.json"]["rows"] == 2
    assert "line 2" in rows["g.json"]["error"]
    assert ids(table) == [1, 2, 3, 4]


def test_a_failed_file_is_tried_again_once_it_changed_or_by_command(
    source: Path, table: Path
) -> None:
    bad = put(source / "g.json", data=b'{"id": 7}\n{"id"')
    load(source, table)
    assert load(source, table).batches == 0
    assert vl.Table.open(table).retry_loads(file="*.json").files_retried == 1
    assert load(source, table).files_failed == 1
    put(bad, 7, 8)
    assert load(source, table).files_read == 1
    assert ids(table) == [1, 2, 3, 4, 7, 8]
    assert states(table)["g.json"] == "loaded"


def test_an_empty_file_is_loaded_once_it_holds_a_document(source: Path, table: Path) -> None:
    put(source / "e.json", data=b"\n\n")
    load(source, table, after="delete")
    assert (source / "e.json").exists(), "somebody may be about to write to it"
    put(source / "e.json", 5)
    load(source, table)
    assert ids(table) == [1, 2, 3, 4, 5]


def test_a_source_of_bad_files_alone_is_recorded(tmp_path: Path, table: Path) -> None:
    put(tmp_path / "in" / "a.json", data=b"{")
    assert load(tmp_path / "in", table).files_failed == 1
    assert states(table) == {"a.json": "failed"}
    put(tmp_path / "in" / "a.json", 1)
    load(tmp_path / "in", table)
    assert ids(table) == [1]


def test_batches_are_bounded_by_files_and_bytes(source: Path, table: Path) -> None:
    size = (source / "b.json").stat().st_size
    assert load(source, table, max_files=1).batches == 3
    for number in range(6):
        put(source / f"d{number}.json", 10 + number)
    assert load(source, table, max_bytes=3 * size + 3).batches == 2
    assert vl.Table.open(table).loads()["version"].to_pylist() == [0, 1, 3, 3, 3, 4, 4, 4, 2]


@pytest.mark.parametrize("on_change", ["ignore", "reload", "error"])
def test_a_changed_file_does_what_was_asked_for(source: Path, table: Path, on_change: str) -> None:
    load(source, table)
    put(source / "b.json", 3, 30, age=30)
    if on_change == "error":
        with pytest.raises(InvalidValue, match="written again") as raised:
            load(source, table, on_change=on_change)
        assert raised.value.file.endswith("b.json")
    else:
        load(source, table, on_change=on_change)
        load(source, table, on_change=on_change)
    assert ids(table) == ([1, 2, 3, 3, 4, 30] if on_change == "reload" else [1, 2, 3, 4])


def test_files_that_were_written_again_are_counted_and_said(
    source: Path, table: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    figures = tmp_path / "figures.prom"
    loader = Autoloader(source, table)
    assert loader.once().files_changed == 0
    put(source / "b.json", 3, 30, age=30)
    put(source / "a.json", 1, 2, age=30)
    assert [loader.once().files_changed for _ in range(2)] == [2, 2]
    said = [record.getMessage() for record in caplog.records if "again" in record.getMessage()]
    assert len(said) == 1  # not in each round
    assert "files 2, the first" in said[0]
    assert "a.json" in said[0]
    library("prometheus_client")
    assert load(source, table, metrics_file=figures).files_changed == 2
    assert 'changed_files{name="' in figures.read_text()
    assert figures.read_text().splitlines()[-1].endswith(" 2.0")
    assert ids(table) == [1, 2, 3, 4]


def test_a_file_that_was_too_old_is_loaded_once_it_is_written_again(
    source: Path, table: Path
) -> None:
    put(source / "old.json", 9, age=1000)
    since = dt.datetime.fromtimestamp(time.time() - 500, dt.UTC)
    assert load(source, table, since=since).files_skipped == 1
    put(source / "old.json", 10, age=30)
    assert load(source, table, since=since).files_read == 1
    assert 10 in ids(table)


def test_loaded_files_are_deleted_after_the_commit(source: Path, table: Path) -> None:
    put(source / "bad.json", data=b"{")
    seen = []
    delete = LocalFolder.delete

    def watched(self: LocalFolder, name: bytes) -> None:
        seen.append(ids(table))
        delete(self, name)

    with patch.object(LocalFolder, "delete", watched):
        load(source, table, after="delete", max_files=2)
    assert seen[0] == [1, 2, 3]
    assert [path.name for path in source.rglob("*.json")] == ["bad.json"]
    assert ids(table) == [1, 2, 3, 4]


def test_loaded_files_are_moved_and_what_was_left_undone_is_done(
    source: Path, table: Path, tmp_path: Path
) -> None:
    load(source, table)  # as if killed between the commit and the move
    put(source / "d.json", 5)
    load(source, table, after=f"move:{tmp_path / 'done'}")
    moved = sorted(
        str(path.relative_to(tmp_path / "done")) for path in (tmp_path / "done").rglob("*.json")
    )
    assert moved == ["a.json", "b.json", "d.json", "sub/c.json"]
    assert ids(table) == [1, 2, 3, 4, 5]
    put(source / "d.json", 6)
    load(source, table, after=f"move:{source / '_done'}", on_change="reload")
    assert (source / "_done" / "d.json").exists()
    assert ids(table) == [1, 2, 3, 4, 5, 6]


def test_files_are_not_moved_to_where_they_would_be_found_again(source: Path, table: Path) -> None:
    with pytest.raises(InvalidValue, match="found there again"):
        load(source, table, after=f"move:{source / 'done'}")


def test_files_before_a_date_are_known_but_not_loaded(source: Path, table: Path) -> None:
    put(source / "old.json", 9, age=90 * 86_400)
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - 86_400))
    assert load(source, table, since=moment).files_skipped == 1
    load(source, table)
    assert ids(table) == [1, 2, 3, 4]
    assert states(table)["old.json"] == "skipped"


def test_a_file_that_is_still_written_waits(source: Path, table: Path) -> None:
    put(source / "w.json", 7, age=-3600)  # by a clock that is an hour ahead
    assert load(source, table, settle="30s").files_waiting == 1
    assert ids(table) == [1, 2, 3, 4]


def test_a_file_of_a_clock_ahead_settles_by_being_watched(source: Path, table: Path) -> None:
    put(source / "w.json", 7, age=-3600)
    assert load(source, table, settle=0.05).files_waiting == 0
    assert ids(table) == [1, 2, 3, 4, 7]


def test_a_file_that_changes_while_it_is_read_is_not_in_the_batch(
    source: Path, table: Path
) -> None:
    plan = plan_load
    grown: list[Path] = []

    def growing(*args: Any, **kwargs: Any) -> Any:
        if not grown:
            grown.append(put(source / "b.json", 3, 30, age=0))
        return plan(*args, **kwargs)

    with patch.object(batch, "plan_load", growing):
        result = load(source, table, settle=0)
    assert result.files_read == 2
    assert ids(table) == [1, 2, 4]
    load(source, table, settle=0)
    assert ids(table) == [1, 2, 3, 4, 30]
    assert not list(table.glob("*.running"))


def test_a_file_that_vanishes_while_it_is_read_is_forgotten(source: Path, table: Path) -> None:
    plan = plan_load

    def vanishing(*args: Any, **kwargs: Any) -> Any:
        (source / "b.json").unlink(missing_ok=True)
        return plan(*args, **kwargs)

    with patch.object(batch, "plan_load", vanishing):
        load(source, table)
    assert ids(table) == [1, 2, 4]
    assert "b.json" not in states(table)
    put(source / "b.json", 3)
    load(source, table)
    assert ids(table) == [1, 2, 3, 4]


def test_of_two_loaders_at_once_each_file_is_loaded_by_one(tmp_path: Path, table: Path) -> None:
    for number in range(40):
        put(tmp_path / "in" / f"{number:02}.json", number)
    barrier = threading.Barrier(3)
    results: list[AutoloadResult] = []

    def run() -> None:
        barrier.wait()
        results.append(load(tmp_path / "in", table, max_files=7))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ids(table) == list(range(40))
    assert sum(result.files_read for result in results) == 40


def test_another_writer_of_the_table_does_not_disturb(source: Path, table: Path) -> None:
    load(source, table)
    put(source / "d.json", 5)
    plan = plan_load

    def beside(*args: Any, **kwargs: Any) -> Any:
        vl.Table.open(table).set_properties({"delta.logRetentionDuration": "interval 60 days"})
        return plan(*args, **kwargs)

    with patch.object(batch, "plan_load", beside):
        load(source, table)
    assert ids(table) == [1, 2, 3, 4, 5]
    assert vl.Table.open(table).loads(file="d.json")["version"].to_pylist() == [2]


def test_versions_are_those_of_the_commits_though_others_came_between(
    source: Path, table: Path
) -> None:
    load(source, table)
    put(source / "d.json", 5)
    record = commit_load

    def beside(*args: Any, **kwargs: Any) -> Any:
        put(table.parent / "e", 100)
        vl.Table.open(table).append(vl.ndjson(table.parent / "e"))
        return record(*args, **kwargs)

    with patch.object(batch, "commit_load", beside):
        load(source, table)
    put(source / "f.json", 6)
    load(source, table)
    found = vl.Table.open(table).loads()
    pairs = zip(found["file"].to_pylist(), found["version"].to_pylist(), strict=True)
    assert dict(pairs)["d.json"] == 2
    assert ids(table) == [1, 2, 3, 4, 5, 6, 100]


def test_loads_of_a_state_that_no_file_has_are_none(source: Path, table: Path) -> None:
    load(source, table)
    assert not vl.Table.open(table).loads(state="failed", file="*.json").num_rows
    assert vl.Table.open(table).loads(state="loaded", file="a*").num_rows == 1


def test_a_table_without_the_feature_gets_it(source: Path, table: Path) -> None:
    opened = vl.Table.create(table, "event VARIANT")
    assert opened.autoload(source).rows_written == 4
    assert "domainMetadata" in opened.refresh().snapshot.features
    assert ids(table) == [1, 2, 3, 4]


def test_the_state_is_in_checkpoints(source: Path, table: Path) -> None:
    properties = {"delta.checkpointInterval": "2"}
    for number in range(5):
        put(source / f"{number}.json", 10 + number)
        load(source, table, properties=properties)
    for path in (table / "_delta_log").glob("*.json"):
        if int(path.stem[:20]) < 4:
            path.unlink()
    assert load(source, table).batches == 0
    assert len(ids(table)) == 9


def test_partitions_and_columns_are_as_with_ingest(source: Path, table: Path) -> None:
    load(
        source,
        table,
        partition_by="kind=event:kind::string",
        file_column="_file",
        loaded_at_column="_loaded_at",
    )
    rows = vl.Table.open(table).scan("kind, _file, _loaded_at").to_arrow()
    assert set(rows["kind"].to_pylist()) == {"x"}
    assert {Path(str(path)).name for path in rows["_file"].to_pylist()} == {
        "a.json", "b.json", "c.json",
    }  # fmt: skip
    assert rows["_loaded_at"].null_count == 0


def test_bad_documents_go_to_the_quarantine(source: Path, table: Path) -> None:
    put(source / "g.json", data=b'{"id": 7}\nnonsense\n')
    result = load(source, table, mode="quarantine")
    assert (result.files_failed, result.rows_bad, result.rows_written) == (0, 1, 5)
    row = vl.Table.open(table).loads(file="g.json").to_pylist()[0]
    assert (row["state"], row["rows"], row["bad_rows"]) == ("loaded", 1, 1)
    assert len(list((table / "_quarantine").rglob("*.ndjson"))) == 1


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.json", [1, 2, 3]),
        ("**/*.json", [1, 2, 3, 4]),
        ("sub", [4]),
        ("s*", [4]),
        ("b.json", [3]),
    ],
)
def test_a_glob_a_folder_or_a_file_names_the_source(
    source: Path, table: Path, pattern: str, expected: list[int]
) -> None:
    put(source / "_hidden" / "x.json", 50)
    put(source / ".y.json", 51)
    put(source / "notes.txt", 52)
    load(source / pattern, table)
    assert ids(table) == expected


def test_another_source_under_the_same_name_is_refused(source: Path, table: Path) -> None:
    load(source, table, name="events")
    with pytest.raises(InvalidValue, match="loads from"):
        load(source / "sub", table, name="events")
    load(source / "sub", table, name="others")
    assert ids(table) == [1, 2, 3, 4, 4]
    assert set(vl.Table.open(table).loads()["name"].to_pylist()) == {"events", "others"}


def test_an_ascending_source_is_listed_after_its_last_name(source: Path, table: Path) -> None:
    load(source, table)
    put(source / "aa.json", 5)
    put(source / "t.json", 6)
    load(source, table, ascending="yes")
    assert ids(table) == [1, 2, 3, 4, 6]
    load(source, table, ascending="yes", backfill=0)
    assert ids(table) == [1, 2, 3, 4, 5, 6]


def test_a_file_that_waits_is_not_passed_by(source: Path, table: Path) -> None:
    load(source, table)
    put(source / "t.json", 5, age=-3600)
    put(source / "u.json", 6)
    load(source, table, ascending="yes", settle="30s")
    assert ids(table) == [1, 2, 3, 4, 6]
    put(source / "t.json", 5)
    load(source, table, ascending="yes", settle="30s")
    assert ids(table) == [1, 2, 3, 4, 5, 6]


def test_a_missing_source_is_said(tmp_path: Path, table: Path) -> None:
    for missing in (tmp_path / "none", tmp_path / "none" / "*.json"):
        with pytest.raises(MissingSource):
            load(missing, table)
    (tmp_path / "empty").mkdir()
    assert load(tmp_path / "empty", table).batches == 0
    assert not table.exists()


def test_rounds_go_on_after_a_store_failed(source: Path, table: Path) -> None:
    rounds: list[object] = []
    names = LocalFolder.pages

    def failing(self: LocalFolder, after: bytes | None) -> Any:
        rounds.append(after)
        if len(rounds) == 1:
            raise StoreFailed("it is away")
        return names(self, after)

    with patch.object(LocalFolder, "pages", failing):
        result = load(source, table, every=0.01, stop=lambda: len(rounds) > 2)
    assert result.files_read == 3
    assert ids(table) == [1, 2, 3, 4]


def test_figures_are_written_for_prometheus(source: Path, table: Path, tmp_path: Path) -> None:
    library("prometheus_client")
    put(source / "bad.json", data=b"{")
    file = tmp_path / "autoload.prom"
    load(source, table, name="events", metrics_file=file)
    labels = {"name": "events", "table": str(table)}
    values = samples(file.read_text())
    prefix = "variantlake_autoload_"

    def value(name: str, **more: str) -> float:
        return values[prefix + name, frozenset((labels | more).items())]

    assert value("files_total", state="loaded") == 3
    assert value("files_total", state="failed") == 1
    assert value("rows_total") == 4
    assert value("read_bytes_total") == sum(
        each.stat().st_size for each in source.rglob("[a-z].json")
    )
    assert value("table_version") == value("waiting_files") == 0
    assert {name for name, _ in values} == {
        prefix + each
        for each in (
            "files_total", "batches_total", "rows_total", "bad_rows_total", "read_bytes_total",
            "written_bytes_total", "batch_seconds_total", "commit_seconds_total", "rounds_total",
            "round_errors_total", "table_version", "last_batch_timestamp_seconds",
            "last_round_timestamp_seconds", "lag_seconds", "waiting_files", "changed_files",
        )
    }  # fmt: skip
    assert [path.name for path in tmp_path.glob("*.prom*")] == ["autoload.prom"]


def test_options_that_cannot_be_are_refused(source: Path, table: Path) -> None:
    wrong: list[dict[str, Any]] = [
        {"max_files": 0}, {"ascending": "maybe"}, {"settle": "soon"}, {"after": "burn"},
        {"since": "yesterday"}, {"on_change": "cry"}, {"name": "../x"}, {"load_id": "x"},
        {"format": "xml"}, {"nonsense": 1}, {"every": -1}, {"column": 5},
    ]  # fmt: skip
    for options in wrong:
        with pytest.raises(InvalidValue):
            load(source, table, **options)
    with pytest.raises(InvalidValue):
        load(3, table)  # type: ignore[arg-type]  # what users may give
    assert not table.exists()


def test_the_list_of_loads_is_filtered_and_bounded(source: Path, table: Path) -> None:
    load(source, table, name="events")
    opened = vl.Table.open(table)
    assert opened.loads(limit=2).num_rows == 2
    assert opened.loads("events", file="sub/*")["file"].to_pylist() == ["sub/c.json"]
    assert opened.loads(state="failed").num_rows == 0
    assert vl.Table.open(table, 0).loads().num_rows == 3
    for wrong in ({"name": "event"}, {"state": "lost"}):
        with pytest.raises(InvalidValue):
            opened.loads(**wrong)  # type: ignore[arg-type]  # one by one


def test_names_that_are_not_utf8_are_loaded(tmp_path: Path, table: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    name = os.fsencode(folder) + b"/\xff.json"
    with open(name, "wb") as file:  # noqa: PTH123 - a Path holds text
        file.write(json.dumps({"id": 1}).encode())
    os.utime(name, (1e9, 1e9))
    load(folder, table)
    assert load(folder, table).batches == 0
    assert ids(table) == [1]
    assert states(table) == {"\\xff.json": "loaded"}


def test_a_bad_file_whose_name_is_not_utf8_stops_no_other(tmp_path: Path, table: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    put(folder / "a.json", 1)
    name = Path(os.fsdecode(os.fsencode(folder) + b"/\xff.json"))
    name.write_text("{\n")
    os.utime(name, (1e9, 1e9))
    load(folder, table)
    assert ids(table) == [1]
    assert states(table) == {"a.json": "loaded", "\\xff.json": "failed"}


def test_a_lost_race_for_the_first_batch_looks_again(source: Path, table: Path) -> None:
    begin = discover.begin
    raced: list[bool] = []

    def racing(*args: Any, **kwargs: Any) -> Any:
        found = begin(*args, **kwargs)
        if not raced:
            raced.append(True)
            load(source, table)
        return found

    with patch.object(autoloader, "begin", racing):
        assert load(source, table).batches == 0
    assert ids(table) == [1, 2, 3, 4]


def test_small_files_are_joined_once_there_are_many(source: Path, table: Path) -> None:
    with patch.object(auto_compact, "MIN_FILES", 3):
        load(source, table, max_files=1, auto_compact=True)
        assert len(list(vl.Table.open(table).files()["path"])) == 1
        put(source / "d.json", 5)
        load(source, table)
        assert len(vl.Table.open(table).files()) == 2, "nobody has asked for it"
    assert ids(table) == [1, 2, 3, 4, 5]
    assert load(source, table).batches == 0


def test_a_restored_table_does_not_load_again_what_was_loaded(source: Path, table: Path) -> None:
    load(source, table, max_files=2)
    vl.Table.open(table).restore(version=0)
    assert load(source, table).batches == 0
    assert ids(table) == [1, 2, 3]
    load(source, table, name="again")
    assert ids(table) == [1, 1, 2, 2, 3, 3, 4]


def test_vacuum_leaves_the_state_alone(source: Path, table: Path) -> None:
    load(source, table, max_files=1)
    for path in (table / "_variantlake").rglob("*.parquet"):
        os.utime(path, (1e9, 1e9))
    vl.Table.open(table).vacuum()
    assert load(source, table).batches == 0
    assert vl.Table.open(table).loads().num_rows == 3


@pytest.mark.parametrize("column", [None, "_file"])
def test_small_files_that_are_read_together_keep_what_is_theirs(
    tmp_path: Path, table: Path, column: str | None
) -> None:
    folder = tmp_path / "in"
    put(folder / "k=1" / "a.json", data=b"\xef\xbb\xbf" + b'{"id": 1}\n\n{"id": 2}')
    put(folder / "k=1" / "b.json", data=b" \r\n")
    put(folder / "k=1" / "c.json", 3)
    put(folder / "k=2" / "d.json", 4, 5)
    load(folder, table, partition_by="k INT", file_column=column)
    assert ids(table) == [1, 2, 3, 4, 5]
    rows = vl.Table.open(table).loads()
    assert rows["rows"].to_pylist() == [2, 0, 1, 2]
    assert rows["state"].to_pylist() == ["loaded", "empty", "loaded", "loaded"]
    items = "event:id::int AS id, k" + (f", {column}" if column else "")
    found = sorted(vl.Table.open(table).scan(items).to_arrow().to_pylist(), key=lambda r: r["id"])
    assert [row["k"] for row in found] == [1, 1, 1, 2, 2]
    if column:
        assert [Path(row[column]).name[0] for row in found] == ["a", "a", "c", "d", "d"]


def test_a_source_that_was_moved_goes_on_when_it_is_said(
    source: Path, table: Path, tmp_path: Path
) -> None:
    load(source, table, name="events")
    elsewhere = tmp_path / "elsewhere"
    source.rename(elsewhere)
    put(elsewhere / "d.json", 5)
    with pytest.raises(InvalidValue, match="loads from"):
        load(elsewhere, table, name="events")
    assert load(elsewhere, table, name="events", moved=True).files_read == 1
    put(elsewhere / "e.json", 6)
    assert load(elsewhere, table, name="events").files_read == 1
    assert ids(table) == [1, 2, 3, 4, 5, 6]
