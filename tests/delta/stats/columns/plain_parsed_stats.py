"""`parsed_stats` file by file, with the plain readers: the twin."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from variantlake.delta.schema.table_schema import DataType, PrimitiveType, StructType, VariantType
from variantlake.delta.stats.columns.typed_members import BOUNDED, raw_array
from variantlake.delta.stats.stats_reader import find_in, parse_stats, raw_value
from variantlake.delta.stats.variant_bounds import plain_split
from variantlake.shredding.layout import VARIANT_TYPE

Column = tuple[str, ...]


def plain_parsed_stats(
    texts: Sequence[str | None],
    schema: StructType,
    columns: Collection[Column],
    *,
    variant_bounds: bool,
    tight_bounds: bool,
) -> list[Any]:
    """The rows of `parsed_stats`."""
    leaves = [(path, leaf.type) for path, leaf in schema.leaves(physical=True) if path in columns]
    bounded = [
        (path, type_)
        for path, type_ in leaves
        if (isinstance(type_, VariantType) and variant_bounds)
        or (isinstance(type_, PrimitiveType) and type_.name in BOUNDED)
    ]
    rows: list[Any] = []
    for text in texts:
        document = parse_stats(text, decimals=True)
        if document is None:
            rows.append(None)
            continue
        row: dict[str, Any] = {"numRecords": _count(document.get("numRecords"))}
        if tight_bounds:
            flag = document.get("tightBounds")
            row["tightBounds"] = flag if isinstance(flag, bool) else None
        for side in ("minValues", "maxValues") if bounded else ():
            for path, type_ in bounded:
                value = _bound(find_in(document.get(side), path), type_)
                _put(row.setdefault(side, {}), path, value)
        for path, _ in leaves:
            count = _count(find_in(document.get("nullCount"), path))
            _put(row.setdefault("nullCount", {}), path, count)
        rows.append(row)
    return rows


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 2**63 else None


def _bound(value: Any, type_: DataType) -> Any:
    if isinstance(type_, PrimitiveType):
        return raw_array([raw_value(value, type_)], type_)[0].as_py()
    parts = plain_split(value)
    return None if parts is None else dict(zip(VARIANT_TYPE.names, parts, strict=True))


def _put(row: dict[str, Any], path: Column, value: Any) -> None:
    for name in path[:-1]:
        row = row.setdefault(name, {})
    row[path[-1]] = value
