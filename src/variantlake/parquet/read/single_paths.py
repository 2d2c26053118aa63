"""Read single paths of Variant columns as typed Arrow columns, without rebuilding the Variants.

Only the columns of a path are read: its `typed_value`, and its `value` unless the footer shows that
it is null everywhere. If the file has no columns for a path, the `value` of the deepest path above
it is searched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa

from variantlake.errors import InvalidPath, MalformedFile, VariantLakeError, in_file
from variantlake.parquet.metadata.footer import Footer, read_footer
from variantlake.parquet.read.parquet_source import BATCH_ROWS, open_parquet
from variantlake.parquet.read.path_values import (
    GroupMembers,
    LegacyPathRequest,
    Mismatch,
    PathRequest,
)
from variantlake.parquet.read.reader import check_batch_rows
from variantlake.parquet.variant.variant_columns import is_variant
from variantlake.parquet.variant.variant_group import GroupNode, VariantGroup, parse_group
from variantlake.paths import ColumnPath, Path
from variantlake.progress import OnProgress, Progress
from variantlake.shredding.layout import TYPED_VALUE
from variantlake.shredding.schema import Array, Leaf, Object, Untyped
from variantlake.storage.opening import Source, name_of
from variantlake.storage.options import reach_with
from variantlake.types import ShreddedType


def read_paths(
    path: Source,
    paths: Mapping[str, str],
    *,
    on_mismatch: Mismatch | str = Mismatch.ERROR,
    progress: OnProgress | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> pa.Table:
    """Read single paths of Variant columns.

    Args:
        path: A file name or an open binary file.
        paths: For each column of the result `column:path::type`, such as `event:commit.kind` or
            `event:time_us::bigint`. Types are those of shredding DDL, or `variant`. Without a type
            the column has the type that the file stores at the path, or struct<metadata, value> if
            it stores none.
        on_mismatch: `error`, or `null` for values that are not of the type. Exact numbers convert
            to each other if their value stays the same, nothing else converts.
        progress: Called after each batch with the rows read so far and the rows of the file.
        storage_options: How to reach the file's bucket, as for `Table.open`.

    A missing path and a Variant null are null in the result.

    Raises:
        InvalidPath: A path that does not parse, or a column that is not a Variant of the file.
        InvalidValue: A value that the type cannot hold, with file, row and path; another
            `on_mismatch`.
        MissingSource: There is no such file.
        MalformedFile: The file breaks a specification.
    """
    reach_with(path, storage_options)
    return pa.Table.from_batches(*_open(path, paths, Mismatch(on_mismatch), BATCH_ROWS, progress))


def iter_paths(
    path: Source,
    paths: Mapping[str, str],
    batch_rows: int = BATCH_ROWS,
    *,
    on_mismatch: Mismatch | str = Mismatch.ERROR,
    progress: OnProgress | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read paths as `read_paths` does, in record batches and with bounded memory.

    `batch_rows` is the most rows of a batch, 1 or more. The file is opened when the caller takes
    the first batch. Raises as `read_paths`, when the batch is reached; InvalidValue for
    `batch_rows` below 1.
    """
    reach_with(path, storage_options)
    batches, _ = _open(path, paths, Mismatch(on_mismatch), batch_rows, progress)
    yield from batches


def count_typed(
    path: Source,
    footer: Footer,
    group: VariantGroup,
    paths: Collection[Path],
    progress: OnProgress | None = None,
) -> dict[Path, int]:
    """Count the rows of a top-level Variant column in which the `typed_value` of each node is set.

    `paths` are nodes outside arrays. Reads one column for each of them, and not the Variant's
    metadata. Raises MalformedFile.
    """
    done, counts = 0, dict.fromkeys(paths, 0)
    leaves: set[int] = set()
    for each in paths:
        node = group.find(each)
        leaves |= set() if node is None else _typed_leaf(node)
    if not leaves:
        return counts
    with open_parquet(path, name_of(path), footer) as file:
        for row_group in range(len(footer.row_groups)):
            for batch in file.batches(row_group, sorted(leaves), BATCH_ROWS):
                root = GroupMembers(batch.column(group.column[0]))
                for each in paths:
                    found = root
                    for step in each.steps:
                        found = found.step(step)
                    typed = found.get(TYPED_VALUE)
                    counts[each] += 0 if typed is None else len(typed) - typed.null_count
                done += batch.num_rows
                if progress is not None:
                    progress(Progress(done, footer.num_rows, "rows", "read"))
    return counts


def _open(
    path: Source,
    paths: Mapping[str, str],
    on_mismatch: Mismatch,
    batch_rows: int,
    progress: OnProgress | None,
) -> tuple[Iterator[pa.RecordBatch], pa.Schema]:
    check_batch_rows(batch_rows)
    if not isinstance(paths, Mapping):
        raise InvalidPath(
            f"paths are a mapping, not {type(paths).__name__}",
            hint="{'name': 'column:path::type'}",
        )
    footer = read_footer(path)
    with in_file(name_of(path)):
        requests = [_request(footer, name, text, on_mismatch) for name, text in paths.items()]
    schema = pa.schema([pa.field(request.name, request.arrow) for request in requests])
    return _batches(path, footer, requests, schema, batch_rows, progress=progress), schema


def _batches(
    path: Source,
    footer: Footer,
    requests: Sequence[PathRequest],
    schema: pa.Schema,
    batch_rows: int,
    *,
    progress: OnProgress | None,
) -> Iterator[pa.RecordBatch]:
    name, start = name_of(path), 0
    leaves = sorted({leaf for request in requests for leaf in request.leaves})
    with in_file(name), open_parquet(path, name, footer) as file:
        for row_group in range(len(footer.row_groups)):
            for batch in file.batches(row_group, leaves, batch_rows):
                arrays = []
                for request in requests:
                    try:
                        arrays.append(request.evaluate(batch))
                    except VariantLakeError as error:
                        error.row = None if error.row is None else start + error.row
                        raise
                start += batch.num_rows
                if progress is not None:
                    progress(Progress(start, footer.num_rows, "rows", "read"))
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _request(footer: Footer, name: str, text: str, on_mismatch: Mismatch) -> PathRequest:
    requested = ColumnPath.parse(text)
    group = _group(footer, requested.column)
    target, way = _walk(group, requested.path)
    rest = Path(requested.path.steps[len(way) :])
    stored = target.node.type if isinstance(target.node, Leaf) and not rest.steps else None
    wanted = stored
    if requested.type:
        wanted = None if requested.type.lower() == "variant" else ShreddedType.parse(requested.type)
    if group.metadata is None:
        return _legacy_request(
            footer, name, requested, group, wanted=wanted, on_mismatch=on_mismatch
        )
    if rest.steps:
        leaves = _value_leaf(footer, target)
    elif wanted is None:
        leaves = frozenset(_all_leaves(footer, target))
    else:
        leaves = _value_leaf(footer, target) | _typed_leaf(target)
    above = tuple(0 if isinstance(step, int) else step for step in way)
    return PathRequest(
        name, requested.column, requested.path, way, rest, wanted, group.metadata, leaves,
        on_mismatch, group.forms.below(above),
    )  # fmt: skip


def _group(footer: Footer, column: str) -> VariantGroup:
    """Find a top-level Variant column."""
    node = footer.schema.named(column)
    try:
        if node is not None and node.is_group:
            return parse_group(node)
    except MalformedFile:
        if node is not None and is_variant(node, (column,), ()):
            raise
    names = [top.name for top in footer.schema.children if is_variant(top, (top.name,), ())]
    raise InvalidPath(
        f"no Variant column {column!r} in the file",
        hint=f"paths start at a top-level one: {', '.join(map(repr, names)) or 'it has none'}",
    )


def _legacy_request(
    footer: Footer,
    name: str,
    requested: ColumnPath,
    group: VariantGroup,
    *,
    wanted: ShreddedType | None,
    on_mismatch: Mismatch,
) -> LegacyPathRequest:
    """Make a request in a legacy file, where any group above the path may hold the value.

    It is in their `untyped_value`s, so these are read too.
    """
    target, way = _walk(group, requested.path)
    is_node = way == requested.path.steps
    passed = [_walk(group, Path(way[:depth]))[0] for depth in range(len(way) + 1)]
    above = passed[:-1] if is_node else passed
    leaves = {leaf for node in above for leaf in _value_leaf(footer, node)}
    is_leaf = is_node and wanted is not None and isinstance(target.node, Leaf)
    if any(node.others for node in passed):
        leaves, is_leaf = set(group.leaves()), False
    elif is_node:
        is_leaf = is_leaf and not leaves and not _value_leaf(footer, target)
        leaves |= _typed_leaf(target) if is_leaf else set(target.leaves())
    is_column = is_leaf and all(isinstance(step, str) for step in way)
    first = next(group.leaves())
    return LegacyPathRequest(
        name, requested.column, requested.path, way if is_column else (),
        Path() if is_column else requested.path, wanted, min(leaves, default=first), leaves,
        on_mismatch, is_column=is_column,
    )  # fmt: skip


def _walk(group: VariantGroup, path: Path) -> tuple[GroupNode, tuple[str | int, ...]]:
    """Return the deepest node on the way to a path that has columns, and the steps to it."""
    node, depth = group.root, 0
    for step in path.steps:
        child: GroupNode | None = None
        if isinstance(node.node, Object) and isinstance(step, str):
            child = node.get(step)
        elif isinstance(node.node, Array) and isinstance(step, int):
            child = node.element
        if child is None:
            break
        node, depth = child, depth + 1
    return node, path.steps[:depth]


def _value_leaf(footer: Footer, node: GroupNode) -> frozenset[int]:
    if node.value is None or _is_all_null(footer, node.value):
        return frozenset()
    return frozenset([node.value])


def _typed_leaf(node: GroupNode) -> frozenset[int]:
    """Return a leaf that shows where the typed_value is set; empty if there is none."""
    below = node
    while below.typed_value is None:
        if below.element is not None:
            below = below.element
        elif below.fields:
            below = below.fields[0][1]
        else:
            return frozenset() if below is node or below.value is None else frozenset([below.value])
    return frozenset([below.typed_value])


def _all_leaves(footer: Footer, node: GroupNode) -> Iterator[int]:
    if isinstance(node.node, Untyped):
        # Read it even if all null: perhaps no other column shows where its object is set.
        yield from () if node.value is None else (node.value,)
        return
    yield from _value_leaf(footer, node)
    if node.typed_value is not None:
        yield node.typed_value
    for _, child in node.fields:
        yield from _all_leaves(footer, child)
    if node.element is not None:
        yield from _all_leaves(footer, node.element)


def _is_all_null(footer: Footer, leaf: int) -> bool:
    chunks = (row_group.columns[leaf] for row_group in footer.row_groups)
    return all(chunk.null_count == chunk.num_values for chunk in chunks)
