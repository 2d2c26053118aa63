"""Check a Parquet file against every rule for Variant columns: its schema, then its rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from variantlake.errors import MissingSource, VariantLakeError
from variantlake.kernels.shredded.check_rows import find_problems
from variantlake.parquet.metadata.footer import Footer, is_parquet, read_footer
from variantlake.parquet.metadata.schema_tree import SchemaNode
from variantlake.parquet.read.parquet_source import BATCH_ROWS, open_parquet
from variantlake.parquet.read.reader import named_groups
from variantlake.parquet.variant.variant_columns import (
    ColumnWithVariants,
    FoundVariants,
    column_of,
    variant_nodes,
)
from variantlake.parquet.variant.variant_group import GroupNode, VariantGroup, parse_group
from variantlake.paths import Path
from variantlake.progress import OnProgress, Progress
from variantlake.shredding.layout import METADATA, TYPED_VALUE, VALUE
from variantlake.shredding.legacy.layout import ARRAY
from variantlake.shredding.legacy.unshred import legacy_problems
from variantlake.shredding.rules import ShreddingRule
from variantlake.shredding.schema import Array, Untyped
from variantlake.storage.opening import Source, name_of
from variantlake.storage.options import reach_with


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule. `row` counts from the start of the file; None concerns all rows.

    `column` is the dotted name of the Variant column, `path` a path in the Variant (empty for the
    whole column), `rule` the broken rule, `message` what the file has instead.
    """

    row: int | None
    column: str
    path: str
    rule: str
    message: str

    def __str__(self) -> str:
        where = [] if self.row is None else [f"row {self.row}"]
        where += [part for part in (self.column, self.path) if part]
        return f"{', '.join(where) or 'file'}: {self.message} (rule: {self.rule})"


def check_file(
    path: Source,
    *,
    variant_columns: Collection[str] = (),
    batch_rows: int = BATCH_ROWS,
    progress: OnProgress | None = None,
    annotation: bool = True,
    storage_options: Mapping[str, str] | None = None,
) -> Iterator[Finding]:
    """Check every Variant column of a file, and yield the findings.

    A Parquet file that cannot be read is a finding, not an error. Memory is bounded by one batch.
    `variant_columns` are dotted names of groups to check as Variants although the file does not
    mark them. `progress` is called after each batch with the rows checked so far and the rows of
    the file. With `annotation` false, a group need not be marked as VARIANT: in a Delta table the
    table's schema defines which columns are Variants, and the protocol requires no mark in files.

    Raises MissingSource when there is no such file, MalformedFile for one that neither begins nor
    ends as a Parquet file, InvalidPath for a group that the file does not have.
    """
    reach_with(path, storage_options)
    try:
        footer = read_footer(path)
    except MissingSource:
        raise
    except VariantLakeError as error:
        if not is_parquet(path):
            raise
        yield Finding(None, "", "", ShreddingRule.FILE.value, error.message)
        return
    wanted = named_groups(footer, variant_columns)
    readable: list[tuple[SchemaNode, ColumnWithVariants]] = []
    for top in footer.schema.children:
        is_readable = True
        for node, column in variant_nodes(top, wanted, (top.name,)):
            for finding in _check_schema(node, column, annotation=annotation):
                is_readable &= finding.rule != ShreddingRule.GROUP.value
                yield finding
        reading = column_of(top, wanted) if is_readable else None
        if reading is not None:
            readable.append((top, reading))
    if readable:
        yield from _check_rows(path, footer, readable, batch_rows, progress)


def _check_schema(
    node: SchemaNode, column: tuple[str, ...], *, annotation: bool
) -> Iterator[Finding]:
    name = ".".join(column)
    try:
        group = parse_group(node, column)
    except VariantLakeError as error:
        yield Finding(None, name, error.path, ShreddingRule.GROUP.value, error.message)
        return
    for path, rule, message in _check_layout(group, node):
        if rule is ShreddingRule.ANNOTATION and not annotation:
            continue
        yield Finding(None, name, str(path), rule.value, message)


def _check_layout(
    group: VariantGroup, node: SchemaNode
) -> Iterator[tuple[Path, ShreddingRule, str]]:
    """Check the rules for the schema that reading does not enforce."""
    if group.is_legacy:
        yield from _check_legacy(group.root, Path())
        return
    if not group.annotated:
        yield Path(), ShreddingRule.ANNOTATION, "the group has no logical type"
    metadata = node.named(METADATA)
    if metadata is not None and metadata.repetition != "required":
        yield (
            Path(),
            ShreddingRule.REPETITION,
            f"metadata is {metadata.repetition}, expected required",
        )
    value = node.named(VALUE)
    unshredded = isinstance(group.root.node, Untyped)
    if unshredded and value is not None and value.repetition != "required":
        yield Path(), ShreddingRule.REPETITION, f"value is {value.repetition}, expected required"
    yield from _check_node(group.root, Path())


def _check_node(node: GroupNode, path: Path) -> Iterator[tuple[Path, ShreddingRule, str]]:
    """Check a group of `value` and `typed_value`, and the groups below it."""
    typed = node.group.named(TYPED_VALUE)
    if typed is not None:
        for name in (VALUE, TYPED_VALUE):
            member = node.group.named(name)
            if member is not None and member.repetition != "optional":
                yield (
                    path,
                    ShreddingRule.REPETITION,
                    f"{name} is {member.repetition}, expected optional",
                )
    for name, child in node.fields:
        where = path.child(name)
        yield from _check_required(child, where)
        yield from _check_node(child, where)
    if isinstance(node.node, Array) and node.element is not None and typed is not None:
        where = path.child(0)
        yield from _check_levels(typed, node.element, path)
        yield from _check_required(node.element, where)
        yield from _check_node(node.element, where)


def _check_legacy(node: GroupNode, path: Path) -> Iterator[tuple[Path, ShreddingRule, str]]:
    """Check a group of the legacy layout and those below it, which may be required or optional."""
    array = node.group.named(ARRAY)
    if node.element is not None and array is not None:
        yield from _check_levels(array, node.element, path)
        yield from _check_legacy(node.element, path.child(0))
    for name, child in node.fields:
        yield from _check_legacy(child, path.child(name))
    for other in node.others:
        yield from _check_legacy(other, path)


def _check_levels(
    array: SchemaNode, element: GroupNode, path: Path
) -> Iterator[tuple[Path, ShreddingRule, str]]:
    names = (array.children[0].name, element.group.name)
    if names != ("list", "element"):
        yield path, ShreddingRule.LIST, f"the levels are named {names[0]!r} and {names[1]!r}"


def _check_required(node: GroupNode, path: Path) -> Iterator[tuple[Path, ShreddingRule, str]]:
    if node.group.repetition != "required":
        yield (
            path,
            ShreddingRule.REPETITION,
            f"the group is {node.group.repetition}, expected required",
        )


def _check_rows(
    path: Source,
    footer: Footer,
    columns: Sequence[tuple[SchemaNode, ColumnWithVariants]],
    batch_rows: int,
    progress: OnProgress | None,
) -> Iterator[Finding]:
    name, start = name_of(path), 0
    leaves = sorted(leaf for _, column in columns for leaf in column.leaves())
    try:
        with open_parquet(path, name, footer) as file:
            for row_group in range(len(footer.row_groups)):
                for batch in file.batches(row_group, leaves, batch_rows):
                    rows = np.arange(start, start + batch.num_rows)
                    for node, column in columns:
                        for found in column.variants(batch.column(node.name), rows):
                            yield from _findings(found)
                    start += batch.num_rows
                    if progress is not None:
                        progress(Progress(start, footer.num_rows, "rows", "checked"))
    except VariantLakeError as error:
        yield Finding(start, "", error.path, ShreddingRule.FILE.value, error.message)


def _findings(found: FoundVariants) -> Iterator[Finding]:
    column = ".".join(found.group.column)
    broken = legacy_problems if found.group.is_legacy else find_problems
    for problem in broken(found.array):
        row = int(found.rows[problem.row])
        yield Finding(row, column, problem.path, problem.rule.value, problem.message)
