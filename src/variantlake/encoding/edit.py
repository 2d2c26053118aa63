"""Change a value inside a Variant by its path, in plain Python.

Values off the path keep their bytes: only the headers of the containers on the way are written
again, and the dictionary if it lacks a key. New keys follow the others, so that the ids of all
other fields stay valid; `sorted_strings` stays set if the keys are still in order.

Names and rules are those of Spark 4.3 (SPARK-57417, SPARK-57641, SPARK-57804, SPARK-58061):

|                                  | set                 | insert      | delete    | append    |
|----------------------------------|---------------------|-------------|-----------|-----------|
| the field exists                 | replaced            | an error    | removed   | see below |
| the element exists               | replaced            | put before  | removed   | see below |
| the field is missing             | added               | added       | unchanged | unchanged |
| the index is at the end or after | padded with nulls   | as set      | unchanged | unchanged |
| a parent is missing              | created             | created     | unchanged | unchanged |
| a parent is of another type      | an error            | an error    | unchanged | an error  |
| the path is `$`                  | an error            | an error    | an error  | allowed   |

Where the table says "added", "padded" or "created", `set` without `create_if_missing` changes
nothing. `append` adds one element to the array at the path; a value of another type there is an
error. A parent that is a Variant null is of another type. A created parent is an array if the next
step is an index, else an object.
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
    """The change to make at the path."""

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
"""The change of each SQL function, and whether it returns NULL where others raise."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One change at one path. Raises InvalidPath for `$` unless it appends, and LimitExceeded."""

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
        # If a key is repeated, its first id counts.
        self.ids = {key: i for i, key in reversed(list(enumerate(dictionary.keys)))}

    def id_of(self, key: str) -> int:
        """Return the id of a key; adds a missing key."""
        if key not in self.ids:
            self.ids[key] = len(self.dictionary.keys) + len(self.added)
            self.added.append(key)
        return self.ids[key]

    def encoded(self, metadata: bytes) -> bytes:
        """Encode the metadata with the added keys."""
        if not self.added:
            return metadata
        known = self.dictionary.keys
        ordered = self.dictionary.sorted_strings or not known
        ordered = ordered and all(a < b for a, b in pairwise([*known[-1:], *self.added]))
        texts = [encode_string(key) for key in (*known, *self.added)]
        return encode_dictionary(texts, sorted_strings=ordered)


@dataclass(slots=True)
class _Frame:
    """A container on the way: its parts, and the `place` of the change among them.

    `is_present` tells whether a field or element exists at `place`.
    """

    ids: list[int] | None
    parts: list[bytes]
    place: int
    is_present: bool

    def closed(self) -> bytes:
        """Encode the container with its current parts."""
        if self.ids is None:
            return encode_array(self.parts)
        return encode_object(self.ids, self.parts)


def edited(metadata: bytes, value: bytes, edit: Edit, new: Tree | None) -> tuple[bytes, bytes]:
    """Return (metadata, value) after the change; the same bytes if it changes nothing.

    `new` is the new value, None for DELETE. Raises PathTypeMismatch if a step meets a value of
    another type, DuplicateKey for an insert at a field that exists, MalformedVariant for a
    malformed container on the way, LimitExceeded for a result beyond our limits.
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
    """Return the containers down to the one that changes; None if nothing changes."""
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
    """Read the container that fills `extent`, and find the step's child, None if missing."""
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
    """Return the index of the step's child, or of a missing field before the next greater name."""
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
        hint="set the parent first; the try_ functions give NULL for the whole Variant",
    )


def _put(frames: list[_Frame], edit: Edit, new: Tree, keys: _Keys) -> None:
    """Put the value into the last container, with its missing parents."""
    last, rest = frames[-1], edit.path.steps[len(frames) :]
    depth = len(frames) + len(rest)
    if depth > MAX_DEPTH:
        raise LimitExceeded(f"more than {MAX_DEPTH} containers around one another")
    adds = not last.is_present
    # Add the keys of the path before those of the value, in the kernel's order.
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
