"""Find every broken rule in the rows of a Variant column, fast if there are few.

A first pass checks the rules on whole columns at once. It only finds the rows that may break one,
and those too rare to be decided here; the twin says what is wrong with them. Twin:
shredding.rules.problems.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from variantlake.kernels.native.declared import Bytes, Int64s
from variantlake.kernels.shredded.shredded_arrays import (
    LeftToTwin,
    are_decimals,
    binary_of,
    bytes_of,
    collect_names,
    elements_of,
    fixed_of,
    names_of,
    padded,
)
from variantlake.kernels.tape.arrow_arrays import AnyArray
from variantlake.kernels.variant.check_slots import (
    RowDictionaries,
    check_values,
    read_dictionaries,
)
from variantlake.shredding.arrays import list_of, struct_of, valid_of
from variantlake.shredding.fit import encoded_type
from variantlake.shredding.layout import (
    METADATA,
    TYPED_VALUE,
    VALUE,
    is_list,
    is_struct,
    schema_of,
)
from variantlake.shredding.rules import DAY_MICROS, Problem, problems
from variantlake.types import PRIMITIVES, BasicType, Family, Primitive

Flags = npt.NDArray[np.bool_]

_TWIN_SHARE = 16
"""If the batch has more than one stretch of doubtful rows in so many, the twin checks all of it."""


def find_problems(array: pa.StructArray) -> Iterator[Problem]:
    """List every broken rule in the rows of a Variant column, as `problems` does, in its order.

    Raises MalformedFile or InvalidSchema when the column is no Variant at all.
    """
    doubtful = doubtful_rows(array)
    edges = np.flatnonzero(np.diff(doubtful, prepend=False, append=False))
    stretches: list[list[int]] = edges.reshape(-1, 2).tolist()
    if len(stretches) * _TWIN_SHARE > len(array):
        stretches = [[0, len(array)]]
    for start, end in stretches:
        for problem in problems(array.slice(start, end - start)):
            yield replace(problem, row=start + problem.row)


def doubtful_rows(array: pa.StructArray) -> Flags:
    """For each row of a Variant column whether it may break a rule: bool, shape (rows,).

    Raises MalformedFile or InvalidSchema when the column is no Variant at all.
    """
    schema_of(array.type)
    storage = struct_of(array)
    try:
        return _Rows(storage).doubtful()
    except (LeftToTwin, pa.ArrowNotImplementedError):
        return np.ones(len(storage), np.bool_)


class _Rows:
    """One batch, and the rows that are marked as doubtful on the way."""

    def __init__(self, array: pa.StructArray) -> None:
        self._array = array
        self._marked = np.zeros(len(array), np.uint8)
        names: dict[str, int] = {}
        collect_names(array.type, names)
        # In the order of their bytes, which is that of code points.
        self._names = {name: place for place, name in enumerate(sorted(names))}
        metadata = array.flatten()[names_of(array).index(METADATA)]
        self._dictionaries, self._has = self._read_dictionaries(binary_of(metadata))

    def doubtful(self) -> Flags:
        """The rows that may break a rule: bool."""
        valid = valid_of(self._array)
        self._mark(valid & (self._dictionaries.of_row < 0), None)
        there = self._group(self._array, np.arange(len(self._array), dtype=np.int64))
        self._mark(valid & ~there, None)
        return self._marked.astype(np.bool_)

    def _read_dictionaries(self, metadata: AnyArray) -> tuple[RowDictionaries, Flags]:
        """Read the key dictionaries of the rows and the names in each: (dictionaries, names)."""
        data, offsets = bytes_of(metadata)
        rows = len(metadata)
        encoded = [name.encode() for name in self._names]
        starts = np.zeros(len(encoded) + 1, np.int64)
        starts[1:] = np.cumsum([len(name) for name in encoded], dtype=np.int64)
        dictionaries = RowDictionaries(
            data,
            of_row=np.empty(rows, np.int64),
            places=np.empty(rows, np.int64),
            firsts=np.empty(rows + 1, np.int64),
            keys=np.empty(len(data), np.int32),
        )
        has = np.zeros((rows + 1) * len(encoded), np.uint8)
        found = read_dictionaries(
            offsets, valid_of(metadata).astype(np.uint8),
            padded(np.frombuffer(b"".join(encoded), np.uint8)), starts, dictionaries, has,
        )  # fmt: skip
        return dictionaries, has.reshape(rows + 1, len(encoded))[:found].astype(np.bool_)

    def _mark(self, which: Any, rows: Int64s | None) -> None:
        """Mark the rows of the slots in `which` for the twin."""
        self._marked[which if rows is None else rows[which]] = 1

    def _group(self, group: pa.StructArray, rows: Int64s) -> Flags:
        """Check a `value` with its `typed_value`; returns which slots are not missing."""
        # Flattened: what stands below a null group is missing.
        parts = dict(zip(names_of(group), group.flatten(), strict=True))
        values = binary_of(parts[VALUE]) if VALUE in parts else None
        present = np.zeros(len(rows), np.bool_) if values is None else valid_of(values)
        if TYPED_VALUE not in parts:
            if values is not None:
                self._values(values, present, rows, None, [])
            return present
        typed = parts[TYPED_VALUE]
        is_set = valid_of(typed)
        misplaced, names = None, list[str]()
        if is_struct(typed.type):
            misplaced, names = BasicType.OBJECT, names_of(struct_of(typed))
            self._object(struct_of(typed), rows)
        elif is_list(typed.type):
            misplaced = BasicType.ARRAY
            self._mark(present & is_set, rows)
            self._array_elements(typed, rows)
        else:
            self._mark(present & is_set, rows)
            self._leaf(typed, is_set, rows)
        if values is not None and present.any():
            partial = is_set if misplaced is BasicType.OBJECT else None
            data, offsets = self._values(values, present, rows, partial, names)
            if misplaced is not None:
                first = data[offsets[:-1]] & 3
                self._mark(present & ~is_set & (first == misplaced), rows)
        return present | is_set

    def _values(
        self,
        values: AnyArray,
        present: Flags,
        rows: Int64s,
        partial: Flags | None,
        names: list[str],
    ) -> tuple[Bytes, Int64s]:
        """Check encoded values; beside fields of these names where `partial` is set."""
        data, offsets = bytes_of(values)
        members = np.zeros(len(self._names), np.uint8)
        members[[self._names[name] for name in names]] = 1
        beside = np.zeros(len(rows), np.bool_) if partial is None else partial
        check_values(
            data, offsets, present.astype(np.uint8), rows, self._dictionaries,
            beside.astype(np.uint8), members,
            np.empty(int(np.diff(offsets).max(initial=0)) + 64, np.int64), self._marked,
        )  # fmt: skip
        return data, offsets

    def _object(self, array: pa.StructArray, rows: Int64s) -> None:
        for name, child in zip(names_of(array), array.flatten(), strict=True):
            there = self._group(struct_of(child), rows)
            holds = self._has[:, self._names[name]]
            if not holds.all():
                # Rows without a dictionary are marked already.
                self._mark(there & ~holds[self._dictionaries.of_row[rows]], rows)

    def _array_elements(self, array: AnyArray, rows: Int64s) -> None:
        offsets, elements = elements_of(list_of(array))
        of_elements = np.repeat(rows, np.diff(offsets))
        self._mark(~self._group(struct_of(elements), of_elements), of_elements)

    def _leaf(self, array: AnyArray, is_set: Flags, rows: Int64s) -> None:
        plain: Any = array
        if isinstance(plain, pa.DictionaryArray):
            plain = plain.dictionary_decode()
        primitive = encoded_type(plain.type)
        if primitive is Primitive.STRING:
            try:
                plain.validate(full=True)
            except pa.ArrowInvalid:  # one of them is not UTF-8
                self._mark(is_set, rows)
        elif primitive is Primitive.TIME:
            times = plain.view(pa.int64()).fill_null(0).to_numpy()
            self._mark((times < 0) | (times >= DAY_MICROS), rows)
        elif PRIMITIVES[primitive].family is Family.EXACT_NUMERIC and pa.types.is_decimal(
            plain.type
        ):
            raw = fixed_of(plain)
            width = PRIMITIVES[primitive].width - 1
            self._mark(is_set & ~are_decimals(raw, width, plain.type.precision), rows)
