"""A standalone cluster of Spark on this machine: a master and three workers, and their settings."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tarfile
import time
import venv
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

import variantlake
from tests.jvm import SHORT_LIVED
from tests.sessions import S3A_PACKAGES
from tests.test_runtime_dependencies import closure

_START_SECONDS = 60.0
ON_NODES = closure("pandas") | closure("pyarrow")
"""What Spark wants of the nodes' Python to run tasks in Arrow."""

NODES = ("one", "two", "three")
"""Folders of the workers: two of them die in the tests."""

_DEPLOY = "org.apache.spark.deploy"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Three workers with one core each, which see nothing of this checkout."""

    master: str
    folder: Path
    python: Path
    """What the nodes have."""

    nodes: dict[str, int]
    """The process groups of the workers and their executors, by the folders they run in."""


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """Start the cluster in a folder, and end it."""
    python = _node_python(folder / "node")
    port = _free_port()
    master = f"spark://127.0.0.1:{port}"
    ui = ("--webui-port", "0")
    worker = (f"{_DEPLOY}.worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "600m")
    commands = [[f"{_DEPLOY}.master.Master", "--host", "127.0.0.1", "--port", str(port), *ui]]
    for name in NODES:
        (folder / "work" / name).mkdir(parents=True)
        commands.append([*worker, "--work-dir", str(folder / "work" / name), *ui, master])
    log = folder / "cluster.log"
    started: list[subprocess.Popen[bytes]] = []
    try:
        started.extend(_start(command, folder, log) for command in commands)
        pids = [process.pid for process in started]
        deadline = time.monotonic() + _START_SECONDS
        while log.read_text(errors="replace").count("Successfully registered with master") < len(
            NODES
        ):
            assert time.monotonic() < deadline, log.read_text(errors="replace")[-4000:]
            time.sleep(0.1)
        yield Cluster(master, folder, python, dict(zip(NODES, pids[1:], strict=True)))
    finally:
        for process in started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in started:
            process.wait(60)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _start(command: list[str], folder: Path, log: Path) -> subprocess.Popen[bytes]:
    """A process of the cluster, in a group of its own, whose environment names nothing of ours."""
    spark = Path(str(util.find_spec("pyspark").origin)).parent  # type: ignore[union-attr]
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "JAVA_HOME": os.environ["JAVA_HOME"],
        "SPARK_HOME": str(spark),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
    }
    with log.open("ab") as out:
        return subprocess.Popen(
            [str(spark / "bin" / "spark-class"), *command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )


def archive(folder: Path) -> Path:
    """What `pip install --target` gives of the package, less what the nodes have, as an archive."""
    package = Path(variantlake.__file__).parent
    hidden = shutil.ignore_patterns("*-checked.*", "__pycache__")
    copied = shutil.copytree(package, folder / "copied" / "variantlake", ignore=hidden)
    # With its compiler, as a library of a checkout asks whether it is of these sources.
    file = folder / "packages.tar"
    with tarfile.open(file, "w") as packed:
        packed.add(copied, "variantlake")
        for each in _files(closure("variantlake") - ON_NODES):
            if each.parts[0] != "variantlake" and not each.name.startswith("__editable__"):
                packed.add(each.locate(), str(each))
    with tarfile.open(file) as packed:  # for data sources, which are planned where the driver runs
        packed.extractall(folder / "packages", filter="data")
    return file


def service_settings(s3: Mapping[str, str]) -> dict[str, str]:
    """What a driver says to serve Spark Connect too, and to reach an S3 server: its only options.

    Raises KeyError if the environment of the server lacks its own.
    """
    return {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.port": str(_free_port()),
        "spark.jars.packages": ",".join(S3A_PACKAGES),
        "spark.jars.excludes": "software.amazon.awssdk:bundle",
        "spark.hadoop.fs.s3a.endpoint": s3["AWS_ENDPOINT_URL"],
        "spark.hadoop.fs.s3a.endpoint.region": s3["AWS_REGION"],
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": s3["AWS_ACCESS_KEY_ID"],
        "spark.hadoop.fs.s3a.secret.key": s3["AWS_SECRET_ACCESS_KEY"],
    }


def settings(cluster: Cluster, packages: Path | None) -> dict[str, str]:
    """What a driver says, with a package for the workers as docs/deploying.md tells, or without."""
    said = {
        "spark.master": cluster.master,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": SHORT_LIVED,
        "spark.executor.cores": "1",
        "spark.task.maxFailures": "2",
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
    }
    if packages is not None:
        said["spark.archives"] = f"{packages}#packages"
        said["spark.executorEnv.PYTHONPATH"] = "packages"
    return said


def _node_python(folder: Path) -> Path:
    """A Python with what Spark itself wants of one, and nothing else."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for each in _files(ON_NODES):
        if not (there := site / each.parts[0]).exists():
            there.symlink_to(Path(str(each.locate())).parents[len(each.parts) - 1] / each.parts[0])
    return folder / "bin" / "python"


def _files(names: Collection[str]) -> Iterator[metadata.PackagePath]:
    for name in names:
        yield from (each for each in metadata.files(name) or () if ".." not in each.parts)
