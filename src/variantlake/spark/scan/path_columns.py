"""Replaces a Variant column of a scan by a struct with a field for each path."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from variantlake.expressions.tree import PRESENCE, Ref
from variantlake.planning.exact.readings import Native
from variantlake.planning.plan import ScanPlan
from variantlake.sql.splice import Splice

Span = tuple[int, int]
VARIANT_FIELD = "__vl_v"


@dataclass(frozen=True, slots=True)
class PathColumn:
    """A Variant column read only by `paths`; `native` if some file needs the whole Variant."""

    paths: tuple[Ref, ...]
    native: bool

    def field(self, ref: Ref) -> str:
        """Return the struct field that holds this path."""
        return f"__vl_p{self.paths.index(ref)}"


def path_columns(plan: ScanPlan, refs: Iterable[Ref]) -> dict[str, PathColumn]:
    """Return the columns that become structs of the paths `refs`, for a plan made for them."""
    by_column: dict[str, list[Ref]] = {}
    for ref in dict.fromkeys(refs):
        by_column.setdefault(ref.column[0], []).append(ref)
    return {
        column: PathColumn(
            tuple(paths),
            any(isinstance(group.reading(ref), Native) for group in plan.groups for ref in paths),
        )
        for column, paths in by_column.items()
    }


def field_splice(
    text: str, column: PathColumn, ref: Ref, span: Span, name: Span, *, cast: str = ""
) -> Splice:
    """Return the splice that replaces a path at `span` by the field of its column's struct.

    `name` is the span of the column's name in it. If some files are read natively, the expression
    stays as a fallback over the Variant inside the struct, cast to `cast` if that is given. Spark
    evaluates it only in rows whose field is NULL, and only if the query evaluates the path at all.
    """
    own = text[slice(*name)]
    field = f"{own}.{column.field(ref)}"
    if not column.native or ref.type == PRESENCE:
        return Splice(*span, field)
    native = f"{text[span[0] : name[0]]}{own}.{VARIANT_FIELD}{text[name[1] : span[1]]}"
    if cast:
        native = f"CAST({native} AS {cast})"
    return Splice(*span, f"coalesce({field}, {native})")
