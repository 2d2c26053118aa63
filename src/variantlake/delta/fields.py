"""The fields of an action's JSON, each of the type that the protocol gives it.

A known field of a wrong type is a MalformedLog; unknown ones are nobody's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from variantlake.errors import MalformedLog

StringMap = Mapping[str, str | None]
Json = dict[str, Any]


def present(**fields: Any) -> Json:
    """The fields that have a value: the protocol leaves the others out."""
    return {key: value for key, value in fields.items() if value is not None}


def plain(mapping: StringMap | None) -> dict[str, str | None] | None:
    """A map as orjson takes it."""
    return None if mapping is None else dict(mapping)


def wrong(key: str, wanted: str, value: object) -> MalformedLog:
    """The error for a field that is missing or of another type."""
    if value is None:
        return MalformedLog(f"{key} is missing")
    return MalformedLog(f"{key} is {type(value).__name__}, expected {wanted}")


def text(fields: Json, key: str) -> str:
    """A string. Raises MalformedLog, as all here do."""
    value = fields.get(key)
    if type(value) is not str:
        raise wrong(key, "a string", value)
    return value


def optional_text(fields: Json, key: str) -> str | None:
    """A string, None where absent."""
    return None if fields.get(key) is None else text(fields, key)


def integer(fields: Json, key: str, *, bits: int = 64) -> int:
    """An integer of that many bits."""
    value = fields.get(key)
    if type(value) is not int or not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise wrong(key, f"an integer of {bits} bits", value)
    return value


def optional_integer(fields: Json, key: str) -> int | None:
    """An integer of 64 bits, None where absent."""
    return None if fields.get(key) is None else integer(fields, key)


def boolean(fields: Json, key: str) -> bool:
    """A boolean."""
    value = fields.get(key)
    if type(value) is not bool:
        raise wrong(key, "a boolean", value)
    return value


def optional_boolean(fields: Json, key: str) -> bool | None:
    """A boolean, None where absent."""
    return None if fields.get(key) is None else boolean(fields, key)


def string_map(fields: Json, key: str, *, required: bool = False) -> StringMap:
    """A map of strings, empty where absent unless `required`."""
    value = fields.get(key)
    if value is None and not required:
        return {}
    if type(value) is not dict:
        raise wrong(key, "an object", value)
    for item in value.values():
        if item is not None and type(item) is not str:
            raise wrong(f"a value in {key}", "a string", item)
    return value


def optional_map(fields: Json, key: str) -> StringMap | None:
    """A map of strings, None where absent."""
    return None if fields.get(key) is None else string_map(fields, key)


def strings(fields: Json, key: str, *, required: bool = False) -> tuple[str, ...] | None:
    """A list of strings, None where absent unless `required`."""
    value = fields.get(key)
    if value is None and not required:
        return None
    if type(value) is not list or any(type(item) is not str for item in value):
        raise wrong(key, "a list of strings", value)
    return tuple(value)
