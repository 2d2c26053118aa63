"""The commands that start Spark: in processes of their own, quiet, and with clear errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpora import EARTHQUAKES

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark processes")]


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


SIMPLE = (
    "SELECT event:properties.mag::double AS mag, event:properties.place::string, "
    "event:geometry, event:properties.net, event:properties.tsunami::int FROM t "
    "WHERE event:properties.mag::double > 5.0 AND event:properties.net::string = 'us'"
)


@pytest.mark.parametrize("form", [("--json",), ("--explain",)], ids=["json", "table"])
def test_both_engines_print_the_same(table: Path, form: tuple[str, ...]) -> None:
    local, spark = (
        variantlake("query", *form, "--engine", engine, table, SIMPLE)
        for engine in ("local", "spark")
    )
    assert (local.returncode, spark.returncode) == (0, 0)
    assert len(local.stdout.splitlines()) > 5
    assert sorted(local.stdout.splitlines()) == sorted(spark.stdout.splitlines())
    for done in (local, spark):
        assert ("skipped" in done.stderr) == (form == ("--explain",))


def test_bad_sql_is_a_sentence(table: Path) -> None:
    done = variantlake("query", table, "SELECT event:id::nonsense FROM t")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: ")
    assert "NONSENSE" in done.stderr.upper()
    assert "Traceback" not in done.stderr
    assert "\tat " not in done.stderr
