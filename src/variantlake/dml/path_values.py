"""Changes at paths of a Variant, by assignments to a path or `variant_set` and its siblings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from variantlake.arrays import arrow_array
from variantlake.encoding.edit import FUNCTIONS, Change, Edit
from variantlake.encoding.variant import Variant
from variantlake.errors import InvalidQuery
from variantlake.expressions.arrays import Values, plain
from variantlake.expressions.rows import evaluate, of_refs
from variantlake.expressions.tree import Expression, Ref, refs
from variantlake.expressions.typing import refused
from variantlake.kernels.variant.arrow_variants import as_variants, variant_column
from variantlake.kernels.variant.editor import edit_variants
from variantlake.paths import Path
from variantlake.scan.files.chosen_rows import cast_error
from variantlake.shredding.arrays import valid_of
from variantlake.sql.select import QueryText


@dataclass(frozen=True, slots=True)
class PathChange:
    """One change at a path; `value` is None for a removal.

    A NULL value makes the whole Variant NULL, as Spark's functions do. With `keeps` it becomes the
    Variant null at the path instead. With `lenient` the Variant becomes NULL if the path leads
    through a value of another type.
    """

    edit: Edit
    value: Expression | Variant | None
    keeps: bool = False
    lenient: bool = False

    def applied(self, variants: Any, in_rows: Callable[[Ref], Values], rows: int) -> Any:
        """Return the changed Variants. Raises PathTypeMismatch, DuplicateKey, InvalidValue."""
        new = None
        if isinstance(self.value, Variant):
            new = variant_column([self.value])
        elif self.value is not None:
            new = as_variants(_checked(self.value, evaluate(self.value, of_refs(in_rows), rows)))
        if new is not None and self.keeps and new.null_count:
            places: Any = arrow_array(np.where(valid_of(new), np.arange(len(new)), len(new)))
            null = variant_column([Variant.of(None)])
            new = pa.concat_arrays([new, null]).take(places)
        return edit_variants(variants, self.edit, new, lenient=self.lenient)


@dataclass(frozen=True, slots=True)
class PathChanges:
    """Changes at paths of a VARIANT column, applied in order; all values see the old row."""

    base: Ref
    changes: tuple[PathChange, ...]

    def applied(self, in_rows: Callable[[Ref], Values], rows: int) -> Any:
        """Return the column's new values. Raises as `PathChange.applied`."""
        variants = as_variants(_checked(self.base, in_rows(self.base)))
        for each in self.changes if rows else ():
            variants = each.applied(variants, in_rows, rows)
        return variants

    def refs(self) -> Iterator[Ref]:
        """Yield the columns and paths that the new values depend on."""
        yield self.base
        for each in self.changes:
            if each.value is not None and not isinstance(each.value, Variant):
                yield from refs(each.value)


def assigned_path(text: QueryText, written: str) -> Ref:
    """Read the left side of an assignment to a path, `event:user.name`.

    Raises InvalidQuery if it is not a path in a VARIANT column.
    """
    items = text.items(written)
    ref = items[0].ref
    if len(items) != 1 or ref.path is None or not ref.path.steps or ref.type != "variant":
        raise InvalidQuery(
            f"{written!r} is no path to assign to", hint="a path without a type: event:user.name"
        )
    return ref


def function_changes(text: QueryText, written: str) -> PathChanges | None:
    """Read nested calls of `variant_set` and its siblings; None for any other expression.

    Raises InvalidQuery, InvalidPath, UnsupportedFeature for a base that is not a column or path.
    """
    node: Any = text.node(written).unnest()
    changes = list[PathChange]()
    while isinstance(node, exp.Anonymous) and str(node.this).lower() in FUNCTIONS:
        if not node.expressions:
            raise InvalidQuery(f"{node.this} of nothing")
        name = str(node.this).lower()
        changes[:0] = _changes(text, name, node.expressions)
        node = node.expressions[0]
    if not changes:
        return None
    base = text.read(node)
    if not isinstance(base, Ref) or base.type != "variant":
        raise refused("a change of what is neither a VARIANT column nor a path")
    return PathChanges(base, tuple(changes))


def _changes(text: QueryText, name: str, given: list[exp.Expression]) -> Iterator[PathChange]:
    change, lenient = FUNCTIONS[name]
    arguments = given[1:]
    if change is Change.DELETE:
        for each in arguments:
            yield PathChange(Edit(change, _path(each)), None)
        return
    if len(arguments) not in ((2, 3) if change is Change.SET else (2,)):
        raise InvalidQuery(f"{name} takes a Variant, a path and a value")
    path, value, *flag = arguments
    creates = not flag or _flag(flag[0])
    yield PathChange(Edit(change, _path(path), creates), text.read(value), lenient=lenient)


def _path(node: Any) -> Path:
    if not isinstance(node, exp.Literal) or not node.is_string:
        raise refused("a path that is no constant")
    return Path.parse(node.this)


def _flag(node: Any) -> bool:
    if not isinstance(node, exp.Boolean):
        raise refused("a flag that is no constant")
    return bool(node.this)


def _checked(expression: Expression, values: Values) -> Any:
    if values.failed is not None and values.failed.any():
        raise cast_error(expression, None)
    return plain(values.array)
