"""The findings of `health`, each with the command that helps."""

from __future__ import annotations

import enum
import html
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from variantlake.shown import Shown, html_table

FORMAT = 1
"""The format of `Health.to_dict`. It grows when readers of the JSON have to change."""


class Severity(enum.StrEnum):
    """How much a finding matters: INFO is good to know, WARNING calls for action."""

    INFO = "info"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, repr=False)
class HealthFinding(Shown):
    """One finding about a table.

    `topic` is one of `small files`, `overlap`, `deleted rows`, `residuals`, `statistics`, `log`,
    `checkpoint`, `unneeded files`; `details` holds its numbers (bytes, rows, counts). `fix` names
    the Python call that helps. `command` is the whole command line for this table, with its path
    or URL. Both are empty if nothing has to be done.
    """

    topic: str
    severity: Severity
    message: str
    fix: str = ""
    command: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, repr=False)
class Health(Shown):
    """A table's version, the number and bytes of its files, and the findings, warnings first."""

    version: int
    table_files: int
    table_bytes: int
    findings: tuple[HealthFinding, ...]

    @property
    def worst_severity(self) -> Severity | None:
        """The highest severity of the findings; None without findings."""
        found = {finding.severity for finding in self.findings}
        return max(found, key=list(Severity).index, default=None)

    def _repr_html_(self) -> str:
        """Render for notebooks, one line per finding."""
        rows = [(each.severity, each.topic, each.message, each.fix) for each in self.findings]
        lines = html_table(("severity", "topic", "finding", "what helps"), rows)
        return f"<p>{html.escape(repr(self))}</p>{lines}"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready values, with their `format` version; sizes in bytes."""
        return {
            "format": FORMAT,
            "version": self.version,
            "table_files": self.table_files,
            "table_bytes": self.table_bytes,
            "worst_severity": None if self.worst_severity is None else str(self.worst_severity),
            "findings": [finding.to_dict() for finding in self.findings],
        }
