"""`variantlake inspect`: how a table or a file is shredded, and what is known of each path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

import variantlake as vl
from variantlake.cli.tables.cat import VariantOption, is_file, path_of
from variantlake.cli.terminal.options import SourceArgument, json_option
from variantlake.cli.terminal.output import (
    print_fields,
    print_json,
    print_line,
    print_rows,
    rows_of_files,
    size,
)
from variantlake.delta.log.file_paths import absolute_paths
from variantlake.delta.protocol.learned_schemas import (
    LearnedSchemas,
    layout_name,
    learned_schemas,
)
from variantlake.delta.stats.file_facts import FactsReader
from variantlake.parquet.read.inspect import SAMPLE_ROWS, FileView, NodeView, VariantView
from variantlake.parquet.stats.facts import FileFacts, PathFacts, VariantFacts
from variantlake.planning.log_files import LogFiles
from variantlake.shown import counted
from variantlake.shredding.ddl import MAX_SCHEMA_DEPTH, format_ddl
from variantlake.shredding.inference.infer import Inference, InferenceOptions
from variantlake.shredding.schema import Array, Leaf, Object, ShreddingSchema
from variantlake.shredding.values import ValueNotes
from variantlake.table import Table

DEFAULTS = InferenceOptions()

LACKING = "TIME, nanoseconds or other types that Spark lacks"
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
    as_json: Annotated[bool, json_option()] = False,
) -> None:
    """Show how VARIANT columns are shredded: paths, types, shares, bounds, sizes."""
    if not is_file(source):
        if why:
            raise typer.BadParameter("--why looks at a file's rows: name one file of the table")
        if variant:
            raise typer.BadParameter("--variant is for files: a table's schema names its columns")
        _print_table(Table.open(source), as_json=as_json)
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
        print_json(_file_document(view))
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
        _heading(".".join(variant.column))
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
        _count(node.nulls),
        _count(node.residuals),
        _cut(node.minimum),
        _cut(node.maximum),
        size(sum(stored)) if stored else "",
    ]


def _note_fields(notes: ValueNotes | None) -> dict[str, str]:
    """What is known of the values of a column, in words."""
    if notes is None:
        return {"residuals": "unknown types"}
    said = {"residuals": LACKING if notes.lacking else "types that Spark reads"}
    for name, paths in _integers(notes).items():
        if paths:
            said[f"integers in DECIMAL, {name}"] = ", ".join(paths)
    return said


def _integers(notes: ValueNotes) -> dict[str, list[str]]:
    """The DECIMAL columns that hold integers, by what these come back as."""
    told = notes.told_apart
    found = {"as integers": told, "as decimals": notes.integers - told}
    return {name: sorted(map(str, paths)) for name, paths in found.items()}


def _note_document(notes: ValueNotes | None) -> dict[str, Any] | None:
    if notes is None:
        return None
    found = _integers(notes)
    return {
        "types_spark_lacks": notes.lacking,
        "integers": found["as integers"],
        "integers_as_decimals": found["as decimals"],
    }


def _file_document(view: FileView) -> dict[str, Any]:
    return {
        "rows": view.num_rows,
        "row_groups": view.row_groups,
        "created_by": view.created_by,
        "variants": [_variant_document(variant) for variant in view.variants],
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
    """By column, of the Variants at the top of the file."""
    return {
        column: vl.parquet.why(
            file, column, sample_rows=sample, variant_columns=variants, options=options
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
        _heading(column)
        rows = ([str(path), "yes" if yes else "no", why] for path, yes, why in inference.reasons)
        print_rows(["path", "column", "why"], rows)


@dataclass(slots=True)
class _PathTotal:
    """One path over all files whose facts are known."""

    path: str
    type: str
    files: int = 0
    clean: int = 0
    bounded: int = 0
    typed: int = 0
    residuals: int = 0

    def add(self, facts: PathFacts) -> None:
        self.files += 1
        self.clean += facts.clean
        self.bounded += facts.minimum is not None and facts.maximum is not None
        self.typed += max(facts.typed, 0)
        self.residuals += max(facts.residuals, 0)


def _print_table(table: Table, *, as_json: bool) -> None:
    files = table.files()
    reader = FactsReader(table.schema)
    known = [reader.known(add) for add in table.snapshot.add_files()]
    facts = [each for each in known if each is not None]
    rows = LogFiles(table.snapshot).row_count
    outside = absolute_paths(files)
    total = sum(add.size for add in table.snapshot.add_files())
    columns = table.schema.variant_columns(physical=True)
    totals = {
        ".".join(column): list(_totals([v for each in facts if (v := each.variant(column))]))
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
                    name: [
                        {
                            "path": each.path,
                            "type": each.type,
                            "files": each.files,
                            "clean_files": each.clean,
                            "bounded_files": each.bounded,
                            "typed_rows": each.typed,
                            "residual_rows": each.residuals,
                        }
                        for each in paths
                    ]
                    for name, paths in totals.items()
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
    for name, paths in totals.items():
        of = counted(files.num_rows, "file")
        _heading(f"{name}: the log says how {len(facts):,} of {of} are shredded")
        counts = residuals[name]
        if counts["types_spark_lacks"]:
            print_line(f"files whose residuals hold {LACKING}: {counts['types_spark_lacks']:,}")
        if counts["unknown"]:
            print_line(f"files whose residuals hold unknown types: {counts['unknown']:,}")
        if len(layouts[name]) > 1:
            print_rows(
                ["layout", "schema", "since version", "files", "rows", "columns"],
                (
                    [each.layout, each.schema, each.since, each.files, f"{each.rows:,}", each.paths]
                    for each in layouts[name]
                ),
            )
        print_rows(
            ["path", "type", "files", "clean", "bounds", "typed rows", "residual rows"],
            (
                [p.path, p.type, p.files, p.clean, p.bounded, f"{p.typed:,}", f"{p.residuals:,}"]
                for p in paths
            ),
        )


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


def _totals(variants: Sequence[VariantFacts]) -> Iterator[_PathTotal]:
    """Paths with their type, in the order of their first file."""
    found: dict[tuple[str, str], _PathTotal] = {}
    for variant in variants:
        for facts in variant.paths:
            key = (str(facts.path), _type_name(facts))
            found.setdefault(key, _PathTotal(*key)).add(facts)
    yield from found.values()


def _type_name(facts: PathFacts) -> str:
    match facts.node:
        case Leaf(type=shredded):
            return shredded.ddl
        case Object():
            return "STRUCT"
        case Array():
            return "ARRAY"
    return "VARIANT"


def _heading(text: str) -> None:
    print_line("")
    print_line(text, "bold")


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _cut(text: str, length: int = 40) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
