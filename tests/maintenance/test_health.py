"""Health says what is wrong with a table, and what mends it."""

from __future__ import annotations

import datetime as dt
import json
import shlex
import uuid
from pathlib import Path

import pyarrow as pa
import pytest

import variantlake as vl
from tests.cli.command import run
from tests.maintenance.folders import HOUR, add, commit, put, vector_file
from tests.maintenance.vacuuming.test_vacuum import LONG_AGO, NOW
from variantlake.maintenance.health_findings import HealthFinding, Severity
from variantlake.maintenance.health_overlap import _depths


def by_topic(table: vl.Table, *, orphans: bool = False) -> dict[str, HealthFinding]:
    return {each.topic: each for each in table.refresh().health(orphans=orphans).findings}


def events(*numbers: int) -> pa.Table:
    return pa.table({"event": [f'{{"n": {n}, "kind": "k{n % 3}"}}' for n in numbers]})


def test_small_files_overlap_and_residuals_are_found(tmp_path: Path) -> None:
    table = vl.Table.create(
        tmp_path, "event VARIANT", shredding={"event": "STRUCT<n BIGINT, kind STRING>"}
    )
    for _ in range(12):
        table.append(events(*range(50)), json_columns=["event"])
    before = by_topic(table)
    assert before["small files"].severity is Severity.WARNING
    assert before["small files"].details["files"] == 12
    assert before["small files"].fix == "Table.optimize()"
    assert "residuals" not in before
    assert "overlap" not in before
    table.set_properties({"variantlake.clusterBy": "event:n"})
    overlap = by_topic(table)["overlap"]
    assert (overlap.details["mean_depth"], overlap.details["max_depth"]) == (12.0, 12)
    assert overlap.severity is Severity.WARNING
    assert overlap.command == f"variantlake cluster {shlex.quote(str(tmp_path))}"
    table.overwrite(events(*range(50)), json_columns=["event"])
    table.append(events(*range(50, 99)), json_columns=["event"])
    assert by_topic(table)["overlap"].details["mean_depth"] == 1.0
    table.overwrite(pa.table({"event": ['{"n": "text"}', '{"n": 1}']}), json_columns=["event"])
    residuals = by_topic(table)["residuals"]
    assert residuals.severity is Severity.WARNING
    assert residuals.details["values"] == 1


def test_files_overlap_whatever_the_types_of_their_columns(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, "event VARIANT", shredding={"event": "n INT"})
    table.append(events(*range(50)), json_columns=["event"])
    table.set_properties({"variantlake.shredding.event": "n DOUBLE"})
    table.append(pa.table({"event": ['{"n": 1e0}', '{"n": 4.9e1}']}), json_columns=["event"])
    table.set_properties({"variantlake.clusterBy": "event:n"})
    assert by_topic(table)["overlap"].details["max_depth"] == 2


def test_files_that_are_ordered_do_not_overlap_by_what_bounds_are_cut_by(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, "at TIMESTAMP", cluster_by="at")
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    for first in range(0, 30, 10):
        times = [start + dt.timedelta(microseconds=100 * n) for n in range(first, first + 10)]
        table.append(pa.table({"at": pa.array(times, pa.timestamp("us", "UTC"))}))
    # Each meets the next one, in a single value.
    assert by_topic(table)["overlap"].details["max_depth"] == 2


def test_partitions_do_not_overlap(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, "n INT, day STRING", partition_by="day")
    for day in ("a", "b", "a"):
        table.append(pa.table({"n": pa.array([1, 5], pa.int32()), "day": [day, day]}))
    table.set_properties({"variantlake.clusterBy": "n"})
    found = by_topic(table)["overlap"].details
    assert (found["max_depth"], found["files"]) == (2, 3)
    assert by_topic(table)["small files"].details["partitions"] == [
        {"values": {"day": "a"}, "files": 2}
    ]


@pytest.mark.parametrize(
    ("boxes", "depths"),
    [
        ([], []),
        ([(1, 2)], [1]),
        ([(1, 2), (2, 3)], [1, 2]),
        ([(1, 9), (2, 3), (4, 5)], [1, 2, 2]),
        ([(1, 1), (1, 1), (2, 2)], [2, 2, 1]),
    ],
)
def test_depth_counts_the_files_that_hold_a_value(
    boxes: list[tuple[int, int]], depths: list[int]
) -> None:
    assert _depths(boxes) == depths


def test_deleted_rows_statistics_and_unneeded_files_are_found(tmp_path: Path) -> None:
    vector = uuid.UUID(int=1)
    actions = [add("a.parquet", vector=vector), add("b.parquet")]
    del actions[1]["add"]["stats"]
    commit(tmp_path, 0, NOW, actions)
    for name in ("a.parquet", "b.parquet", vector_file(vector), "orphan.parquet"):
        put(tmp_path, name, LONG_AGO)
    found = by_topic(vl.Table.open(tmp_path), orphans=True)
    assert found["deleted rows"].details == {"rows": 1, "files": 1, "share": 0.2}
    assert found["statistics"].details["files"] == 1
    assert found["statistics"].command.startswith("variantlake analyze ")
    assert found["unneeded files"].details["files"] == 1
    assert "unneeded files" not in by_topic(vl.Table.open(tmp_path))


def test_a_log_without_a_checkpoint_is_found_and_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for version in range(60):
        commit(tmp_path, version, NOW - HOUR, [])
    found = by_topic(vl.Table.open(tmp_path))
    assert found["log"].details["commits"] == 60
    assert found["checkpoint"].details["commits_since"] == 59
    assert found["checkpoint"].severity is Severity.WARNING
    shown = run(monkeypatch, capfd, "health", tmp_path)
    assert (shown.code, "variantlake checkpoint" in shown.out) == (0, True)
    assert run(monkeypatch, capfd, "health", tmp_path, "--fail-on", "warning").code == 4
    assert run(monkeypatch, capfd, "checkpoint", tmp_path).out == "checkpoint of version 59\n"
    listed = run(monkeypatch, capfd, "health", tmp_path, "--json", "--fail-on", "warning")
    assert listed.code == 0
    document = json.loads(listed.out)
    assert {finding["topic"] for finding in document["findings"]} == {"log", "checkpoint"}
    assert document == vl.Table.open(tmp_path).health().to_dict()
    assert (document["format"], document["version"], document["worst_severity"]) == (1, 59, "info")
    assert by_topic(vl.Table.open(tmp_path))["checkpoint"].details["checkpoint"] == 59
