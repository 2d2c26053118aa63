"""The commands that start Spark: in processes of their own, quiet, and with clear errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.arrow.test_load import EARTHQUAKES

pytestmark = pytest.mark.spark

QUERY = (
    "SELECT event:properties.net::string AS net, count(*) AS n FROM t GROUP BY 1 ORDER BY 2 DESC"
)


def variantlake(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "variantlake.cli.main", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lake") / "t"
    done = variantlake("ingest", "--json", "--max-rows-per-file", 500, EARTHQUAKES, path)
    assert (done.returncode, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    assert (result["rows"], result["files"], result["version"]) == (1707, 4, 0)
    return path


def test_query_prints_rows(table: Path) -> None:
    done = variantlake("query", "--json", table, QUERY)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum(row["n"] for row in rows) == 1707
    text = (
        "SELECT event:properties.mag AS mag, event:id::string AS mag FROM t "
        "WHERE event:properties.time::bigint < 1517500000000 ORDER BY 2 LIMIT 1"
    )
    done = variantlake("query", "--explain", table, text)
    assert done.returncode == 0
    assert "mag" in done.stdout
    assert "skipped" in done.stderr


SIMPLE = (
    "SELECT event:properties.mag::double AS mag, event:properties.place::string, "
    "event:geometry, event:properties.net, event:properties.tsunami::int FROM t "
    "WHERE event:properties.mag::double > 5.0 AND event:properties.net::string = 'us'"
)


def test_both_engines_print_the_same(table: Path) -> None:
    for form in (("--json",), ()):
        by_engine = [
            variantlake("query", *form, "--engine", engine, table, SIMPLE)
            for engine in ("local", "spark")
        ]
        assert [done.returncode for done in by_engine] == [0, 0]
        ours, theirs = (sorted(done.stdout.splitlines()) for done in by_engine)
        assert len(ours) > 5
        assert ours == theirs


def test_bad_sql_is_a_sentence(table: Path) -> None:
    done = variantlake("query", table, "SELECT event:id::nonsense FROM t")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: ")
    assert "NONSENSE" in done.stderr.upper()
    assert "Traceback" not in done.stderr
    assert "\tat " not in done.stderr
