"""Take Arrow arrays apart, whatever their encoding or list type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from variantlake.arrays import arrow_array, numpy_array
from variantlake.errors import MalformedFile
from variantlake.shredding.layout import VARIANT_TYPE, is_list, map_type, struct_storage

AnyArray: TypeAlias = "pa.Array[Any]"
AnyField: TypeAlias = "pa.Field[Any]"


def members(arrow: pa.DataType) -> list[AnyField]:
    """Return the fields of a struct type, or of the struct below an extension type."""
    return list(struct_storage(arrow))


def validity(array: AnyArray) -> list[bool]:
    """Return for each slot whether it is not null."""
    valid: list[Any] = array.is_valid().to_pylist()
    return valid


def bools_of(array: AnyArray) -> npt.NDArray[np.bool_]:
    """Convert booleans without nulls to NumPy."""
    return np.asarray(numpy_array(array), np.bool_)


def valid_of(array: AnyArray) -> npt.NDArray[np.bool_]:
    """Return `validity` as a NumPy array."""
    return bools_of(array.is_valid())


def bytes_of(array: AnyArray) -> list[bytes | None]:
    """Return the values of a binary column of any type."""
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    return array.to_pylist()


def variants_of(rows: Sequence[tuple[bytes, bytes] | None]) -> pa.StructArray:
    """Make struct<metadata, value> of pairs; None becomes a null with empty bytes below it."""
    return pa.StructArray.from_arrays(
        [
            arrow_array([b"" if row is None else row[part] for row in rows], pa.binary())
            for part in range(2)
        ],
        fields=list(VARIANT_TYPE),
        mask=arrow_array([row is None for row in rows], pa.bool_()),
    )


def struct_of(array: AnyArray) -> pa.StructArray:
    """Return the array as a struct. Raises MalformedFile for another type."""
    storage = array.storage if isinstance(array, pa.ExtensionArray) else array
    if not isinstance(storage, pa.StructArray):
        raise MalformedFile(f"expected a group, found {array.type}")
    return storage


def parts_of(array: AnyArray) -> list[AnyArray]:
    """Return the members of a struct array in order, null wherever the struct is null."""
    group = struct_of(array)
    if group.null_count:
        return group.flatten()
    # `flatten` would make new arrays.
    return [group.field(place) for place in range(group.type.num_fields)]


def list_of(array: AnyArray) -> pa.ListArray[Any]:
    """Convert lists to 32-bit offsets. Raises MalformedFile for a type that is not a list."""
    lists: Any = array
    if isinstance(array, pa.ListViewArray | pa.LargeListViewArray):
        return _gathered(lists, np.asarray(lists.offsets), np.asarray(lists.sizes))
    if isinstance(array, pa.FixedSizeListArray):
        size = lists.type.list_size
        starts = np.arange(len(lists)) + lists.offset
        return _gathered(lists, starts * size, np.full(len(lists), size))
    if isinstance(array, pa.ListArray):
        return array
    offsets, elements = offsets_of(array)
    return list_array(pa.list_(element_field(array.type)), offsets, elements, array.is_null())


def _gathered(lists: Any, starts: np.ndarray, sizes: np.ndarray) -> pa.ListArray[Any]:
    """Gather lists whose elements are in any order; pyarrow casts slices of them wrongly."""
    is_set = valid_of(lists)
    sizes = np.where(is_set, sizes, 0).astype(np.int64)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    chosen = np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])
    kind, elements = pa.list_(element_field(lists.type)), lists.values.take(arrow_array(chosen))
    return list_array(kind, offsets, elements, arrow_array(~is_set))


def element_field(arrow: pa.DataType) -> AnyField:
    """Return a list type's element field. Raises MalformedFile for a type that is not a list."""
    field: AnyField | None = getattr(arrow, "value_field", None)
    if field is None:
        raise MalformedFile(f"expected a list, found {arrow}")
    return field


def offsets_of(lists: Any) -> tuple[npt.NDArray[np.int64], AnyArray]:
    """Return offsets that start with 0, and the elements that they span, of lists or maps.

    A slice of a list array shares its elements array with other slices. Elements below a null are
    left out.
    """
    offsets = np.asarray(lists.offsets, np.int64)
    if not len(offsets):
        return np.zeros(1, np.int64), lists.values.slice(0, 0)
    sizes = np.diff(offsets)
    elements = lists.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    if lists.null_count:
        is_set = valid_of(lists)
        if sizes[~is_set].any():
            elements = elements.filter(arrow_array(np.repeat(is_set, sizes)))
            sizes[~is_set] = 0
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), elements


def elements_of(lists: AnyArray) -> AnyArray:
    """Return the elements of all lists that are not null, one after the other.

    Unlike pyarrow's `flatten`, this works for all types, such as UUIDs with a null list.
    """
    is_fixed = isinstance(lists, pa.FixedSizeListArray)
    return offsets_of(list_of(lists) if is_fixed else lists)[1]


def list_array(
    arrow: pa.DataType, offsets: Any, elements: AnyArray, nulls: AnyArray
) -> pa.ListArray[Any]:
    """Make lists of exactly this type; offsets start with 0 and fit 32 bits."""
    made: Any = pa.ListArray.from_arrays(
        arrow_array(offsets, pa.int32()), elements, type=arrow, mask=cast("Any", nulls)
    )
    return cast("pa.ListArray[Any]", made)


def element_at(lists: AnyArray, index: int) -> AnyArray:
    """Return the element of each list at an index, null beyond its end."""
    offsets, elements = offsets_of(list_of(lists))
    places = offsets[:-1] + index
    return elements.take(arrow_array(places, pa.int64(), mask=places >= offsets[1:]))


def map_array(arrow: pa.DataType, offsets: Any, parts: list[AnyArray], nulls: AnyArray) -> AnyArray:
    """Make maps of exactly this type; pyarrow's stubs lack the mask."""
    make: Any = pa.MapArray.from_arrays
    made: AnyArray = make(arrow_array(offsets, pa.int32()), *parts, type=arrow, mask=nulls)
    return made


def map_leaves(
    array: Any,
    change: Callable[[AnyArray], AnyArray],
    is_leaf: Callable[[pa.DataType], bool] = lambda _: False,
) -> AnyArray:
    """Apply `change` to the leaves of an array, in order; it may change their type, too.

    Arrays of a type for which `is_leaf` holds are leaves as a whole.
    """
    if is_leaf(array.type):
        return change(array)
    if isinstance(array, pa.StructArray):
        # Flattened, so that values below a null group are null.
        children = [map_leaves(child, change, is_leaf) for child in array.flatten()]
        fields = members(array.type)
        fields = [f.with_type(child.type) for f, child in zip(fields, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
    if isinstance(array, pa.MapArray):
        offsets, elements = offsets_of(array)
        parts = struct_of(map_leaves(elements, change, is_leaf)).flatten()
        key, item = array.type.key_field, array.type.item_field
        pairs = map_type(key.with_type(parts[0].type), item.with_type(parts[1].type))
        return map_array(pairs, offsets, parts, array.is_null())
    if is_list(array.type):
        lists = list_of(array)
        offsets, elements = offsets_of(lists)
        inside = map_leaves(elements, change, is_leaf)
        kind = pa.list_(element_field(lists.type).with_type(inside.type))
        return list_array(kind, offsets, inside, lists.is_null())
    return change(array)


def map_types(
    arrow: pa.DataType,
    change: Callable[[pa.DataType], pa.DataType],
    is_leaf: Callable[[pa.DataType], bool] = lambda _: False,
) -> pa.DataType:
    """Return the type of `map_leaves` for arrays of a type; `change` is that of leaf types."""

    def below(field: AnyField) -> AnyField:
        return field.with_type(map_types(field.type, change, is_leaf))

    if is_leaf(arrow):
        return change(arrow)
    if isinstance(arrow, pa.StructType):
        return pa.struct(list(map(below, arrow)))
    if isinstance(arrow, pa.MapType):
        return map_type(below(arrow.key_field), below(arrow.item_field))
    return pa.list_(below(element_field(arrow))) if is_list(arrow) else change(arrow)
