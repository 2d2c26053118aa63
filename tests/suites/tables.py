"""A table of types that only others write, as they write it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def geometries(folder: Path) -> Path:
    """Two rows with a geometry, months and a span of time, and bounds as text."""
    rows = pa.table(
        {
            "id": pa.array([1, 2], pa.int32()),
            "shape": pa.array([b"\x01\x01", None], pa.binary()),
            "months": pa.array([18, None], pa.int32()),
            "span": pa.array([86_400_000_022, None], pa.int64()),
        }
    )
    pq.write_table(rows, folder / "a.parquet")
    types = ("integer", "geometry(OGC:CRS84)", "interval year", "interval day to second")
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in zip(rows.column_names, types, strict=True)
    ]
    features = ["geospatial"]
    stats = {
        "numRecords": 2,
        "minValues": {"id": 1, "shape": "POINT(1 2)"},
        "maxValues": {"id": 2, "shape": "POINT(3 4)"},
        "nullCount": dict.fromkeys(rows.column_names[1:], 1),
    }
    add = {
        "path": "a.parquet",
        "partitionValues": {},
        "size": (folder / "a.parquet").stat().st_size,
        "modificationTime": 0,
        "dataChange": True,
        "stats": json.dumps(stats),
    }
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
    metadata = {
        "id": "shapes",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 0,
    }
    actions = [
        {"protocol": protocol | dict.fromkeys(("readerFeatures", "writerFeatures"), features)},
        {"metaData": metadata},
        {"add": add},
    ]
    log = folder / "_delta_log"
    log.mkdir()
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    return folder
