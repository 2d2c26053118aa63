"""Tags that we write in a file's `add`: how the file is shredded and what its columns hold.

    variantlake.version          "1"
    variantlake.file             "<size>:<numRecords>", the fingerprint of the tagged file
    variantlake.layout.<column>  DDL of exactly how the file shreds the column
    variantlake.facts.<column>   JSON, one [typed, nulls, residuals, flags] for each node of the
                                 layout in its order, counts as in PathFacts
    variantlake.values.<column>  JSON, notes about its values, see shredding.values
    variantlake.sizes.<column>   JSON [residuals, typed]: bytes as in VariantSizes
    variantlake.bounds.<column>  JSON {"min": z85, "max": z85}: bounds that the protocol keeps out
                                 of the statistics (paths that also hold Variant nulls, types that
                                 Spark does not know)

Columns go by physical names. Other writers copy tags when they change an `add` (deletion vectors,
RESTORE, SHALLOW CLONE), so readers trust tags only if the fingerprint fits, and treat invalid
contents as absent (EXACTNESS, rule 25).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import orjson

from variantlake.delta.stats.stats_writer import Column, StatsOptions, bounds_of, clean_paths
from variantlake.delta.stats.variant_bounds import decode_bounds, encode_bounds
from variantlake.encoding.scalar import Scalar
from variantlake.errors import VariantLakeError
from variantlake.parquet.stats.facts import (
    MAX_INSIDE,
    FileFacts,
    PathFacts,
    VariantSizes,
)
from variantlake.paths import Path
from variantlake.quoting import quote_identifier
from variantlake.shredding.ddl import format_ddl, parse_ddl
from variantlake.shredding.schema import Node, ShreddingSchema
from variantlake.shredding.values import ValueNotes, parse_notes

VERSION = "1"
PREFIX = "variantlake."

PLAIN_FLOATS, MINIMUM_EXACT, MAXIMUM_EXACT = 1, 2, 4
"""The bits of `flags`."""
CLEAN_INSIDE_SHIFT = 3
"""The bits of `flags` from this one on hold an array's `clean_inside`."""
FLAGS_LIMIT = 1 << (CLEAN_INSIDE_SHIFT + MAX_INSIDE)

NodeFacts = tuple[int, int, int, int]
"""typed, nulls, residuals (as in PathFacts, -1 if unknown) and flags of one node."""

_PLAIN_NAME = re.compile(r"[^.`]+")


@dataclass(frozen=True, slots=True)
class TaggedColumn:
    """The tags of one Variant column. `nodes` are those of `schema`, `facts` is parallel to it."""

    schema: ShreddingSchema
    nodes: tuple[tuple[Path, Node], ...]
    facts: tuple[NodeFacts, ...]
    minimums: Mapping[Path, Scalar]
    maximums: Mapping[Path, Scalar]
    notes: ValueNotes | None


def column_name(column: Column) -> str:
    """Return a column's name in properties and tags: dots between parts, odd parts in backticks."""
    return ".".join(
        part if _PLAIN_NAME.fullmatch(part) else quote_identifier(part) for part in column
    )


def file_tags(facts: FileFacts, options: StatsOptions | None = None) -> dict[str, str]:
    """Return the tags for a file.

    Variants in Spark's older layout or with extra fields get no tags: the DDL of the shredding
    cannot express these, so planning has to read the footer (EXACTNESS, rule 10).
    """
    tags = {
        f"{PREFIX}version": VERSION,
        f"{PREFIX}file": _fingerprint(facts.size, facts.num_records),
    }
    for variant in facts.variants:
        if variant.is_legacy or variant.has_others:
            continue
        name = column_name(variant.column)
        entries = [[path.typed, path.nulls, path.residuals, _flags(path)] for path in variant.paths]
        tags[f"{PREFIX}layout.{name}"] = format_ddl(variant.schema)
        tags[f"{PREFIX}facts.{name}"] = orjson.dumps(entries).decode()
        if variant.notes is not None:
            tags[f"{PREFIX}values.{name}"] = orjson.dumps(variant.notes.encode()).decode()
        if variant.sizes is not None:
            sizes = [variant.sizes.residuals, variant.sizes.typed]
            tags[f"{PREFIX}sizes.{name}"] = orjson.dumps(sizes).decode()
        lows, highs = bounds_of(clean_paths(variant, of_protocol=False), options or StatsOptions())
        if lows:
            sides = {"min": encode_bounds(lows), "max": encode_bounds(highs)}
            tags[f"{PREFIX}bounds.{name}"] = orjson.dumps(sides).decode()
    return tags


def read_tags(
    tags: Mapping[str, str | None] | None, size: int, num_records: int, column: Column
) -> TaggedColumn | None:
    """Read a column's tags of a file of this size (bytes) and row count; None if not valid."""
    if (
        tags is None
        or tags.get(f"{PREFIX}version") != VERSION
        or tags.get(f"{PREFIX}file") != _fingerprint(size, num_records)
    ):
        return None
    name = column_name(column)
    layout, facts = tags.get(f"{PREFIX}layout.{name}"), tags.get(f"{PREFIX}facts.{name}")
    if layout is None or facts is None:
        return None
    try:
        schema, nodes = parse_layout(layout)
        entries = _entries(facts, num_records)
        lows, highs = _bounds(tags.get(f"{PREFIX}bounds.{name}"))
    except (VariantLakeError, ValueError, TypeError, KeyError):
        return None
    if len(entries) != len(nodes):
        return None
    notes = parse_notes(tags.get(f"{PREFIX}values.{name}"))
    return TaggedColumn(schema, nodes, entries, lows, highs, notes)


def tagged_notes(column: Column, tags: Mapping[str, str | None]) -> ValueNotes | None:
    """Return a column's notes from the tags of a file that was just written."""
    return parse_notes(tags.get(f"{PREFIX}values.{column_name(column)}"))


def residual_share(column: str, tags: Iterable[Mapping[str, str | None]]) -> float | None:
    """Return the share of residuals in a top column's bytes, over all files with these tags.

    `column` is a physical name. None if no tags hold sizes, or all sizes are 0.
    """
    found = [sizes for each in tags if (sizes := _sizes((column,), each)) is not None]
    residuals = sum(sizes.residuals for sizes in found)
    total = residuals + sum(sizes.typed for sizes in found)
    return residuals / total if total else None


def _sizes(column: Column, tags: Mapping[str, str | None]) -> VariantSizes | None:
    """Return the sizes of a column; None if the tags hold none."""
    text = tags.get(f"{PREFIX}sizes.{column_name(column)}")
    try:
        residuals, typed = orjson.loads(text or "")
    except (ValueError, TypeError):
        return None
    sound = all(type(size) is int and 0 <= size < 1 << 62 for size in (residuals, typed))
    return VariantSizes(residuals, typed) if sound else None


def _fingerprint(size: int, num_records: int) -> str:
    return f"{size}:{num_records}"


def _flags(facts: PathFacts) -> int:
    return (
        PLAIN_FLOATS * facts.plain_floats
        | MINIMUM_EXACT * facts.bounds.minimum_exact
        | MAXIMUM_EXACT * facts.bounds.maximum_exact
        | facts.clean_inside << CLEAN_INSIDE_SHIFT
    )


@lru_cache(maxsize=256)
def parse_layout(text: str) -> tuple[ShreddingSchema, tuple[tuple[Path, Node], ...]]:
    """Parse a layout's DDL; returns the schema and its nodes. Cached: files share few layouts.

    Raises InvalidSchema.
    """
    schema = parse_ddl(text)
    return schema, tuple(schema.nodes())


def _entries(text: str, num_records: int) -> tuple[NodeFacts, ...]:
    entries = orjson.loads(text)
    for typed, nulls, residuals, flags in entries:
        for count in (typed, nulls, residuals):
            if type(count) is not int or not -1 <= count <= num_records:
                raise ValueError(text)
        if type(flags) is not int or not 0 <= flags < FLAGS_LIMIT:
            raise ValueError(text)
    return tuple(map(tuple, entries))


def _bounds(text: str | None) -> tuple[dict[Path, Scalar], dict[Path, Scalar]]:
    if text is None:
        return {}, {}
    sides = orjson.loads(text)
    return decode_bounds(str(sides["min"])), decode_bounds(str(sides["max"]))
