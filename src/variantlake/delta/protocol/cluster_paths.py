"""Our own clustering: the paths and columns by which a table's rows are to be ordered.

Delta's clustering domain can name only ordinary columns (PROTOCOL, "Clustered Table"). So our
property `variantlake.clusterBy` also names paths of Variants: `event:kind::string, n`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from variantlake.delta.schema.columns_by_path import (
    FieldPath,
    field_path,
    in_structs,
    parse_field_path,
    physical_path,
    shown_path,
    type_at,
)
from variantlake.delta.schema.table_schema import (
    PrimitiveType,
    StructField,
    StructType,
    VariantType,
)
from variantlake.errors import InvalidSchema, InvalidValue, VariantLakeError, did_you_mean
from variantlake.paths import ColumnPath, Path, leading_column
from variantlake.quoting import identifier
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.schema import Leaf, ShreddingSchema
from variantlake.types import PRIMITIVES, Family, ShreddedType

PROPERTY = "variantlake.clusterBy"

MAX_PATHS = 4
"""Our limit. Each further path makes the order by all of them coarser."""


@dataclass(frozen=True, slots=True)
class ClusterPath:
    """One path or column: `text` as the user wrote it, `column` by its physical name.

    `path` is the path in the Variant, None for an ordinary column. `fields` are the physical names
    that lead from a struct column to the field to order by.
    """

    text: str
    column: str
    path: Path | None
    fields: tuple[str, ...] = ()

    @property
    def stored(self) -> tuple[str, ...]:
        """The column, or the field of a struct, by its physical names."""
        return (self.column, *self.fields)


def split_paths(text: str) -> tuple[str, ...]:
    """Split a list of paths at commas outside of quotes and brackets, and strip the parts.

    Raises InvalidValue for an empty part and for a quote or bracket that is not closed.
    """
    parts, depth, quote, start = [], 0, "", 0
    for position, char in enumerate(text):
        if quote:
            quote = "" if char == quote and text[position - 1] != "\\" else quote
        elif char in "'\"`":
            quote = char
        elif char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == "," and not depth:
            parts.append(text[start:position].strip())
            start = position + 1
    parts.append(text[start:].strip())
    if quote or depth:
        raise InvalidValue(f"cannot cluster by {text!r}: a quote or bracket is not closed")
    if not all(parts):
        raise InvalidValue(
            f"cannot cluster by {text!r}: a path is empty",
            hint="separate paths and columns by commas, as in 'event:kind::string, day'",
        )
    return tuple(parts)


def check_text(text: str) -> None:
    """Raise for a value of the property that is not a list of paths.

    Raises InvalidValue and InvalidPath.
    """
    try:
        parts = split_paths(text)
        for part in parts:
            if names_field(part):
                parse_field_path(part)
            else:
                _ = Path.parse(part) if part.startswith("$") else ColumnPath.parse(part)
    except VariantLakeError as error:
        error.say_first(f"the property {PROPERTY}")
        raise
    if len(parts) > MAX_PATHS:
        raise InvalidValue(
            f"the property {PROPERTY} names {len(parts)} paths; at most {MAX_PATHS} help",
            hint="name those first that most queries compare with constants",
        )


def with_column(text: str, old: FieldPath, new: FieldPath) -> str:
    """Rename column or field `old` to `new` in a user's path; other paths stay as they are."""
    if text.startswith("$"):
        return text
    if names_field(text):
        path = parse_field_path(text)
        return shown_path((*new, *path[len(old) :])) if path[: len(old)] == old else text
    column, end = leading_column(text)
    return identifier(new[0]) + text[end:] if (column,) == old else text


def names_field(text: str) -> bool:
    """Whether a text names a field of a struct in dotted form."""
    if text.startswith("$"):
        return False
    _, end = leading_column(text)
    return text[end:].lstrip().startswith(".")


def ordered_field(text: str, schema: StructType, to: str) -> FieldPath:
    """Return the path of the column or field that a text names. `to` is the verb for errors.

    Raises InvalidSchema for one that does not exist, or whose values have no order.
    """
    try:
        path = field_path(schema, text)
    except InvalidSchema as error:
        error.say_first(f"cannot {to} by {text!r}")
        raise
    type_ = type_at(schema, path)
    if not isinstance(type_, PrimitiveType) or not in_structs(schema, path):
        raise InvalidSchema(
            f"cannot {to} by {text!r}: it is {type_}, or in an array or a map",
            hint="name columns, or fields of structs, of types that have an order",
        )
    return path


def names_paths(texts: Sequence[str]) -> bool:
    """Whether any text is a path of a Variant, which Delta's own clustering cannot name."""
    return any(text.startswith("$") or ":" in text for text in texts)


def cluster_paths(
    text: str,
    schema: StructType,
    partition_columns: Sequence[str],
    shreddings: Mapping[str, ShreddingSchema] | None = None,
) -> tuple[ClusterPath, ...]:
    """Resolve `variantlake.clusterBy` in a table of this schema.

    `shreddings` are the table's shredding schemas by physical names: if a column has one, its paths
    must be typed columns in it.

    Raises InvalidSchema for what rows cannot be ordered by, InvalidPath and InvalidValue.
    """
    check_text(text)
    found = tuple(
        _cluster_path(part, schema, partition_columns, shreddings or {})
        for part in split_paths(text)
    )
    if len({(each.stored, each.path) for each in found}) < len(found):
        raise InvalidSchema(f"cannot cluster by {text!r}: a path appears twice")
    return found


def _cluster_path(
    text: str,
    schema: StructType,
    partition_columns: Sequence[str],
    shreddings: Mapping[str, ShreddingSchema],
) -> ClusterPath:
    if names_field(text):
        column, *fields = physical_path(schema, ordered_field(text, schema, "cluster"))
        return ClusterPath(text, column, None, tuple(fields))
    wanted = column_path(text, schema, "cluster")
    field = schema.get(wanted.column)
    if field is None:
        names = [each.name for each in schema.fields]
        raise InvalidSchema(
            f"cannot cluster by {text!r}: the table has no column {wanted.column!r}",
            hint=did_you_mean(wanted.column, names) or f"columns: {', '.join(names)}",
        )
    if field.name in partition_columns:
        raise InvalidSchema(
            f"cannot cluster by {text!r}: the table is partitioned by it",
            hint="within a partition its value is one; leave it out",
        )
    if not isinstance(field.type, VariantType):
        if wanted.path.steps or wanted.type or not isinstance(field.type, PrimitiveType):
            raise InvalidSchema(
                f"cannot cluster by {text!r}: the column {field.name!r} is {field.type}"
            )
        return ClusterPath(text, field.physical_name, None)
    if not wanted.path.steps and not wanted.type:
        raise InvalidSchema(
            f"cannot cluster by {text!r}: column {field.name!r} is a Variant, which has no order",
            hint=f"name a path of it, as in {field.name}:id::bigint",
        )
    if any(isinstance(step, int) for step in wanted.path.steps):
        raise InvalidSchema(f"cannot cluster by {text!r}: an element of an array has no column")
    if field.physical_name in shreddings:
        _check_shredded(text, wanted, shreddings[field.physical_name], field)
    return ClusterPath(text, field.physical_name, wanted.path)


def column_path(text: str, schema: StructType, to: str) -> ColumnPath:
    """Parse a user's column, or path in a column. `to` is the verb for errors.

    A path without a column (`$.a`) is one of the table's only Variant. Raises InvalidSchema,
    InvalidPath.
    """
    if not text.startswith("$"):
        return ColumnPath.parse(text)
    variants = [field.name for field in schema.fields if isinstance(field.type, VariantType)]
    if len(variants) != 1:
        raise InvalidSchema(
            f"cannot {to} by {text!r}: the table has {len(variants)} VARIANT columns",
            hint="write the column before the path, as in event:a.b",
        )
    return ColumnPath(variants[0], Path.parse(text))


def _check_shredded(
    text: str, wanted: ColumnPath, shredding: ShreddingSchema, field: StructField
) -> None:
    node, where = shredding.find(wanted.path)
    if where != wanted.path or not isinstance(node, Leaf):
        leaves = [
            f"{field.name}:{path.plain()[1:].removeprefix('.')}"
            for path, each in shredding.nodes()
            if isinstance(each, Leaf)
        ]
        raise InvalidSchema(
            f"cannot cluster by {text!r}: the path is not shredded into a column",
            hint=(
                f"paths of {field.name} that are: {', '.join(leaves[:8])}"
                if leaves
                else f"column {field.name} is not shredded"
            )
            + "; reshredding makes columns of others",
        )
    asked = parse_ddl(wanted.type).root if wanted.type else node
    if not isinstance(asked, Leaf) or order_of(asked.type) != order_of(node.type):
        raise InvalidSchema(
            f"cannot cluster by {text!r}: the path is shredded as {node.type.ddl}",
            hint="name that type; reshredding gives the column another",
        )


def order_of(shredded: ShreddedType) -> str:
    """Return the kind of order of a type's values; all numbers share one."""
    family = PRIMITIVES[shredded.info.primitives[0]].family
    numbers = (Family.EXACT_NUMERIC, Family.DOUBLE, Family.FLOAT)
    return "number" if family in numbers else family.value
