"""Public objects at a prompt."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
from dataclasses import fields
from pathlib import Path

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.ingest.commit_load import LoadResult
from variantlake.ingest.conversion.convert import ConvertResult
from variantlake.ingest.load import IngestResult
from variantlake.shown import MAX_LINE, counted


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
        vl.autoload(tmp_path, tmp_path / "other"),
    ]  # fmt: skip
    for each in shown:
        line = repr(each)
        assert "\n" not in line
        assert " at 0x" not in line
        assert len(line) <= MAX_LINE or each is t  # its place is the point of it
        assert [name for name in dir(each) if name.startswith("_")] == []
    assert "scan" in dir(t)


@pytest.mark.parametrize("kind", [LoadResult, IngestResult, ConvertResult])
def test_a_result_of_a_load_is_its_version(kind: type[LoadResult]) -> None:
    done = kind(version=3, rows=5, quarantine="x")
    assert done == 3
    assert {3: "version"}[done] == "version"
    assert done != kind(version=3)
    assert kind(version=0)  # a load was done
    for same in (pickle.loads(pickle.dumps(done)), copy.deepcopy(done)):  # noqa: S301 - our own
        assert (same, same.rows, type(same)) == (done, 5, kind)
    assert json.loads(json.dumps([done])) == [3]
    assert done.to_dict().keys() == {item.name for item in fields(done)}
    assert repr(done) == f"{kind.__name__}(version=3, rows=5, quarantine='x')"


def test_help_names_the_options_of_loads() -> None:
    lake = pytest.importorskip("variantlake.spark.lake.lake").Lake
    options = "mode", "load_id", "order_by", "partition_by", "file_column", "skip_empty", "arrays"
    for function in (lake.ingest, vl.Table.append):
        text = inspect.getdoc(function) or ""
        assert [name for name in options if f"`{name}`" not in text] == []


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (12_345, "12,345 files")]
)
def test_one_thing_is_no_plural(number: int, text: str) -> None:
    assert counted(number, "file") == text
