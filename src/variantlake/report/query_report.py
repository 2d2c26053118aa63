"""Report which files one query reads and skips."""

from __future__ import annotations

from typing import Any

from variantlake.planning.stats.skipping import NOT_SKIPPED
from variantlake.scan.table_scan import Scan

MAX_FILES = 100_000
"""The most files that a report names."""


def report_query(sql: str, scan: Scan) -> dict[str, Any]:
    """Make the part of a report for a query; `sql` is its text."""
    choice = scan.numbered_choice
    names = [str(part) for part in choice.conjuncts]
    found = []
    paths = scan.snapshot.files["path"].slice(0, MAX_FILES).to_pylist()
    for path, size, by in zip(
        paths, choice.table.sizes.tolist(), choice.skipped_by.tolist(), strict=False
    ):
        why = None if by == NOT_SKIPPED else names[by]
        found.append({"file": path, "bytes": size, "skipped_by": why})
    explanation = scan.explain()
    return {
        "sql": sql,
        "read": explanation.read_files,
        "bytes": explanation.total_bytes,
        "bytes_read": explanation.read_bytes,
        "skipped_by": [{"predicate": text, "files": n} for text, n in explanation.skipped_by],
        "files": found,
    }
