"""The columns that a table is clustered by. Spec: PROTOCOL, "Clustered Table"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from variantlake.delta.actions.actions import DomainMetadata
from variantlake.delta.schema.table_schema import StructType, VariantType
from variantlake.errors import InvalidSchema, MalformedLog

DOMAIN = "delta.clustering"


def clustering_columns(domains: Mapping[str, DomainMetadata]) -> tuple[tuple[str, ...], ...]:
    """The physical paths of the clustering columns; none for a table that is not clustered.

    Raises MalformedLog for a domain that does not name columns.
    """
    domain = domains.get(DOMAIN)
    if domain is None:
        return ()
    try:
        columns: Any = orjson.loads(domain.configuration)["clusteringColumns"]
        # A name is a string, a column in a struct a list of them.
        return tuple((c,) if isinstance(c, str) else tuple(map(str, c)) for c in columns)
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise MalformedLog(f"the domain {DOMAIN} names no clusteringColumns") from error


def clustering_domain(
    schema: StructType, columns: Sequence[str], partition_columns: Sequence[str]
) -> DomainMetadata:
    """The domain of a table that is clustered by these columns.

    Raises InvalidSchema for a column that is missing or has no order, and beside partitions.
    """
    if partition_columns:
        raise InvalidSchema("a table is either partitioned or clustered")
    paths = []
    for column in columns:
        field = schema.get(column)
        if field is None:
            known = ", ".join(item.name for item in schema.fields)
            raise InvalidSchema(
                f"clustering column {column!r} is not in the schema", hint=f"columns: {known}"
            )
        if isinstance(field.type, VariantType):
            raise InvalidSchema(
                f"column {column!r} is a Variant, which cannot cluster a table: it has no order",
                hint=f"name a path of it, as in {column}:id::bigint, or an ordinary column",
            )
        paths.append([field.physical_name])
    configuration = orjson.dumps({"clusteringColumns": paths, "domainName": DOMAIN}).decode()
    return DomainMetadata(DOMAIN, configuration)
