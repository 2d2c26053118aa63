"""Features of engines: each has a probe that runs, and a check of the table that it leaves.

Every probe gets a small table of ours (or an empty place), asks the engine in its own words
(`interop.workers.features`), and checks the rows and files that came out. To see whether an engine
skips what a query does not need, we overwrite exactly that with garbage: who reads it, fails.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import variantlake as vl

ROWS = 6
Check = Callable[[Path, Any], str]
"""Returns what is wrong, or an empty text, from the table's place and the engine's answer."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature: `prepare` creates the table, `check` returns what is wrong afterwards."""

    name: str
    about: str
    prepare: Callable[[Path], object]
    check: Check


def _nothing(place: Path) -> None:
    """Prepare nothing: the engine creates the table."""


def _plain(place: Path, **properties: str) -> vl.Table:
    """Two files: ids 0 to 2 and 100 to 102."""
    table = vl.Table.create(place, "id BIGINT, name STRING", properties=properties)
    for first in (0, 100):
        ids = pa.array(range(first, first + 3), pa.int64())
        table.append(pa.table({"id": ids, "name": [f"n{first}"] * 3}))
    return table


def _variants(place: Path) -> vl.Table:
    """Two files of shredded Variants, whose `n` is 0 to 2 and 100 to 102."""
    shredding = {"event": "n BIGINT, kind STRING"}
    table = vl.Table.create(place, "id BIGINT, event VARIANT", shredding=shredding)
    for first in (0, 100):
        rows = [
            (n, json.dumps({"n": n, "kind": "k", "more": [n]})) for n in range(first, first + 3)
        ]
        ids, events = zip(*rows, strict=True)
        arrow = pa.table({"id": pa.array(ids, pa.int64()), "event": list(events)})
        table.append(arrow, json_columns=["event"])
    return table


def _without_second_file(make: Callable[[Path], vl.Table]) -> Callable[[Path], None]:
    """Overwrite the file of the large numbers with garbage of the same size."""

    def prepare(place: Path) -> None:
        files = make(place).refresh().files().to_pylist()
        (second,) = [each for each in files if "100" in each["stats"]]
        file = place / second["path"]
        file.write_bytes(b"\xff" * file.stat().st_size)

    return prepare


def _with_one_column(place: Path) -> None:
    """Overwrite all column chunks but those of the path `n` and of `id` with garbage."""
    for each in _variants(place).refresh().files().to_pylist():
        file = place / each["path"]
        group = pq.ParquetFile(file).metadata.row_group(0)
        data = bytearray(file.read_bytes())
        for number in range(group.num_columns):
            chunk = group.column(number)
            if chunk.path_in_schema.startswith("event.typed_value.kind."):
                start = chunk.dictionary_page_offset or chunk.data_page_offset
                data[start : start + chunk.total_compressed_size] = bytes(
                    255 for _ in range(chunk.total_compressed_size)
                )
        file.write_bytes(data)


def _with_old_file(place: Path) -> None:
    """A file that no version needs, a month old."""
    _plain(place)
    old = time.time() - 30 * 86_400
    (place / "part-old.parquet").write_bytes(b"PAR1")
    os.utime(place / "part-old.parquet", (old, old))


def _unclustered(place: Path) -> None:
    """Variants in two files, each with small and large numbers."""
    table = vl.Table.create(
        place, "id BIGINT, event VARIANT", shredding={"event": "n BIGINT, kind STRING"}
    )
    for first in range(2):
        events = [json.dumps({"n": n, "kind": "k"}) for n in range(first, 400, 2)]
        ids = pa.array(range(first, 400, 2), pa.int64())
        table.append(pa.table({"id": ids, "event": events}), json_columns=["event"])


def _answers(wanted: Any) -> Check:
    def check(_: Path, answer: Any) -> str:
        return "" if answer == wanted else f"{answer} for {wanted}"

    return check


def _ids(*wanted: int) -> Check:
    def check(place: Path, _: Any) -> str:
        ids: list[Any] = vl.Table.open(place).scan("id").to_arrow()["id"].to_pylist()
        return "" if sorted(ids) == sorted(wanted) else f"ids {ids}"

    return check


def _has_names(*wanted: str) -> Check:
    def check(place: Path, _: Any) -> str:
        names = vl.Table.open(place).scan().to_arrow().column_names
        return "" if names == list(wanted) else f"columns {names}"

    return check


def _updated(place: Path, _: Any) -> str:
    names = vl.Table.open(place).scan(["name"], "id = 1").to_arrow()["name"].to_pylist()
    return "" if names == ["new"] else f"names {names}"


def _loaded(place: Path, _: Any) -> str:
    events: list[Any] = (
        vl.Table.open(place).scan("event:n::bigint AS n").to_arrow()["n"].to_pylist()
    )
    return "" if sorted(events) == list(range(1000)) else f"{len(events)} rows"


def _shredded(place: Path, _: Any) -> str:
    wrong = _loaded(place, _)
    names = {
        pq.read_metadata(file).schema.column(number).path
        for file in place.rglob("*.parquet")
        if "_delta_log" not in file.parts
        for number in range(pq.read_metadata(file).num_columns)
    }
    return wrong or ("" if any("typed_value" in name for name in names) else "no typed column")


def _has_vector(place: Path, _: Any) -> str:
    files = vl.Table.open(place).files().to_pylist()
    vectors = [each for each in files if each["deletion_vector"]]
    return _ids(0, 2, 100, 101, 102)(place, _) or ("" if vectors else "a file was written anew")


def _is_one_file(place: Path, _: Any) -> str:
    count = vl.Table.open(place).files().num_rows
    return _ids(0, 1, 2, 100, 101, 102)(place, _) or ("" if count == 1 else f"{count} files")


def _old_file_is_gone(place: Path, _: Any) -> str:
    return "the file is there" if (place / "part-old.parquet").exists() else ""


def _has_checkpoint(place: Path, _: Any) -> str:
    return "" if list((place / "_delta_log").glob("*.checkpoint*.parquet")) else "none is there"


def _is_ordered(place: Path, _: Any) -> str:
    rows: list[Any] = vl.Table.open(place).scan("event:n::bigint AS n").to_arrow()["n"].to_pylist()
    return "" if rows == sorted(rows) and len(rows) == 400 else "the rows are in no order"


FEATURES = (
    Feature("variants", "make a table with VARIANT of JSON text", _nothing, _loaded),
    Feature("shredding", "shred the paths of VARIANT by itself", _nothing, _shredded),
    Feature("path", "query a path of a shredded VARIANT", _variants, _answers(306)),
    Feature(
        "path-column", "read of a VARIANT the path's column alone", _with_one_column, _answers(306)
    ),
    Feature(
        "path-skip",
        "skip files by a path of a VARIANT",
        _without_second_file(_variants),
        _answers(3),
    ),
    Feature("skip", "skip files by a column", _without_second_file(_plain), _answers(3)),
    Feature("version", "query an older version", _plain, _answers(3)),
    Feature("delete", "DELETE", _plain, _ids(0, 2, 100, 101, 102)),
    Feature("update", "UPDATE", _plain, _updated),
    Feature("merge", "MERGE: update and insert", _plain, _ids(0, 1, 2, 7, 100, 101, 102)),
    Feature("path-delete", "DELETE by a path of a VARIANT", _variants, _ids(0, 2, 100, 101, 102)),
    Feature(
        "vector",
        "DELETE by deletion vector",
        lambda place: _plain(place, **{"delta.enableDeletionVectors": "true"}),
        _has_vector,
    ),
    Feature(
        "changes",
        "read the change data feed",
        lambda place: _plain(place, **{"delta.enableChangeDataFeed": "true"}).delete("id = 1"),
        _answers(1),
    ),
    Feature("restore", "restore an older version", _plain, _ids(0, 1, 2)),
    Feature("compact", "compact small files", _plain, _is_one_file),
    Feature("path-cluster", "order files by a path of a VARIANT", _unclustered, _is_ordered),
    Feature("vacuum", "remove unneeded files", _with_old_file, _old_file_is_gone),
    Feature("checkpoint", "write a checkpoint when asked", _plain, _has_checkpoint),
    Feature("add-column", "add a column", _plain, _has_names("id", "name", "more")),
    Feature(
        "rename-column",
        "rename a column without a rewrite",
        lambda place: _plain(place, **{"delta.columnMapping.mode": "name"}),
        _has_names("id", "title"),
    ),
)
