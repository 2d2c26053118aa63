"""What a query reads of each table, for people and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from variantlake.planning.explain import Explanation


@dataclass(frozen=True, slots=True)
class TableExplanation:
    """One place in the query that reads a table, as the query writes it, and the table's version.

    `note` says why the Variants are read natively although only paths are asked; empty otherwise.
    `joined` are conditions made of the values of a small joined side. `aggregated` tells that tasks
    of ours group the rows, or the log gives their groups, and Spark merges those.
    """

    table: str
    version: int
    scan: Explanation
    whole: tuple[str, ...]
    note: str
    joined: tuple[str, ...] = ()
    aggregated: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The explanation as JSON-ready values."""
        return {
            "table": self.table,
            "version": self.version,
            "whole_variants": list(self.whole),
            "note": self.note,
            "joined": list(self.joined),
            "aggregated": self.aggregated,
            **self.scan.to_dict(),
        }

    def __str__(self) -> str:
        lines = [f"{self.table}, version {self.version}"]
        lines += [f"  {line}" for line in str(self.scan).splitlines()]
        lines += [f"  by the values of a joined side: {text}" for text in self.joined]
        if self.aggregated:
            lines.append("  grouped before Spark sees rows: it merges groups")
        if self.whole:
            lines.append(f"  whole Variants: {', '.join(self.whole)}")
        if self.note:
            lines.append(f"  note: {self.note}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class QueryExplanation:
    """A query's tables of ours, in the order of its text. `note` tells what Spark runs alone."""

    tables: tuple[TableExplanation, ...]
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The explanation as JSON-ready values."""
        return {"tables": [table.to_dict() for table in self.tables], "note": self.note}

    def __str__(self) -> str:
        parts = [str(table) for table in self.tables]
        if self.note:
            parts.append(f"note: {self.note}")
        return "\n".join(parts)
