"""Check the health of a table: report what makes it slow or large, and what helps.

The checks read only the log and open no data file. Only `orphans` lists the table's folder.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.delta.log.files.logical_files import bytes_of, values
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import VariantLakeError
from variantlake.maintenance.health_findings import Health, HealthFinding, Severity
from variantlake.maintenance.health_log import log_findings
from variantlake.maintenance.health_overlap import Overlap, overlaps
from variantlake.maintenance.vacuuming.vacuum import vacuum
from variantlake.parquet.stats.fact_columns import FactColumns
from variantlake.planning.log_files import LogFiles
from variantlake.shown import counted
from variantlake.shredding.schema import Leaf

SMALL_BYTES = 32 << 20
"""Bytes below which a file is small: opening it costs as much as reading it."""

_MANY_SMALL = 10
_DEEP = 4.0
"""From this mean number of files per value on, clustering pays."""

_MANY_DELETED, _MANY_RESIDUAL = 0.1, 0.05
_MAX_NAMED = 10


def health(snapshot: Snapshot, *, orphans: bool = False) -> Health:
    """Check this version and return the findings. See `Table.health`."""
    log = LogFiles(snapshot)
    facts = log.of_log
    found = [
        *_small_files(snapshot),
        *_overlaps(snapshot, log),
        *_deleted_rows(snapshot, facts),
        *_residuals(snapshot, facts),
        *_statistics(facts),
        *log_findings(snapshot),
    ]
    if orphans:
        found += _unneeded(snapshot)
    # The sort is stable: findings of one severity keep the order of the topics.
    found.sort(key=lambda finding: finding.severity is not Severity.WARNING)
    table = shlex.quote(snapshot.store.uri)
    findings = (f if not f.command else replace(f, command=f"{f.command} {table}") for f in found)
    return Health(
        snapshot.version, snapshot.files.num_rows, bytes_of(snapshot.files), tuple(findings)
    )


def _small_files(snapshot: Snapshot) -> Iterator[HealthFinding]:
    sizes: Any = snapshot.files["size"]
    small = snapshot.files.filter(pc.less(sizes, pa.scalar(SMALL_BYTES)))
    names = values(small["partition_values"])
    counts = Counter(tuple(sorted((each or {}).items(), key=repr)) for each in names)
    # A partition's only small file has no other to be joined with.
    crowded = {partition: count for partition, count in counts.items() if count > 1}
    total = sum(crowded.values())
    if not total:
        return
    worst = sorted(crowded.items(), key=lambda item: (-item[1], repr(item[0])))[:_MAX_NAMED]
    many = total - len(crowded) >= _MANY_SMALL
    where = f" in {counted(len(crowded), 'partition')}" if snapshot.partition_columns else ""
    yield HealthFinding(
        "small files",
        Severity.WARNING if many else Severity.INFO,
        f"{total:,} of {snapshot.files.num_rows:,} files have less than {SMALL_BYTES >> 20} MiB"
        f"{where}",
        fix="Table.optimize()",
        command="variantlake optimize",
        details={
            "files": total,
            "bytes": bytes_of(small),
            "partitions": [{"values": dict(p), "files": count} for p, count in worst],
        },
    )


def _overlaps(snapshot: Snapshot, log: LogFiles) -> Iterator[HealthFinding]:
    try:
        yield from map(_overlap, overlaps(snapshot, log))
    except VariantLakeError as error:
        yield HealthFinding(
            "overlap",
            Severity.WARNING,
            f"the table cannot be clustered as it says: {error.message}",
            fix="Table.set_clustering(...)",
            command="variantlake cluster --by PATHS",
        )


def _overlap(found: Overlap) -> HealthFinding:
    deep = found.mean >= _DEEP
    unknown = f"; {counted(found.unknown, 'file')} without bounds" if found.unknown else ""
    lacking = found.unknown > found.bounded
    return HealthFinding(
        "overlap",
        Severity.WARNING if deep or lacking else Severity.INFO,
        f"{found.path}: a value is in {found.mean:.1f} of {found.bounded:,} files on average, in "
        f"{found.most:,} at most{unknown}",
        fix="Table.cluster()" if deep or lacking else "",
        command="variantlake cluster" if deep or lacking else "",
        details={
            "path": found.path,
            "mean_depth": found.mean,
            "max_depth": found.most,
            "files": found.bounded,
            "files_without_bounds": found.unknown,
        },
    )


def _deleted_rows(snapshot: Snapshot, facts: FactColumns) -> Iterator[HealthFinding]:
    vectors = snapshot.files["deletion_vector"]
    if vectors.null_count == len(vectors):
        return
    there: Any = vectors.drop_null()
    deleted = int(pc.sum(pc.struct_field(there, "cardinality")).as_py() or 0)
    records = facts.num_records
    rows = int(records[records >= 0].sum())
    share = deleted / rows if rows else 0.0
    yield HealthFinding(
        "deleted rows",
        Severity.WARNING if share >= _MANY_DELETED else Severity.INFO,
        f"{counted(deleted, 'deleted row')} in {counted(len(there), 'file')}, {share:.1%} of all; "
        "every query reads over them",
        fix="Table.optimize()",
        command="variantlake optimize",
        details={"rows": deleted, "files": len(there), "share": share},
    )


def _residuals(snapshot: Snapshot, facts: FactColumns) -> Iterator[HealthFinding]:
    for column in snapshot.schema.variant_columns(physical=True):
        typed = residual = unknown = 0
        variants = facts.variant(column)
        if variants is None:
            continue
        unknown = int((variants.layout < 0).sum())
        for code, schema in enumerate(variants.schemas):
            rows = np.flatnonzero(variants.layout == code)
            for number, (_, node) in enumerate(schema.nodes()):
                if isinstance(node, Leaf) and len(rows):
                    counts = variants.counts(rows, np.full(len(rows), number, np.int64))
                    typed += int(counts.typed[counts.typed > 0].sum())
                    residual += int(counts.residuals[counts.residuals > 0].sum())
        share = residual / (typed + residual) if typed + residual else 0.0
        if not residual and not unknown:
            continue
        name = ".".join(column)
        many = share >= _MANY_RESIDUAL
        told = f"; unknown for {counted(unknown, 'file')}" if unknown else ""
        yield HealthFinding(
            "residuals",
            Severity.WARNING if many else Severity.INFO,
            f"{name}: {share:.1%} of the values of its typed columns have other types and are in"
            f" residuals{told}",
            fix="Table.drift() shows which paths are worth a column",
            command="variantlake drift",
            details={"column": name, "share": share, "values": residual, "files_unknown": unknown},
        )


def _statistics(facts: FactColumns) -> Iterator[HealthFinding]:
    without = int((facts.num_records < 0).sum())
    if without:
        yield HealthFinding(
            "statistics",
            Severity.WARNING,
            f"{counted(without, 'file')} without statistics: no query skips them",
            fix="Table.analyze()",
            command="variantlake analyze",
            details={"files": without},
        )


def _unneeded(snapshot: Snapshot) -> Iterator[HealthFinding]:
    plan = vacuum(snapshot, dry_run=True)
    if plan.files_unneeded:
        yield HealthFinding(
            "unneeded files",
            Severity.WARNING if plan.bytes_unneeded > bytes_of(snapshot.files) else Severity.INFO,
            f"{counted(plan.files_unneeded, 'file')} of {counted(plan.bytes_unneeded, 'byte')} "
            "that no version within the retention needs",
            fix="Table.vacuum()",
            command="variantlake vacuum",
            details={
                "files": plan.files_unneeded,
                "bytes": plan.bytes_unneeded,
                "kinds": dict(plan.kinds),
            },
        )
