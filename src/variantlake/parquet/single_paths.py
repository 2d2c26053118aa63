"""Single paths of Variant columns as typed Arrow columns, without rebuilding the Variants.

Only the columns of a path are read: its `typed_value`, and its `value` unless the footer shows that
it is null everywhere. For a path without columns of its own, the `value` of the deepest one above
it is searched.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.encoding.scalar import Scalar, decode_scalar
from variantlake.encoding.value import basic_type, find, type_name
from variantlake.errors import InvalidPath, InvalidValue, MalformedFile, VariantLakeError
from variantlake.kernels.unshred import unshred
from variantlake.kernels.unshred_legacy import unshred_legacy
from variantlake.parquet.footer import Footer, read_footer
from variantlake.parquet.read import (
    BATCH_ROWS,
    Progress,
    Source,
    check_batch_rows,
    name_of,
    open_parquet,
    read_leaves,
)
from variantlake.parquet.variant_columns import is_variant
from variantlake.parquet.variant_group import GroupNode, VariantGroup, parse_group
from variantlake.paths import ColumnPath, Path
from variantlake.shredding.arrays import (
    AnyArray,
    bytes_of,
    list_of,
    members,
    offsets_of,
    struct_of,
    validity,
)
from variantlake.shredding.dictionary import RowDictionary
from variantlake.shredding.fit import Raw, encoded_type, fit, raw_array, raws_of, scalar_of
from variantlake.shredding.layout import METADATA, TYPED_VALUE, VALUE, VARIANT_TYPE, plain_type
from variantlake.shredding.legacy import OBJECT
from variantlake.shredding.schema import Array, Leaf, Object, Untyped
from variantlake.types import NULL_VALUE, BasicType, ShreddedType


class Mismatch(enum.Enum):
    """What to do with a value that the asked type cannot hold exactly."""

    ERROR = "error"
    NULL = "null"

    @classmethod
    def _missing_(cls, value: object) -> Mismatch:
        raise InvalidValue(f"on_mismatch is {value!r}", hint="'error' or 'null'")


def read_paths(
    path: Source,
    paths: Mapping[str, str],
    *,
    on_mismatch: Mismatch | str = Mismatch.ERROR,
    progress: Progress | None = None,
) -> pa.Table:
    """Read single paths of Variant columns.

    Args:
        path: A file name or an open binary file.
        paths: For each column of the result `column:path::type`, such as `event:commit.kind` or
            `event:time_us::bigint`. Types are those of shredding DDL, or `variant`. Without a type
            the column has the type that the file stores at the path, and where it stores none the
            result is struct<metadata, value>.
        on_mismatch: `error`, or `null` for values that are not of the type. Exact numbers convert
            to each other where their value stays the same, nothing else converts.
        progress: Called after each batch with the rows that are read and the rows of the file.

    A path that is missing from a row, and a Variant null, give null.

    Raises:
        InvalidPath: A path that does not parse, or a column that is no Variant column of the file.
        InvalidValue: A value that the type cannot hold; with file, row and path.
        MalformedFile: The file breaks a specification.
    """
    return pa.Table.from_batches(*_open(path, paths, Mismatch(on_mismatch), BATCH_ROWS, progress))


def iter_paths(
    path: Source,
    paths: Mapping[str, str],
    batch_rows: int = BATCH_ROWS,
    *,
    on_mismatch: Mismatch | str = Mismatch.ERROR,
    progress: Progress | None = None,
) -> Iterator[pa.RecordBatch]:
    """As `read_paths`, in batches of at most `batch_rows` rows and with bounded memory."""
    batches, _ = _open(path, paths, Mismatch(on_mismatch), batch_rows, progress)
    yield from batches


def count_typed(
    path: Source,
    footer: Footer,
    group: VariantGroup,
    paths: Collection[Path],
    progress: Progress | None = None,
) -> dict[Path, int]:
    """In how many rows of a top-level Variant column the `typed_value` of each node is set.

    `paths` are nodes outside of arrays. Reads the metadata of no row and one small column for each.
    Raises MalformedFile.
    """
    done, counts = 0, dict.fromkeys(paths, 0)
    leaves: set[int] = set()
    for each in paths:
        node = group.find(each)
        leaves |= set() if node is None else _typed_leaf(node)
    if not leaves:
        return counts
    name = name_of(path)
    with open_parquet(path, name, footer) as file:
        for row_group in range(len(footer.row_groups)):
            for batch in read_leaves(file, name, row_group, sorted(leaves), BATCH_ROWS):
                root = _Members(batch.column(group.column[0]))
                for each in paths:
                    found = root
                    for step in each.steps:
                        found = found.step(step)
                    typed = found.get(TYPED_VALUE)
                    counts[each] += 0 if typed is None else len(typed) - typed.null_count
                done += batch.num_rows
                if progress is not None:
                    progress(done, footer.num_rows)
    return counts


def _open(
    path: Source,
    paths: Mapping[str, str],
    on_mismatch: Mismatch,
    batch_rows: int,
    progress: Progress | None,
) -> tuple[Iterator[pa.RecordBatch], pa.Schema]:
    check_batch_rows(batch_rows)
    if not isinstance(paths, Mapping):
        raise InvalidPath(
            f"paths are a mapping, not {type(paths).__name__}",
            hint="{'name': 'column:path::type'}",
        )
    footer = read_footer(path)
    try:
        requests = [_request(footer, name, text, on_mismatch) for name, text in paths.items()]
    except VariantLakeError as error:
        error.file = error.file or name_of(path)
        raise
    schema = pa.schema([pa.field(request.name, request.arrow) for request in requests])
    return _batches(path, footer, requests, schema, batch_rows, progress=progress), schema


def _batches(
    path: Source,
    footer: Footer,
    requests: Sequence[_Request],
    schema: pa.Schema,
    batch_rows: int,
    *,
    progress: Progress | None,
) -> Iterator[pa.RecordBatch]:
    name, start = name_of(path), 0
    leaves = sorted({leaf for request in requests for leaf in request.leaves})
    with open_parquet(path, name, footer) as file:
        for row_group in range(len(footer.row_groups)):
            for batch in read_leaves(file, name, row_group, leaves, batch_rows):
                arrays = []
                for request in requests:
                    try:
                        arrays.append(request.evaluate(batch))
                    except VariantLakeError as error:
                        error.file = name
                        error.row = None if error.row is None else start + error.row
                        raise
                start += batch.num_rows
                if progress is not None:
                    progress(start, footer.num_rows)
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _request(footer: Footer, name: str, text: str, on_mismatch: Mismatch) -> _Request:
    asked = ColumnPath.parse(text)
    group = _group(footer, asked.column)
    target, way = _walk(group, asked.path)
    rest = Path(asked.path.steps[len(way) :])
    stored = target.node.type if isinstance(target.node, Leaf) and not rest.steps else None
    wanted = stored
    if asked.type:
        wanted = None if asked.type.lower() == "variant" else ShreddedType.parse(asked.type)
    if group.metadata is None:
        return _legacy_request(footer, name, asked, group, wanted=wanted, on_mismatch=on_mismatch)
    if rest.steps:
        leaves = _value_leaf(footer, target)
    elif wanted is None:
        leaves = frozenset(_all_leaves(footer, target))
    else:
        leaves = _value_leaf(footer, target) | _typed_leaf(target)
    return _Request(
        name, asked.column, asked.path, way, rest, wanted, group.metadata, leaves, on_mismatch
    )


def _group(footer: Footer, column: str) -> VariantGroup:
    """A top-level Variant column."""
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
    asked: ColumnPath,
    group: VariantGroup,
    *,
    wanted: ShreddedType | None,
    on_mismatch: Mismatch,
) -> _LegacyRequest:
    """A value may stand in the `untyped_value` of each group on its way."""
    target, way = _walk(group, asked.path)
    is_node = way == asked.path.steps
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
    return _LegacyRequest(
        name, asked.column, asked.path, way if is_column else (),
        Path() if is_column else asked.path, wanted, min(leaves, default=first), leaves,
        on_mismatch, is_column=is_column,
    )  # fmt: skip


def _walk(group: VariantGroup, path: Path) -> tuple[GroupNode, tuple[str | int, ...]]:
    """The deepest node with columns on the way to a path, and the steps to it."""
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
    """A leaf that shows where the typed_value is set; nothing when there is none."""
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
        # Read even if all null: it may be the only column that shows the object around it.
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


@dataclass(frozen=True, slots=True)
class _Request:
    """One column of the result: the steps `way` have columns, `rest` is searched in `value`s.

    `wanted` is the type of the result, None for a Variant.
    """

    name: str
    column: str
    path: Path
    way: tuple[str | int, ...]
    rest: Path
    wanted: ShreddedType | None
    row_leaf: int
    own_leaves: Collection[int]
    on_mismatch: Mismatch

    @property
    def arrow(self) -> pa.DataType:
        """The type of the result."""
        return VARIANT_TYPE if self.wanted is None else self.wanted.arrow

    @property
    def leaves(self) -> set[int]:
        """The leaves to read; one always, the metadata if there is any, for it counts the rows."""
        return {self.row_leaf, *self.own_leaves}

    def evaluate(self, batch: pa.RecordBatch) -> AnyArray:
        """The column for the rows of a batch."""
        if not self.own_leaves:
            return _nulls(batch.num_rows, self.arrow)
        members = _Members(batch.column(self.column))
        metadata = members.required(METADATA)
        for step in self.way:
            members = members.step(step)
        if self.wanted is None:
            return self._variants(metadata, members)
        return self._typed(self.wanted, metadata, members)

    def _typed(self, wanted: ShreddedType, metadata: AnyArray, members: _Members) -> AnyArray:
        typed = None if self.rest.steps else members.get(TYPED_VALUE)
        values = members.get(VALUE)
        if values is not None:
            # The byte 00 alone is a Variant null, which is null here.
            is_null = pc.equal(values, pa.scalar(NULL_VALUE, values.type))
            values = pc.if_else(is_null, pa.scalar(None, values.type), values)
        is_plain = values is None or values.null_count == len(values)
        if typed is not None and is_plain and _stored(typed) == wanted:
            return typed if typed.type == wanted.arrow else typed.cast(wanted.arrow)
        raws: list[Raw | None] = [None] * len(members)
        if typed is not None:
            self._add_typed(raws, typed, wanted)
        if not is_plain:
            self._add_residuals(raws, self._residuals(metadata, values), wanted)
        return raw_array(raws, wanted)

    def _add_residuals(
        self, raws: list[Raw | None], residuals: Iterator[bytes | None], wanted: ShreddedType
    ) -> None:
        row = 0
        try:
            for row, encoded in enumerate(residuals):
                if encoded is not None and encoded != NULL_VALUE:
                    raws[row] = self._fit(row, _scalar(encoded), type_name(encoded), wanted)
        except VariantLakeError as error:
            self._locate(error, row)
            raise

    def _locate(self, error: VariantLakeError, row: int) -> None:
        """Give an error its row and path, unless it knows them."""
        error.row = row if error.row is None else error.row
        error.path = error.path or str(self.path)

    def _add_typed(self, raws: list[Raw | None], typed: AnyArray, wanted: ShreddedType) -> None:
        stored = _stored(typed)
        if stored is None:
            for row, is_set in enumerate(typed.is_valid().to_pylist()):
                if is_set:
                    noun = "object" if pa.types.is_struct(typed.type) else "array"
                    raws[row] = self._fit(row, None, noun, wanted)
            return
        primitive, row = encoded_type(typed.type), 0
        try:
            for row, raw in enumerate(raws_of(typed)):
                if raw is not None:
                    raws[row] = self._fit(row, scalar_of(raw, primitive), stored.ddl, wanted)
        except VariantLakeError as error:
            self._locate(error, row)
            raise

    def _fit(self, row: int, scalar: Scalar | None, noun: str, wanted: ShreddedType) -> Raw | None:
        raw = None if scalar is None else fit(scalar, wanted)
        if raw is None and self.on_mismatch is Mismatch.ERROR:
            raise InvalidValue(
                f"{noun} does not fit {wanted}",
                row=row,
                path=str(self.path),
                hint="ask for `::variant`, or for null with on_mismatch='null'",
            )
        return raw

    def _residuals(self, metadata: AnyArray, values: AnyArray | None) -> Iterator[bytes | None]:
        """For each row what stands at the path inside of `value`."""
        if values is None:
            return
        rows = zip(bytes_of(metadata), bytes_of(values), strict=True)
        for row, (keys, value) in enumerate(rows):
            try:
                yield None if value is None else self._search(keys or b"", value)
            except VariantLakeError as error:
                error.row = row
                error.path = str(self.path)
                raise

    def _search(self, metadata: bytes, value: bytes) -> bytes | None:
        if not self.rest.steps:
            return value
        if basic_type(value) not in (BasicType.OBJECT, BasicType.ARRAY):
            return None
        found = find(RowDictionary(metadata).decoded, value, self.rest)
        return None if found is None else value[found[0] : found[1]]

    def _variants(self, metadata: AnyArray, members: _Members) -> AnyArray:
        """The Variant at the path; null where it is missing or a Variant null."""
        values = members.get(VALUE)
        typed = None if self.rest.steps else members.get(TYPED_VALUE)
        if self.rest.steps:
            values = pa.array(list(self._residuals(metadata, values)), pa.binary())
        parts = {VALUE: values, TYPED_VALUE: typed}
        known = {name: array for name, array in parts.items() if array is not None}
        missing = np.ones(len(members), dtype=bool)
        for array in known.values():
            missing &= ~np.asarray(validity(array), dtype=bool)
        if values is not None:
            missing |= np.asarray([value == NULL_VALUE for value in bytes_of(values)], dtype=bool)
        group = pa.StructArray.from_arrays(
            [metadata, *known.values()], names=[METADATA, *known], mask=pa.array(missing)
        )
        return unshred(group)


@dataclass(frozen=True, slots=True)
class _LegacyRequest(_Request):
    """A column of a legacy file: the leaf at `way`, or `rest` searched in the rebuilt Variants."""

    is_column: bool = False

    def evaluate(self, batch: pa.RecordBatch) -> AnyArray:
        if not self.own_leaves:
            return _nulls(batch.num_rows, self.arrow)
        array = struct_of(batch.column(self.column))
        members = _Members(array if self.is_column else unshred_legacy(array))
        for step in self.way:
            members = members.field(str(step))
        metadata: AnyArray = pa.nulls(len(array), pa.binary())
        if not self.is_column:
            metadata = members.required(METADATA)
        if self.wanted is None:
            return self._variants(metadata, members)
        return self._typed(self.wanted, metadata, members)


def _nulls(length: int, arrow: pa.DataType) -> AnyArray:
    if arrow != VARIANT_TYPE:
        return pa.array([None] * length, arrow)
    empty = pa.array([b""] * length, pa.binary())
    return pa.StructArray.from_arrays(
        [empty, empty], fields=list(VARIANT_TYPE), mask=pa.array([True] * length, pa.bool_())
    )


def _scalar(encoded: bytes) -> Scalar | None:
    """The scalar, None for an object or an array."""
    if basic_type(encoded) in (BasicType.OBJECT, BasicType.ARRAY):
        return None
    return decode_scalar(encoded, 0, len(encoded))


def _stored(typed: AnyArray) -> ShreddedType | None:
    """The type of a shredded leaf, None for an object or an array."""
    if pa.types.is_struct(typed.type) or hasattr(typed.type, "value_field"):
        return None
    return ShreddedType.from_arrow(plain_type(typed.type))


class _Members:
    """The parts of one group that were read, each null wherever a group above it is null."""

    def __init__(self, group: AnyArray) -> None:
        self._group = struct_of(group)

    def __len__(self) -> int:
        return len(self._group)

    def get(self, name: str) -> AnyArray | None:
        """The member of that name, None when it was not read or the file has none."""
        for index, field in enumerate(members(self._group.type)):
            if field.name == name:
                return self._group.flatten()[index]
        return None

    def required(self, name: str) -> AnyArray:
        """A member that was asked for."""
        array = self.get(name)
        if array is None:
            raise MalformedFile(f"pyarrow reads no {name!r} in a Variant group")
        return array

    def field(self, name: str) -> _Members:
        """The group of an object's field in the legacy layout."""
        return _Members(_Members(self.required(OBJECT)).required(name))

    def step(self, step: str | int) -> _Members:
        """The group of an object's field or of an array's element."""
        typed = self.required(TYPED_VALUE)
        if isinstance(step, str):
            return _Members(_Members(typed).required(step))
        offsets, elements = offsets_of(list_of(typed))
        at = np.asarray(offsets[:-1], dtype=np.int64) + step
        is_there = at < np.asarray(offsets[1:], dtype=np.int64)
        return _Members(elements.take(pa.array(at, pa.int64(), mask=~is_there)))
