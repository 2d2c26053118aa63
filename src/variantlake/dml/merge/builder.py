"""A builder for MERGE with the methods of Delta Spark's; it writes the clauses as SQL text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from variantlake.dml.result import ChangeResult
from variantlake.errors import InvalidValue
from variantlake.expressions.from_python import Expr, operand
from variantlake.quoting import quote_identifier


class MergeBuilder:
    """A MERGE under construction: add clauses in their order, then call `execute`.

    `table.merge_builder(rows, "t.id = s.id").when_matched_delete("s.gone")
    .when_matched_update_all().when_not_matched_insert_all().execute()`. Values are Python values;
    for SQL use `vl.expr("s.n + 1")`.
    """

    def __init__(self, run: Callable[[tuple[str, ...], bool], ChangeResult]) -> None:
        self._run = run
        self._clauses: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {' '.join(self._clauses)}>"

    def when_matched_update(
        self,
        set: Mapping[str, Any],  # noqa: A002 - as SQL calls it
        condition: str | Expr | None = None,
    ) -> MergeBuilder:
        """Set columns in rows that match."""
        return self._with("MATCHED", condition, f"UPDATE SET {_assigned(set)}")

    def when_matched_update_all(self, condition: str | Expr | None = None) -> MergeBuilder:
        """Set all columns in rows that match to the values of the source's row."""
        return self._with("MATCHED", condition, "UPDATE SET *")

    def when_matched_delete(self, condition: str | Expr | None = None) -> MergeBuilder:
        """Delete rows that match."""
        return self._with("MATCHED", condition, "DELETE")

    def when_not_matched_insert(
        self, values: Mapping[str, Any], condition: str | Expr | None = None
    ) -> MergeBuilder:
        """Insert these values for each row of the source that matches no row."""
        pairs = _pairs(values)
        names, new = (", ".join(part) for part in zip(*pairs, strict=True))
        return self._with("NOT MATCHED", condition, f"INSERT ({names}) VALUES ({new})")  # noqa: S608

    def when_not_matched_insert_all(self, condition: str | Expr | None = None) -> MergeBuilder:
        """Insert the rows of the source that match no row, with all of their columns."""
        return self._with("NOT MATCHED", condition, "INSERT *")

    def when_not_matched_by_source_update(
        self,
        set: Mapping[str, Any],  # noqa: A002 - as SQL calls it
        condition: str | Expr | None = None,
    ) -> MergeBuilder:
        """Set columns in rows that no row of the source matches."""
        return self._with("NOT MATCHED BY SOURCE", condition, f"UPDATE SET {_assigned(set)}")

    def when_not_matched_by_source_delete(
        self, condition: str | Expr | None = None
    ) -> MergeBuilder:
        """Delete rows that no row of the source matches."""
        return self._with("NOT MATCHED BY SOURCE", condition, "DELETE")

    def execute(self, *, dry_run: bool = False) -> ChangeResult:
        """Run it in one commit. Raises as `merge`, InvalidValue without a clause."""
        if not self._clauses:
            raise InvalidValue(
                "the merge has no clause",
                hint=".when_matched_update_all().when_not_matched_insert_all().execute()",
                cli_hint="",
            )
        return self._run(self._clauses, dry_run)

    def _with(self, when: str, condition: str | Expr | None, then: str) -> MergeBuilder:
        also = "" if condition is None else f" AND ({condition})"
        new = MergeBuilder(self._run)
        new._clauses = (*self._clauses, f"WHEN {when}{also} THEN {then}")
        return new


def _assigned(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in _pairs(values))


def _pairs(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    if not isinstance(values, Mapping) or not values:
        raise InvalidValue(
            "a clause sets at least one column",
            hint="{'n': vl.expr('s.n'), 'kind': 'new'}",
            cli_hint="",
        )
    return [(_written(name), operand(value)) for name, value in values.items()]


def _written(name: str) -> str:
    """Quote a column's name; fields of structs, paths and quoted names are SQL already."""
    return name if {".", ":", "`"} & set(name) else quote_identifier(name)
