"""Make the log entries of a new table, also of one that replaces another.

Spec: PROTOCOL, "Change Metadata", "Clustered Table". The history is as in Delta Spark.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from variantlake.delta.actions.actions import (
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    Transaction,
)
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.log.time_travel import SINCE_TIME, SINCE_VERSION
from variantlake.delta.protocol.clustering import DOMAIN as CLUSTERING
from variantlake.delta.protocol.clustering import clustering_domain
from variantlake.delta.protocol.features import writer_features
from variantlake.delta.protocol.known_properties import check_properties, is_of_protocol
from variantlake.delta.protocol.learned_schemas import PREFIX as LEARNED_PREFIX
from variantlake.delta.protocol.needed_features import extended_protocol, needed_features
from variantlake.delta.protocol.new_table import new_table
from variantlake.delta.protocol.properties import of_table
from variantlake.delta.protocol.row_tracking import PROPERTY as ROW_TRACKING
from variantlake.delta.protocol.row_tracking import materialized_columns
from variantlake.delta.schema.column_mapping import is_mapped, with_mapping
from variantlake.delta.schema.table_schema import StructField, StructType, spark_name
from variantlake.delta.transaction.commit import OF_OTHER_FILES, commit, commit_new
from variantlake.delta.transaction.conflicts import Changes, whole_table
from variantlake.delta.transaction.new_actions import removes_of
from variantlake.errors import InvalidSchema
from variantlake.storage.store import Store

CONVERT = "CONVERT"
"""The operation that turns existing files into a table in place."""


@dataclass(frozen=True, slots=True)
class Creation:
    """A new table: its first protocol and metadata, and the columns that it is clustered by.

    `operation` is the name of the operation in the history.
    """

    protocol: Protocol
    metadata: Metadata
    domains: tuple[DomainMetadata, ...]
    operation: str
    cluster_columns: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        replaced: Snapshot | None,
        schema: StructType,
        partition_columns: Sequence[str],
        properties: Mapping[str, str],
        *,
        cluster_columns: Sequence[str] = (),
        name: str | None = None,
        description: str | None = None,
        operation: str = "CREATE TABLE",
    ) -> Creation:
        """Describe a new table. If it replaces `replaced`, it keeps its features and row tracking.

        Raises as `new_table`, InvalidSchema for columns that cannot cluster it.
        """
        tracked = {} if replaced is None else _row_tracking(replaced, properties)
        protocol, metadata = new_table(
            schema,
            partition_columns,
            {**({ROW_TRACKING: "true"} if tracked else {}), **properties},
            clustered=bool(cluster_columns),
            name=name,
            description=description,
        )
        metadata = replace(metadata, configuration={**metadata.configuration, **tracked})
        domains = _clustering(replaced, metadata, cluster_columns)
        if replaced is not None:
            protocol = extended_protocol(replaced.protocol, writer_features(protocol))
        return cls(protocol, metadata, domains, operation, tuple(cluster_columns))

    @classmethod
    def like(cls, source: Snapshot, properties: Mapping[str, str]) -> Creation:
        """Describe an empty table like `source`, with `properties` added and no clustering.

        Raises UnsupportedFeature and InvalidValue as `set_properties`.
        """
        given = of_table(check_properties(properties), source.schema)
        kept = {k: v for k, v in given.items() if not is_of_protocol(k)}
        configuration = own_configuration(source, materialized_columns()) | kept
        if configuration.get(ROW_TRACKING, "").lower() == "true":
            configuration = {**materialized_columns(), **configuration}
        schema = source.schema
        if is_mapped(configuration):
            schema, configuration = with_mapping(schema, configuration, keep_names=False)
        metadata = replace(
            source.metadata,
            id=str(uuid.uuid4()),
            name=None,
            created_time=time.time_ns() // 1_000_000,
            schema_string=schema.to_json(),
            configuration=configuration,
        )
        protocol = extended_protocol(source.protocol, needed_features(schema, given))
        return cls(protocol, metadata, (), "CREATE TABLE")

    def parameters(self, files: int) -> dict[str, Any]:
        """Return the operation's parameters in the history; `files` counts the first files."""
        partition_columns = _json(list(self.metadata.partition_columns))
        if self.operation == CONVERT:
            return {
                "numFiles": files,
                "partitionedBy": partition_columns,
                "collectStats": True,
                "sourceFormat": "parquet",
            }
        return {
            "partitionBy": partition_columns,
            "clusterBy": _json(list(self.cluster_columns)),
            "description": self.metadata.description,
            "isManaged": "false",
            "properties": _json(
                {
                    key: value
                    for key, value in self.metadata.configuration.items()
                    if not key.startswith(LEARNED_PREFIX)  # our loads set these, not the user
                }
            ),
        }


def commit_creation(
    store: Store,
    made: Creation,
    *,
    adds: Sequence[AddFile] = (),
    metrics: Mapping[str, str] | None = None,
    transactions: Sequence[Transaction] = (),
    domains: Sequence[DomainMetadata] = (),
    provenance: Mapping[str, Any] | None = None,
) -> int:
    """Make the first commit of a new table. Raises CommitConflict if a log exists already."""
    # As in Delta Spark: a blind append, unless the statement could replace a table.
    said: Mapping[str, Any] = {"isBlindAppend": "REPLACE" not in made.operation}
    if made.operation == CONVERT:
        said, metrics = OF_OTHER_FILES, {"numConvertedFiles": str(len(adds))}
    return commit_new(
        store,
        made.protocol,
        made.metadata,
        operation=made.operation,
        parameters=made.parameters(len(adds)),
        adds=adds,
        metrics=metrics,
        transactions=transactions,
        domains=(*made.domains, *domains),
        file_metrics=made.operation != CONVERT,
        provenance={**said, **(provenance or {})},
    )


def replace_table(snapshot: Snapshot, creation: Creation) -> int:
    """Replace an existing table by an empty one; returns the new version.

    Raises CommitConflict if another writer changed it, and as `commit`.
    """
    changes = Changes(
        creation.operation,
        removes=removes_of(snapshot.add_files()),
        metadata=creation.metadata,
        protocol=None if creation.protocol == snapshot.protocol else creation.protocol,
        domains=creation.domains,
        reads=whole_table,
        serializable=True,
        file_metrics=False,
        parameters=creation.parameters(0),
    )
    return commit(snapshot, changes)


def check_is_like(snapshot: Snapshot, wanted: Metadata, *, is_partitioned: bool) -> None:
    """Raise InvalidSchema, with the differences, unless the table fits the `wanted` metadata.

    It may have more columns, and be stricter about NULLs. `is_partitioned`: the caller chose the
    partition columns, which must then be the same.
    """
    names = {field.name.lower(): field for field in snapshot.schema.fields}
    different = list[str]()
    for field in StructType.from_json(wanted.schema_string).fields:
        there = names.get(field.name.lower())
        if there is None:
            different.append(f"the column {field.name!r} is missing")
        elif str(there.type) != str(field.type):
            different.append(f"{field.name!r} is {_ddl(there)}, not {_ddl(field)}")
        elif there.nullable and not field.nullable:
            different.append(f"{field.name!r} may be NULL")
    own, new = snapshot.metadata.partition_columns, wanted.partition_columns
    if is_partitioned and [each.lower() for each in own] != [each.lower() for each in new]:
        by = ", ".join(own) if own else "no column"
        different.append(f"it is partitioned by {by}")
    if different:
        raise InvalidSchema(
            f"the table that is there is another one: {'; '.join(different)}",
            file=snapshot.store.uri,
            hint="vl.Table.open opens it as it is, add_column adds columns, and "
            "create(..., replace=True) replaces it",
            cli_hint="`variantlake info` shows it, `variantlake alter` adds columns, and --replace "
            "replaces it",
        )


_OF_A_LOG = (SINCE_VERSION, SINCE_TIME, "delta.requireCheckpointProtectionBeforeVersion")
"""Properties that refer to versions or times of one table's log."""


def own_configuration(source: Snapshot, row_columns: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a new table that is made from `source`.

    Its properties that name the columns for materialized row ids come from `row_columns`.
    """
    found = {k: v for k, v in source.metadata.configuration.items() if k not in _OF_A_LOG}
    own = {k: v for k, v in row_columns.items() if k.startswith("delta.rowTracking.")}
    return found | own if ROW_TRACKING in found else found


def _row_tracking(replaced: Snapshot, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that keep row tracking, none if `properties` set row tracking."""
    own = replaced.metadata.configuration
    if own.get(ROW_TRACKING, "").lower() != "true" or ROW_TRACKING in properties:
        return {}
    return {key: own[key] for key in (ROW_TRACKING, *materialized_columns()) if key in own}


def _clustering(
    replaced: Snapshot | None, metadata: Metadata, columns: Sequence[str]
) -> tuple[DomainMetadata, ...]:
    was_clustered = replaced is not None and CLUSTERING in replaced.domains
    if was_clustered and metadata.partition_columns:
        raise InvalidSchema(
            "a clustered table is not replaced by one with partitions",
            hint="make a new table, or leave out the partition columns",
        )
    if not columns and not was_clustered:
        return ()
    schema = StructType.from_json(metadata.schema_string)
    return (clustering_domain(schema, columns, metadata.partition_columns),)


def _ddl(field: StructField) -> str:
    name = spark_name(field.type)
    return name if "<" in name else name.upper()


def _json(value: object) -> str:
    return orjson.dumps(value).decode()
