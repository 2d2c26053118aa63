"""Files with shredded columns and flipped bits, through all that reads them.

`python -m tests.fuzz.columns --seconds 60`; a case that fails prints its seed, and `--seed N` runs
it again. Whatever the file holds, the outcome is an answer, findings or VariantLakeError, in
bounded time and memory.
"""

from __future__ import annotations

import io
import random
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import pyarrow as pa

from tests.fuzz.runner import flipped, run
from tests.kernels.fuzz import Documents
from variantlake.encoding.json import parse_json
from variantlake.errors import VariantLakeError
from variantlake.parquet.check import check_file
from variantlake.parquet.inspect import inspect_file
from variantlake.parquet.read import read_table
from variantlake.parquet.single_paths import read_paths
from variantlake.parquet.table_writer import write_table
from variantlake.parquet.variant_arrays import variant_array
from variantlake.parquet.write import WriteOptions

MEMORY_MULTIPLE = 1024
"""Bytes of Python's memory for each byte of the file; its columns are compressed."""

SCHEMAS = [
    None,
    "a BIGINT, b STRING, c STRUCT<d: SMALLINT, e: STRUCT<f: STRING, g: DECIMAL(18,3)>>, x DOUBLE",
    "l ARRAY<STRUCT<p: STRING, q: ARRAY<INT>>>, k2 STRUCT<z: BOOLEAN>",
    "ARRAY<VARIANT>",
]


@cache
def seeds() -> list[bytes]:
    """Files to start from: few rows, compressed and not, since checksums of pages are off."""
    values = []
    for document in Documents(2)(60):
        with suppress(VariantLakeError):
            values.append(parse_json(document))
    values = [variant for variant in values if len(variant.value) < 500][:20]
    table = pa.table({"v": variant_array([*values, None])})
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for ddl in SCHEMAS:
            for compression in ("zstd", "none"):
                file = Path(folder) / "t.parquet"
                write_table(
                    table, file, shredding=ddl, options=WriteOptions(compression=compression)
                )
                found.append(file.read_bytes())
    return found


def case(chance: random.Random) -> int:
    """One file; returns its bytes."""
    data = flipped(chance.choice(seeds()), chance)
    with suppress(VariantLakeError):
        read_table(io.BytesIO(data)).validate(full=True)
    with suppress(VariantLakeError):
        paths = {"a": "v:a::variant", "d": "v:c.d::int", "p": "v:l[0].p"}
        read_paths(io.BytesIO(data), paths, on_mismatch="null")
    with suppress(VariantLakeError):
        inspect_file(io.BytesIO(data))
    for finding in check_file(io.BytesIO(data)):
        if not finding.message:
            raise AssertionError("a finding without a message")
    return len(data)


if __name__ == "__main__":
    sys.exit(run(case, MEMORY_MULTIPLE))
