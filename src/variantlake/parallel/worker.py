"""A worker process: it does one call at a time, and ends when it gets no more."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import pyarrow as pa

IDLE_SECONDS = 60.0


def serve(connection: Connection, module: str) -> None:
    """Answer the calls that come; `module` is loaded before they do.

    A call is a job, or None for that of the call before, and its item. The answer is a tuple of the
    result, or None if there is none: the caller then does it itself, and learns why.
    """
    pa.set_cpu_count(1)  # the others have the other cores
    importlib.import_module(module)
    job: Callable[[Any], Any] | None = None
    with connection:
        try:
            connection.send_bytes(b"")
            while connection.poll(IDLE_SECONDS):
                # Of the process that began this one.
                packed, item = pickle.loads(connection.recv_bytes())  # noqa: S301
                job = job if packed is None else pickle.loads(packed)  # noqa: S301
                connection.send_bytes(_answer(job, item))
        except (EOFError, OSError):
            return  # that process has ended


def _answer(job: Any, item: object) -> bytes:
    try:
        return pickle.dumps((job(item),), pickle.HIGHEST_PROTOCOL)
    except Exception:  # noqa: BLE001  # raised again where the call came from
        return pickle.dumps(None)
