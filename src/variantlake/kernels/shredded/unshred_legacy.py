"""Rebuild Variants from columns of the older layout. Twin: shredding.legacy.unshred.

This module converts a batch to the final layout, which `unshred` rebuilds: it renames the groups,
and rewrites all `untyped_value`s as `value`s with the ids of one dictionary. It marks the rows on
which the two layouts disagree, which are rare or wrong, and the twin reads them.
Spec: spark-legacy-shredding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from variantlake.encoding.metadata import encode_metadata
from variantlake.kernels.native.declared import Int32s, Int64s
from variantlake.kernels.shredded.shredded_arrays import (
    LeftToTwin,
    binary_of,
    bytes_of,
    elements_of,
    names_of,
)
from variantlake.kernels.shredded.unshred import unshred_storage
from variantlake.kernels.shredded.untyped import split_untyped
from variantlake.kernels.tape.arrow_arrays import LARGEST_ARRAY, AnyArray, array_of, buffer_of
from variantlake.kernels.tape.dictionary import SHARED_BYTES, dictionary_for_parts, repeated
from variantlake.kernels.tape.nodes import OPAQUE
from variantlake.kernels.variant.variant_reader import VariantReader
from variantlake.kernels.variant.variant_writer import write_variant
from variantlake.shredding.arrays import list_of, struct_of, valid_of, variants_of
from variantlake.shredding.layout import METADATA, TYPED_VALUE, VALUE, VARIANT_TYPE
from variantlake.shredding.legacy.layout import (
    ARRAY,
    MEMBERS,
    OBJECT,
    UNTYPED_VALUE,
    LegacyGroup,
    legacy_group_of,
)
from variantlake.shredding.legacy.unshred import unshred_legacy_plain
from variantlake.types import NULL_VALUE

_DICTIONARIES_BYTES = 64 << 20
"""The most bytes of a dictionary of which each row of a batch has a copy."""


def unshred_legacy(array: pa.StructArray) -> pa.StructArray:
    """Rebuild every row of a legacy column: the values of `unshred_legacy_plain`, and its errors.

    Returns struct<metadata: binary not null, value: binary not null>; SQL NULL is a null struct.
    Unlike there, rows may share a dictionary.

    Raises MalformedFile, MalformedVariant, InvalidSchema as `unshred_legacy_plain` does.
    """
    group = legacy_group_of(array.type)
    storage = struct_of(array)
    if not group.has_one_form or len(storage) == 0:
        return unshred_legacy_plain(array)
    try:
        return _unshred(storage, group)
    except (LeftToTwin, pa.ArrowNotImplementedError):
        return unshred_legacy_plain(array)


def _unshred(storage: pa.StructArray, group: LegacyGroup) -> pa.StructArray:
    rows = len(storage)
    batch = _LegacyBatch(storage, group)
    if rows * len(batch.metadata) > _DICTIONARIES_BYTES and rows > 1:
        halves = [storage.slice(0, rows // 2), storage.slice(rows // 2)]
        return pa.concat_arrays([_unshred(half, group) for half in halves])
    whole = unshred_storage(
        batch.final(),
        unshred_plain=lambda row: unshred_legacy_plain(storage.slice(row, 1)),
        marked=batch.marked,
    )
    if len(batch.metadata) <= SHARED_BYTES:
        return whole
    # Most rows use few of the keys.
    tape = VariantReader().read(whole)
    if tape.bad.any():
        raise LeftToTwin
    return write_variant(tape)


class _LegacyBatch:
    """One batch on its way.

    `metadata` is that of all rows, `marked` (uint8, one a row) what the twin reads.
    """

    def __init__(self, array: pa.StructArray, group: LegacyGroup) -> None:
        self.marked = np.zeros(len(array), np.uint8)
        self._nothing = _nothing_set(array)
        self._untyped: list[tuple[AnyArray, Int64s]] = []
        self._root = _LegacyGroup(
            array, group, np.arange(len(array), dtype=np.int64), self._untyped
        )
        names = set(_names(group))
        reader = VariantReader()
        # That puts them into the reader's table of keys.
        reader.read(variants_of([(encode_metadata(sorted(names)), NULL_VALUE)]))
        self._tape = reader.read(self._variants())
        dictionary, self.metadata = dictionary_for_parts(self._tape, names)
        values = write_variant(self._tape, dictionary=dictionary).flatten()[1]
        self._values: list[AnyArray] = []
        start = 0
        for untyped, _ in self._untyped:
            self._values.append(values.slice(start, len(untyped)))
            start += len(untyped)

    def _variants(self) -> pa.StructArray:
        """All untyped values, one group's after the other's, as struct<metadata, value>."""
        arrays = [binary_of(untyped) for untyped, _ in self._untyped]
        # One array is most often all, and needs no copy.
        whole = len(arrays) == 1
        untyped = (
            arrays[0] if whole else pa.concat_arrays([*arrays, pa.array([], pa.large_binary())])
        )
        data, offsets = bytes_of(untyped)
        if len(data) > LARGEST_ARRAY:
            raise LeftToTwin
        valid = valid_of(untyped).astype(np.uint8)
        slots = len(untyped)
        metadata, value = np.empty(len(data), np.uint8), np.empty(len(data), np.uint8)
        metadata_ends, value_ends = np.empty(slots + 1, np.int32), np.empty(slots + 1, np.int32)
        bad = np.zeros(slots, np.uint8)
        split_untyped(data, offsets, valid, metadata, metadata_ends, value, value_ends, bad)
        parts = [
            array_of(pa.binary(), slots, [None, buffer_of(ends), buffer_of(content)])
            for ends, content in ((metadata_ends, metadata), (value_ends, value))
        ]
        return pa.StructArray.from_arrays(
            parts, fields=list(VARIANT_TYPE), mask=pa.array(valid == 0)
        )

    def _mark_bad(self) -> None:
        tape = self._tape
        rows = np.concatenate([np.empty(0, np.int64), *(rows for _, rows in self._untyped)])
        self.marked[rows[tape.bad]] = 1
        # The twin refuses a type that it does not know.
        opaque = np.flatnonzero(tape.nodes[: tape.node_count]["tag"] == OPAQUE)
        self.marked[rows[np.searchsorted(tape.first, opaque, side="right") - 1]] = 1

    def final(self) -> pa.StructArray:
        """The batch in the final layout. A row with nothing set is SQL NULL there."""
        self._mark_bad()
        parts = self._root.final(self._values)
        metadata = repeated(self.metadata, np.ones(len(self.marked), np.bool_))
        return pa.StructArray.from_arrays(
            [metadata, *parts.values()], names=[METADATA, *parts], mask=self._nothing
        )


class _LegacyGroup:
    """One group of the batch, taken apart; its `untyped_value` went to the list of all."""

    def __init__(
        self,
        array: pa.StructArray,
        group: LegacyGroup,
        rows: Int64s,
        untyped: list[tuple[AnyArray, Int64s]],
    ) -> None:
        parts = _parts(array)
        self._value: int | None = None
        values = parts.get(UNTYPED_VALUE)
        if values is not None and (values.null_count < len(values) or group.forms == 0):
            self._value = len(untyped)
            untyped.append((values, rows))
        self._typed: AnyArray | None = None
        self._fields: dict[str, _LegacyGroup] = {}
        self._element: _LegacyGroup | None = None
        self._offsets: Int32s = np.zeros(1, np.int32)
        if group.object is not None:
            self._typed = parts[OBJECT]
            for (name, child), below in zip(
                group.object, struct_of(parts[OBJECT]).flatten(), strict=True
            ):
                self._fields[name] = _LegacyGroup(struct_of(below), child, rows, untyped)
        elif group.array is not None:
            self._typed = parts[ARRAY]
            self._offsets, elements = elements_of(list_of(parts[ARRAY]))
            of_elements = np.repeat(rows, np.diff(self._offsets))
            self._element = _LegacyGroup(struct_of(elements), group.array, of_elements, untyped)
        elif group.typed_value is not None:
            self._typed = parts[TYPED_VALUE]

    def final(self, values: Sequence[AnyArray]) -> dict[str, AnyArray]:
        """`value` and `typed_value`, as far as there are any."""
        parts: dict[str, AnyArray] = {}
        if self._value is not None:
            parts[VALUE] = values[self._value]
        if self._typed is None:
            return parts
        if self._fields:
            parts[TYPED_VALUE] = pa.StructArray.from_arrays(
                [_group_array(child.final(values)) for child in self._fields.values()],
                names=list(self._fields),
                mask=self._typed.is_null(),
            )
        elif self._element is not None:
            parts[TYPED_VALUE] = pa.ListArray.from_arrays(
                pa.array(self._offsets, pa.int32()),
                _group_array(self._element.final(values)),
                mask=self._typed.is_null(),
            )
        else:
            parts[TYPED_VALUE] = self._typed
        return parts


def _group_array(parts: dict[str, AnyArray]) -> pa.StructArray:
    return pa.StructArray.from_arrays(list(parts.values()), names=list(parts))


def _parts(array: pa.StructArray) -> dict[str, AnyArray]:
    """The members of a group; they are null below a null group."""
    parts = zip(names_of(array), array.flatten(), strict=True)
    return {name: part for name, part in parts if name in MEMBERS}


def _nothing_set(array: pa.StructArray) -> AnyArray:
    nothing = np.ones(len(array), np.bool_)
    for part in _parts(array).values():
        nothing &= ~valid_of(part)
    return pa.array(nothing)


def _names(group: LegacyGroup) -> Iterator[str]:
    """The names of all fields below a group."""
    for name, child in group.object or ():
        yield name
        yield from _names(child)
    if group.array is not None:
        yield from _names(group.array)
