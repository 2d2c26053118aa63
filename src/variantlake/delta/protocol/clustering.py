"""The columns that a table is clustered by. Spec: PROTOCOL, "Clustered Table"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from variantlake.delta.actions.actions import DomainMetadata
from variantlake.delta.schema.columns_by_path import (
    FieldPath,
    field_path,
    in_structs,
    logical_path,
    physical_path,
    type_at,
)
from variantlake.delta.schema.table_schema import PrimitiveType, StructType, VariantType
from variantlake.errors import InvalidSchema, MalformedLog

DOMAIN = "delta.clustering"

MOST_COLUMNS = 4
"""Delta Spark's limit."""


def clustering_columns(domains: Mapping[str, DomainMetadata]) -> tuple[tuple[str, ...], ...]:
    """Return the physical paths of the clustering columns; empty if the table is not clustered.

    Raises MalformedLog for a domain that does not name columns.
    """
    domain = domains.get(DOMAIN)
    if domain is None:
        return ()
    try:
        columns: Any = orjson.loads(domain.configuration)["clusteringColumns"]
        # A column is a string, a field in a struct a list of strings.
        return tuple((c,) if isinstance(c, str) else tuple(map(str, c)) for c in columns)
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise MalformedLog(f"the domain {DOMAIN} names no clusteringColumns") from error


def clustering_names(
    schema: StructType, domains: Mapping[str, DomainMetadata]
) -> tuple[FieldPath, ...]:
    """Return the paths of the clustering columns by logical names."""
    return tuple(logical_path(schema, path) for path in clustering_columns(domains))


def clustering_domain(
    schema: StructType, columns: Sequence[str], partition_columns: Sequence[str]
) -> DomainMetadata:
    """Return the domain of a table that is clustered by these columns or fields of structs.

    Raises InvalidSchema for a column that is missing, repeated or without an order, for too many
    columns, and if the table is partitioned.
    """
    if partition_columns:
        raise InvalidSchema("a table is either partitioned or clustered")
    if len(columns) > MOST_COLUMNS:
        raise InvalidSchema(
            f"[DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS] CLUSTER BY takes up to {MOST_COLUMNS} columns,"
            f" and these are {len(columns)}",
            hint="name those that most queries filter by",
        )
    paths = []
    for column in columns:
        path = field_path(schema, column)
        type_ = type_at(schema, path)
        if isinstance(type_, VariantType):
            raise InvalidSchema(
                f"column {column!r} is a Variant, which cannot cluster a table: it has no order",
                hint=f"name a path of it, as in {column}:id::bigint, or an ordinary column",
            )
        if not isinstance(type_, PrimitiveType) or not in_structs(schema, path):
            raise InvalidSchema(
                f"column {column!r} cannot cluster a table: it is {type_}, or in an array or a map",
                hint="name columns, or fields of structs, of types that have an order",
            )
        paths.append(physical_path(schema, path))
    if len(set(paths)) < len(paths):
        raise InvalidSchema(f"cannot cluster by {', '.join(columns)}: a column appears twice")
    configuration = orjson.dumps({"clusteringColumns": paths, "domainName": DOMAIN}).decode()
    return DomainMetadata(DOMAIN, configuration)
