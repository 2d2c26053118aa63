"""How many rows a table has, without reading any."""

from __future__ import annotations

from variantlake.delta.stats.stats_reader import StatsReader
from variantlake.parquet.stats.facts import UNKNOWN
from variantlake.table import Table


def count_rows(table: Table) -> int | None:
    """The rows that are not deleted, by the log; None where it does not tell for all files."""
    reader = StatsReader(table.schema)
    rows = 0
    for add in table.snapshot.add_files():
        records = reader.read(add.stats).num_records
        if records == UNKNOWN:
            return None
        vector = add.deletion_vector
        rows += records - (vector.cardinality if vector else 0)
    return rows
