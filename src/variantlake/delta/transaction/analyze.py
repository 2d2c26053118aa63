"""Fill in the statistics of files that other writers left without, by reading their footers.

A file is added again under its own path, with `dataChange` false: no row changes, and readers of
change feeds and streams see nothing. Spec: PROTOCOL, "Add File and Remove File".
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import orjson

from variantlake.delta.actions.actions import AddFile
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.clustering import clustering_columns
from variantlake.delta.protocol.features import VARIANT_SHREDDING
from variantlake.delta.schema.table_schema import PrimitiveType, VariantType
from variantlake.delta.stats.file_facts import FactsReader
from variantlake.delta.stats.stats_reader import find_in, parse_stats
from variantlake.delta.stats.stats_writer import Column, StatsOptions, write_stats
from variantlake.delta.stats.tags import file_tags
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes
from variantlake.errors import in_file
from variantlake.parquet.metadata.footer import parse_footer, read_tail
from variantlake.parquet.stats.facts import FileFacts, facts_of
from variantlake.shown import Result

_THREADS = 16


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AnalyzeResult(Result):
    """The result of an analysis or dry run: it completes `files_completed` of `table_files`."""

    table_files: int
    files_completed: int


def analyze(snapshot: Snapshot, *, dry_run: bool = False) -> AnalyzeResult:
    """Complete the statistics and tags of the files that lack some, in one commit.

    A file lacks tags, or the null count of a column that gets statistics. What another writer's
    statistics say stays, unless the footer says more.

    Raises MalformedFile and MissingSource naming a file that cannot be read, CommitConflict where
    another writer changed one of the files, UnsupportedFeature.
    """
    started = time.perf_counter()
    snapshot.check_writable(evaluated=True, kept=True)
    reader = FactsReader(snapshot.schema)
    counted = _counted_columns(snapshot)
    adds: list[AddFile] = []
    tagged: list[bool] = []
    for add in snapshot.add_files():
        known = reader.read_facts(add) is not None
        if not known or _lacks_counts(add, counted):
            adds.append(add)
            tagged.append(known)
    found: list[AddFile] = []
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="variantlake-analyze") as pool:
        done = pool.map(lambda add: completed(snapshot, add), adds)
        for add, new, known in zip(adds, done, tagged, strict=True):
            # A file's writer knows more than its footer says.
            action = replace(new, tags=add.tags) if known else new
            same = _document(action.stats) == _document(add.stats)
            if not same or action.tags != add.tags:
                found.append(replace(action, data_change=False))
    version = None if dry_run else snapshot.version
    if found and not dry_run:
        version = commit(snapshot, Changes("COMPUTE STATS", adds=tuple(found)))
    return AnalyzeResult(
        version=version,
        dry_run=dry_run,
        table_files=snapshot.files.num_rows,
        files_completed=len(found),
        seconds=time.perf_counter() - started,
    )


def completed(snapshot: Snapshot, add: AddFile) -> AddFile:
    """Return the file's `add` with the statistics and tags that its footer gives.

    Raises MalformedFile and MissingSource naming the file.
    """
    location = snapshot.location(add.path)
    facts = _facts(snapshot, location)
    options = StatsOptions.from_properties(snapshot.properties)
    chosen = options.chosen(snapshot.schema, snapshot.partition_columns)
    text = write_stats(
        facts,
        chosen.union(clustering_columns(snapshot.domains)),
        options,
        variant_bounds=not snapshot.features.isdisjoint(VARIANT_SHREDDING),
    )
    stats = _merged(_document(add.stats), _document(text))
    if add.deletion_vector is not None:
        # The footer counts the deleted rows too.
        stats["tightBounds"] = False
    return replace(
        add,
        stats=orjson.dumps(stats, default=_number).decode(),
        tags={**(add.tags or {}), **file_tags(facts, options)},
    )


def _facts(snapshot: Snapshot, location: str) -> FileFacts:
    """Return the facts in the footer; only the number of rows if the file's column names differ."""
    with in_file(location):
        tail = read_tail(location)
        footer = parse_footer(tail.footer, tail.offset)
        if not snapshot.has_stored_names(footer):
            rows = footer.num_rows
            return FileFacts(tail.size, rows, len(footer.row_groups), (), ())
        return facts_of(footer, tail.size, snapshot.schema.variant_columns(physical=True))


def _counted_columns(snapshot: Snapshot) -> list[Column]:
    """Return the columns (physical paths) whose number of nulls a footer gives."""
    chosen = StatsOptions.from_properties(snapshot.properties).chosen(
        snapshot.schema, snapshot.partition_columns
    )
    return [
        path
        for path, leaf in snapshot.schema.leaves(physical=True)
        if path in chosen and isinstance(leaf.type, PrimitiveType | VariantType)
    ]


def _lacks_counts(add: AddFile, columns: Sequence[Column]) -> bool:
    counts = (parse_stats(add.stats, decimals=False) or {}).get("nullCount")
    return any(find_in(counts, column) is None for column in columns)


def _document(text: str | None) -> dict[str, Any]:
    """Parse statistics with all digits of their numbers: a rounded number is not a bound."""
    if not parse_stats(text, decimals=False):
        return {}
    found: dict[str, Any] = json.loads(text or "", parse_float=Decimal, parse_int=Decimal)
    return found


def _number(number: Decimal) -> orjson.Fragment:
    """Return a number as JSON, with all its digits."""
    return orjson.Fragment(str(number))


def _merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return `old` updated with `new` at every depth; values that `new` lacks stay."""
    merged = dict(old)
    for key, value in new.items():
        before = merged.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            merged[key] = _merged(before, value)
        else:
            merged[key] = value
    return merged
