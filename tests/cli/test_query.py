"""`variantlake query` by the local engine: no Spark is started for what is simple."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import run
from tests.corpora import EARTHQUAKES
from variantlake.ingest.local_run import ingest_here

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lake") / "earthquakes"
    ingest_here(EARTHQUAKES, path, max_rows_per_file=600)
    return path


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: Patch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("variantlake.spark.local_session", refuse)


def test_a_simple_select_runs_here_and_says_so(
    monkeypatch: Patch, capfd: Capture, table: Path
) -> None:
    query = "SELECT event:properties.mag AS mag FROM t WHERE event:properties.mag::double > 6"
    done = run(monkeypatch, capfd, "query", table, query, "--explain")
    assert done.code == 0
    assert "mag" in done.out
    assert "Run by the local engine." in done.err
    assert "files: " in done.err


def test_counts_and_json(monkeypatch: Patch, capfd: Capture, table: Path) -> None:
    done = run(monkeypatch, capfd, "query", "--json", table, "SELECT count(*) FROM t")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == {"count(1)": 1707}
    report = "SELECT count(*) AS n FROM t WHERE event:properties.mag::double > 9"
    done = run(monkeypatch, capfd, "query", "--json", "--explain", table, report)
    assert json.loads(done.out) == {"n": 0}
    assert json.loads(done.err)["files"]["read"] == 0
    query = "SELECT event:nobody::int, event:id::string AS `the id` FROM t LIMIT 2"
    done = run(monkeypatch, capfd, "query", "--json", table, query)
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [row["nobody"] for row in rows] == [None, None]
    assert all(isinstance(row["the id"], str) for row in rows)


def test_a_path_that_reads_like_the_name_of_an_emoji_is_shown_as_it_is(
    monkeypatch: Patch, capfd: Capture, table: Path
) -> None:
    query = "SELECT count(*) FROM t WHERE event:a::string = 'x'"
    done = run(monkeypatch, capfd, "query", "--explain", table, query)
    assert "event:a::string" in done.err
    done = run(monkeypatch, capfd, "query", "--json", "--explain", table, query)
    assert json.loads(done.err)["paths"][0]["path"] == "event:a::string"


def test_what_only_spark_runs_is_refused_when_it_may_not(
    monkeypatch: Patch, capfd: Capture, table: Path
) -> None:
    query = "SELECT row_number() OVER (ORDER BY event:id::string) AS n FROM t"
    done = run(monkeypatch, capfd, "query", "--engine", "local", table, query)
    assert done.code == 1
    assert "ROW_NUMBER() OVER" in done.err
    assert "--engine spark" in done.err


def test_auto_gives_spark_what_is_not_simple(
    monkeypatch: Patch, capfd: Capture, table: Path
) -> None:
    query = "SELECT count(*) FROM t GROUP BY ROLLUP (event:properties.net::string)"
    assert "Spark was started" in run(monkeypatch, capfd, "query", table, query).err


def test_auto_gives_spark_a_value_that_only_spark_casts(
    monkeypatch: Patch, capfd: Capture, table: Path
) -> None:
    """Whatever is known of it only when the value is met."""
    query = "SELECT count(*) FROM t WHERE try_cast(event:id AS timestamp) > '2024-01-01T00:00:00Z'"
    assert "Spark was started" in run(monkeypatch, capfd, "query", table, query).err
    done = run(monkeypatch, capfd, "query", "--engine", "local", table, query)
    assert done.code == 1
    assert "--engine spark" in done.err


def test_auto_leaves_timestamps_of_the_sessions_zone_to_spark(
    monkeypatch: Patch, capfd: Capture, table: Path
) -> None:
    query = "SELECT count(*) FROM t WHERE event:nobody::timestamp > '2024-01-01 00:00:00'"
    monkeypatch.setenv("TZ", "America/St_Johns")
    assert "Spark was started" in run(monkeypatch, capfd, "query", table, query).err
    done = run(monkeypatch, capfd, "query", "--engine", "local", "--json", table, query)
    assert json.loads(done.out) == {"count(1)": 0}
