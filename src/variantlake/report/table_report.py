"""Collect the data of a report on a table, from the log and from a bounded sample of its rows."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.table_schema import StructField, VariantType
from variantlake.expressions.tree import path_text
from variantlake.maintenance.health import health
from variantlake.maintenance.reshredding.drift import column_drift
from variantlake.maintenance.reshredding.versions import order_of_files, versions_of_files
from variantlake.parquet.read.inspect import bound_text
from variantlake.parquet.stats.fact_columns import VariantColumns
from variantlake.parquet.stats.facts import UNKNOWN
from variantlake.paths import Path
from variantlake.planning.log_files import LogFiles
from variantlake.report.page import render
from variantlake.report.paths import PathTotals, VariantPaths, add_sizes, most_used, paths_of
from variantlake.report.profile import PathProfile, path_profiles
from variantlake.report.query_report import MAX_FILES, report_query
from variantlake.report.samples import sample_table
from variantlake.report.skip_power import skip_powers
from variantlake.report.versions import MAX_VERSIONS, versions_of
from variantlake.scan.table_scan import Scan
from variantlake.shown import Shown, counted
from variantlake.shredding.ddl import format_ddl
from variantlake.shredding.inference.infer import infer

FORMAT = 1
"""The version of the data; it grows when a reader of the JSON would have to change."""

MAX_PATHS = 10_000
"""The most paths of one column; those that most rows hold are kept."""

MAX_BUCKETS = 40
"""The most points in time of the share in residuals."""

RARE = 0.01
"""The report advises to give up a column that a smaller share of the rows uses."""


@dataclass(frozen=True, slots=True, repr=False)
class TableReport(Shown):
    """A report: `data` as JSON-ready values, of format FORMAT."""

    data: dict[str, Any]

    def __repr__(self) -> str:
        files = counted(self.data["files"], "file")
        return f"<TableReport of version {self.data['version']}, {files}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the data as JSON-ready values; `format` is their version."""
        return self.data

    def to_html(self) -> str:
        """Render the report as one self-contained page."""
        return render(json.dumps(self.data, ensure_ascii=False))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file."""
        FilePath(path).write_text(self.to_html(), encoding="utf-8")

    def _repr_html_(self) -> str:
        """Show the page in a frame in a notebook."""
        page = html.escape(self.to_html(), quote=True)
        return (
            f'<iframe srcdoc="{page}" title="Table report" sandbox="allow-scripts" '
            'style="width: 100%; height: 40rem; border: 0"></iframe>'
        )

    def with_query(self, sql: str, scan: Scan) -> TableReport:
        """Return the report with the files that a query of the table reads and skips."""
        return TableReport({**self.data, "query": report_query(sql, scan)})


def report_table(snapshot: Snapshot, *, examples: bool = True) -> TableReport:
    """Make a report on a version of a table.

    `examples=False` leaves out values of the data, and so bounds.

    Raises as `Scan.to_batches` for a file of the sample that cannot be read.
    """
    files = LogFiles(snapshot)
    rows = files.row_count
    ordered = order_of_files(snapshot, versions_of_files(snapshot, MAX_VERSIONS))
    columns = [
        _column(snapshot, files, ordered, item, examples=examples)
        for item in snapshot.schema.fields
        if isinstance(item.type, VariantType)
    ]
    return TableReport(
        {
            "format": FORMAT,
            "made_by": version("variantlake"),
            "location": snapshot.store.uri,
            "name": snapshot.metadata.name,
            "version": snapshot.version,
            "files": files.rows,
            "bytes": int(files.sizes.sum()),
            "rows": rows,
            "deleted_rows": int(files.deleted.sum()),
            "features": sorted(snapshot.features),
            "properties": snapshot.properties,
            "partition_columns": list(snapshot.partition_columns),
            "columns_of_the_table": [
                {"name": item.name, "type": str(item.type)} for item in snapshot.schema.fields
            ],
            "versions": versions_of(snapshot, rows),
            "health": _findings(snapshot, examples=examples),
            "file_names": snapshot.files["path"].slice(0, MAX_FILES).to_pylist(),
            "file_bytes": files.sizes[:MAX_FILES].tolist(),
            "columns": columns,
        }
    )


def _findings(snapshot: Snapshot, *, examples: bool) -> list[dict[str, Any]]:
    found = [finding.to_dict() for finding in health(snapshot).findings]
    # The details may name partitions by their values.
    return found if examples else [{**each, "details": {}} for each in found]


def _column(
    snapshot: Snapshot,
    files: LogFiles,
    ordered: Sequence[tuple[int, str, int]],
    item: StructField,
    *,
    examples: bool,
) -> dict[str, Any]:
    name, physical = item.name, item.physical_name
    variant = files.facts.variant((physical,))
    paths = paths_of(variant)
    add_sizes(paths, snapshot, (physical,))
    sample = sample_table(snapshot, name)
    inference = infer(sample.profile)
    profiles = {each.path: each for each in path_profiles(sample, inference, examples=examples)}
    powers = skip_powers(variant, files.rows, paths.paths)
    return {
        "name": name,
        "layouts": paths.layouts,
        "files_known": paths.described,
        "files_counted": paths.counted,
        "sampled_rows": sample.rows,
        "shredding": snapshot.properties.get(f"variantlake.shredding.{physical}", ""),
        "inferred": format_ddl(inference.schema),
        "paths": _paths(paths, profiles, examples=examples),
        "skip": [
            {"path": path_text(power.path), **power.to_dict()} for power in powers if examples
        ],
        "drift": _drift(snapshot, variant, paths.paths, ordered),
        "advice": [
            *_new_columns(snapshot, name, ordered, files, profiles),
            *_unused_columns(paths.paths, profiles, sample.rows),
        ],
    }


def _paths(
    paths: VariantPaths, profiles: dict[Path, PathProfile], *, examples: bool
) -> list[dict[str, Any]]:
    """Return the paths of the layouts, then those that are only in the sample."""
    found = [
        _stored(each, paths, examples=examples)
        | (profiles[each.path].values() if each.path in profiles else {})
        for each in most_used(paths.paths, MAX_PATHS)
    ]
    known = {each.path for each in paths.paths}
    others = [each for path, each in profiles.items() if path not in known]
    found += [
        {"path": path_text(each.path), "type": "", **each.values()}
        for each in others[: MAX_PATHS - len(found)]
    ]
    return found


def _stored(each: PathTotals, paths: VariantPaths, *, examples: bool) -> dict[str, Any]:
    stored = each.type if examples else None
    return {
        "path": path_text(each.path),
        "type": each.type_name,
        "files": each.files,
        "clean_files": each.clean,
        "bounded_files": each.bounded,
        "typed": each.typed,
        "nulls": each.nulls,
        "residuals": each.residuals,
        "minimum": bound_text(stored, each.minimum),
        "maximum": bound_text(stored, each.maximum),
        "bytes_share": each.stored_bytes / paths.sized_bytes if paths.sized_bytes else None,
    }


def _drift(
    snapshot: Snapshot,
    variant: VariantColumns | None,
    paths: Sequence[PathTotals],
    ordered: Sequence[tuple[int, str, int]],
) -> list[dict[str, Any]]:
    """Return the share of values in residuals, by the versions that added the files.

    Versions are None if the log no longer shows them.
    """
    if variant is None or not paths:
        return []
    modified = snapshot.files["modification_time"].to_numpy()
    versions: dict[Any, int] = {path: version for version, path, _ in ordered}
    came = np.array([versions[path] for path in snapshot.files["path"].to_pylist()], np.int64)
    known = np.flatnonzero(variant.layout >= 0).astype(np.int64)
    known = known[np.lexsort((modified[known], came[known]))]
    buckets = np.array_split(known, min(MAX_BUCKETS, len(known))) if len(known) else []
    found = []
    for rows in buckets:
        typed = residuals = 0
        for code in np.unique(variant.layout[rows]).tolist():
            own = rows[variant.layout[rows] == code][:MAX_BUCKETS]
            count = len(list(variant.schemas[code].nodes()))
            nodes = np.tile(np.arange(count, dtype=np.int64), len(own))
            counts = variant.counts(np.repeat(own, count), nodes)
            typed += int(np.maximum(counts.typed, 0).sum())
            residuals += int(np.maximum(counts.residuals, 0).sum())
        found.append(
            {
                "first_version": _version(came[rows[0]]),
                "last_version": _version(came[rows[-1]]),
                "from": int(modified[rows].min()),
                "to": int(modified[rows].max()),
                "files": len(rows),
                "share": residuals / max(typed + residuals, 1),
            }
        )
    return found


def _version(number: np.int64) -> int | None:
    return None if number < 0 else int(number)


def _new_columns(
    snapshot: Snapshot,
    column: str,
    ordered: Sequence[tuple[int, str, int]],
    files: LogFiles,
    profiles: Mapping[Path, PathProfile],
) -> list[dict[str, Any]]:
    """Return paths that deserve a column, and the bytes that it would save a query of the path."""
    records = files.of_log.num_records
    rows = int(records[records != UNKNOWN].sum())
    known = {str(path): profile for path, profile in profiles.items()}
    return [
        {
            "path": path_text(known[new.path].path) if new.path in known else new.path,
            "advice": "add",
            "type": new.type,
            "why": new.why,
            "text_share": known[new.path].text_share if new.path in known else 0.0,
            "saves_bytes": new.saves_bytes,
        }
        for new in column_drift(snapshot, column, ordered, rows).new_columns
    ]


def _unused_columns(
    paths: Sequence[PathTotals], profiles: Mapping[Path, PathProfile], rows: int
) -> list[dict[str, Any]]:
    """Return the columns that hardly any row uses."""
    shares = {path: each.share for path, each in profiles.items()}
    return [
        {
            "path": path_text(each.path),
            "advice": "give up",
            "type": each.type_name,
            "why": f"{share:.1%} of the rows that were looked at hold it",
            "text_share": 0.0,
            "saves_bytes": 0,
        }
        for each in paths
        if rows and each.type is not None and (share := shares.get(each.path) or 0.0) < RARE
    ]
