"""What conditions over a table mean in its files: physical names, types of partition columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import UnsupportedFeature
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.planning.log_files import LogFiles
from variantlake.planning.predicates import Predicate, Ref, map_refs, refs
from variantlake.planning.stats.skipping import Skipper
from variantlake.scan.footers import Footers
from variantlake.sql.select import QueryText

_SPARK_NAMES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}


def partition_types(snapshot: Snapshot) -> dict[str, str]:
    """The Spark types of the partition columns, by physical names."""
    found = {}
    for column in snapshot.schema.fields:
        if column.name in snapshot.partition_columns:
            name = str(column.type)
            found[column.physical_name] = _SPARK_NAMES.get(name, name)
    return found


def stored_ref(snapshot: Snapshot, ref: Ref) -> Ref:
    """The Ref by the names that files have."""
    column = snapshot.schema.get(ref.column[0])
    if column is None or column.physical_name == column.name:
        return ref
    return replace(ref, column=(column.physical_name,), shown=ref.column)


def condition_on_files(snapshot: Snapshot, text: str) -> Predicate:
    """A condition that says which files are looked at, as it stands after WHERE.

    Raises InvalidQuery and UnsupportedFeature.
    """
    try:
        return QueryText(snapshot.schema).condition(text)
    except UnsupportedFeature as error:
        error.hint = (
            "files are chosen by comparisons of columns and paths with constants of their types, "
            "with AND, OR and NOT between them"
        )
        error.cli_hint = None
        raise


def files_that_may_match(snapshot: Snapshot, where: Predicate) -> Int64s:
    """The rows of the snapshot's files that may hold a match; exact over partition columns."""
    stored = map_refs(where, lambda ref: stored_ref(snapshot, ref))
    files = Footers().with_facts(snapshot, LogFiles(snapshot), refs(stored))
    return np.flatnonzero(Skipper(stored, partition_types(snapshot)).may_match(files))
