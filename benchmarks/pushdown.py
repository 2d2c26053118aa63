"""What Polars, DuckDB and DataFusion read of a table for a selective query, beside all of it.

`python -m benchmarks.pushdown --rows 400000`. Bytes are those that are read of data files, counted
at the files; CPU time is this process's, best of some rounds. `plain` is each engine's own scan of
a Parquet file that has the same paths as columns, as pyarrow writes it; `mirror` that of the files
of a typed mirror, which are compressed as the table's are. `--files` says how many these are.
"""

from __future__ import annotations

import argparse
import io
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import polars as pl
import pyarrow.parquet as pq

import variantlake as vl
from benchmarks.mirror import SELECT, rows
from benchmarks.report import table
from variantlake.storage.opening import open_file

Query = Callable[[], object]


@contextmanager
def counted_bytes() -> Iterator[list[int]]:
    """The lengths of all reads of data files by scans, as long as this is open."""
    found: list[int] = []

    class Counted(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            found.append(len(data))
            return data

    def opened(path: str) -> Any:
        return open_file(Counted(Path(path).read_bytes()))

    with mock.patch("variantlake.scan.files.file_rows.open_file", opened):
        yield found


def read_by(query: Query) -> int:
    """Bytes of data files that a query reads."""
    with counted_bytes() as found:
        query()
    return sum(found)


def engines(data: vl.Table, plain: Path | None) -> dict[str, Callable[[str], Query]]:
    """By engine what makes a query of a condition; over the Parquet files of a folder `plain`."""
    connection = duckdb.connect()
    frame = vl.scan_polars(data, SELECT) if plain is None else pl.scan_parquet(plain)
    if plain is None:
        vl.duckdb.attach(connection, "t", data, SELECT)
    else:
        connection.execute(f"CREATE VIEW t AS FROM '{plain}/*.parquet'")
    text = "SELECT id, kind, name, size FROM t WHERE {}"

    def by_polars(condition: str) -> Query:
        return lambda: frame.filter(pl.sql_expr(condition)).collect()

    found = {
        "Polars": by_polars,
        "DuckDB": lambda condition: lambda: connection.sql(text.format(condition)).to_arrow_table(),
    }
    try:
        import datafusion
    except ImportError:
        return found
    context = datafusion.SessionContext()
    if plain is None:
        vl.datafusion.attach(context, "t", data, SELECT)
    else:
        context.register_parquet("t", str(plain))
    found["DataFusion"] = lambda condition: (
        lambda: context.sql(text.format(condition)).to_arrow_table()
    )
    return found


def made(folder: Path, count: int, files: int = 20) -> tuple[vl.Table, Path, Path]:
    """A table of files in the order of `id`, the same paths in a Parquet file, and a mirror.

    Of these two the folders of their files.
    """
    data = vl.Table.create(folder / "t", "event VARIANT")
    data.append(rows(0, count), json_columns=["event"], max_rows_per_file=count // files)
    data = data.refresh()
    plain, mirrored = folder / "plain", folder / "mirrored"
    plain.mkdir()
    pq.write_table(data.scan(SELECT).to_arrow(), plain / "all.parquet")
    vl.mirror(data, mirrored, SELECT)
    shutil.rmtree(mirrored / "_delta_log")  # engines read the files alone
    return data, plain, mirrored


def cpu(query: Query, rounds: int) -> float:
    """Seconds of CPU of the cheapest call."""

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_SELF)
        query()
        after = resource.getrusage(resource.RUSAGE_SELF)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return min(once() for _ in range(rounds))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    conditions = {
        "one id": f"id = {options.rows // 2}",
        "a range": f"id BETWEEN 1000 AND {1000 + options.rows // 100}",
        "all": "id >= 0",
    }
    lines = []
    with tempfile.TemporaryDirectory() as scratch:
        data, *others = made(Path(scratch), options.rows, options.files)
        ours, theirs = engines(data, None), [engines(data, each) for each in others]
        for engine, query_of in ours.items():
            whole = read_by(query_of(conditions["all"]))
            for name, condition in conditions.items():
                query = query_of(condition)
                read = read_by(query)
                seconds = cpu(query, options.rounds)
                own = [cpu(each[engine](condition), options.rounds) for each in theirs]
                lines.append(
                    [
                        engine,
                        name,
                        f"{read / 1e6:.2f} MB",
                        f"{whole / read:.1f}×",
                        f"{seconds:.3f} s",
                        *(f"{each:.3f} s" for each in own),
                    ]
                )
    head = [
        "engine",
        "rows",
        "bytes read",
        "fewer than all",
        "CPU",
        "CPU, plain Parquet",
        "CPU, mirror",
    ]
    print(table(head, lines))


if __name__ == "__main__":
    main()
