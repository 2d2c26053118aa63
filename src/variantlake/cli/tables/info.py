"""`variantlake info`: describe a table."""

from __future__ import annotations

from typing import Annotated, Any

from variantlake.cli.terminal.options import (
    TableArgument,
    TimestampOption,
    VersionOption,
    json_option,
)
from variantlake.cli.terminal.output import heading, print_fields, print_json, print_rows
from variantlake.delta.schema.table_schema import DataType, PrimitiveType, spark_name
from variantlake.planning.log_files import LogFiles
from variantlake.shown import size
from variantlake.table import Table


def _type(kind: DataType) -> str:
    """Write a type in DDL."""
    return (spark_name(kind) if isinstance(kind, PrimitiveType) else str(kind)).upper()


def info(
    table: TableArgument,
    *,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    as_json: Annotated[bool, json_option()] = False,
) -> None:
    """Show what a table is: columns, partitions, rows, files, properties, features."""
    opened = Table.open(table, version, timestamp=timestamp)
    log, snapshot = LogFiles(opened.snapshot), opened.snapshot
    protocol = opened.protocol
    features = sorted({*(protocol.reader_features or ()), *(protocol.writer_features or ())})
    document: dict[str, Any] = {
        "location": opened.uri,
        "version": opened.version,
        "time": opened.history(1)[0].time.isoformat(" ", "seconds"),
        "rows": log.row_count,
        "files": snapshot.files.num_rows,
        "bytes": int(log.sizes.sum()),
        "partition_columns": list(snapshot.partition_columns),
        "features": features,
        "properties": opened.properties,
        "columns": [
            {"name": each.name, "type": _type(each.type), "nullable": each.nullable}
            for each in opened.schema.fields
        ],
    }
    if as_json:
        print_json(document)
        return
    columns, properties = document.pop("columns"), document.pop("properties")
    count = document["rows"]
    print_fields(
        document
        | {
            "rows": "unknown" if count is None else f"{count:,}",
            "bytes": size(document["bytes"]),
            "partition_columns": ", ".join(snapshot.partition_columns) or "none",
            "features": ", ".join(features) or "none",
        }
    )
    heading("columns")
    rows = [(e["name"], e["type"], "" if e["nullable"] else "NOT NULL") for e in columns]
    print_rows(["name", "type", ""], rows)
    if properties:
        heading("properties")
        print_fields(properties)
