"""`variantlake inspect`: show the shredding of a table or a file, and the facts of each path."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import variantlake as vl
from variantlake.cli.tables.cat import VariantOption, is_file, path_of
from variantlake.cli.tables.inspect_table import KEY_ORDER, LACKING, print_table
from variantlake.cli.terminal.options import (
    SourceArgument,
    TimestampOption,
    VersionOption,
    json_option,
)
from variantlake.cli.terminal.output import (
    count,
    heading,
    print_fields,
    print_json,
    print_line,
    print_rows,
)
from variantlake.cli.terminal.progress import rows_of_files
from variantlake.parquet.read.inspect import SAMPLE_ROWS, FileView, NodeView, VariantView
from variantlake.shown import shortened, size
from variantlake.shredding.ddl import MAX_SCHEMA_DEPTH
from variantlake.shredding.inference.infer import Inference, InferenceOptions
from variantlake.shredding.values import ValueNotes
from variantlake.table import Table

DEFAULTS = InferenceOptions()
_WIDTH = 40
"""Characters of a bound."""

NO_VARIANT = "The file has no VARIANT column; --variant names one that nothing marks."


def inspect(
    source: SourceArgument,
    *,
    why: Annotated[
        bool,
        typer.Option(
            "--why",
            help="For a file: show the schema that inference gives its VARIANT columns, and why.",
        ),
    ] = False,
    min_share: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="For --why: the share of rows that must have a path.",
            min=0,
            max=1,
        ),
    ] = DEFAULTS.min_share,
    min_purity: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="For --why: the share of a path's values that must have one type.",
            min=0,
            max=1,
        ),
    ] = DEFAULTS.min_purity,
    max_columns: Annotated[
        int, typer.Option(metavar="N", help="For --why: the maximum number of columns.", min=0)
    ] = DEFAULTS.max_columns,
    max_depth: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="For --why: the maximum number of steps of a path.",
            min=0,
            max=MAX_SCHEMA_DEPTH,
        ),
    ] = DEFAULTS.max_depth,
    arrays: Annotated[
        bool, typer.Option("--arrays", help="For --why: arrays become columns too.")
    ] = DEFAULTS.arrays,
    sample: Annotated[
        int,
        typer.Option(
            metavar="ROWS", help="For --why: the number of rows to read, from the first.", min=1
        ),
    ] = SAMPLE_ROWS,
    variant: VariantOption = None,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    as_json: Annotated[bool, json_option()] = False,
) -> None:
    """Show how VARIANT columns are shredded: paths, types, shares, bounds, sizes."""
    if not is_file(source):
        if why:
            raise typer.BadParameter("--why looks at a file's rows: name one file of the table")
        if variant:
            raise typer.BadParameter("--variant is for files: a table's schema names its columns")
        print_table(Table.open(source, version, timestamp=timestamp), as_json=as_json)
        return
    file = path_of(source)
    if why:
        options = InferenceOptions(
            min_share=min_share,
            min_purity=min_purity,
            max_columns=max_columns,
            max_depth=max_depth,
            arrays=arrays,
        )
        _print_reasons(_inferences(file, variant or [], sample, options), as_json=as_json)
        return
    with rows_of_files() as shown:
        view = vl.parquet.inspect_file(file, variant_columns=variant or [], progress=shown(file))
    _print_file(source, view, as_json=as_json)


def _print_file(source: str, view: FileView, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "rows": view.num_rows,
                "row_groups": view.row_groups,
                "created_by": view.created_by,
                "variants": [_variant_document(variant) for variant in view.variants],
            }
        )
        return
    print_fields(
        {
            "file": source,
            "rows": f"{view.num_rows:,}",
            "row groups": view.row_groups,
            "written by": view.created_by,
        }
    )
    if not view.variants:
        print_line(NO_VARIANT)
    for variant in view.variants:
        heading(".".join(variant.column))
        print_fields(
            {
                "layout": "Spark's older one" if variant.legacy else "final",
                "annotated": "VARIANT" if variant.annotated else "no",
                "shredded into": variant.ddl,
                "SQL NULLs": "unknown" if variant.nulls is None else f"{variant.nulls:,}",
                **_note_fields(variant.notes),
                "metadata": size(variant.metadata_size.compressed),
            }
        )
        names = ["path", "type", "share", "nulls", "residuals", "minimum", "maximum", "size"]
        print_rows(names, map(_node_row, variant.root.walk()))


def _node_row(node: NodeView) -> list[Any]:
    stored = [each.compressed for each in (node.value_size, node.typed_value_size) if each]
    kind = f"{node.type} ({node.parquet_type})" if node.parquet_type else node.type
    share = "" if node.share is None else f"{node.share:.1%}"
    return [
        str(node.path),
        kind,
        share,
        count(node.nulls),
        count(node.residuals),
        shortened(node.minimum, _WIDTH),
        shortened(node.maximum, _WIDTH),
        size(sum(stored)) if stored else "",
    ]


def _note_fields(notes: ValueNotes | None) -> dict[str, str]:
    """Describe the notes on a column's values in words."""
    if notes is None:
        return {"residuals": "unknown types"}
    said = {"residuals": LACKING if notes.lacking else "types that Spark reads"}
    if notes.reordered:
        said["keys"] = KEY_ORDER
    for name, paths in _integers(notes).items():
        if paths:
            said[f"integers in DECIMAL, {name}"] = ", ".join(paths)
    return said


def _integers(notes: ValueNotes) -> dict[str, list[str]]:
    """Return the DECIMAL columns that hold integers, by the form in which these are rebuilt."""
    told = notes.told_apart
    found = {"as integers": told, "as decimals": notes.integers - told}
    return {name: sorted(map(str, paths)) for name, paths in found.items()}


def _note_document(notes: ValueNotes | None) -> dict[str, Any] | None:
    if notes is None:
        return None
    found = _integers(notes)
    return {
        "types_spark_lacks": notes.lacking,
        "key_orders_differ": notes.reordered,
        "integers": found["as integers"],
        "integers_as_decimals": found["as decimals"],
    }


def _variant_document(variant: VariantView) -> dict[str, Any]:
    return {
        "column": ".".join(variant.column),
        "layout": "legacy" if variant.legacy else "final",
        "annotated": variant.annotated,
        "shredding": variant.ddl,
        "nulls": variant.nulls,
        "notes": _note_document(variant.notes),
        "metadata_bytes": variant.metadata_size.compressed,
        "nodes": [
            {
                "path": str(node.path),
                "type": node.type,
                "parquet_type": node.parquet_type,
                "typed": node.typed,
                "nulls": node.nulls,
                "residuals": node.residuals,
                "share": node.share,
                "minimum": node.minimum,
                "maximum": node.maximum,
                "value_bytes": node.value_size and node.value_size.compressed,
                "typed_value_bytes": node.typed_value_size and node.typed_value_size.compressed,
            }
            for node in variant.root.walk()
        ],
    }


def _inferences(
    file: str, variants: list[str], sample: int, options: InferenceOptions
) -> dict[str, Inference]:
    """Infer a schema for each top-level Variant column of a file."""
    return {
        column: vl.parquet.why(
            file, column, sample_rows=sample, variant_columns=variants, inference=options
        )
        for column in vl.parquet.find_variants(file, variant_columns=variants)
        if "." not in column
    }


def _print_reasons(inferences: dict[str, Inference], *, as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {"column": column, "path": str(path), "taken": taken, "why": why}
                for column, inference in inferences.items()
                for path, taken, why in inference.reasons
            ]
        )
        return
    if not inferences:
        print_line(NO_VARIANT)
    for column, inference in inferences.items():
        heading(column)
        rows = ([str(path), "yes" if yes else "no", why] for path, yes, why in inference.reasons)
        print_rows(["path", "column", "why"], rows)
