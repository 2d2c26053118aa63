"""Short ways to write facts, files and Refs in tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from variantlake.expressions.bounds import May
from variantlake.expressions.tree import Literal, Predicate, Ref, conjuncts
from variantlake.parquet.stats.bounds import Bounds
from variantlake.parquet.stats.facts import ColumnFacts, FileFacts, PathFacts, VariantFacts
from variantlake.paths import Path
from variantlake.planning.files import RecordFiles, ScanFile
from variantlake.planning.plan import ScanPlan, plan_scan
from variantlake.planning.stats.domains import NO_TYPES
from variantlake.planning.stats.skipping import NOT_SKIPPED, Skipper, evaluation
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.values import ValueNotes

ROWS = 10
ORDINARY = ValueNotes()


def path(text: str, requested: str = "bigint", *, strict: bool = True) -> Ref:
    """A path of the column `v`."""
    return Ref(("v",), Path.parse(text), requested, strict)


def lit(value: Any, type_: str = "bigint") -> Literal:
    return Literal(value, type_)


BOUNDS = ("minimum", "maximum", "minimum_exact", "maximum_exact")


def facts(
    ddl: str,
    known: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    rows: int = ROWS,
    columns: tuple[ColumnFacts, ...] = (),
    clean: bool = True,
    notes: ValueNotes | None = ORDINARY,
) -> FileFacts:
    """A file whose column `v` is shredded by this DDL, every path of it clean and in every row.

    `known` overrides fields of PathFacts by path; bounds given there count as exact.
    """
    paths = []
    for at, node in parse_ddl(ddl).nodes():
        own: dict[str, Any] = {"typed": rows, "nulls": 0, "residuals": 0 if clean else -1}
        given = dict((known or {}).get(str(at), {}))
        sides = {name: given.pop(name) for name in BOUNDS if name in given}
        if "minimum" in sides:
            sides = {"minimum_exact": True, "maximum_exact": True, **sides}
        own["bounds"] = Bounds(**sides)
        paths.append(PathFacts(at, node, **(own | given)))
    variant = VariantFacts(("v",), parse_ddl(ddl), 0, tuple(paths), notes=notes)
    return FileFacts(100, rows, 1, (variant,), columns)


def between(ddl_type: str, low: Any, high: Any, **more: Any) -> FileFacts:
    """A file whose only path `$.a` holds low..high in every row."""
    return facts(f"a {ddl_type}", {"$['a']": {"minimum": low, "maximum": high, **more}})


def file(name: str, known: FileFacts | None, size: int = 100) -> ScanFile:
    return ScanFile(name, size, known)


def may_match(
    skipper: Skipper,
    known: FileFacts | None,
    partition: Mapping[str, str | None] | None = None,
) -> bool:
    """Whether one file with these facts and serialised partition values may hold a match."""
    return bool(skipper.may_match(RecordFiles([ScanFile("", 0, known, partition or {})]))[0])


def may_be(
    predicate: Predicate, scan: ScanFile, partition_types: Mapping[str, str] = NO_TYPES
) -> list[tuple[Predicate, May]]:
    """Each conjunct with the truth values that it may take in one file."""
    found = evaluation(RecordFiles([scan]), partition_types)
    return [(part, May(int(found.may(part)[0]))) for part in conjuncts(predicate)]


def skipped(plan: ScanPlan) -> list[tuple[str, Predicate]]:
    """The files that are not read, and the conjunct that proves it of each."""
    rows = np.flatnonzero(plan.skipped_by != NOT_SKIPPED)
    by = [plan.conjuncts[number] for number in plan.skipped_by[rows].tolist()]
    return [(file.path, part) for file, part in zip(plan.table.files(rows), by, strict=True)]


def plan_files(
    files: Sequence[ScanFile],
    requests: Sequence[Ref],
    predicate: Predicate | None = None,
    **options: Any,
) -> ScanPlan:
    """`plan_scan` of files that are objects."""
    return plan_scan(RecordFiles(files), requests, predicate, **options)
