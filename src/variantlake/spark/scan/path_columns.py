"""What takes the place of a Variant column in a scan: a struct with a field for each path."""

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
    """A Variant column that is read by `paths` alone; `native` when some file needs the Variant."""

    paths: tuple[Ref, ...]
    native: bool

    def field(self, ref: Ref) -> str:
        """The struct field that holds this path."""
        return f"__vl_p{self.paths.index(ref)}"


def path_columns(plan: ScanPlan, refs: Iterable[Ref]) -> dict[str, PathColumn]:
    """The columns that become structs of the paths `refs`, for a plan that was asked for them."""
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
    """The change of one path's expression, at `span`, into the field of its column's struct.

    `name` is where the column's name stands in it. If some files are read natively the
    expression itself stays, over the Variant inside the struct, and as the type `cast` if one is
    given: evaluated only in rows whose field is NULL, and only if the query itself comes to
    evaluate it.
    """
    own = text[slice(*name)]
    field = f"{own}.{column.field(ref)}"
    if not column.native or ref.type == PRESENCE:
        return Splice(*span, field)
    native = f"{text[span[0] : name[0]]}{own}.{VARIANT_FIELD}{text[name[1] : span[1]]}"
    if cast:
        native = f"CAST({native} AS {cast})"
    return Splice(*span, f"coalesce({field}, {native})")
