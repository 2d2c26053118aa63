"""A cluster whose nodes do not see the checkout: the package goes to them as the docs tell."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests import corpora, s3_server
from tests.spark.cluster import standalone
from tests.spark.session.test_kernel_scan import made_of_odd_types

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("cluster")]

ROWS, FILES = 60_000, 4
FOUND = """
    SELECT event:kind::string AS kind, count(*) AS c, max(event:n::bigint) AS n
    FROM delta.`{}` GROUP BY 1"""
WHOLE = "SELECT to_json(event) AS e, schema_of_variant(event) AS s FROM delta.`{}`"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files to load, which nodes and driver see alike."""
    folder = tmp_path_factory.mktemp("shared")
    pad = "p" * 250  # a task takes 16 MB or more
    lines = (
        f'{{"n": {n}, "x": {n if n % 3 else n + 0.5}, "kind": "k{n % 2}", "pad": "{pad}{n}"}}\n'
        for n in range(ROWS)
    )
    (folder / "0.ndjson").write_text("".join(lines), encoding="utf-8")
    for number in range(1, FILES):
        shutil.copy(folder / "0.ndjson", folder / f"{number}.ndjson")
    return folder


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[standalone.Cluster]:
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        corpora.missing("Java")
    with standalone.running(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def drive(
    cluster: standalone.Cluster,
    folder: Path,
    packages: Path | None,
    services: Mapping[str, str] | None = None,
    **work: Any,
) -> dict[str, Any]:
    """What a driver finds, in a folder that has nothing of the project."""
    queries = {
        "paths": FOUND.format(folder / "table"),
        "whole": WHOLE.format(folder / "table") + " WHERE event:n::bigint IN (3, 4)",
    }
    work |= {
        "settings": {**standalone.settings(cluster, packages), **(services or {})},
        "folder": str(folder),
        "queries": queries,
        "nodes": cluster.nodes,
    }
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "AWS_"))
    }
    environment |= {"PYSPARK_PYTHON": str(cluster.python), "PYTHONPATH": str(corpora.REPOSITORY)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.cluster.driver"],
        input=json.dumps(work),
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
        cwd=cluster.folder,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    return found


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table whose Variants Spark cannot read: the kernels have to, in its tasks."""
    return made_of_odd_types(tmp_path_factory.mktemp("odd") / "t")


@pytest.fixture(scope="module")
def found(cluster: standalone.Cluster, folder: Path, odd: str) -> dict[str, Any]:
    """With the package; at its end two workers are gone."""
    packages = standalone.archive(cluster.folder)
    with s3_server.running() as s3:
        services = standalone.service_settings(s3)
        more = {"odd": odd, "bucket": f"s3a://{s3_server.BUCKET}"}
        return drive(cluster, folder, packages, services, do="everything", **more)


@pytest.fixture(scope="module")
def without(
    found: dict[str, Any], cluster: standalone.Cluster, folder: Path, odd: str
) -> dict[str, Any]:
    """Without the package, after that."""
    assert found
    return drive(cluster, folder, None, do="missing", odd=odd)


def test_tasks_see_the_package_that_was_sent_and_no_checkout(
    found: dict[str, Any], cluster: standalone.Cluster
) -> None:
    assert len({cwd for _, _, cwd, _ in found["seen"]}) == 2
    for package, python, cwd, foreign in found["seen"]:
        assert cwd.startswith(str(cluster.folder / "work"))
        assert (
            Path(cwd, package).resolve() == Path(cwd, "packages/variantlake/__init__.py").resolve()
        )
        assert python == str(cluster.python)
        assert foreign == []


def test_tasks_load_and_queries_answer(found: dict[str, Any]) -> None:
    assert found["ingested"] == [0, ROWS]
    assert found["appended"] == [1, 10]
    kinds = {"k0": (ROWS // 2, ROWS - 2), "k1": (ROWS // 2, ROWS - 1), "more": (10, 9)}
    assert found["queries"]["paths"] == [[str((kind, *row)), 1] for kind, row in kinds.items()]


def test_kernels_rebuild_variants_in_tasks(found: dict[str, Any]) -> None:
    """Integers that lie among decimals come back as integers; TIME no reader of Spark's knows."""
    whole = " ".join(text for text, _ in found["queries"]["whole"])
    assert '"x":4' in whole
    assert "x: BIGINT" in whole
    assert found["odd"] == sorted([str((i, f"k{i % 3}", i)), 1] for i in range(20))
    assert found["source"] == [[f"({ROWS + 10},)", 1]]


@pytest.mark.parametrize("lost", ["crashed", "lost"])
def test_a_load_that_loses_workers_is_whole_or_not_at_all(found: dict[str, Any], lost: str) -> None:
    """Python processes that are killed until Spark gives up; a node that dies with its executor."""
    load = found[lost]
    assert load["killed"]
    before, after = load["versions"]
    rows = load["rows_before"]
    if isinstance(load["done"], str):
        assert (after, load["rows"]) == (before, rows)
        assert load["again"] == [before + 1, FILES * ROWS]
    else:
        assert (after, load["rows"]) == (before + 1, rows + FILES * ROWS)
        assert load["again"] == [before + 1, 0]  # found
    assert load["rows_again"] == rows + FILES * ROWS


def test_the_tasks_of_a_node_that_dies_run_elsewhere(found: dict[str, Any]) -> None:
    assert found["lost"]["done"] == [4, FILES * ROWS]


def test_spark_gives_up_where_every_try_is_killed(found: dict[str, Any]) -> None:
    assert "SparkException" in found["crashed"]["done"]


def test_a_rewrite_whose_tasks_are_all_killed_changes_nothing(found: dict[str, Any]) -> None:
    crashed = found["optimize crashed"]
    assert isinstance(crashed["done"], str)
    before, after = crashed["states"]
    assert after == before


def test_a_rewrite_goes_on_without_a_node_that_dies(found: dict[str, Any]) -> None:
    """It is the repeat of the one above."""
    rewrite = found["optimize lost"]
    assert rewrite["killed"]
    (before, rows), (after, rows_after) = rewrite["states"]
    assert rewrite["done"] == list(range(before + 1, after + 1)) != []
    assert rows_after == rows


def test_a_delete_whose_tasks_are_killed_is_whole_or_not_at_all(found: dict[str, Any]) -> None:
    (before, rows), (after, rows_after) = found["delete crashed"]["states"]
    deleted = found["delete crashed"]["done"]
    if isinstance(deleted, str):
        assert (after, rows_after, found["delete again"]) == (before, rows, 4)
    else:
        assert (after, rows_after, deleted) == (before + 1, rows - 4, 4)
    assert found["optimize crashed"]["states"][0][1] == rows - 4


def test_a_client_of_spark_connect_loads_and_queries_on_the_workers(found: dict[str, Any]) -> None:
    client = found["connect"]
    assert client["appends"] == [[2, 10, 0]]
    paths = {"k0": (ROWS // 2, ROWS - 2), "k1": (ROWS // 2, ROWS - 1), "more": (20, 9)}
    assert client["texts"]["paths"] == {str((kind, *row)): 1 for kind, row in paths.items()}
    assert client["texts"]["whole"]
    assert client["texts"]["odd"] == {str((i, f"k{i % 3}", i)): 1 for i in range(20)}


def test_credentials_of_spark_serve_tasks_in_object_stores(found: dict[str, Any]) -> None:
    """`spark.hadoop.fs.s3a.*` alone is set; our tasks get it from the driver."""
    assert found["stored"] == [[1, 10], [["(45,)", 1]], [["(45,)", 1]], []]


def test_workers_without_the_package_are_explained(without: dict[str, Any]) -> None:
    """Loads say what to do; queries go by Spark's own reader."""
    for load in ("ingested", "appended"):
        assert without[load].startswith("MissingDependency: Spark's Python workers cannot import")
        assert "spark.archives" in without[load]
    assert len(without["queries"]["paths"]) == 3
