"""The fields of actions, defined in one place: the dataclass of the action.

Each field has the protocol's name, in snake case, and type. A field that may be None may be absent
from the log. The forms of an action in JSON, in checkpoints, in FILES and in large commits follow
from its dataclass. In JSON a known field of a wrong type raises MalformedLog; unknown fields are
ignored.
"""

from __future__ import annotations

import enum
import functools
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self, Union, get_args, get_origin, get_type_hints

from variantlake.errors import MalformedLog

StringMap = Mapping[str, str | None]
Json = dict[str, Any]


class FieldKind(enum.Enum):
    """The types that the protocol gives to fields."""

    STRING = enum.auto()
    INT = enum.auto()
    LONG = enum.auto()
    BOOLEAN = enum.auto()
    MAP = enum.auto()
    """A map of strings to strings, which may be null."""
    PROPERTIES = enum.auto()
    """A map of strings to strings; entries that are null in the log are dropped."""
    STRINGS = enum.auto()
    RECORD = enum.auto()
    """An object with fields of its own."""


Int = Annotated[int, FieldKind.INT]
"""An integer of 32 bits; `int` is one of 64."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field: `name` here, `key` in the protocol's spelling; `record` the class of a RECORD."""

    name: str
    key: str
    kind: FieldKind
    optional: bool
    record: type[Record] | None = None


class Record:
    """A frozen dataclass whose fields are those of an action, or of an object in one."""

    __slots__ = ()
    ABSENT_MAPS: ClassVar[frozenset[str]] = frozenset()
    """The maps that are empty if the log omits them."""

    @classmethod
    def from_json(cls, fields: Json) -> Self:
        """Parse the fields; raises MalformedLog."""
        record = cls(*[read(fields) for read in _table(cls).readers])
        record.check()
        return record

    def check(self) -> None:
        """Raise MalformedLog for an error other than a wrong type."""

    def to_json(self) -> Json:
        """Return the fields that have a value; the protocol omits the others."""
        found: Json = {}
        for name, key, convert in _table(type(self)).writers:
            value = getattr(self, name)
            if value is not None:
                found[key] = value if convert is None else convert(value)
        return found


def fields_of(record: type[Record]) -> tuple[Field, ...]:
    """Return the fields of an action or of an object in one, in their order."""
    return _table(record).fields


@dataclass(frozen=True, slots=True)
class _Table:
    """The fields of a Record. Each has a reader, and a writer: name, key and conversion to JSON."""

    fields: tuple[Field, ...]
    readers: tuple[Callable[[Json], Any], ...]
    writers: tuple[tuple[str, str, Callable[[Any], Any] | None], ...]


_TABLES: dict[type[Record], _Table] = {}


def _table(record: type[Record]) -> _Table:
    found = _TABLES.get(record)
    if found is None:
        hints = get_type_hints(record, include_extras=True)
        names: tuple[str, ...] = record.__match_args__  # type: ignore[attr-defined]  # a dataclass has them
        fields = tuple(_field(name, hints[name]) for name in names)
        found = _TABLES[record] = _Table(
            fields,
            tuple(_reader(field, record.ABSENT_MAPS) for field in fields),
            tuple((field.name, field.key, _MAKERS.get(field.kind)) for field in fields),
        )
    return found


def _field(name: str, hint: Any) -> Field:
    optional = get_origin(hint) in (Union, types.UnionType)
    if optional:
        (hint,) = (each for each in get_args(hint) if each is not type(None))
    first, *others = name.split("_")
    key = first + "".join(part.capitalize() for part in others)
    if isinstance(hint, type) and issubclass(hint, Record):
        return Field(name, key, FieldKind.RECORD, optional, hint)
    kind = next(kind for type_, kind in _KINDS if type_ == hint)
    return Field(name, key, kind, optional)


_KINDS: list[tuple[Any, FieldKind]] = [
    (str, FieldKind.STRING),
    (Int, FieldKind.INT),
    (int, FieldKind.LONG),
    (bool, FieldKind.BOOLEAN),
    (StringMap, FieldKind.MAP),
    (Mapping[str, str], FieldKind.PROPERTIES),
    (tuple[str, ...], FieldKind.STRINGS),
]


def _reader(field: Field, absent_maps: frozenset[str]) -> Callable[[Json], Any]:
    key, optional = field.key, field.optional
    empty = field.name in absent_maps
    parse = functools.partial(_record, field.record) if field.record else _PARSERS[field.kind]

    def read(fields: Json) -> Any:
        value = fields.get(key)
        if value is None:
            if optional:
                return None
            if empty:
                return {}
            raise MalformedLog(f"{key} is missing")
        return parse(key, value)

    return read


_MAKERS: dict[FieldKind, Callable[[Any], Any]] = {
    FieldKind.MAP: dict,
    FieldKind.PROPERTIES: dict,
    FieldKind.RECORD: Record.to_json,
}
"""Functions that turn a value into one that orjson accepts."""


def _wrong(key: str, wanted: str, value: object) -> MalformedLog:
    return MalformedLog(f"{key} is {type(value).__name__}, expected {wanted}")


def _of_type(type_: type, wanted: str, key: str, value: Any) -> Any:
    if type(value) is not type_:
        raise _wrong(key, wanted, value)
    return value


def _integer(bits: int, key: str, value: Any) -> int:
    limit = 1 << (bits - 1)
    if type(value) is not int or not -limit <= value < limit:
        raise _wrong(key, f"an integer of {bits} bits", value)
    return value


def _map(key: str, value: Any) -> StringMap:
    if type(value) is not dict:
        raise _wrong(key, "an object", value)
    for item in value.values():
        if item is not None and type(item) is not str:
            raise _wrong(f"a value in {key}", "a string", item)
    return value


def _properties(key: str, value: Any) -> Mapping[str, str]:
    return {name: item for name, item in _map(key, value).items() if item is not None}


def _strings(key: str, value: Any) -> tuple[str, ...]:
    if type(value) is not list or any(type(item) is not str for item in value):
        raise _wrong(key, "a list of strings", value)
    return tuple(value)


def _record(record: type[Record], key: str, value: Any) -> Record:
    if type(value) is not dict:
        raise _wrong(key, "an object", value)
    return record.from_json(value)


_PARSERS: dict[FieldKind, Callable[[str, Any], Any]] = {
    FieldKind.STRING: functools.partial(_of_type, str, "a string"),
    FieldKind.INT: functools.partial(_integer, 32),
    FieldKind.LONG: functools.partial(_integer, 64),
    FieldKind.BOOLEAN: functools.partial(_of_type, bool, "a boolean"),
    FieldKind.MAP: _map,
    FieldKind.PROPERTIES: _properties,
    FieldKind.STRINGS: _strings,
}
