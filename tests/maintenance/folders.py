"""Tables whose log is written by hand, with any files beside it, at any time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

import orjson

from variantlake.delta.stats import z85

HOUR = 3_600_000
SCHEMA = '{"type":"struct","fields":[{"name":"n","type":"integer","nullable":true,"metadata":{}}]}'


def put(root: Path, path: str, millis: int, data: bytes = b"x" * 100) -> Path:
    """A file at a path below the root, last written then."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return touch(file, millis)


def touch(file: Path, millis: int) -> Path:
    os.utime(file, ns=(millis * 1_000_000, millis * 1_000_000))
    return file


def found(root: Path) -> set[str]:
    """All files below the root but the log's."""
    files = (p for p in root.rglob("*") if p.is_file() or p.is_symlink())
    names = (str(p.relative_to(root)) for p in files)
    return {name for name in names if not name.startswith("_delta_log")}


def commit(root: Path, version: int, millis: int, actions: Iterable[Mapping[str, Any]]) -> None:
    """A commit of these actions, at that time."""
    info = {"commitInfo": {"timestamp": millis, "operation": "TEST"}}
    first: list[dict[str, Any]] = []
    if version == 0:
        features = ["deletionVectors"]
        protocol: dict[str, Any] = {"minReaderVersion": 3, "minWriterVersion": 7}
        protocol |= {"readerFeatures": features, "writerFeatures": features}
        metadata = {"id": "t", "format": {"provider": "parquet", "options": {}}}
        metadata |= {"schemaString": SCHEMA, "partitionColumns": [], "configuration": {}}
        first = [{"protocol": protocol}, {"metaData": metadata}]
    lines = b"".join(orjson.dumps(action) + b"\n" for action in [info, *first, *actions])
    put(root, f"_delta_log/{version:020d}.json", millis, lines)


def add(path: str, *, vector: UUID | None = None, encoded: bool = True) -> dict[str, Any]:
    name = quote(path) if encoded else path
    fields: dict[str, Any] = {"path": name, "size": 100, "partitionValues": {}}
    fields |= {"modificationTime": 0, "dataChange": True, "stats": '{"numRecords": 5}'}
    if vector is not None:
        fields["deletionVector"] = descriptor(vector)
    return {"add": fields}


def remove(path: str, millis: int | None, *, vector: UUID | None = None) -> dict[str, Any]:
    fields: dict[str, Any] = {"path": quote(path), "dataChange": True, "deletionTimestamp": millis}
    if vector is not None:
        fields["deletionVector"] = descriptor(vector)
    return {"remove": fields}


def descriptor(vector: UUID) -> dict[str, Any]:
    text = z85.encode(vector.bytes)
    fields = {"storageType": "u", "pathOrInlineDv": text, "offset": 1}
    return {**fields, "sizeInBytes": 34, "cardinality": 1}


def vector_file(vector: UUID) -> str:
    return f"deletion_vector_{vector}.bin"
