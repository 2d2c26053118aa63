"""Translate conditions over a table to its files: physical names, types of partition columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.columns_by_path import physical_path
from variantlake.delta.schema.table_schema import spark_name
from variantlake.errors import UnsupportedFeature
from variantlake.expressions.tree import Ref, map_refs, refs
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.planning.log_files import LogFiles
from variantlake.planning.stats.skipping import Skipper
from variantlake.scan.footers import Footers
from variantlake.sql.select import QueryText


def partition_types(snapshot: Snapshot) -> dict[str, str]:
    """The Spark types of the partition columns, by physical names."""
    return {
        column.physical_name: spark_name(column.type)
        for column in snapshot.schema.fields
        if column.name in snapshot.partition_columns
    }


def stored_ref(snapshot: Snapshot, ref: Ref) -> Ref:
    """The Ref by the names that the files use."""
    if snapshot.schema.get(ref.column[0]) is None:
        return ref
    stored = physical_path(snapshot.schema, ref.column)
    return ref if stored == ref.column else replace(ref, column=stored, shown=ref.column)


def files_matching(snapshot: Snapshot, where: str | None) -> Callable[[Snapshot], Int64s | None]:
    """Make a function that finds a version's files that may match, exactly over partition columns.

    The function returns rows of the version's files, None for all of them. `where` is a condition
    as after WHERE, over the columns of `snapshot`; None chooses all.

    Raises InvalidQuery and UnsupportedFeature.
    """
    if where is None:
        return lambda _: None
    try:
        condition = QueryText(snapshot.schema).condition(where)
    except UnsupportedFeature as error:
        error.hint = (
            "files are chosen by comparisons of columns and paths with constants of their types, "
            "with AND, OR and NOT between them"
        )
        error.cli_hint = None
        raise

    def matching_files(version: Snapshot) -> Int64s:
        stored = map_refs(condition, lambda ref: stored_ref(version, ref))
        files = Footers().with_facts(version, LogFiles(version), refs(stored))
        return np.flatnonzero(Skipper(stored, partition_types(version)).may_match(files))

    return matching_files
