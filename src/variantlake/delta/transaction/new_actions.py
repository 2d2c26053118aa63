"""The actions of data files that we add to a table or remove from it."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence

from variantlake.delta.actions.actions import AddFile, RemoveFile
from variantlake.delta.log.files.file_paths import encode_path
from variantlake.delta.schema.table_schema import StructType
from variantlake.delta.stats.stats_writer import Column, StatsOptions, write_stats
from variantlake.delta.stats.tags import file_tags
from variantlake.parquet.stats.facts import FileFacts


def new_add(
    path: str,
    facts: FileFacts,
    *,
    schema: StructType,
    properties: Mapping[str, str],
    partition_columns: Sequence[str] = (),
    partition_values: Mapping[str, str | None] | None = None,
    variant_bounds: bool = True,
    always: Collection[Column] = (),
) -> AddFile:
    """Return the `add` of a finished file, with its statistics and our tags.

    `path` is relative to the table's root and not percent-encoded. `partition_values` are
    serialised, by physical names. `variant_bounds` is false for a table without the feature
    `variantShredding`. `always` are the physical paths of columns that have statistics whatever
    the properties say (those that the table is clustered by).
    """
    options = StatsOptions.from_properties(properties)
    columns = options.chosen(schema, partition_columns).union(always)
    return AddFile(
        path=encode_path(path),
        size=facts.size,
        modification_time=time.time_ns() // 1_000_000,
        partition_values=dict(partition_values or {}),
        stats=write_stats(facts, columns, options, variant_bounds=variant_bounds),
        tags=file_tags(facts, options),
    )


def removes_of(adds: Iterable[AddFile], *, data_change: bool = True) -> tuple[RemoveFile, ...]:
    """Return the tombstones of files that a commit removes now."""
    now = time.time_ns() // 1_000_000
    return tuple(
        RemoveFile(
            path=add.path,
            deletion_timestamp=now,
            data_change=data_change,
            extended_file_metadata=True,
            partition_values=add.partition_values,
            size=add.size,
            stats=add.stats,
            tags=add.tags,
            deletion_vector=add.deletion_vector,
            base_row_id=add.base_row_id,
            default_row_commit_version=add.default_row_commit_version,
        )
        for add in adds
    )
