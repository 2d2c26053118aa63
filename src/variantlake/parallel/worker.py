"""The loop of a worker process, which runs one call at a time."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import pyarrow as pa

IDLE_SECONDS = 60.0


def serve(connection: Connection, module: str) -> None:
    """Import `module`, then answer calls until none comes for IDLE_SECONDS.

    A call is a job and its item; a job of None means the previous one. The answer is a tuple with
    the result, or None after an error: the caller then runs the job itself and gets the error.
    """
    pa.set_cpu_count(1)  # other workers use the other cores
    importlib.import_module(module)
    job: Callable[[Any], Any] | None = None
    with connection:
        try:
            connection.send_bytes(b"")
            while connection.poll(IDLE_SECONDS):
                # Pickled by our parent process.
                packed, item = pickle.loads(connection.recv_bytes())  # noqa: S301
                job = job if packed is None else pickle.loads(packed)  # noqa: S301
                connection.send_bytes(_answer(job, item))
        except (EOFError, OSError):
            return  # the parent has ended


def _answer(job: Any, item: object) -> bytes:
    try:
        return pickle.dumps((job(item),), pickle.HIGHEST_PROTOCOL)
    except Exception:  # noqa: BLE001  # the caller repeats the job and gets the error
        return pickle.dumps(None)
