"""The rows of data files and change files, read as a whole and by their documents."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import variantlake as vl
from tests.simulation.world import Violation

Row = tuple[int | None, int | None]
"""What can change of a row: its column `val`, and `$.v` of its document."""

Rows = Mapping[int, Row]
"""By `$.id`, which no two rows of the table share."""


def row_ids(
    data: bytes, first: int, version: int, gone: Collection[int]
) -> tuple[dict[int, int], dict[int, int]]:
    """The ids of the rows of a file but those at some places, and what version changed them last.

    They are in columns of its own, or go by the places of rows, and by the file's version.
    """
    table = vl.parquet.read_table(io.BytesIO(data))
    keys = [_document(event)["id"] for event in table["event"].to_pylist()]
    ids, versions = (_stored(table, name) for name in ("_row-id-col-", "_row-commit-version-col-"))
    alive = [(at, key) for at, key in enumerate(keys) if at not in gone]
    return (
        {key: first + at if ids[at] is None else ids[at] for at, key in alive},
        {key: version if versions[at] is None else versions[at] for at, key in alive},
    )


def _stored(table: Any, start: str) -> list[Any]:
    """The values of the column whose name starts so, NULLs if there is none."""
    names = [name for name in table.column_names if name.startswith(start)]
    return table[names[0]].to_pylist() if names else [None] * table.num_rows


def check_stats(file: Mapping[str, Any], rows: Sequence[tuple[int, Row]]) -> None:
    """Raise Violation if the log says of a file's rows what is not so."""
    if not file.get("stats"):
        return
    stats = json.loads(file["stats"])
    if stats["numRecords"] != len(rows):
        raise Violation(f"{file['path']} has {len(rows)} rows, not {stats['numRecords']}")
    if file.get("deletionVector") and stats.get("tightBounds", True):
        raise Violation(f"{file['path']} has lost rows, and its bounds are said to be tight")
    values = [value for _, (value, _) in rows if value is not None]
    least, most = (stats.get(name, {}).get("val") for name in ("minValues", "maxValues"))
    if values and least is not None and not (least <= min(values) and max(values) <= most):
        raise Violation(f"{file['path']} has values from {min(values)} to {max(values)}: {stats}")
    nulls = stats.get("nullCount", {}).get("val")
    if nulls is not None and nulls != len(rows) - len(values):
        raise Violation(f"{file['path']} has {len(rows) - len(values)} NULLs, not {nulls}")


def _document(event: Any) -> Any:
    return vl.Variant(event["metadata"], event["value"]).to_python()


def file_rows(data: bytes) -> list[tuple[int, Row]]:
    """The rows of a data file, in their order, deleted ones too; of those two may have one id."""
    table = vl.parquet.read_table(io.BytesIO(data))
    events: list[Any] = table["event"].to_pylist()
    values = table["val"].to_pylist() if "val" in table.column_names else [None] * len(events)
    documents = map(_document, events)
    return [
        (document["id"], (value, document["v"]))
        for document, value in zip(documents, values, strict=True)
    ]


def changed_rows(data: bytes) -> list[tuple[str, int, Row]]:
    """The rows of a change file, and what became of each."""
    table = vl.parquet.read_table(io.BytesIO(data))
    events: list[Any] = table["event"].to_pylist()
    documents = map(_document, events)
    values = table["val"].to_pylist() if "val" in table.column_names else [None] * len(events)
    kinds: list[Any] = table["_change_type"].to_pylist()
    return [
        (kind, document["id"], (value, document["v"]))
        for kind, document, value in zip(kinds, documents, values, strict=True)
    ]


def difference(expected: Rows, actual: Rows) -> str:
    """What is wrong of rows, in a line."""
    lost = sorted(expected.keys() - actual.keys())
    new = sorted(actual.keys() - expected.keys())
    other = sorted(k for k in expected.keys() & actual.keys() if expected[k] != actual[k])
    first = f", such as {other[0]}: {expected[other[0]]} is {actual[other[0]]}" if other else ""
    counts = f"{len(lost)} rows lost {lost[:5]}, {len(new)} new {new[:5]}"
    return f"{counts}, {len(other)} changed {other[:5]}{first}"
