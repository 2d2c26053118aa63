"""Small workloads that a change must not make slower: without Spark, some tenths of a second each.

`benchmarks.check` times them. A case prepares what it needs in a folder once, and then works as
often as it is asked to; the same each time.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pyarrow as pa

import variantlake as vl
from benchmarks.documents import event_documents, wide_documents

Work = Callable[[], object]
"""One run of a case."""


def load_events(folder: Path) -> Work:
    """Nested events from NDJSON into a new table."""
    return _load(folder, event_documents(10_000))


def load_numbers(folder: Path) -> Work:
    """Rows of 64 fields from NDJSON into a new table."""
    return _load(folder, wide_documents(3_000))


def _load(folder: Path, documents: Iterable[bytes]) -> Work:
    source, target = folder / "documents.ndjson", folder / "loaded"
    source.write_bytes(b"\n".join(documents))

    def work() -> None:
        shutil.rmtree(target, ignore_errors=True)
        vl.Table.create(target, "event VARIANT").append(str(source))

    return work


def small_appends(folder: Path) -> Work:
    """Ten appends of twenty rows through one handle."""
    table = vl.Table.create(folder / "t", "event VARIANT, n BIGINT")
    numbers = itertools.count()

    def work() -> None:
        for _ in range(10):
            table.append(_rows(next(numbers) * 20, 20), json_columns=["event"])

    return work


def open_log(folder: Path) -> Work:
    """Opening a table of 200 commits without a checkpoint, and planning a scan of it."""
    properties = {"delta.checkpointInterval": "100000"}
    table = vl.Table.create(folder / "t", "event VARIANT, n BIGINT", properties=properties)
    for number in range(200):
        table.append(_rows(number, 1), json_columns=["event"])
    return lambda: vl.Table.open(folder / "t").scan(["n"], "event:a::bigint = 150").to_arrow()


def path_query(folder: Path) -> Work:
    """A grouped sum over paths of 100,000 rows."""
    table = _filled(folder)
    query = "SELECT event:s::string AS s, sum(event:a::bigint) AS a FROM t GROUP BY event:s::string"
    return lambda: table.sql(query).to_arrow()


def whole_variants(folder: Path) -> Work:
    """Reassemble 100,000 whole Variants from their columns."""
    table = _filled(folder)
    return lambda: table.scan(["event"]).to_arrow()


def delete_rows(folder: Path) -> Work:
    """Delete one row in fifty of a copy of the table, by deletion vectors."""
    properties = {"delta.enableDeletionVectors": "true"}
    _filled(folder, properties)

    def work() -> None:
        shutil.rmtree(folder / "copy", ignore_errors=True)
        shutil.copytree(folder / "t", folder / "copy")
        vl.Table.open(folder / "copy").delete("event:a::bigint % 50 = 7")

    return work


def upsert_rows(folder: Path) -> Work:
    """Upsert two thousand rows by a path as key into a copy of the table."""
    _filled(folder)
    rows = _rows(99_000, 2_000)

    def work() -> None:
        shutil.rmtree(folder / "copy", ignore_errors=True)
        shutil.copytree(folder / "t", folder / "copy")
        table = vl.Table.open(folder / "copy")
        table.upsert(rows, "event:a::bigint", json_columns=["event"])

    return work


def compact(folder: Path) -> Work:
    """Compact forty small files of a copy of the table into one."""
    table = vl.Table.create(folder / "t", "event VARIANT, n BIGINT")
    for number in range(40):
        table.append(_rows(number * 1_000, 1_000), json_columns=["event"])

    def work() -> None:
        shutil.rmtree(folder / "copy", ignore_errors=True)
        shutil.copytree(folder / "t", folder / "copy")
        vl.Table.open(folder / "copy").optimize()

    return work


def start_up(folder: Path) -> Work:
    """A new process that opens a table and reads one row."""
    vl.Table.create(folder / "t", "event VARIANT, n BIGINT").append(
        _rows(0, 10), json_columns=["event"]
    )
    code = f"import variantlake as vl; vl.Table.open({str(folder / 't')!r}).scan(['n']).to_arrow()"
    return lambda: subprocess.run([sys.executable, "-c", code], check=True)


def _filled(folder: Path, properties: Mapping[str, str] | None = None) -> vl.Table:
    table = vl.Table.create(folder / "t", "event VARIANT, n BIGINT", properties=properties)
    table.append(_rows(0, 100_000), json_columns=["event"])
    return table


def _rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    events = [f'{{"a":{n},"s":"x{n % 100}","t":{{"u":{n % 7},"w":{n}.5}}}}' for n in numbers]
    return pa.table({"event": events, "n": pa.array(numbers, pa.int64())})


CASES: Mapping[str, Callable[[Path], Work]] = {
    case.__name__.replace("_", " "): case
    for case in (
        load_events, load_numbers, small_appends, open_log, path_query, whole_variants,
        delete_rows, upsert_rows, compact, start_up,
    )
}  # fmt: skip
