"""Small Delta tables for the tests: logs written line by line, and facts of files never written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

import pyarrow as pa

from variantlake.delta.actions.actions import AddFile, Transaction
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.clustering import clustering_columns
from variantlake.delta.protocol.features import VARIANT_SHREDDING
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.schema.table_schema import StructType
from variantlake.delta.stats.file_facts import FactsReader
from variantlake.delta.stats.stats_reader import FileStats, StatsReader
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes
from variantlake.delta.transaction.creation import Creation, commit_creation
from variantlake.delta.transaction.new_actions import new_add
from variantlake.parquet.stats.bounds import Bounds
from variantlake.parquet.stats.facts import UNKNOWN, ColumnFacts, FileFacts, PathFacts, VariantFacts
from variantlake.paths import Path
from variantlake.shredding.ddl import parse_ddl
from variantlake.storage.store import Store

SCHEMA = parse_table_ddl("event VARIANT, n INT")

PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["variantType", "variantShredding"],
    "writerFeatures": ["variantType", "variantShredding", "appendOnly", "invariants"],
}


def metadata(**configuration: str) -> dict[str, Any]:
    return {
        "id": "11111111-2222-3333-4444-555555555555",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": SCHEMA.to_json(),
        "partitionColumns": [],
        "configuration": configuration,
        "createdTime": 0,
    }


def add(path: str, **fields: Any) -> dict[str, Any]:
    return {
        "add": {
            "path": path,
            "partitionValues": {},
            "size": 10,
            "modificationTime": 1,
            "dataChange": True,
            **fields,
        }
    }


def remove(path: str, **fields: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True, **fields}}


def first_commit(*actions: dict[str, Any], **configuration: str) -> list[dict[str, Any]]:
    return [{"protocol": PROTOCOL}, {"metaData": metadata(**configuration)}, *actions]


def write_log(root: FilePath, *commits: list[dict[str, Any]], start: int = 0) -> str:
    """Write the commits as they stand; gives the table's location."""
    log = root / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    for version, actions in enumerate(commits, start=start):
        lines = "\n".join(json.dumps(action) for action in actions)
        (log / f"{version:020d}.json").write_text(lines + "\n", encoding="utf-8")
    return str(root)


def facts(
    layout: str = "a BIGINT, s STRING",
    *,
    size: int = 100,
    num_records: int = 5,
    column: tuple[str, ...] = ("event",),
    paths: dict[str, dict[str, Any]] | None = None,
    columns: tuple[ColumnFacts, ...] = (),
) -> FileFacts:
    """Facts of a file with one Variant column: every node full and clean unless `paths` says so."""
    schema = parse_ddl(layout)
    changed = paths or {}
    found = [
        PathFacts(
            path,
            node,
            **_known({"typed": num_records, **changed.get(path.normalized(), {})}),
        )
        for path, node in schema.nodes()
    ]
    variant = VariantFacts(column, schema, 0, tuple(found))
    return FileFacts(size, num_records, 1, (variant,), columns)


def _known(given: dict[str, Any]) -> dict[str, Any]:
    sides = ("minimum", "maximum", "minimum_exact", "maximum_exact")
    found = {name: value for name, value in given.items() if name not in sides}
    bounds = Bounds(**{name: value for name, value in given.items() if name in sides})
    return {"nulls": 0, "residuals": 0, "bounds": bounds} | found


def number(name: str, low: int, high: int) -> ColumnFacts:
    return ColumnFacts(
        (name,), pa.int32(), 0, Bounds(low, high, minimum_exact=True, maximum_exact=True)
    )


def bounds(low: Any, high: Any, **more: Any) -> dict[str, Any]:
    return {
        "minimum": low,
        "maximum": high,
        "minimum_exact": True,
        "maximum_exact": True,
        **more,
    }


def path(text: str) -> Path:
    return Path.parse(text)


def known_facts(add: AddFile, schema: StructType) -> FileFacts | None:
    """What the log alone says about one file."""
    return FactsReader(schema).read_facts(add)


def facts_in_log(add: AddFile, schema: StructType) -> FileFacts:
    """The same; where our tags do not tell, what statistics say of the ordinary columns."""
    stats = read_stats(add.stats, schema)
    other = FileFacts(add.size, stats.num_records, UNKNOWN, (), stats.columns)
    return known_facts(add, schema) or other


def add_for(
    snapshot: Snapshot,
    path: str,
    facts: FileFacts,
    partition_values: Mapping[str, str | None] | None = None,
) -> AddFile:
    """`new_add` for a file of an existing table."""
    return new_add(
        path,
        facts,
        schema=snapshot.schema,
        properties=snapshot.properties,
        partition_columns=snapshot.partition_columns,
        partition_values=partition_values,
        variant_bounds=not snapshot.features.isdisjoint(VARIANT_SHREDDING),
        always=clustering_columns(snapshot.domains),
    )


def create_table(
    store: Store,
    schema: StructType,
    *,
    partition_columns: Sequence[str] = (),
    cluster_columns: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    adds: Sequence[AddFile] = (),
    metrics: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
) -> int:
    """Create a table, with its first files, in one commit; returns its version, 0."""
    made = Creation.of(
        None,
        schema,
        partition_columns,
        properties or {},
        cluster_columns=cluster_columns,
        name=name,
        description=description,
        operation="CREATE TABLE AS SELECT" if adds else "CREATE TABLE",
    )
    return commit_creation(store, made, adds=adds, metrics=metrics)


def append(
    snapshot: Snapshot, adds: Sequence[AddFile], *, transactions: Sequence[Transaction] = ()
) -> int:
    """Append files to the table that a snapshot is a version of."""
    return commit(snapshot, Changes("WRITE", adds=tuple(adds), transactions=tuple(transactions)))


def read_stats(text: str | None, schema: StructType) -> FileStats:
    """What the statistics of one file say."""
    return StatsReader(schema).read(text)
