"""Public objects at a prompt."""

from __future__ import annotations

import copy
import datetime as dt
import inspect
import json
import pickle
from dataclasses import fields
from pathlib import Path

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.autoloading.autoloader import AutoloadResult
from variantlake.autoloading.batch import BatchReport
from variantlake.autoloading.loads import RetryResult
from variantlake.delta.transaction.analyze import AnalyzeResult
from variantlake.dml.result import ChangeResult
from variantlake.erase.erase import EraseResult
from variantlake.ingest.commit_load import LoadResult
from variantlake.ingest.conversion.result import ConvertResult
from variantlake.maintenance.clustering.cluster import ClusterResult
from variantlake.maintenance.optimize import OptimizeResult
from variantlake.maintenance.reshredding.reshred import ReshredResult
from variantlake.shown import MAX_LINE, CommitResult, Result, counted


def test_objects_of_a_table_fit_a_line_and_list_public_names(tmp_path: Path) -> None:
    place = tmp_path / ("long" * 30)
    t = vl.Table.create(place, "event VARIANT, n INT", cluster_by="event:a::int")
    rows = pa.table({"event": ['{"a": 1}'] * 3, "n": pa.array([1, 2, 3], pa.int32())})
    done = t.append(rows, json_columns=["event"])
    t = t.refresh()
    shown = [
        done, t.delete("n = 9"), t.optimize(), t.cluster(dry_run=True), t.vacuum(dry_run=True),
        t.health(), t.health().findings[0], t.drift(), t.restore(0, dry_run=True), t.report(),
        t.history()[0], t.scan("event:a::int AS a"), t.scan(["event"] * 50), t.check_rewrite(0, 1),
        vl.profile(place), vl.profile(place).paths[0], vl.ndjson("examples/earthquakes.ndjson.gz"),
        vl.path("event", "$.a"), vl.path("event", "$.a").int(), vl.parse_json("1"), t,
        vl.autoload(tmp_path / "other", tmp_path),
    ]  # fmt: skip
    for each in shown:
        line = repr(each)
        assert "\n" not in line
        assert " at 0x" not in line
        assert len(line) <= MAX_LINE or each is t  # its place is the point of it
        assert [name for name in dir(each) if name.startswith("_")] == []
    assert "scan" in dir(t)


RESULTS = [
    AnalyzeResult(version=3, table_files=2, files_completed=1),
    AutoloadResult(name="a", version=3),
    BatchReport(version=3),
    ChangeResult(version=3, rows_deleted=1),
    ClusterResult(version=3),
    CommitResult(version=3),
    ConvertResult(version=3),
    EraseResult(version=3, rows_erased=1, log_until=dt.datetime(2026, 1, 2, tzinfo=dt.UTC)),
    LoadResult(version=3, rows_written=5, quarantine="x"),
    OptimizeResult(version=3),
    ReshredResult(version=3),
    RetryResult(version=3),
]


@pytest.mark.parametrize("done", RESULTS, ids=lambda done: type(done).__name__)
def test_a_result_has_the_fields_of_all_results(done: Result) -> None:
    assert (done.version, done.dry_run, done.seconds) == (3, False, 0.0)
    for same in (pickle.loads(pickle.dumps(done)), copy.deepcopy(done)):  # noqa: S301 - our own
        assert (same, type(same)) == (done, type(done))
    found = json.loads(json.dumps(done.to_dict()))
    assert found.keys() >= {item.name for item in fields(done)}
    assert repr(done).startswith(f"{type(done).__name__}(")
    # What counts rows, files and bytes says so first.
    counts = {item.name for item in fields(done) if item.type == "int"}
    beginnings = ("rows_", "files_", "bytes_", "table_", "log_files_", "folders_")
    others = {"version", "batches", "groups", "conflicts", "commits", "deletion_vectors"}
    others |= {"restored_version", "budget_bytes", "new_bytes"}
    assert {name for name in counts if not name.startswith(beginnings)} <= others


def test_a_result_of_a_load_is_no_number() -> None:
    done = LoadResult(version=0)
    assert not hasattr(done, "__index__")
    assert repr(done) == "LoadResult(version=0)"


def test_every_write_gives_a_result() -> None:
    given = {
        name: inspect.get_annotations(method)["return"]
        for name, method in vars(vl.Table).items()
        if inspect.isfunction(method) and hasattr(method, "__wrapped__")
    }
    assert len(given) > 15
    kinds = {type(done).__name__ for done in RESULTS} | {
        "VacuumResult",
        "RestoreResult",
        "CloneResult",
        "ExportResult",
    }
    others = {"tag", "untag", "scan", "changes"}
    given = {name: kind for name, kind in given.items() if name not in others}
    assert {name: kind for name, kind in given.items() if kind not in kinds} == {}


def test_help_names_the_options_of_loads() -> None:
    lake = pytest.importorskip("variantlake.spark.lake.lake").Lake
    options = "mode", "load_id", "order_by", "partition_by", "file_column", "skip_empty", "arrays"
    text = inspect.getdoc(vl.Table.append) or ""
    assert [name for name in options if f"`{name}`" not in text] == []
    assert "As for `Table.append`" in (inspect.getdoc(lake.ingest) or "")


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (12_345, "12,345 files")]
)
def test_one_thing_is_no_plural(number: int, text: str) -> None:
    assert counted(number, "file") == text
