"""Tables made action by action, as writers other than ours may make them."""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from variantlake.delta.stats import z85

Action = dict[str, Any]

V2: dict[str, Any] = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["v2Checkpoint"],
    "writerFeatures": ["v2Checkpoint"],
}
VECTORS = {**V2, "readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
FAR = 9_999_999_999_999


def field(name: str, type_: Any, **metadata: Any) -> dict[str, Any]:
    """A column, which may be NULL."""
    return {"name": name, "type": type_, "nullable": True, "metadata": metadata}


def structure(*fields: dict[str, Any]) -> dict[str, Any]:
    """A struct's type."""
    return {"type": "struct", "fields": list(fields)}


def numbers(*values: int) -> pa.Table:
    """Rows of one INT column `a`."""
    return pa.table({"a": pa.array(values, pa.int32())})


class HandMade:
    """A table whose log and files are written one by one."""

    def __init__(
        self,
        root: Path,
        *fields: dict[str, Any],
        partitions: Sequence[str] = (),
        protocol: Mapping[str, Any] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.root, self.log, self.version = root, root / "_delta_log", 0
        self.log.mkdir(parents=True)
        schema = structure(*(fields or (field("a", "integer"),)))
        self.metadata: Action = {
            "id": str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(schema),
            "partitionColumns": list(partitions),
            "configuration": dict(properties or {}),
            "createdTime": 0,
        }
        self.head: list[Action] = [
            {"protocol": protocol or {"minReaderVersion": 1, "minWriterVersion": 2}},
            {"metaData": self.metadata},
        ]

    def add(self, rows: pa.Table, name: str, path: str = "", **words: Any) -> Action:
        """The action of a file that is written; `path` is what the log calls it."""
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, file)
        found: Action = {"path": path or name, "partitionValues": {}, "size": file.stat().st_size}
        return {"add": found | {"modificationTime": 1, "dataChange": True} | words}

    def commit(self, *actions: Action, text: str | None = None) -> None:
        """The next version; `text` is what its file holds instead."""
        lines = "".join(f"{json.dumps(action)}\n" for action in actions)
        (self.log / f"{self.version:020d}.json").write_text(text or lines)
        self.version += 1

    def forget(self, *versions: int) -> None:
        """Remove commits, which a checkpoint stands for."""
        for version in versions:
            (self.log / f"{version:020d}.json").unlink()

    def vector(self, *places: int, prefix: str = "", pad: bytes = b"") -> Action:
        """A descriptor of deleted rows in a file beside the data."""
        name, bitmap = uuid.uuid4(), roaring(*places)
        checked = struct.pack(">I", len(bitmap)) + bitmap + struct.pack(">I", zlib.crc32(bitmap))
        file = self.root / prefix / f"deletion_vector_{name}.bin"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"\x01" + pad + checked)
        place = prefix + z85.encode(name.bytes)
        found: Action = {"storageType": "u", "pathOrInlineDv": place, "offset": 1 + len(pad)}
        return found | {"sizeInBytes": len(bitmap), "cardinality": len(places)}

    def checkpoint(self, version: int, name: str, actions: Sequence[Action]) -> None:
        """A checkpoint's file, of the kind that its name ends with."""
        file = self.log / f"{version:020d}.checkpoint.{name}"
        if name.endswith("json"):
            file.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
        else:
            pq.write_table(_columns(actions), file)

    def sidecar(self, *actions: Action) -> Action:
        """The action that names a sidecar of these."""
        file = self.log / "_sidecars" / f"{uuid.uuid4()}.parquet"
        file.parent.mkdir(exist_ok=True)
        pq.write_table(_columns(actions).select(["add", "remove"]), file)
        found: Action = {"path": file.name, "sizeInBytes": file.stat().st_size}
        return {"sidecar": found | {"modificationTime": 1}}


def roaring(*places: int) -> bytes:
    """A bitmap of places below 65,536. Spec: PROTOCOL, "Deletion Vector Format"."""
    container = struct.pack("<IIHHI", 12346, 1, 0, len(places) - 1, 16)
    values = b"".join(struct.pack("<H", place) for place in places)
    return struct.pack("<IqI", 1681511377, 1, 0) + container + values


def inline(*places: int) -> Action:
    """A descriptor that holds its bitmap."""
    bitmap = roaring(*places)
    text = z85.encode(bitmap + bytes(-len(bitmap) % 4))
    found: Action = {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(bitmap)}
    return found | {"cardinality": len(places)}


def remove(path: str) -> Action:
    """The action that takes a file away."""
    return {"remove": {"path": path, "deletionTimestamp": FAR, "dataChange": True}}


def group(types: Mapping[str, Any]) -> Any:
    """Arrow's struct of these fields."""
    return pa.struct(list(types.items()))


_MAPS = pa.map_(pa.string(), pa.string())
_FILE = {"size": pa.int64(), "modificationTime": pa.int64(), "dataChange": pa.bool_()}
_NAMES = pa.list_(pa.string())
_SCHEMA = pa.schema(
    {
        "txn": group({"appId": pa.string(), "version": pa.int64()}),
        "add": group({"path": pa.string(), "partitionValues": _MAPS, **_FILE}),
        "remove": group(
            {"path": pa.string(), "deletionTimestamp": pa.int64(), "dataChange": pa.bool_()}
        ),
        "metaData": group(
            {
                "id": pa.string(),
                "format": group({"provider": pa.string(), "options": _MAPS}),
                "schemaString": pa.string(),
                "partitionColumns": _NAMES,
                "configuration": _MAPS,
                "createdTime": pa.int64(),
            }
        ),
        "protocol": group(
            {
                "minReaderVersion": pa.int32(),
                "minWriterVersion": pa.int32(),
                "readerFeatures": _NAMES,
                "writerFeatures": _NAMES,
            }
        ),
        "checkpointMetadata": group({"version": pa.int64(), "tags": _MAPS}),
        "sidecar": group(
            {"path": pa.string(), "sizeInBytes": pa.int64(), "modificationTime": pa.int64()}
        ),
    }
)


def _columns(actions: Sequence[Action]) -> pa.Table:
    return pa.Table.from_pylist([_as_pairs(action) for action in actions], schema=_SCHEMA)


def _as_pairs(value: Any) -> Any:
    """Objects that are maps as lists of pairs, as Arrow takes them."""
    if not isinstance(value, dict):
        return value
    maps = ("partitionValues", "configuration", "tags", "options")
    return {
        key: list(item.items()) if key in maps else _as_pairs(item) for key, item in value.items()
    }
