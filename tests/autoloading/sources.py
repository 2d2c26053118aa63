"""A source that grows, and what a table holds of it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import variantlake as vl
from variantlake.errors import NotADeltaTable

SETTLED = 60
"""Seconds since the last change of a file that `put` wrote, unless the test says otherwise."""


def put(path: Path, *ids: int, data: bytes | None = None, age: float = SETTLED) -> Path:
    """Write a file of documents with these ids, or of just these bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{json.dumps({'id': each, 'kind': 'x'})}\n" for each in ids)
    path.write_bytes(text.encode() if data is None else data)
    moment = time.time() - age
    os.utime(path, (moment, moment))
    return path


def ids(table: Path | str) -> list[int]:
    """The ids of the documents in the table, sorted; none if there is no table."""
    try:
        found = vl.Table.open(table)
    except NotADeltaTable:
        return []
    values: list[Any] = found.scan("event:id::int AS id").to_arrow()["id"].to_pylist()
    return sorted(values)


def states(table: Path | str) -> dict[str, str]:
    """The state of each file."""
    rows = vl.Table.open(table).loads().to_pylist()
    return {row["file"]: row["state"] for row in rows}
