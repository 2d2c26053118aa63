"""The class `Variant`, a single value for users."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from variantlake.encoding.arrow_scalars import ArrowScalar
from variantlake.encoding.arrow_values import tree_to_arrow
from variantlake.encoding.json_text import to_json
from variantlake.encoding.metadata import decode_metadata, decode_metadata_header
from variantlake.encoding.python_values import to_python, tree_of
from variantlake.encoding.tree import Tree, decode, encode, logical_key
from variantlake.encoding.value import basic_type, check_value_size, find, type_name, validate
from variantlake.errors import InvalidPath, InvalidValue, VariantLakeError
from variantlake.paths import Path
from variantlake.shown import Shown

_REPR_CHARACTERS = 200


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Variant(Shown):
    """A value of the Variant type, as its two binaries.

    Immutable and hashable; it pickles. The constructor checks little more than the header of
    `metadata`; each method checks what it reads, and `validate` checks all. Two Variants are equal
    if they are logically equal, whatever their encoding: an integer equals a decimal of the same
    value, micros equal nanos, fields have no order; doubles and exact numbers are never equal.

    Attributes:
        metadata: the dictionary of object keys.
        value: the value itself.
    """

    metadata: bytes
    value: bytes

    def __post_init__(self) -> None:
        for name in ("metadata", "value"):
            data = getattr(self, name)
            if isinstance(data, bytearray | memoryview):
                object.__setattr__(self, name, bytes(data))
            elif not isinstance(data, bytes):
                raise InvalidValue(f"{name} is {type(data).__name__}, not bytes")
        decode_metadata_header(self.metadata)
        check_value_size(self.value)
        basic_type(self.value)

    @classmethod
    def of(cls, value: object) -> Variant:
        """Make the Variant of a Python object or Arrow scalar; see `encoding.python_values`.

        Integers take the narrowest type, decimals keep their scale, floats become doubles, and
        Variants inside keep their types. Raises InvalidValue, with the path, for a value that no
        Variant type holds exactly.

        Examples:
            >>> vl.Variant.of({"a": 1}).to_json()
            '{"a":1}'
        """
        return cls.of_tree(tree_of(value))

    @classmethod
    def of_tree(cls, tree: Tree) -> Variant:
        """Encode a tree (`encoding.tree`): sorted dictionary, narrowest widths."""
        return cls(*encode(tree))

    @property
    def type(self) -> str:
        """The spec's name of the type: `object`, `array`, `string`, `int8`, `decimal4`, `null` ...

        Raises UnknownVariantType for a type id that this version does not know.
        """
        return type_name(self.value)

    def get(self, path: str | Path) -> Variant | None:
        """Return the value at a path such as `$.a['b'][0]`; None if a step is missing.

        A Variant null is returned as a Variant, not as None. Reads only the containers on the way.
        Raises InvalidPath for text that is not a path, MalformedVariant for malformed bytes.

        Examples:
            >>> vl.Variant.of({"a": [1, 2]}).get("$.a[1]").to_python()
            2
        """
        if not isinstance(path, str | Path):
            raise InvalidPath(f"a path is text such as $.a[0], not {type(path).__name__}")
        steps = Path.parse(path) if isinstance(path, str) else path
        found = find(decode_metadata(self.metadata), self.value, steps)
        return None if found is None else Variant(self.metadata, self.value[found[0] : found[1]])

    def tree(self) -> Tree:
        """Decode the value to a `Scalar`, dict or list, with exact types."""
        return decode(self.metadata, self.value)

    def to_python(self) -> Any:
        """Convert to plain Python: dict, list, str, int, Decimal; see `encoding.python_values`.

        Examples:
            >>> vl.Variant.of([1, None]).to_python()
            [1, None]
        """
        return to_python(self.tree())

    def to_json(self, *, time_zone: dt.tzinfo = dt.UTC) -> str:
        """Write JSON in the form of Spark's `to_json`; timestamps have the offset of `time_zone`.

        Examples:
            >>> vl.Variant.of({"a": None}).to_json()
            '{"a":null}'
        """
        return to_json(self.metadata, self.value, time_zone=time_zone)

    def to_arrow(self, type: pa.DataType | None = None) -> ArrowScalar:  # noqa: A002  # pyarrow's name for it
        """Convert to an Arrow scalar of `type`, or of an inferred type; see `arrow_values`.

        Objects become structs, arrays lists of one type, missing fields and Variant nulls null.
        Raises InvalidValue, with the path, for a value that the type does not hold exactly, and for
        arrays whose elements have no common type.
        """
        return tree_to_arrow(self.tree(), type)

    def validate(self) -> None:
        """Check every rule of the encoding. Raises MalformedVariant with offset and path."""
        validate(self.metadata, self.value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Variant):
            return NotImplemented
        return logical_key(self.tree()) == logical_key(other.tree())

    def __hash__(self) -> int:
        return hash(logical_key(self.tree()))

    def __repr__(self) -> str:
        try:
            text = self.to_json()
        except VariantLakeError as error:
            return f"<Variant, unreadable: {error.message}>"
        if len(text) > _REPR_CHARACTERS:
            text = text[:_REPR_CHARACTERS] + "…"
        return f"Variant({self.type}: {text})"

    def __str__(self) -> str:
        return self.to_json()
