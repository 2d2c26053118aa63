"""`variantlake serve`: clients that have nothing of this package query by the rule."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

import variantlake as vl
from tests.sessions import DELTA_PACKAGE
from tests.spark.plain_client import SESSIONS
from tests.spark.rule.test_rule import make
from variantlake.errors import InvalidValue

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark processes")]

SETTINGS = {
    "spark.jars.packages": DELTA_PACKAGE,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.codegen.wholeStage": "false",
}


@dataclass
class Served:
    """A server's process, how clients reach it, and its table."""

    process: subprocess.Popen[str]
    remote: str
    jdbc: str
    table: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all tests here; the last one ends it."""
    folder = tmp_path_factory.mktemp("served")
    table = make(folder / "ev")
    command = [sys.executable, "-m", "variantlake.cli.main", "serve", "--port", "0"]
    command += ["--thrift-port", "0"]
    for name, value in SETTINGS.items():
        command += ["--conf", f"{name}={value}"]
    with (folder / "errors").open("w") as errors:
        process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True
        )
    try:
        assert process.stdout is not None
        remote = re.search(r"sc://127.0.0.1:\d+", process.stdout.readline())
        jdbc = re.search(r"jdbc:\S+", process.stdout.readline())
        assert remote is not None, (folder / "errors").read_text()
        assert jdbc is not None
        yield Served(process, remote[0], jdbc[0], table)
    finally:
        process.kill()
        process.communicate()


def test_clients_of_connect_skip_files_with_nothing_installed(served: Served) -> None:
    kind = "event:kind::string"
    mine = f"CREATE OR REPLACE TEMP VIEW mine USING variantlake OPTIONS (path '{served.table}')"
    queries: dict[str, dict[str, str]] = {
        "delta": {"sql": f"SELECT id FROM delta.`{served.table}` WHERE {kind} = 'k1'"},
        "joined": {
            "sql": f"SELECT a.id, b.event:n::int FROM delta.`{served.table}` a JOIN "
            f"delta.`{served.table}` b ON a.id = b.id WHERE a.{kind} = 'k2' AND b.{kind} = 'k2'"
        },
        "source": {"load": served.table, "where": f"{kind} = 'k3'", "by": "part"},
        "view": {"first": mine, "sql": f"SELECT id FROM mine WHERE {kind} > 'k2'"},
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.plain_client"],
        input=json.dumps([served.remote, queries]),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    sessions = json.loads(done.stdout)
    assert len(sessions) == SESSIONS
    for name, right in sessions[-1]["false"].items():
        assert right["rows"], name
        assert "of 4 files" not in right["plan"], name
        for session in sessions:
            assert session["true"][name]["rows"] == right["rows"], name
            assert "1 of 4 files" in session["true"][name]["plan"], name


def test_a_client_of_jdbc_skips_files(served: Served) -> None:
    condition = "WHERE event:kind::string = 'k1' AND event:n::int > 14"
    query = f"SELECT id, to_json(event) FROM delta.`{served.table}` {condition}"
    jars = Path(pyspark.__file__).with_name("jars")
    java = Path(os.environ.get("JAVA_HOME", "/usr")) / "bin" / "java"
    beeline = [str(java), "-cp", f"{jars}/*", "org.apache.hive.beeline.BeeLine", "-u", served.jdbc]
    beeline += ["--outputformat=csv2", "--silent=true", "-e", query, "-e", f"EXPLAIN {query}"]
    done = subprocess.run(beeline, capture_output=True, text=True, check=True)
    assert re.findall(r"^(\d+),", done.stdout, re.MULTILINE) == ["15", "16", "19"]
    assert "ev v4: 1 of 4 files" in done.stdout


def test_two_servers_cannot_have_one_port(spark: object, served: Served) -> None:
    port = int(served.remote.rpartition(":")[2])
    with pytest.raises(InvalidValue, match=f"127.0.0.1:{port}"):
        vl.spark.serve(spark, port=port)  # type: ignore[arg-type] # a session


def test_the_end_of_a_server_is_ctrl_c(served: Served) -> None:
    served.process.send_signal(signal.SIGINT)
    assert served.process.wait(60) == 130
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(served.remote.rpartition(":")[2])))
