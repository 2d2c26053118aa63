"""What `variantlake inspect` shows of a table: layouts, paths and residuals over all files."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from variantlake.cli.terminal.output import (
    heading,
    print_fields,
    print_json,
    print_line,
    print_rows,
)
from variantlake.delta.log.file_paths import absolute_paths
from variantlake.delta.protocol.learned_schemas import (
    LearnedSchemas,
    layout_name,
    learned_schemas,
)
from variantlake.delta.stats.file_facts import FactsReader
from variantlake.parquet.stats.facts import FileFacts, VariantFacts
from variantlake.planning.log_files import LogFiles
from variantlake.report.paths import PathTotals, paths_of
from variantlake.shown import counted, size
from variantlake.shredding.ddl import format_ddl
from variantlake.shredding.schema import Leaf, ShreddingSchema
from variantlake.table import Table

LACKING = "TIME, nanoseconds or other types that Spark lacks"


def print_table(table: Table, *, as_json: bool) -> None:
    """Show a table, as JSON or for people."""
    files = table.files()
    reader = FactsReader(table.schema)
    known = [reader.known(add) for add in table.snapshot.add_files()]
    facts = [each for each in known if each is not None]
    log = LogFiles(table.snapshot)
    rows = log.row_count
    outside = absolute_paths(files)
    total = int(log.sizes.sum())
    columns = table.schema.variant_columns(physical=True)
    totals = {
        ".".join(column): paths_of(log.facts.variant(column), sys.maxsize).paths
        for column in columns
    }
    layouts = {".".join(column): _layouts(table, facts, column) for column in columns}
    residuals = {
        ".".join(column): _residual_files([each.variant(column) for each in facts])
        for column in columns
    }
    features = table.protocol.writer_features or ()
    if as_json:
        print_json(
            {
                "location": table.uri,
                "version": table.version,
                "files": files.num_rows,
                "files_with_facts": len(facts),
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
        heading(f"{name}: the log says how {len(facts):,} of {of} are shredded")
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


@dataclass(slots=True)
class _LayoutTotal:
    """The files of one layout; `schema` and `since` are of the learned schema that has it."""

    layout: str
    schema: int | None
    since: int | None
    files: int
    rows: int
    paths: int
    shredding: str


def _layouts(
    table: Table, facts: Sequence[FileFacts], column: tuple[str, ...]
) -> list[_LayoutTotal]:
    """The layouts of a column, oldest schema first."""
    learned = learned_schemas(table.properties, ".".join(column)) or LearnedSchemas()
    found: dict[ShreddingSchema, _LayoutTotal] = {}
    for each in facts:
        variant = each.variant(column)
        if variant is None:
            continue
        total = found.get(variant.schema)
        if total is None:
            name = layout_name(variant.schema)
            by = learned.find(name)
            total = found[variant.schema] = _LayoutTotal(
                name,
                None if by is None else by.number,
                None if by is None else by.version,
                0,
                0,
                sum(isinstance(node, Leaf) for _, node in variant.schema.nodes()),
                format_ddl(variant.schema),
            )
        total.files += 1
        total.rows += each.num_records
    return sorted(found.values(), key=lambda each: (each.schema or 0, each.layout))


def _residual_files(variants: Sequence[VariantFacts | None]) -> dict[str, int]:
    """How many files have residuals of types that Spark lacks, and of how many nobody knows.

    Files whose column is not shredded, or whose residuals are empty, are neither.
    """
    notes = [
        variant.notes
        for variant in variants
        if variant is not None and not all(path.residuals == 0 for path in variant.paths)
    ]
    lacking = sum(each is not None and each.lacking for each in notes)
    return {"types_spark_lacks": lacking, "unknown": notes.count(None)}
