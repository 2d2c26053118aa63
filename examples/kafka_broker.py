"""A Kafka broker of one process, on this machine alone, for examples and tests.

Its jars come from where Spark's packages come from, by the Ivy that PySpark ships, into a cache
beside Spark's. It keeps its data in a folder of the caller's and listens on the loopback interface.
"""

from __future__ import annotations

import base64
import fcntl
import socket
import subprocess
import tempfile
import time
import uuid
from pathlib import Path
from types import TracebackType
from typing import Self

import pyspark

VERSION = "4.0.0"
PACKAGE = ("org.apache.kafka", "kafka_2.13", VERSION)

SPARK_PACKAGE = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
"""Spark's own source and sink for Kafka, for `spark.jars.packages`."""

STARTS = 120.0
"""Seconds in which the broker must answer."""

_CACHE = Path.home() / ".ivy2.5.2" / "kafka"
"""Beside Spark's packages: a cache takes one writer."""

_SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/data
num.partitions={partitions}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


class Broker:
    """A broker in KRaft mode, with a controller in the same process; a context manager.

    `servers` is what `kafka.bootstrap.servers` takes. New topics have `partitions` partitions.

    Raises RuntimeError where its jars are not to be had, or it does not start.
    """

    def __init__(self, java: str, folder: Path, *, partitions: int = 2) -> None:
        self._java = java
        self._folder = folder
        self._partitions = partitions
        self._process: subprocess.Popen[bytes] | None = None
        self.servers = ""

    def __enter__(self) -> Self:
        classpath = fetch(self._java)
        port, controller = _free_ports(2)
        self._folder.mkdir(parents=True, exist_ok=True)
        settings = self._folder / "server.properties"
        text = _SETTINGS.format(
            port=port, controller=controller, folder=self._folder, partitions=self._partitions
        )
        settings.write_text(text, encoding="utf-8")
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        run = [self._java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp"]
        run.append(classpath)
        # One word: an id may begin with a hyphen.
        named = f"--cluster-id={cluster}"
        storage = ["kafka.tools.StorageTool", "format", named, "-c", str(settings)]
        done = subprocess.run([*run, *storage], capture_output=True, check=False)
        if done.returncode:
            raise RuntimeError(f"Kafka's storage cannot be made: {done.stderr.decode()[-1000:]}")
        log = (self._folder / "broker.log").open("wb")
        with log:
            self._process = subprocess.Popen(
                [*run, "kafka.Kafka", str(settings)], stdout=log, stderr=subprocess.STDOUT
            )
        self._wait_for(port)
        self.servers = f"127.0.0.1:{port}"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        process = self._process
        if process is not None:
            process.kill()  # nobody needs its data any more
            process.wait()

    def _wait_for(self, port: int) -> None:
        until = time.monotonic() + STARTS
        while time.monotonic() < until and self._process is not None:
            if self._process.poll() is not None:
                break
            with socket.socket() as connection:
                connection.settimeout(1)
                if not connection.connect_ex(("127.0.0.1", port)):
                    return
            time.sleep(0.1)
        log = (self._folder / "broker.log").read_text(errors="replace")
        self.__exit__(None, None, None)
        raise RuntimeError(f"Kafka does not start: {log[-1000:]}")


def fetch(java: str) -> str:
    """The broker's classpath; the first call on a machine downloads its 42 jars (40 MB)."""
    noted = _CACHE / f"{VERSION}.classpath"
    with (Path(tempfile.gettempdir()) / "variantlake-kafka.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if noted.exists():
            known = noted.read_text(encoding="utf-8").strip()
            if all(Path(jar).exists() for jar in known.split(":")):
                return known
        (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
        _CACHE.mkdir(parents=True, exist_ok=True)
        command = [java, "-jar", str(ivy), "-dependency", *PACKAGE, "-confs", "default"]
        command += ["-cachepath", str(noted), "-cache", str(_CACHE)]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode or not noted.exists():
            noted.unlink(missing_ok=True)
            raise RuntimeError(f"Kafka's jars cannot be fetched: {done.stdout.decode()[-1000:]}")
        return noted.read_text(encoding="utf-8").strip()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
