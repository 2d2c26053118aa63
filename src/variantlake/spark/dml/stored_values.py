"""Cast new values to the types of the table's columns, as Delta Spark's UPDATE and MERGE do.

A value that does not fit is an error, whatever the session's CAST does. Fields of structs, at any
depth, are assigned by name, whereas CAST assigns them by position.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from variantlake.errors import InvalidQuery
from variantlake.quoting import quote_identifier, quote_string
from variantlake.spark.load.constraints import REFUSED
from variantlake.spark.session.schemas import nullable_type, type_ddl

TypeOf = Callable[[str, str], DataType]
"""Takes the kind of a clause and the text of an expression in it; returns the expression's type."""

_NESTED = StructType | ArrayType | MapType


@dataclass(frozen=True, slots=True)
class StoredValues:
    """Casts to the columns of a table. `ansi`: the session's CAST fails if a value does not fit."""

    columns: StructType
    ansi: bool
    type_of: TypeOf

    def __call__(self, name: str, text: str, kind: str = "matched") -> str:
        """Cast an expression of a clause to the type of a column.

        As in Delta Spark, a row fails whose new value is NULL for a struct with a NOT NULL field.

        Raises InvalidQuery for a struct with other fields.
        """
        text = self._cast(name, text, kind)
        required = _required_in(self.columns[name].dataType, (name,))
        if not required:
            return text
        refused = quote_string(f"{REFUSED}column '{'.'.join(required)}' is NOT NULL")
        return f"coalesce({text}, raise_error({refused}))"

    def null(self, name: str) -> str:
        """Return a NULL of the column's type."""
        return f"CAST(NULL AS {type_ddl(self.columns[name].dataType)})"

    def _cast(self, name: str, text: str, kind: str) -> str:
        wanted = self.columns[name].dataType
        if text != "NULL" and isinstance(wanted, _NESTED):
            given = self.type_of(kind, text)
            if self._is_changed(given, wanted):
                text = self._stored(text, given, wanted, (name,))
            # Fields that may not be NULL are checked by value, as everywhere else.
            return f"CAST(({text}) AS {type_ddl(nullable_type(wanted))})"
        if text == "NULL":
            return self.null(name)
        if not self.ansi:
            return self._leaf(text, wanted, (name,))
        return f"CAST(({text}) AS {type_ddl(wanted)})"

    def _stored(self, text: str, given: DataType, wanted: DataType, place: Sequence[str]) -> str:
        """Cast a value between types with the same field names. Raises InvalidQuery otherwise."""
        if not self._is_changed(given, wanted):
            return text
        item, key = f"__vl_x{len(place)}", f"__vl_k{len(place)}"
        match given, wanted:
            case StructType(), StructType():
                own = _same_fields(given, wanted, place)
                parts = (
                    f"{quote_string(to.name)}, "
                    + self._stored(
                        f"{item}.{quote_identifier(field.name)}",
                        field.dataType,
                        to.dataType,
                        (*place, to.name),
                    )
                    for field, to in own
                )
                # Evaluates the value once, and keeps NULL.
                made = f"IF({item} IS NULL, NULL, named_struct({', '.join(parts)}))"
                return f"transform(array({text}), {item} -> {made})[0]"
            case ArrayType(), ArrayType():
                element = (given.elementType, wanted.elementType)
                made = self._stored(item, *element, (*place, "element"))
                return f"transform({text}, {item} -> {made})"
            case MapType(), MapType():
                value = self._stored(item, given.valueType, wanted.valueType, (*place, "value"))
                text = f"transform_values({text}, ({key}, {item}) -> {value})"
                made = self._stored(key, given.keyType, wanted.keyType, (*place, "key"))
                return text if made == key else f"transform_keys({text}, ({key}, {item}) -> {made})"
            case _:
                return self._leaf(text, wanted, place)

    def _leaf(self, text: str, wanted: DataType, place: Sequence[str]) -> str:
        ddl = type_ddl(wanted)
        if self.ansi:
            return f"CAST(({text}) AS {ddl})"
        refused = f"{REFUSED}a value does not fit column '{'.'.join(place)}', which is {ddl}"
        return (
            f"coalesce(TRY_CAST(({text}) AS {ddl}), "
            f"IF(({text}) IS NULL, NULL, raise_error({quote_string(refused)})))"
        )

    def _is_changed(self, given: DataType, wanted: DataType) -> bool:
        """Whether a CAST of the whole value may give another result."""
        match given, wanted:
            case StructType(), StructType():
                names = [[name.lower() for name in each.names] for each in (given, wanted)]
                return names[0] != names[1] or any(
                    self._is_changed(own.dataType, to.dataType)
                    for own, to in zip(given.fields, wanted.fields, strict=True)
                )
            case ArrayType(), ArrayType():
                return self._is_changed(given.elementType, wanted.elementType)
            case MapType(), MapType():
                return self._is_changed(given.keyType, wanted.keyType) or self._is_changed(
                    given.valueType, wanted.valueType
                )
            case _:
                return not self.ansi and type_ddl(given) not in ("void", type_ddl(wanted))


def _required_in(kind: DataType, place: tuple[str, ...]) -> tuple[str, ...]:
    """Return the path of the first NOT NULL field of a struct, at any depth; empty for none."""
    for field in kind.fields if isinstance(kind, StructType) else ():
        below = (*place, field.name)
        if found := _required_in(field.dataType, below) if field.nullable else below:
            return found
    return ()


def _same_fields(
    given: StructType, wanted: StructType, place: Sequence[str]
) -> list[tuple[StructField, StructField]]:
    """Pair the fields of both by name. Raises InvalidQuery if the names differ."""
    own = {field.name.lower(): field for field in given.fields}
    names = [field.name.lower() for field in wanted.fields]
    if sorted(own) != sorted(names) or len(given.fields) != len(names):
        raise InvalidQuery(
            f"[DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION] {'.'.join(place)} has the fields "
            f"{', '.join(wanted.names)}, and its new value {', '.join(given.names)}",
            hint="fields are stored by their names, in any order",
        )
    return [(own[field.name.lower()], field) for field in wanted.fields]
