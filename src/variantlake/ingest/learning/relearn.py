"""Learn another schema for new files once recent ones hold too much in residuals.

This is decided before a load, by the tags of the newest files that have the table's schema. The
load's commit includes the new schema. So every kind of load learns, and a stream never stops.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.delta.log.files.logical_files import values
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.known_properties import SCHEMA_PREFIX
from variantlake.delta.protocol.learned_schemas import PREFIX as LEARNED_PREFIX
from variantlake.delta.protocol.learned_schemas import LearnedSchemas, learned_schemas
from variantlake.delta.protocol.properties import hints, max_residual_share, with_given_schema
from variantlake.delta.stats.tags import PREFIX as TAG_PREFIX
from variantlake.delta.stats.tags import column_name, residual_share
from variantlake.errors import VariantLakeError
from variantlake.ingest.learning.learn import learned_schema
from variantlake.ingest.learning.sample import ColumnSample, Trial, sample_column, spread
from variantlake.shredding.inference.hints import with_hints
from variantlake.shredding.schema import Leaf, ShreddingSchema
from variantlake.writing.table_write import TableWrite

log = logging.getLogger("variantlake.learning")

RECENT_FILES = 32
"""The most files by which to judge the schema: the newest ones that have it."""

RECENT_ROWS = 1_000
"""Older files do not count if newer ones have this many rows."""

LEAST_ROWS = 200
"""With fewer rows, nothing is decided."""

OLD_FILES = 16
"""Other files in the sample, from all over the table, so that common paths stay columns."""

SAMPLE_ROWS = 4_000
"""The rows of each of the two halves of a sample."""

MARGIN = 0.1
"""The growth of the share since the last search from which a better schema is searched again."""

LEAST_GAIN = 0.2
"""The least share of the sample's residuals that a better schema must remove."""


def relearned(target: TableWrite) -> TableWrite:
    """Return the table with the schemas for its new files, which are mostly unchanged.

    Only learned schemas are learned again; hints also apply to given ones. Errors are logged, and
    leave a column's schema unchanged.
    """
    snapshot = target.snapshot
    if snapshot is None or target.replacing is not None or not target.shredding_enabled:
        return target
    for column, schema in target.shreddings().items():
        learned = learned_schemas(target.properties, column)
        try:
            hinted = with_hints(schema, hints(target.properties, column))
            if hinted != schema and learned is None:
                properties = with_given_schema(target.properties, column, hinted)
                target = replace(target, properties=properties)
            elif hinted != schema:
                log.info("%s: hints change the schema of %r", target.store.uri, column)
                target = target.with_shredding(column, hinted)
            elif learned is not None:
                target = _relearned(target, snapshot, _LearnedColumn(column, schema, learned))
        except (VariantLakeError, OSError, pa.ArrowException) as error:
            log.warning("%s: no schema was learned for %r: %s", target.store.uri, column, error)
    return target


@dataclass(frozen=True, slots=True)
class _LearnedColumn:
    """A VARIANT column by its physical name, its schema, and its record of learned schemas."""

    name: str
    schema: ShreddingSchema
    learned: LearnedSchemas


def _relearned(target: TableWrite, snapshot: Snapshot, column: _LearnedColumn) -> TableWrite:
    bound = max_residual_share(target.properties)
    if column.learned.residuals is not None:
        bound = max(bound, column.learned.residuals + MARGIN)
    if bound >= 1:
        return target
    recent = _recent(snapshot, column)
    share = residual_share(column.name, recent.tags)
    if share is None or share <= bound or recent.rows < LEAST_ROWS:
        return target
    schema = _better(snapshot, column, recent)
    if schema is None:
        # The residuals cannot become columns: search again once their share has grown.
        text = column.learned.measured(share).text()
        return replace(target, properties={**target.properties, LEARNED_PREFIX + column.name: text})
    log.info(
        "%s: %.0f %% of the newest %d rows of %r lie in residuals: new files get another schema",
        target.store.uri,
        100 * share,
        recent.rows,
        column.name,
    )
    return target.with_shredding(column.name, schema)


@dataclass(frozen=True, slots=True)
class _Recent:
    """The newest files that have the schema."""

    paths: list[str]
    tags: list[dict[str, str | None]]
    rows: int


def _recent(snapshot: Snapshot, column: _LearnedColumn) -> _Recent:
    files = snapshot.files
    key = f"{TAG_PREFIX}layout.{column_name((column.name,))}"
    found = _Recent([], [], 0)
    text = snapshot.properties.get(SCHEMA_PREFIX + column.name)
    # All at once: reading one file's tags in a checkpoint costs as much as its whole row group's.
    newest = files.take(np.array([*_newest(files["modification_time"])], np.int64))
    for path, entries in zip(newest["path"].to_pylist(), values(newest["tags"]), strict=True):
        tags = entries or {}
        if tags.get(key) != text:
            continue
        found.paths.append(path)
        found.tags.append(tags)
        found = replace(found, rows=found.rows + _rows(tags))
        if found.rows >= RECENT_ROWS:
            break
    return found


def _newest(times: Any) -> Iterator[int]:
    """Yield the positions of the newest files, newest first."""
    when = pc.fill_null(times, 0).to_numpy()
    if len(when) > RECENT_FILES:
        places = np.argpartition(when, -RECENT_FILES)[-RECENT_FILES:]
    else:
        places = np.arange(len(when))
    yield from places[np.argsort(-when[places], kind="stable")].tolist()


def _rows(tags: dict[str, str | None]) -> int:
    """Return the rows of a file, from the fingerprint in our tags; 0 if unknown."""
    number = (tags.get(f"{TAG_PREFIX}file") or "").rpartition(":")[2]
    return int(number) if number.isdecimal() else 0


def _better(snapshot: Snapshot, column: _LearnedColumn, recent: _Recent) -> ShreddingSchema | None:
    """Search a schema with columns for values that are now in residuals; None if there is none."""
    newest = sample_column(snapshot, recent.paths, column.name, rows=SAMPLE_ROWS)
    taken = set(recent.paths)
    others = [path for path in snapshot.files["path"].to_pylist() if path not in taken]
    older = sample_column(snapshot, spread(others, OLD_FILES), column.name, rows=SAMPLE_ROWS)
    schema = learned_schema(snapshot, _balanced(newest, older), column.schema)
    if not _has_more(schema, column.schema) or not newest.table.num_rows:
        return None
    before, after = (Trial.of(newest, each).sizes for each in (column.schema, schema))
    gained = before.residuals - after.residuals
    return schema if gained >= LEAST_GAIN * before.residuals else None


def _balanced(newest: ColumnSample, older: ColumnSample) -> ColumnSample:
    """Join both samples, with at most as many rows of the older files as of the newest."""
    most = newest.table.num_rows
    if older.table.num_rows <= most:
        return newest + older
    step = older.table.num_rows / most
    places = pa.array([int(number * step) for number in range(most)], pa.int64())
    return newest + ColumnSample(older.column, older.table.take(places))


def _has_more(schema: ShreddingSchema, known: ShreddingSchema) -> bool:
    """Whether `schema` has a column that `known` lacks, or has with another type."""
    return any(
        isinstance(node, Leaf) and known.find(path) != (node, path) for path, node in schema.nodes()
    )
