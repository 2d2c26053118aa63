"""Serve clients that do not have this package, over Spark Connect and JDBC."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from variantlake.errors import InvalidValue, MissingDependency, UnsupportedFeature
from variantlake.spark.lake.accelerate import accelerate
from variantlake.spark.session.arguments import check_session
from variantlake.spark.session.janino import new_instance
from variantlake.spark.session.jvm import Java, gateway_of, is_connect, session_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOPBACK = "127.0.0.1"
CONNECT_PORT = 15002
"""Spark Connect's default port."""

_CONNECT = "spark.connect.grpc.binding."
_THRIFT = "hive.server2.thrift."


@dataclass(slots=True)
class Server:
    """A running server; it serves clients until `stop`, or until its Spark ends.

    Attributes:
        connect: The URL for `SparkSession.builder.remote(…)` of a Spark Connect client.
        jdbc: The URL for a JDBC client, None if JDBC is not served.
    """

    connect: str
    jdbc: str | None
    _services: list[Java] = field(repr=False)

    def stop(self) -> None:
        """Stop serving. The session keeps running."""
        while self._services:
            self._services.pop().stop()


def serve(
    spark: SparkSession,
    *,
    host: str = LOOPBACK,
    port: int = CONNECT_PORT,
    thrift_port: int | None = None,
) -> Server:
    """Let clients query through this session's Spark, with `accelerate` on in their sessions.

    Each client of Spark Connect, in any language, gets its own session. So does each client of JDBC
    or Thrift, if `thrift_port` is given. Clients do not need this package, and can use
    `format("variantlake")`.

    Anyone who reaches these ports can read and write everything that this process can, because
    Spark asks for no password unless its settings demand one. Hence the default is the loopback
    address.

    Args:
        spark: A classic session.
        host: The address to listen on.
        port: The port of Spark Connect; 0 for any free port.
        thrift_port: The port of Spark's Thrift server, likewise.

    Returns:
        The server, which has the clients' URLs and stops the services.

    Raises:
        InvalidValue: The port is in use, or this Spark serves Connect already.
        MissingDependency: This Spark has no Thrift server.
        UnsupportedFeature: The session is a client of Spark Connect, or of a Spark that is too old.

    Example:
        >>> server = vl.spark.serve(spark, port=15002)
        >>> server.connect
        'sc://127.0.0.1:15002'
    """
    check_session(spark)
    if is_connect(spark):
        raise UnsupportedFeature("a client of Spark Connect cannot serve others", cli_hint="")
    if "SparkConnectPlugin" in str(spark.conf.get("spark.plugins", "")):
        raise InvalidValue(
            "this Spark serves Spark Connect already", hint="leave out its setting spark.plugins"
        )
    port = _free_port(host, port)
    if thrift_port is not None:
        thrift_port = _free_port(host, thrift_port)
    accelerate(spark)
    new_instance(spark, "ServedSessions").install(session_of(spark))
    services: list[Java] = [_Connect(spark, host, port)]
    try:
        if thrift_port is not None:
            services.append(_thrift(spark, host, thrift_port))
    except BaseException:
        services[0].stop()
        raise
    jdbc = None if thrift_port is None else f"jdbc:hive2://{host}:{thrift_port}"
    return Server(f"sc://{host}:{port}", jdbc, services)


class _Connect:
    """Spark Connect's service, which is part of PySpark, started through its plugin."""

    def __init__(self, spark: SparkSession, host: str, port: int) -> None:
        java = gateway_of(spark).jvm
        context = spark.sparkContext._jsc.sc()  # noqa: SLF001
        # Not through SparkEnv: py4j cannot inspect its methods on Spark 4.1 and 4.3.
        context.conf().set(f"{_CONNECT}address", host).set(f"{_CONNECT}port", str(port))
        self._plugin = java.org.apache.spark.sql.connect.SparkConnectPlugin().driverPlugin()
        self._plugin.init(context, None)

    def stop(self) -> None:
        """Stop serving."""
        self._plugin.shutdown()


def _thrift(spark: SparkSession, host: str, port: int) -> Java:
    java = gateway_of(spark).jvm
    system = java.java.lang.System
    # Hive reads these settings from system properties, and has none private to one server.
    system.setProperty(f"{_THRIFT}bind.host", host)
    system.setProperty(f"{_THRIFT}port", str(port))
    # Its metastore is in memory and unused, but would write a log into the current folder.
    if system.getProperty("derby.stream.error.file") is None:
        system.setProperty("derby.stream.error.method", "java.io.OutputStream.nullOutputStream")
    server = java.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2
    try:
        return server.startWithSparkSession(session_of(spark), False)
    except TypeError as error:  # a package that is not there cannot be called
        raise MissingDependency(
            "this Spark has no Thrift server", hint="add its jar spark-hive-thriftserver"
        ) from error


def _free_port(host: str, port: int) -> int:
    """Return the port, or any free one for 0.

    Raises InvalidValue if it is in use, where Spark would silently try others.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            return int(probe.getsockname()[1])
        except OSError as error:
            raise InvalidValue(
                f"cannot listen at {host}:{port}: {error.strerror}", hint="choose another port"
            ) from error
