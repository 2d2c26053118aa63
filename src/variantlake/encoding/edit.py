"""Changing a value inside of a Variant by its path, in plain Python.

What is beside the path keeps its bytes: only the headers of the containers on the way, and the
dictionary if it lacks a key, are written anew. New keys go behind the others, so that the ids
of all other fields hold; `sorted_strings` stays if the order still holds.

Names and rules are those of Spark 4.3 (SPARK-57417, SPARK-57641, SPARK-57804, SPARK-58061):

|                                  | set                 | insert      | delete    | append    |
|----------------------------------|---------------------|-------------|-----------|-----------|
| the field is there               | replaced            | an error    | removed   | see below |
| the element is there             | replaced            | put before  | removed   | see below |
| the field is not there           | added               | added       | unchanged | unchanged |
| the index is at the end or after | nulls up to it, put | as set      | unchanged | unchanged |
| a parent is not there            | made                | made        | unchanged | unchanged |
| a parent is of another type      | an error            | an error    | unchanged | an error  |
| the path is `$`                  | an error            | an error    | an error  | allowed   |

`set` without `create_if_missing` changes nothing if "added", "nulls" or "made" stands. `append`
puts one element behind the array that the path names; anything else there is an error. A parent
that is a Variant null is of another type. A made parent is an array if the next step is an
index, else an object.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from itertools import pairwise

from variantlake.encoding.limits import MAX_DEPTH, MAX_PADDING
from variantlake.encoding.metadata import VariantMetadata, decode_metadata, encode_dictionary
from variantlake.encoding.scalar import encode_string
from variantlake.encoding.tree import Tree, encode_array, encode_object, encode_value, keys_of
from variantlake.encoding.value import (
    Children,
    basic_type,
    check_value_size,
    read_children,
    read_layout,
    type_name,
)
from variantlake.errors import (
    DuplicateKey,
    InvalidPath,
    LimitExceeded,
    PathTypeMismatch,
    VariantLakeError,
)
from variantlake.paths import Path
from variantlake.types import NULL_VALUE, BasicType


class Change(enum.IntEnum):
    """What is done at the path."""

    SET = 0
    INSERT = 1
    DELETE = 2
    APPEND = 3


FUNCTIONS = {
    "variant_set": (Change.SET, False),
    "try_variant_set": (Change.SET, True),
    "variant_insert": (Change.INSERT, False),
    "try_variant_insert": (Change.INSERT, True),
    "variant_delete": (Change.DELETE, False),
    "variant_remove": (Change.DELETE, False),
    "variant_array_append": (Change.APPEND, False),
    "try_variant_array_append": (Change.APPEND, True),
}
"""By their names in SQL, what the functions do, and whether they give NULL where others raise."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One change at one path. Raises InvalidPath for `$` if that is not a place to change."""

    change: Change
    path: Path
    create_if_missing: bool = True

    def __post_init__(self) -> None:
        if not self.path.steps and self.change is not Change.APPEND:
            raise InvalidPath(
                "the path $ is the whole value, in which there is nothing to change",
                hint="name a field or an element: $.a or $[0]",
            )
        for step in self.path.steps:
            if isinstance(step, int) and step > MAX_PADDING and self.change is not Change.DELETE:
                raise LimitExceeded(
                    f"index {step} of {self.path} is over {MAX_PADDING}", path=str(self.path)
                )


class _Keys:
    """The ids of keys in a dictionary that may grow."""

    def __init__(self, dictionary: VariantMetadata) -> None:
        self.dictionary = dictionary
        self.added: list[str] = []
        # Of a key that is repeated the first id counts.
        self.ids = {key: i for i, key in reversed(list(enumerate(dictionary.keys)))}

    def id_of(self, key: str) -> int:
        """The id of a key, a new one if need be."""
        if key not in self.ids:
            self.ids[key] = len(self.dictionary.keys) + len(self.added)
            self.added.append(key)
        return self.ids[key]

    def encoded(self, metadata: bytes) -> bytes:
        """The metadata with the keys that were added."""
        if not self.added:
            return metadata
        known = self.dictionary.keys
        ordered = self.dictionary.sorted_strings or not known
        ordered = ordered and all(a < b for a, b in pairwise([*known[-1:], *self.added]))
        texts = [encode_string(key) for key in (*known, *self.added)]
        return encode_dictionary(texts, sorted_strings=ordered)


@dataclass(slots=True)
class _Frame:
    """A container on the way: its parts, and the place where the change is.

    `is_present` says that the place is a field or an element that is there.
    """

    ids: list[int] | None
    parts: list[bytes]
    place: int
    is_present: bool

    def closed(self) -> bytes:
        """The container with its parts as they are now."""
        if self.ids is None:
            return encode_array(self.parts)
        return encode_object(self.ids, self.parts)


def edited(metadata: bytes, value: bytes, edit: Edit, new: Tree | None) -> tuple[bytes, bytes]:
    """(metadata, value) after the change; the same bytes if it changes nothing.

    `new` is the value that is put, None for DELETE. Raises PathTypeMismatch if a step meets a
    value of another type, DuplicateKey for an insert at a field that is there, MalformedVariant for
    a container on the way that is malformed, LimitExceeded for a result beyond our limits.
    """
    keys = _Keys(decode_metadata(metadata))
    check_value_size(value)
    frames = _way(keys.dictionary, value, edit)
    if frames is None:
        return metadata, value
    last = frames[-1]
    if edit.change is Change.DELETE:
        del last.parts[last.place]
        if last.ids is not None:
            del last.ids[last.place]
    elif new is not None:
        _put(frames, edit, new, keys)
    result = last.closed()
    for frame in reversed(frames[:-1]):
        frame.parts[frame.place] = result
        result = frame.closed()
    check_value_size(result)
    return keys.encoded(metadata), result


def _way(dictionary: VariantMetadata, value: bytes, edit: Edit) -> list[_Frame] | None:
    """The containers down to the one that changes; None if nothing does."""
    frames: list[_Frame] = []
    start, end = 0, len(value)
    steps = edit.path.steps
    for depth, step in enumerate(steps):
        wanted = BasicType.OBJECT if isinstance(step, str) else BasicType.ARRAY
        if basic_type(value, start) is not wanted:
            if edit.change is Change.DELETE:
                return None
            raise _mismatch(value, start, Path(steps[:depth]), wanted)
        frame, found = _frame(dictionary, value, (start, end), Path(steps[:depth]), step)
        frames.append(frame)
        if found is None:
            sets = edit.change is Change.SET and edit.create_if_missing
            return frames if sets or edit.change is Change.INSERT else None
        start, end = found
    if edit.change is Change.APPEND:
        if basic_type(value, start) is not BasicType.ARRAY:
            raise _mismatch(value, start, edit.path, BasicType.ARRAY)
        frame, _ = _frame(dictionary, value, (start, end), edit.path, 0)
        frame.place, frame.is_present = len(frame.parts), False
        frames.append(frame)
    if edit.change is Change.INSERT and frames[-1].ids is not None:
        raise DuplicateKey(
            f"the field {steps[-1]!r} is there already",
            path=edit.path.normalized(),
            hint="set the field to replace its value",
        )
    return frames


def _frame(
    dictionary: VariantMetadata, value: bytes, extent: tuple[int, int], at: Path, step: str | int
) -> tuple[_Frame, tuple[int, int] | None]:
    """The container that fills `extent`, and where the step's child is."""
    try:
        children = read_children(dictionary, value, *extent)
    except VariantLakeError as error:
        error.path = at.normalized()
        raise
    found = children.find(step)
    parts = [value[a:b] for a, b in zip(children.starts, children.ends, strict=True)]
    ids = None if children.names is None else _ids(value, *extent)
    return _Frame(ids, parts, _place(children, step), found is not None), found


def _ids(value: bytes, start: int, end: int) -> list[int]:
    layout = read_layout(value, start, end)
    first, size = layout.ids_start, layout.id_size
    places = range(first, first + layout.num_elements * size, size)
    return [int.from_bytes(value[at : at + size], "little") for at in places]


def _place(children: Children, step: str | int) -> int:
    """Where the step's child is, or belongs: a field before the first one with a greater name."""
    if isinstance(step, int):
        return step
    names = children.names or ()
    if step in names:
        return names.index(step)
    return next((i for i, name in enumerate(names) if name > step), len(names))


def _mismatch(value: bytes, start: int, at: Path, wanted: BasicType) -> PathTypeMismatch:
    return PathTypeMismatch(
        f"expected an {wanted.name.lower()}, found {type_name(value, start)}",
        path=at.normalized(),
        hint="the try_ functions give NULL instead",
    )


def _put(frames: list[_Frame], edit: Edit, new: Tree, keys: _Keys) -> None:
    """Put the value into the last container, with the parents that are not there."""
    last, rest = frames[-1], edit.path.steps[len(frames) :]
    depth = len(frames) + len(rest)
    if depth > MAX_DEPTH:
        raise LimitExceeded(f"more than {MAX_DEPTH} containers around one another")
    adds = not last.is_present
    # The keys of the path come before those of the value: the kernel meets them in this order.
    field_id = -1
    if adds and last.ids is not None:
        field_id = keys.id_of(str(edit.path.steps[len(frames) - 1]))
    made = [keys.id_of(step) if isinstance(step, str) else step for step in rest]
    for key in keys_of(new):
        keys.id_of(key)
    inner = encode_value(new, keys.ids, depth)
    for step, number in zip(reversed(rest), reversed(made), strict=True):
        if isinstance(step, str):
            inner = encode_object([number], [inner])
        else:
            inner = encode_array([NULL_VALUE] * number + [inner])
    if last.ids is not None and adds:
        last.ids.insert(last.place, field_id)
        last.parts.insert(last.place, inner)
    elif last.ids is None and (adds or edit.change is Change.INSERT):
        last.parts += [NULL_VALUE] * (last.place - len(last.parts))
        last.parts.insert(last.place, inner)
    else:
        last.parts[last.place] = inner
