"""The parts of a shredded column as NumPy arrays, one place for each slot of a group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.kernels.native.declared import Bytes, Int32s, Int64s
from variantlake.kernels.tape.arrow_arrays import AnyArray, are_within, slots_of
from variantlake.kernels.tape.words import PADDING
from variantlake.shredding.arrays import members
from variantlake.shredding.layout import TYPED_VALUE, element_type, is_list, is_struct


class LeftToTwin(Exception):  # no error: it says who does the work
    """The batch holds values that only the twin handles."""


def names_of(group: pa.StructArray) -> list[str]:
    """The names of a group's members, in order."""
    return [field.name for field in members(group.type)]


def collect_names(arrow: pa.DataType, names: dict[str, int]) -> None:
    """Number the names of all shredded fields below a group."""
    for member in members(arrow):
        if member.name != TYPED_VALUE:
            continue
        if is_struct(member.type):
            for field in members(member.type):
                names.setdefault(field.name, len(names))
                collect_names(field.type, names)
        elif is_list(member.type):
            collect_names(element_type(member.type), names)


def padded(data: Bytes) -> Bytes:
    """Copy bytes, with the PADDING that kernels may read past their end."""
    return np.concatenate([data, np.zeros(PADDING, np.uint8)])


def binary_of(array: AnyArray) -> AnyArray:
    """A column of bytes of any kind with 64-bit offsets."""
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    return array.cast(pa.large_binary())


def bytes_of(array: AnyArray) -> tuple[Bytes, Int64s]:
    """The bytes of a large_binary array, padded, and where its slots start and end in them.

    Raises LeftToTwin for offsets that do not fit the data.
    """
    data, offsets = slots_of(array)
    if not are_within(offsets, data):
        raise LeftToTwin
    start, end = int(offsets[0]), int(offsets[-1])
    return padded(data[start:end]), offsets - start


def elements_of(lists: pa.ListArray[Any]) -> tuple[Int32s, AnyArray]:
    """The offsets, moved to start with 0, and the elements that they span."""
    offsets = np.zeros(len(lists) + 1, np.int32)
    if len(lists) > 0:  # an empty array may come without offsets
        offsets[:] = lists.offsets.to_numpy()
    return offsets - offsets[0], lists.values.slice(offsets[0], offsets[-1] - offsets[0])


def fixed_of(array: Any) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """The bytes of an array of a type of fixed width, a row for each slot."""
    width = array.type.bit_width // 8
    content = array.buffers()[1]
    if content is None:
        return np.zeros((len(array), width), np.uint8)
    data = np.frombuffer(content, np.uint8)
    data = data[array.offset * width : (array.offset + len(array)) * width]
    return data.reshape(len(array), width)


def are_decimals(raw: Any, width: int, precision: int) -> Any:
    """Whether the unscaled number of each slot fits; also False for some that fit barely.

    raw: from `fixed_of`, of a decimal stored in `width` bytes as a Variant.
    """
    words = np.ascontiguousarray(raw).view(np.int32 if raw.shape[1] == 4 else np.int64)
    low = words[:, 0].astype(np.int64)
    high = words[:, 1] if words.shape[1] > 1 else low >> 63
    if words.shape[1] > 2:
        raise LeftToTwin
    small = high == low >> 63
    if width <= 8:
        limit = 10**precision
        return small & (low > -limit) & (low < limit)
    limit = 10**precision >> 64
    return small | ((high < limit) & (high > -limit))
