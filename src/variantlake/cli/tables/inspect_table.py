"""Show a table for `variantlake inspect`: layouts, paths and residuals over all files."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from variantlake.cli.terminal.output import (
    heading,
    print_fields,
    print_json,
    print_line,
    print_rows,
)
from variantlake.delta.log.files.file_paths import absolute_paths
from variantlake.delta.protocol.learned_schemas import (
    LearnedSchemas,
    layout_name,
    learned_schemas,
)
from variantlake.parquet.stats.fact_columns import LACKING as SPARK_LACKS
from variantlake.parquet.stats.fact_columns import REORDERED, Int64s, VariantColumns
from variantlake.parquet.stats.facts import UNKNOWN
from variantlake.planning.log_files import LogFiles
from variantlake.report.paths import PathTotals, paths_of
from variantlake.shown import counted, size
from variantlake.shredding.ddl import format_ddl
from variantlake.shredding.schema import Leaf
from variantlake.table import Table

LACKING = "TIME, nanoseconds or other types that Spark lacks"
KEY_ORDER = "keys above U+FFFF that Spark without variantlake may not find"


def print_table(table: Table, *, as_json: bool) -> None:
    """Show a table, as JSON or for people."""
    files = table.snapshot.files
    log = LogFiles(table.snapshot)
    records = log.facts.num_records
    outside = absolute_paths(files)
    total = int(log.sizes.sum())
    variants = {
        ".".join(column): variant
        for column in table.schema.variant_columns(physical=True)
        if (variant := log.facts.variant(column)) is not None
    }
    # Files of which the log tells all of this.
    told = np.logical_and.reduce([records >= 0, *(each.layout >= 0 for each in variants.values())])
    known, rows = int(told.sum()), log.row_count
    totals = {name: paths_of(each, sys.maxsize).paths for name, each in variants.items()}
    layouts = {name: _layouts(table, name, each, records) for name, each in variants.items()}
    residuals = {name: _residual_files(each) for name, each in variants.items()}
    features = table.protocol.writer_features or ()
    if as_json:
        print_json(
            {
                "location": table.uri,
                "version": table.version,
                "files": files.num_rows,
                "files_with_facts": known,
                "rows": rows,
                "bytes": total,
                "absolute_paths": outside,
                "features": list(features),
                "properties": table.properties,
                "residuals": residuals,
                "layouts": {name: [asdict(each) for each in of] for name, of in layouts.items()},
                "columns": {
                    name: [_path_fields(each) for each in paths] for name, paths in totals.items()
                },
            }
        )
        return
    print_fields(
        {
            "table": table.uri,
            "version": table.version,
            "files": f"{files.num_rows:,} ({size(total)})",
            "rows": "unknown" if rows is None else f"{rows:,}",
            "features": ", ".join(features),
            **table.properties,
        }
    )
    for path in outside:
        print_line(f"refers to a file by an absolute path: {path}")
    of = counted(files.num_rows, "file")
    for name, paths in totals.items():
        heading(f"{name}: the log has the shredding of {known:,} of {of}")
        _print_column(residuals[name], layouts[name], paths)


def _path_fields(each: PathTotals) -> dict[str, Any]:
    return {
        "path": str(each.path),
        "type": each.type_name,
        "files": each.files,
        "clean_files": each.clean,
        "bounded_files": each.bounded,
        "typed_rows": each.typed,
        "residual_rows": each.residuals,
    }


def _print_column(
    residuals: Mapping[str, int], layouts: Sequence[_LayoutTotal], paths: Sequence[PathTotals]
) -> None:
    if residuals["types_spark_lacks"]:
        print_line(f"files whose residuals hold {LACKING}: {residuals['types_spark_lacks']:,}")
    if residuals["key_orders_differ"]:
        print_line(f"files with {KEY_ORDER}: {residuals['key_orders_differ']:,}")
    if residuals["unknown"]:
        print_line(f"files whose residuals hold unknown types: {residuals['unknown']:,}")
    if len(layouts) > 1:
        print_rows(
            ["layout", "schema", "since version", "files", "rows", "columns"],
            (
                [each.layout, each.schema, each.since, each.files, f"{each.rows:,}", each.paths]
                for each in layouts
            ),
        )
    rows = []
    for each in paths:
        *shown, typed, left = _path_fields(each).values()
        rows.append([*shown, f"{typed:,}", f"{left:,}"])
    print_rows(["path", "type", "files", "clean", "bounds", "typed rows", "residual rows"], rows)


@dataclass(frozen=True, slots=True)
class _LayoutTotal:
    """The files of one layout; `schema` and `since` are those of the learned schema with it."""

    layout: str
    schema: int | None
    since: int | None
    files: int
    rows: int
    paths: int
    shredding: str


def _layouts(
    table: Table, column: str, variant: VariantColumns, records: Int64s
) -> list[_LayoutTotal]:
    """Return the layouts of a column, oldest schema first."""
    learned = learned_schemas(table.properties, column) or LearnedSchemas()
    found = []
    for code in np.unique(variant.layout[variant.layout >= 0]).tolist():
        schema = variant.schemas[code]
        name, own = layout_name(schema), variant.layout == code
        by = learned.find(name)
        found.append(
            _LayoutTotal(
                name,
                None if by is None else by.number,
                None if by is None else by.version,
                int(own.sum()),
                int(records[own].sum()),
                sum(isinstance(node, Leaf) for _, node in schema.nodes()),
                format_ddl(schema),
            )
        )
    return sorted(found, key=lambda each: (each.schema or 0, each.layout))


def _residual_files(variant: VariantColumns) -> dict[str, int]:
    """Count the files with residuals of types that Spark lacks, and those where it is unknown.

    Files whose column is not shredded, or whose residuals are empty, count as neither. Also counts
    the files with keys that Spark may order differently.
    """
    some = np.zeros(len(variant.layout), np.bool_)
    for code, schema in enumerate(variant.schemas):
        rows = np.flatnonzero(variant.layout == code)
        for number, _ in enumerate(schema.nodes()):
            some[rows] |= variant.counts(rows, np.full(len(rows), number)).residuals != 0
    notes = variant.notes[some]
    lacking = (notes != UNKNOWN) & (notes & SPARK_LACKS != 0)
    every = variant.notes
    return {
        "types_spark_lacks": int(lacking.sum()),
        "key_orders_differ": int(((every != UNKNOWN) & (every & REORDERED != 0)).sum()),
        "unknown": int((notes == UNKNOWN).sum()),
    }
