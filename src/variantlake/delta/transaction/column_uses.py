"""Find where a table names a column: in expressions, its layout and properties.

A rename of the column must update such names or is refused; most of them prevent its drop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import orjson

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol import cluster_paths
from variantlake.delta.protocol.clustering import clustering_columns
from variantlake.delta.protocol.known_properties import (
    CONTRACT_PREFIX,
    OF_COLUMNS,
    STATS_COLUMNS,
)
from variantlake.delta.protocol.learned_schemas import PREFIX as LEARNED_PREFIX
from variantlake.delta.protocol.properties import constraints, shredding_schemas
from variantlake.delta.schema.columns_by_path import (
    FieldPath,
    field_at,
    parse_field_path,
    physical_path,
    shown_path,
)
from variantlake.delta.schema.references import speaks_of
from variantlake.delta.schema.table_schema import StructType
from variantlake.errors import InvalidSchema, UnsupportedFeature
from variantlake.quoting import identifier


def check_not_used(snapshot: Snapshot, path: FieldPath, what: str) -> None:
    """Raise UnsupportedFeature for a column that an SQL expression of the table uses."""
    for user, remedy in _users(snapshot, path):
        raise UnsupportedFeature(
            f"column {shown_path(path)} cannot be {what}: {user} uses it", hint=remedy
        )


def _users(snapshot: Snapshot, path: FieldPath) -> Iterator[tuple[str, str]]:
    for name, expression in constraints(snapshot.properties).items():
        if speaks_of(expression, path):
            remedy = f"drop the constraint first and add it again: drop_constraint({name!r})"
            yield f"the constraint {name!r} ({expression})", remedy
    for field in snapshot.schema.walk():
        generation = field.generation
        if generation is not None and (field.name,) != path and speaks_of(generation, path):
            remedy = f"drop the column {field.name!r} first"
            yield f"the generated column {field.name!r} ({generation})", remedy
        invariant = field.metadata.get("delta.invariants")
        if isinstance(invariant, str) and speaks_of(_invariant(invariant), path):
            yield f"the invariant of column {field.name!r} ({invariant})", "only Delta Spark can"


def _invariant(text: str) -> str:
    try:
        return str(orjson.loads(text)["expression"]["expression"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return text


def check_not_layout(snapshot: Snapshot, path: FieldPath) -> None:
    """Raise InvalidSchema for a column that the table is partitioned or clustered by."""
    if len(path) == 1 and path[0] in snapshot.partition_columns:
        raise InvalidSchema(
            f"column {path[0]!r} cannot be dropped: the table is partitioned by it",
            hint="copy the rows into a table with other partitions",
        )
    physical = physical_path(snapshot.schema, path)
    if any(each[: len(physical)] == physical for each in clustering_columns(snapshot.domains)):
        raise InvalidSchema(
            f"column {shown_path(path)} cannot be dropped: the table is clustered by it",
            hint="ALTER TABLE ... CLUSTER BY NONE ends the clustering",
        )
    text = snapshot.properties.get(cluster_paths.PROPERTY)
    if text is None:
        return
    known = shredding_schemas(snapshot.properties, snapshot.schema)
    ordered = cluster_paths.cluster_paths(text, snapshot.schema, snapshot.partition_columns, known)
    if any(each.stored[: len(physical)] == physical for each in ordered):
        raise InvalidSchema(
            f"column {shown_path(path)} cannot be dropped: the table is clustered by {text}",
            hint="set_clustering(...) with other paths, or without any, comes first",
            cli_hint=f"`variantlake set TABLE {cluster_paths.PROPERTY}=...` or `unset` comes first",
        )


def without_column(
    configuration: Mapping[str, str], schema: StructType, name: str
) -> dict[str, str]:
    """Return the properties without those of this Variant column."""
    physical = field_at(schema, (name,)).physical_name
    own = {prefix + physical for prefix in (*OF_COLUMNS, LEARNED_PREFIX, CONTRACT_PREFIX)}
    return {key: value for key, value in configuration.items() if key not in own}


def with_renamed(
    configuration: Mapping[str, str], old: FieldPath, new: FieldPath | None
) -> dict[str, str]:
    """Return the properties that list columns, with `new` for `old`, or without it for None."""
    found = dict(configuration)
    listed = found.get(STATS_COLUMNS)
    if listed is not None:
        names = _renamed_list(listed, old, new)
        if names is None:
            del found[STATS_COLUMNS]
        else:
            found[STATS_COLUMNS] = names
    text = found.get(cluster_paths.PROPERTY)
    if text is not None and new is not None:
        found[cluster_paths.PROPERTY] = ", ".join(
            cluster_paths.with_column(part, old, new) for part in cluster_paths.split_paths(text)
        )
    return found


def _renamed_list(text: str, old: FieldPath, new: FieldPath | None) -> str | None:
    """Return a list of columns after one of them is renamed or dropped; None if none is left."""
    wanted = tuple(part.lower() for part in old)
    parts = []
    for part in filter(None, (each.strip() for each in text.split(","))):
        path = parse_field_path(part)
        if tuple(each.lower() for each in path[: len(old)]) != wanted:
            parts.append(part)
        elif new is not None:
            parts.append(".".join(map(identifier, (*new, *path[len(old) :]))))
    return ",".join(parts) or None
