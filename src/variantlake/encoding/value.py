"""Read headers, objects and arrays of a Variant's `value`, and check them.

Every read is checked against the end of its range, and every number of elements against the
remaining bytes before memory is allocated for it. The values of a container must fill its data
without gap or overlap, so that work and memory stay a small multiple of the input.
Spec: VariantEncoding, "Value encoding".
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from variantlake.encoding.limits import MAX_DEPTH, MAX_VALUE_BYTES
from variantlake.encoding.metadata import VariantMetadata, check_sorted, decode_metadata
from variantlake.encoding.scalar import decode_scalar, primitive_type, scalar_size
from variantlake.errors import LimitExceeded, MalformedVariant, VariantLakeError
from variantlake.paths import Path
from variantlake.types import PRIMITIVES, BasicType


@dataclass(frozen=True, slots=True)
class ContainerLayout:
    """The places of the parts of an object or array, as offsets into the whole value.

    `field_ids` are at `ids_start`, `num_elements` of `id_size` bytes (0 for an array); the
    `num_elements + 1` offsets at `offsets_start`; the values between `data_start` and `data_end`.
    """

    num_elements: int
    ids_start: int
    id_size: int
    offsets_start: int
    offset_size: int
    data_start: int
    data_end: int


@dataclass(frozen=True, slots=True)
class Children:
    """The values of one object or array: `value[starts[i]:ends[i]]` is the i-th.

    `names` are the field names of an object in stored order, None for an array.
    """

    names: tuple[str, ...] | None
    starts: Sequence[int]
    ends: Sequence[int]

    def find(self, step: str | int) -> tuple[int, int] | None:
        """Return the start and end of one field or element, None if it is missing.

        Searches all names: Spark sorts them by UTF-16 code units, so a binary search by the spec's
        order would miss some.
        """
        if self.names is None:
            if not isinstance(step, int) or not 0 <= step < len(self.starts):
                return None
            return self.starts[step], self.ends[step]
        if not isinstance(step, str) or step not in self.names:
            return None
        i = self.names.index(step)
        return self.starts[i], self.ends[i]


def basic_type(value: bytes, start: int = 0) -> BasicType:
    """Return the low two bits of the first byte. Raises MalformedVariant for an empty value."""
    if start >= len(value):
        raise MalformedVariant(
            "value is empty", offset=start, hint="a Variant null is the byte `00`"
        )
    return BasicType(value[start] & 0x03)


def type_name(value: bytes, start: int = 0) -> str:
    """Return the spec's name of the type: `object`, `array`, `string`, `int8`, `decimal4` ...

    Raises UnknownVariantType for a type id that this version does not know.
    """
    match basic_type(value, start):
        case BasicType.OBJECT:
            return "object"
        case BasicType.ARRAY:
            return "array"
        case BasicType.SHORT_STRING:
            return "string"
        case BasicType.PRIMITIVE:
            return PRIMITIVES[primitive_type(value, start)].name


def value_size(value: bytes, start: int = 0) -> int:
    """Return the bytes of the value at `start`, by its header; more may follow.

    Raises MalformedVariant when the buffer ends before it.
    """
    if basic_type(value, start) in (BasicType.OBJECT, BasicType.ARRAY):
        size = read_layout(value, start, len(value)).data_end - start
    else:
        size = scalar_size(value, start, len(value))
    if start + size > len(value):
        raise MalformedVariant(
            f"value of {size} bytes starts {len(value) - start} bytes before the end", offset=start
        )
    return size


def read_layout(value: bytes, start: int, end: int) -> ContainerLayout:
    """Decode the header of the object or array at `start`; `end` bounds all of it.

    Raises MalformedVariant when `num_elements`, ids, offsets or values would pass `end`.
    """
    header = value[start] >> 2
    offset_size = (header & 0x03) + 1
    if value[start] & 0x03 == BasicType.OBJECT:
        id_size, is_large = (header >> 2 & 0x03) + 1, bool(header & 0x10)
    else:
        id_size, is_large = 0, bool(header & 0x04)
    # The remaining header bits are reserved, and readers must ignore them.
    ids_start = start + (5 if is_large else 2)
    if ids_start > end:
        raise MalformedVariant("value ends inside of num_elements", offset=end)
    num_elements = int.from_bytes(value[start + 1 : ids_start], "little")
    offsets_start = ids_start + num_elements * id_size
    data_start = offsets_start + (num_elements + 1) * offset_size
    if data_start > end:
        raise MalformedVariant(
            f"{num_elements} elements do not fit the {end - start} bytes of their container",
            offset=start + 1,
        )
    data_end = data_start + int.from_bytes(value[data_start - offset_size : data_start], "little")
    if data_end > end:
        raise MalformedVariant(
            f"last field_offset {data_end - data_start} passes the end of the value",
            offset=data_start - offset_size,
        )
    if num_elements > data_end - data_start:
        raise MalformedVariant(
            f"{num_elements} values cannot fit {data_end - data_start} bytes", offset=start + 1
        )
    return ContainerLayout(
        num_elements, ids_start, id_size, offsets_start, offset_size, data_start, data_end
    )


def read_children(dictionary: VariantMetadata, value: bytes, start: int, end: int) -> Children:
    """Read the fields or elements of the container that fills `value[start:end]` exactly.

    Raises MalformedVariant for anything out of bounds, values that overlap or leave gaps, field
    ids outside the dictionary, and two fields with one name. Only `validate` checks the order of
    fields.
    """
    layout = read_layout(value, start, end)
    if layout.data_end != end:
        raise MalformedVariant(
            f"{end - layout.data_end} bytes follow the last value of a container",
            offset=layout.data_end,
        )
    starts, ends = _read_extents(value, layout)
    if not layout.id_size:
        return Children(None, starts, ends)
    return Children(_read_names(dictionary, value, layout), starts, ends)


def _read_unsigned_list(data: bytes, start: int, count: int, size: int) -> array[int]:
    """Read `count` little-endian numbers of `size` bytes, into 8 bytes of memory each."""
    stop = start + count * size
    return array(
        "q", (int.from_bytes(data[at : at + size], "little") for at in range(start, stop, size))
    )


def _read_extents(value: bytes, layout: ContainerLayout) -> tuple[array[int], array[int]]:
    """Return the starts and ends of the values, as offsets into the whole value.

    Values may be in any order, so each ends where the next one in the data starts. So the size of a
    value of an unknown type is known as well.
    """
    count, base = layout.num_elements, layout.data_start
    starts = _read_unsigned_list(value, layout.offsets_start, count, layout.offset_size)
    order: Sequence[int] = range(count)
    if any(a > b for a, b in pairwise(starts)):
        order = sorted(order, key=starts.__getitem__)
    first = starts[order[0]] if count else layout.data_end - base
    if first:
        raise MalformedVariant(
            f"{first} bytes before the first value belong to none", offset=layout.data_start
        )
    ends = array("q", bytes(8 * count))
    for i, follower in pairwise(chain(order, (-1,))):
        end = starts[follower] if follower >= 0 else layout.data_end - base
        if end <= starts[i]:
            raise MalformedVariant(
                f"field_offset {starts[i]} is used twice or leaves no room for its value",
                offset=layout.offsets_start + i * layout.offset_size,
            )
        ends[i] = base + end
    for i in range(count):
        starts[i] += base
    return starts, ends


def _read_names(
    dictionary: VariantMetadata, value: bytes, layout: ContainerLayout
) -> tuple[str, ...]:
    """Return the field names of an object, in stored order."""
    ids = _read_unsigned_list(value, layout.ids_start, layout.num_elements, layout.id_size)
    keys = dictionary.keys
    for i, field_id in enumerate(ids):
        if field_id >= len(keys):
            raise MalformedVariant(
                f"field id {field_id} is outside a dictionary of {len(keys)} keys",
                offset=layout.ids_start + i * layout.id_size,
                hint="is this value paired with its own row's metadata?",
            )
    names = tuple(keys[field_id] for field_id in ids)
    if len(set(names)) != len(names):
        raise MalformedVariant(
            "object has two fields of one name", offset=layout.ids_start, hint=f"names: {names!r}"
        )
    return names


def find(dictionary: VariantMetadata, value: bytes, path: Path) -> tuple[int, int] | None:
    """Return the start and end of the value at `path`, None if a step is missing.

    Reads only the containers on the way; values off the path may have types that this version does
    not know. Raises MalformedVariant for a malformed container.
    """
    start, end = 0, len(value)
    for depth, step in enumerate(path.steps):
        if basic_type(value, start) not in (BasicType.OBJECT, BasicType.ARRAY):
            return None
        try:
            found = read_children(dictionary, value, start, end).find(step)
        except VariantLakeError as error:
            error.path = Path(path.steps[:depth]).normalized()
            raise
        if found is None:
            return None
        start, end = found
    return start, end


class Walk:
    """Walks through a value depth first, without recursion, so that no depth crashes Python.

    `descend` opens a container. `next` returns its children one by one (name or index, start, end)
    and then None once; after that it goes on with the container around it.
    """

    __slots__ = ("_frames", "_positions")

    def __init__(self) -> None:
        self._frames: list[Children] = []
        self._positions: list[int] = []

    def descend(self, children: Children) -> None:
        """Open the container that `next` returned last, or the root."""
        if len(self._frames) >= MAX_DEPTH:
            raise LimitExceeded(f"more than {MAX_DEPTH} containers around one another")
        self._frames.append(children)
        self._positions.append(-1)

    def next(self) -> tuple[str | int, int, int] | None:
        """Return the next child of the innermost container; at its end close it and return None."""
        children = self._frames[-1]
        self._positions[-1] += 1
        i = self._positions[-1]
        if i == len(children.starts):
            self._frames.pop()
            self._positions.pop()
            return None
        name = i if children.names is None else children.names[i]
        return name, children.starts[i], children.ends[i]

    @property
    def depth(self) -> int:
        """The number of open containers."""
        return len(self._frames)

    def path(self) -> str:
        """Return the normalized path of the child that `next` returned last."""
        steps = (
            i if children.names is None else children.names[i]
            for children, i in zip(self._frames, self._positions, strict=True)
            if 0 <= i < len(children.starts)
        )
        return Path(tuple(steps)).normalized()


def validate(metadata: bytes, value: bytes) -> None:
    """Check one Variant against every rule of the encoding.

    Beyond what reading needs, keys must be sorted if `sorted_strings` is set, and fields must be in
    the order of their names' UTF-8 bytes: Spark orders both by UTF-16 code units, which differs for
    code points above U+FFFF. Raises MalformedVariant with offset and path, UnknownVariantType for
    a type id that this version does not know, LimitExceeded beyond our limits.
    """
    dictionary = decode_metadata(metadata)
    check_sorted(dictionary)
    validate_value(dictionary, value)


def validate_value(dictionary: VariantMetadata, value: bytes) -> None:
    """Check a value as `validate` does; its metadata, which rows may share, is already checked."""
    check_value_size(value)
    walk = Walk()
    try:
        _validate_one(dictionary, value, 0, len(value), walk)
        while walk.depth:
            child = walk.next()
            if child is not None:
                _validate_one(dictionary, value, child[1], child[2], walk)
    except VariantLakeError as error:
        error.path = walk.path()
        raise


def check_value_size(value: bytes) -> None:
    """Raise LimitExceeded for a value beyond MAX_VALUE_BYTES."""
    if len(value) > MAX_VALUE_BYTES:
        raise LimitExceeded(f"value of {len(value)} bytes is over {MAX_VALUE_BYTES}")


def _validate_one(
    dictionary: VariantMetadata, value: bytes, start: int, end: int, walk: Walk
) -> None:
    if basic_type(value, start) not in (BasicType.OBJECT, BasicType.ARRAY):
        decode_scalar(value, start, end)
        return
    children = read_children(dictionary, value, start, end)
    names = children.names or ()
    for previous, name in pairwise(names):
        if name <= previous:
            raise MalformedVariant(
                f"field {name!r} follows {previous!r}: fields are ordered by the UTF-8 bytes of "
                "their names",
                offset=start,
            )
    walk.descend(children)
