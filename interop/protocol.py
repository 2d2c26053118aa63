"""The protocol of a worker: it answers each line of JSON with one line of JSON.

A request is {"action": name, ...arguments}; the answer is {"answer": ...} or {"error": text}. The
worker's standard output is the channel, so whatever its engine prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from typing import Any


class Absent(Exception):
    """The engine needs a part that is not available here; this is no result of the engine."""


ACTIONS = ("read_table", "read_files", "write_files", "create", "append", "delete", "update")


def offered(engine: object) -> dict[str, Callable[..., Any]]:
    """The actions that an engine has."""
    return {name: getattr(engine, name) for name in ACTIONS if hasattr(engine, name)}


def serve(start: Callable[[], dict[str, Callable[..., Any]]]) -> None:
    """Answer requests until the input ends; `offers` is answered with the names of the actions.

    `start` makes the actions. A process that it starts, such as Spark's JVM, prints no more than
    this one does on the channel.
    """
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    offered = start()
    actions = offered | {"offers": lambda: sorted(offered)}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = {"answer": actions[request.pop("action")](**request)}
        except BaseException as error:  # noqa: BLE001 - also what Rust's panics raise: all are told
            reply = {"error": f"{type(error).__name__}: {_first_line(error)}"}
        channel.write(json.dumps(reply) + "\n")
        channel.flush()


def _first_line(error: BaseException) -> str:
    # Py4J's own message names the call, and not Java's error.
    java: Any = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.toString())
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # Names of files and addresses differ between runs and machines.
    first = re.sub(r"https?://\S+", "<address>", (lines or [""])[0])
    return re.sub(r"part-\S+parquet", "part-….parquet", first)[:400]
