"""Keeps py4j's callback server running, through which the JVM calls Python.

Other code in the process may shut it down.
"""

from __future__ import annotations

import signal
import socket
import threading
import warnings
from contextlib import suppress
from typing import Any

from py4j.java_gateway import pre_server_shutdown
from pyspark import java_gateway

from variantlake.spark.session.jvm import Java

_AGAIN_SECONDS = 0.2


class _Proxies(dict[str, Any]):
    """The objects that the JVM may call, by id. Ours survive a server, for the next one."""

    def clear(self) -> None:
        """Drop all objects but ours: py4j answers a call of a missing object out of step."""
        for each in [key for key, called in self.items() if not _is_ours(called)]:
            del self[each]


def serve_callbacks(gateway: Java) -> None:
    """Start PySpark's callback server unless it runs, so that threads of the JVM can call Python.

    A later shutdown of the server warns, and does not wait for idle connections.
    """
    java_gateway.ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    pool, server = gateway.gateway_property.pool, gateway._callback_server  # noqa: SLF001
    with pool.lock:
        if not isinstance(pool.dict, _Proxies):
            pool.dict = _Proxies(pool.dict)
    pre_server_shutdown.connect(_warn, sender=server, unique_id=__name__)
    if not hasattr(server, "_variantlake"):
        server._variantlake = True  # noqa: SLF001
        _unblock(server)


def interrupt_again() -> None:
    """Send SIGINT to the main thread shortly, once the JVM has its answer and goes on.

    This repeats a Ctrl-C, or a SystemExit from a handler of SIGTERM, that came during a callback.
    """
    main = threading.main_thread().ident
    timer = threading.Timer(_AGAIN_SECONDS, signal.pthread_kill, (main, signal.SIGINT))
    timer.daemon = True
    timer.start()


def _is_ours(called: object) -> bool:
    return type(called).__module__.startswith("variantlake.")


def _warn(**_: object) -> None:
    with suppress(Warning):  # if warnings are errors
        warnings.warn(
            "queries are left as Spark runs them: the server for callbacks of py4j is shut down",
            stacklevel=4,
        )


def _unblock(server: Any) -> None:
    """Make connections close at once: py4j would wait for their threads, which await requests."""
    create = server._create_connection  # noqa: SLF001
    with server.lock:
        server._create_connection = lambda *given: _closing(create(*given))  # noqa: SLF001
        for each in server.connections:
            _closing(each)


def _closing(connection: Any) -> Any:
    taken, close = connection.socket, connection.close

    def closed(reset: bool = False) -> None:
        with suppress(OSError):
            taken.shutdown(socket.SHUT_RDWR)
        close(reset)

    if taken is not None:
        connection.close = closed
    return connection
