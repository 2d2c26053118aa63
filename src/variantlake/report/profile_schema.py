"""Convert a profile to JSON Schema, Pydantic models, or columns in DDL.

The schema allows what the sample shows: the types of its values; keys that every object has are
required. In DDL, a key with values of one type has the type of its inferred column.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from variantlake.paths import Path
from variantlake.quoting import quote_identifier

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_SCALARS: Mapping[str, tuple[dict[str, str], str, str]] = {
    "boolean": ({"type": "boolean"}, "bool", "BOOLEAN"),
    "integer": ({"type": "integer"}, "int", "BIGINT"),
    "decimal": ({"type": "number"}, "Decimal", "DECIMAL(38, 18)"),
    "float": ({"type": "number"}, "float", "FLOAT"),
    "double": ({"type": "number"}, "float", "DOUBLE"),
    "string": ({"type": "string"}, "str", "STRING"),
    "date": ({"type": "string", "format": "date"}, "date", "DATE"),
    "timestamp": ({"type": "string", "format": "date-time"}, "datetime", "TIMESTAMP"),
    "timestamp_ntz": ({"type": "string", "format": "date-time"}, "datetime", "TIMESTAMP_NTZ"),
    "uuid": ({"type": "string", "format": "uuid"}, "UUID", "STRING"),
    "binary": ({"type": "string", "contentEncoding": "base64"}, "bytes", "BINARY"),
}
"""For each type in a profile, the one in JSON Schema, in Pydantic and in DDL. Others are any."""

_IMPORTS = {
    "Decimal": "from decimal import Decimal",
    "date": "from datetime import date",
    "datetime": "from datetime import datetime",
    "UUID": "from uuid import UUID",
    "Any": "from typing import Any",
    "Field": "from pydantic import BaseModel, ConfigDict, Field",
}


class SampledPath(Protocol):
    """The properties of a `PathProfile` that a schema needs."""

    @property
    def path(self) -> Path:
        """The path from the root of the documents."""

    @property
    def count(self) -> int:
        """The number of values in the sample."""

    @property
    def types(self) -> Mapping[str, float]:
        """Shares of the values, by type."""

    @property
    def column(self) -> str | None:
        """The inferred type, in DDL."""


@dataclass(slots=True)
class PathNode:
    """One path of a profile and those below it. `required`: every object has it."""

    profile: SampledPath | None = None
    required: bool = False
    fields: dict[str, PathNode] = field(default_factory=dict)
    element: PathNode | None = None

    @property
    def kinds(self) -> list[str]:
        """The types of the values, without null; integers among decimals are decimals."""
        types = {} if self.profile is None else self.profile.types
        implied = {"null", "integer"} if "decimal" in types else {"null"}
        return [name for name in types if name not in implied]

    @property
    def is_nullable(self) -> bool:
        """Whether a value is null."""
        return self.profile is not None and "null" in self.profile.types


def schema_tree(paths: Iterable[SampledPath]) -> PathNode:
    """Build a tree of the paths; its root is that of the documents."""
    root = PathNode()
    for each in sorted(paths, key=lambda path: len(path.path.steps)):
        node, parent = root, None
        for step in each.path.steps:
            parent = node
            if step == 0:
                node.element = node = node.element or PathNode()
            else:
                node = node.fields.setdefault(str(step), PathNode())
        node.profile = each
        above = None if parent is None else parent.profile
        objects = 0.0 if above is None else above.count * above.types.get("object", 0.0)
        node.required = each.count >= round(objects) > 0
    return root


def json_schema(paths: Iterable[SampledPath], title: str) -> dict[str, Any]:
    """Make a JSON Schema (draft 2020-12) of the documents."""
    return {"$schema": DIALECT, "title": title, **_json_schema(schema_tree(paths))}


def _json_schema(node: PathNode) -> dict[str, Any]:
    shapes = [_json_shape(node, kind) for kind in node.kinds]
    shapes = [shape for place, shape in enumerate(shapes) if shape not in shapes[:place]]
    if {} in shapes:
        return {}
    if node.is_nullable:
        shapes.append({"type": "null"})
    if len(shapes) < 2:
        return shapes[0] if shapes else {}
    if all(shape.keys() == {"type"} for shape in shapes):
        return {"type": [shape["type"] for shape in shapes]}
    return {"anyOf": shapes}


def _json_shape(node: PathNode, kind: str) -> dict[str, Any]:
    if kind == "array":
        return {"type": "array"} | ({"items": _json_schema(node.element)} if node.element else {})
    if kind != "object":
        return dict(_SCALARS[kind][0]) if kind in _SCALARS else {}
    shape: dict[str, Any] = {"type": "object"}
    if node.fields:
        shape["properties"] = {name: _json_schema(each) for name, each in node.fields.items()}
    if required := [name for name, each in node.fields.items() if each.required]:
        shape["required"] = required
    return shape


def ddl_columns(paths: Iterable[SampledPath]) -> str:
    """Write the keys of the documents as columns; with values of several types, as a VARIANT."""
    return ",\n  ".join(_ddl_fields(schema_tree(paths), " "))


def _ddl_fields(node: PathNode, between: str) -> Iterator[str]:
    for name, each in node.fields.items():
        is_column = between == " "
        never_null = " NOT NULL" if is_column and each.required and not each.is_nullable else ""
        yield f"{quote_identifier(name)}{between}{_ddl_type(each)}{never_null}"


def _ddl_type(node: PathNode) -> str:
    if len(node.kinds) != 1:
        return "VARIANT"  # a column has one type; the others would be in its residual
    if node.profile is not None and node.profile.column is not None:
        return node.profile.column
    (kind,) = node.kinds
    if kind == "object" and node.fields:
        return f"STRUCT<{', '.join(_ddl_fields(node, ': '))}>"
    if kind == "array" and node.element is not None:
        return f"ARRAY<{_ddl_type(node.element)}>"
    return _SCALARS[kind][2] if kind in _SCALARS else "VARIANT"


class _Models:
    """Writes Pydantic models, those that others use first."""

    def __init__(self) -> None:
        self.classes: list[str] = []
        self.imports = {"Field"}
        self._names: set[str] = set()

    def add(self, node: PathNode, name: str) -> str:
        """Add a class for the objects of a path, and return its name."""
        name = self._free(_class_name(name))
        lines = [f"class {name}(BaseModel):", '    model_config = ConfigDict(extra="allow")', ""]
        used: set[str] = set()
        for key, each in node.fields.items():
            own = _field_name(key, used)
            used.add(own)
            type_ = self._type(each, f"{name}_{key}")
            optional = not each.required or each.is_nullable
            type_ = f"{type_} | None" if optional and type_ != "Any" else type_
            values = [] if each.required else ["default=None"]
            values += [] if own == key else [f"alias={key!r}"]
            default = f" = Field({', '.join(values)})" if values else ""
            lines.append(f"    {own}: {type_}{default}")
        self.classes.append("\n".join(lines).rstrip())
        return name

    def _type(self, node: PathNode, name: str) -> str:
        names: list[str] = []
        for kind in node.kinds:
            if kind == "object":
                names.append(self.add(node, name) if node.fields else "dict[str, Any]")
            elif kind == "array":
                inner = "Any" if node.element is None else self._type(node.element, f"{name}_item")
                nulls = node.element is not None and node.element.is_nullable and inner != "Any"
                names.append(f"list[{inner}{' | None' if nulls else ''}]")
            else:
                names.append(_SCALARS[kind][1] if kind in _SCALARS else "Any")
        text = " | ".join(dict.fromkeys(names)) if names and "Any" not in names else "Any"
        self.imports |= {word for word in re.findall(r"\w+", text) if word in _IMPORTS}
        return text

    def _free(self, name: str) -> str:
        options = [name, *(f"{name}{number}" for number in range(2, len(self._names) + 3))]
        chosen = next(each for each in options if each not in self._names | _IMPORTS.keys())
        self._names.add(chosen)
        return chosen


def pydantic_models(paths: Iterable[SampledPath], name: str) -> str:
    """Write Python source with a Pydantic model `name` of the documents, and one per object."""
    models = _Models()
    models.add(schema_tree(paths), name)
    imports = sorted(_IMPORTS[each] for each in models.imports)
    future = "from __future__ import annotations"
    return "\n\n\n".join(["\n".join([future, "", *imports]), *models.classes]) + "\n"


def _class_name(text: str) -> str:
    words = re.findall(r"[A-Za-z0-9]+", text)
    name = "".join(word[0].upper() + word[1:] for word in words)
    return name if name[:1].isalpha() else f"Model{name}"


def _field_name(key: str, used: set[str]) -> str:
    """Make a name for a key that Python and Pydantic allow."""
    name = re.sub(r"\W", "_", key).strip("_")
    reserved = keyword.iskeyword(name) or name.startswith("model_") or name in _RESERVED
    if reserved or not name.isidentifier():
        name = f"field_{name}"
    options = [name, *(f"{name}_{number}" for number in range(2, len(used) + 3))]
    return next(each for each in options if each not in used)


_TYPE_NAMES = {"bool", "int", "float", "str", "bytes", "list", "dict"}
_METHODS = {"json", "copy", "schema", "construct", "parse_obj", "parse_raw", "validate"}
_RESERVED = frozenset({*_TYPE_NAMES, *_METHODS, *_IMPORTS})
"""Names that would hide a type, or a method of the model."""
