"""Write the `stats` text of an `add` from the facts of its file.

Ordinary columns follow Delta's rules. Variant columns follow the protocol: a null count for the
column, and bounds for paths that hold one type in every row that has them. Uncertain statistics are
left out, because readers keep a file whose bounds they do not know.
Spec: PROTOCOL, "Per-file Statistics", "Statistics for Variant Columns".
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import orjson
import pyarrow as pa

from variantlake.delta.protocol.properties import stats_columns
from variantlake.delta.schema.table_schema import StructType
from variantlake.delta.stats.variant_bounds import encode_bounds, scalar_of
from variantlake.encoding.scalar import Scalar
from variantlake.parquet.stats.bounds import Raw
from variantlake.parquet.stats.cut_bounds import cut_maximum, cut_minimum
from variantlake.parquet.stats.facts import ColumnFacts, FileFacts, PathFacts, VariantFacts
from variantlake.paths import Path
from variantlake.shredding.schema import Leaf
from variantlake.types import Kind, ShreddedType

_NUMBER = re.compile(r"-?[0-9]{1,9}")
_NUMBERS = {
    "max_paths": "variantlake.stats.maxPaths",
    "max_bytes": "variantlake.stats.maxBytes",
    "string_length": "variantlake.stats.stringLength",
    "indexed_columns": "delta.dataSkippingNumIndexedCols",
}

Json = dict[str, Any]
Column = tuple[str, ...]

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
DAY_OF_EPOCH: Final = EPOCH.toordinal()


@dataclass(frozen=True, slots=True)
class StatsOptions:
    """Which statistics to write, by the table's properties.

    For each Variant column, `max_paths` limits the paths with bounds (`variantlake.stats.maxPaths`)
    and `max_bytes` the text of their minimums and maximums together (`variantlake.stats.maxBytes`).
    `string_length` limits the characters of a string bound (`variantlake.stats.stringLength`).
    The first `indexed_columns` leaf columns get statistics (-1: all;
    `delta.dataSkippingNumIndexedCols`), unless `columns` names others
    (`delta.dataSkippingStatsColumns`).
    """

    max_paths: int = 200
    max_bytes: int = 64 << 10
    string_length: int = 64
    indexed_columns: int = 32
    columns: frozenset[str] | None = None

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> StatsOptions:
        """Read the options from a table's properties. Ignores numbers that do not parse."""
        columns = stats_columns(properties)
        numbers = {
            option: int(properties[name])
            for option, name in _NUMBERS.items()
            if _NUMBER.fullmatch(properties.get(name, ""))
        }
        return cls(columns=None if columns is None else frozenset(columns), **numbers)

    def chosen(self, schema: StructType, partition_columns: Collection[str]) -> frozenset[Column]:
        """Return the columns (physical paths) that get statistics."""
        leaves = [
            (physical, logical)
            for (physical, _), (logical, _) in zip(
                schema.leaves(physical=True), schema.leaves(), strict=True
            )
            if logical[0] not in partition_columns
        ]
        if self.columns is not None:
            return frozenset(
                physical
                for physical, logical in leaves
                if any(
                    ".".join(logical[: i + 1]).lower() in self.columns for i in range(len(logical))
                )
            )
        if self.indexed_columns < 0:
            return frozenset(physical for physical, _ in leaves)
        return frozenset(physical for physical, _ in leaves[: self.indexed_columns])


def write_stats(
    facts: FileFacts,
    columns: Collection[Column] | None = None,
    options: StatsOptions | None = None,
    *,
    variant_bounds: bool = True,
) -> str:
    """Write the `stats` text for a file.

    `columns` are the physical paths that get statistics (`StatsOptions.chosen`; None: all).
    `variant_bounds` is false for a table without the feature `variantShredding`, whose Variant
    columns get only a null count.
    """
    options = options or StatsOptions()
    minimums: Json = {}
    maximums: Json = {}
    nulls: Json = {}
    for column in facts.columns:
        if columns is None or column.column in columns:
            low, high = _column_bounds(column, options.string_length)
            _put(minimums, column.column, low)
            _put(maximums, column.column, high)
            _put(nulls, column.column, None if column.nulls < 0 else column.nulls)
    for variant in facts.variants:
        if columns is None or variant.column in columns:
            _put(nulls, variant.column, None if variant.nulls < 0 else variant.nulls)
            if variant_bounds:
                lows, highs = bounds_of(clean_paths(variant, of_protocol=True), options)
                _put(minimums, variant.column, encode_bounds(lows) if lows else None)
                _put(maximums, variant.column, encode_bounds(highs) if highs else None)
    document = {
        "numRecords": facts.num_records,
        "minValues": minimums,
        "maxValues": maximums,
        "nullCount": nulls,
    }
    return orjson.dumps(document).decode()


def clean_paths(variant: VariantFacts, *, of_protocol: bool) -> Iterator[PathFacts]:
    """Yield the clean paths whose bounds belong in the protocol's statistics, or the other ones.

    The protocol's statistics cover paths that have one type in every row that has them, without
    even a Variant null. Types that Spark cannot read in a Variant are left out of them.
    """
    for facts in variant.paths:
        if not isinstance(facts.node, Leaf) or not facts.clean:
            continue
        if (facts.nulls == 0 and facts.node.type.info.spark) is of_protocol:
            yield facts


def bounds_of(
    paths: Iterable[PathFacts], options: StatsOptions
) -> tuple[dict[Path, Scalar], dict[Path, Scalar]]:
    """Return the minimums and maximums of these paths, with the same paths on both sides.

    If there are more than the limits allow, the paths with the most values stay, and the first
    among equals.
    """
    found = [
        (facts, *pair)
        for facts in paths
        if isinstance(facts.node, Leaf)
        and (pair := _path_bounds(facts, facts.node.type, options)) is not None
    ]
    most = sorted(found, key=lambda item: -item[0].typed)[: max(options.max_paths, 0)]
    if _text_bytes(most) > options.max_bytes:
        counts = range(len(most))
        count = bisect_right(counts, options.max_bytes, key=lambda n: _text_bytes(most[:n]))
        most = most[: max(count - 1, 0)]
    kept = {facts.path for facts, _, _ in most}
    found = [item for item in found if item[0].path in kept]
    return (
        {facts.path: low for facts, low, _ in found},
        {facts.path: high for facts, _, high in found},
    )


def _text_bytes(found: Sequence[tuple[PathFacts, Scalar, Scalar]]) -> int:
    """Return the total length of the texts of minimums and maximums."""
    if not found:
        return 0
    lows = encode_bounds({facts.path: low for facts, low, _ in found})
    highs = encode_bounds({facts.path: high for facts, _, high in found})
    return len(lows) + len(highs)


def _path_bounds(
    facts: PathFacts, leaf: ShreddedType, options: StatsOptions
) -> tuple[Scalar, Scalar] | None:
    low, high = facts.bounds.minimum, facts.bounds.maximum
    if low is None or high is None or not leaf.info.ordered:
        return None
    if leaf.kind in (Kind.FLOAT, Kind.DOUBLE) and not facts.plain_floats:
        # Footer bounds leave out NaN, but to Spark NaN is greater than any of them.
        return None
    if isinstance(low, str) and isinstance(high, str):
        cut = cut_maximum(high, options.string_length)
        if cut is None:
            return None
        low, high = cut_minimum(low, options.string_length), cut
    elif isinstance(low, bytes) and leaf.kind is Kind.BINARY:
        # No query needs bounds in Spark's order of binary values.
        return None
    return scalar_of(leaf, low), scalar_of(leaf, high)


def _column_bounds(column: ColumnFacts, length: int) -> tuple[Any, Any]:
    """Return minimum and maximum of an ordinary column as JSON; None where there is none."""
    low, high, type_ = column.bounds.minimum, column.bounds.maximum, column.type
    if isinstance(low, str) or isinstance(high, str):
        return (
            cut_minimum(low, length) if isinstance(low, str) else None,
            cut_maximum(high, length) if isinstance(high, str) else None,
        )
    if pa.types.is_floating(type_) and not column.plain_floats:
        high = None
    return _json_of(low, type_, up=False), _json_of(high, type_, up=True)


def _json_of(raw: Raw | None, type_: pa.DataType, *, up: bool) -> Any:
    """Convert a bound to JSON by its column's type. Rounds times up if `up`, else down."""
    if raw is None or isinstance(raw, (bool, bytes, str)):
        return None
    if isinstance(raw, Decimal):
        return orjson.Fragment(format(raw, "f"))
    if isinstance(raw, float):
        return raw if math.isfinite(raw) else None
    if pa.types.is_date(type_):
        return _date(raw)
    if isinstance(type_, pa.TimestampType):
        return _timestamp(raw, type_, up=up)
    return raw if pa.types.is_integer(type_) else None


def _date(days: int) -> str | None:
    ordinal = DAY_OF_EPOCH + days
    in_range = date.min.toordinal() <= ordinal <= date.max.toordinal()
    return date.fromordinal(ordinal).isoformat() if in_range else None


def _timestamp(count: int, type_: pa.TimestampType[Any, Any], *, up: bool) -> str | None:
    """Format a timestamp bound in milliseconds, rounded so that it still bounds all values."""
    per_milli = {"us": 1_000, "ns": 1_000_000, "ms": 1}.get(type_.unit)
    if per_milli is None:
        return None
    millis = -(-count // per_milli) if up else count // per_milli
    try:
        moment = EPOCH + timedelta(milliseconds=millis)
    except OverflowError:
        return None
    text = moment.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return text if type_.tz is None else f"{text}Z"


def _put(target: Json, column: Column, value: Any) -> None:
    """Set `value` under a nested key, unless it is None."""
    if value is None:
        return
    for name in column[:-1]:
        target = target.setdefault(name, {})
    target[column[-1]] = value
