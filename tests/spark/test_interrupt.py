"""Ctrl-C stops the Spark job of a query, in a script and on the command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import variantlake as vl
from tests import corpora

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("spark processes")]

SCRIPT = """
import sys, time
import variantlake as vl
with vl.spark.local_session() as spark:
    try:
        vl.spark.connect(spark).sql(sys.argv[2], tables={"t": sys.argv[1]}).collect()
    except KeyboardInterrupt:
        jobs = spark.sparkContext.statusTracker()
        end = time.monotonic() + 30  # tasks are told to end, and do so by and by
        while jobs.getActiveJobsIds() and time.monotonic() < end:
            time.sleep(0.1)
        print("left:", list(jobs.getActiveJobsIds()), flush=True)
        raise
"""

# Leaves a file when the first row is read, and then goes on for hours.
ENDLESS = """
    SELECT sum(x) FROM (
        SELECT r.id + coalesce(CASE WHEN r.id = 0 THEN length(java_method(
            'java.io.File', 'createTempFile', 'started', t.event:id::string)) END, 0) AS x
        FROM t CROSS JOIN range(1000000000000) r)
"""


@pytest.mark.parametrize("form", ["script", "command line"])
def test_ctrl_c_stops_the_job_of_a_query(tmp_path: Path, form: str) -> None:
    (tmp_path / "a.ndjson").write_text('{"id": 1}\n')
    table = vl.Table.create(tmp_path / "table", "event VARIANT")
    table.append(vl.ndjson(tmp_path / "a.ndjson"))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = {
        "script": ["-c", SCRIPT, table.uri, ENDLESS],
        "command line": ["-m", "variantlake.cli.main", "query", table.uri, ENDLESS],
    }[form]
    process = subprocess.Popen(
        [sys.executable, *command, *(["--engine", "spark"] if form == "command line" else [])],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=corpora.REPOSITORY,
        env=os.environ | {"JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={scratch}"},
    )
    try:
        deadline = time.monotonic() + 240
        while not list(scratch.glob("started*")) and time.monotonic() < deadline:
            assert process.poll() is None, process.communicate()
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert list(scratch.glob("started*"))
    if form == "command line":
        assert process.returncode == 130
        assert err.strip().splitlines()[-1] == "Interrupted."
    else:
        # As Python ends by itself after Ctrl-C; a shell shows it as 130.
        assert process.returncode in (130, -signal.SIGINT)
        assert "left: []" in out
