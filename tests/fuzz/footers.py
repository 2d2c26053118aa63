"""Footers of Parquet files with changed bytes: facts, or MalformedFile.

Starts from the conformance files and from files of ours; see `tests.fuzz`.
"""

from __future__ import annotations

import functools
import io
import random
import sys
from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq

from tests import corpora
from tests.fuzz.runner import changed, run
from variantlake.errors import MalformedFile
from variantlake.parquet.metadata.annotate import annotate_footer
from variantlake.parquet.metadata.footer import parse_footer, read_tail
from variantlake.parquet.stats.facts import facts_of, row_group_facts
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.layout import arrow_type

MEMORY_MULTIPLE = 2000
"""A field of a byte is an object."""


def _seeds() -> Iterator[bytes]:
    for folder in (corpora.DATA, corpora.SHREDDED_VARIANT, corpora.DELTA_TABLES):
        for file in sorted(folder.glob("**/*.parquet")):
            yield read_tail(file).footer
    kind = arrow_type(parse_ddl("a BIGINT, b STRUCT<c: ARRAY<STRING>, d: DECIMAL(9,2)>, e DOUBLE"))
    schema = pa.schema([pa.field("v", kind), pa.field("i", pa.int32()), pa.field("s", pa.string())])
    row = {"v": {"metadata": b"\x01\x00\x00", "value": b"\x00"}, "i": 1, "s": "x"}
    sink = io.BytesIO()
    table = pa.Table.from_pylist([row, {}, row], schema=schema)
    pq.write_table(table, sink, row_group_size=2, store_schema=False, write_page_index=True)
    yield annotate_footer(read_tail(sink).footer, [("v",)])[0]


@functools.cache
def seeds() -> list[bytes]:
    """Footers to start from."""
    return list(_seeds())


def case(chance: random.Random) -> int:
    """One footer, through all that is done with footers; returns its bytes."""
    footer = changed(chance.choice(seeds()), seeds(), chance)
    with suppress(MalformedFile):
        annotate_footer(footer, [("v",), ("var",)])
    with suppress(MalformedFile):
        parsed = parse_footer(footer)
        facts_of(parsed, 0, [("v",), ("id",)])
        row_group_facts(parsed)
    return len(footer)


if __name__ == "__main__":
    sys.exit(run(case, MEMORY_MULTIPLE))
