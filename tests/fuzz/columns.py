"""Files with shredded columns and changed bytes, through all that reads them.

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
import pyarrow.parquet as pq

from tests import corpora
from tests.fuzz.runner import INTERESTING, changed, flipped, run
from tests.kernels.fuzz import Documents
from variantlake.encoding.json import parse_json
from variantlake.errors import VariantLakeError
from variantlake.parquet.metadata.annotate import annotate
from variantlake.parquet.metadata.footer import Footer, read_footer
from variantlake.parquet.read.check import check_file
from variantlake.parquet.read.inspect import inspect_file
from variantlake.parquet.read.reader import read_table
from variantlake.parquet.read.single_paths import read_paths
from variantlake.parquet.variant.variant_arrays import variant_array
from variantlake.parquet.write.table_writer import write_table

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
    """Files to start from: few rows, compressed and not, without checksums, which find too much."""
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
                write_table(table, file, shredding=ddl)
                # Again by pyarrow: no checksums, and now and then more than a page in a chunk.
                again = pq.read_table(file)
                pq.write_table(again, file, compression=compression, data_page_size=200)
                annotate(file, [("v",)])
                found.append(file.read_bytes())
            write_table(table, file, shredding=ddl, layout="legacy")
            pq.write_table(pq.read_table(file), file, data_page_size=200)
            found.append(file.read_bytes())
    cases = corpora.SHREDDED_VARIANT
    found += [case.read_bytes() for case in sorted(cases.glob("*.parquet"))[::8]]
    return found


def changed_file(data: bytes, chance: random.Random) -> bytes:
    """Bits flipped anywhere, or bytes changed where most depends on them: headers and the footer.

    A file's end says how long its footer is: that stays true, so that the footer is read at all.
    """
    if chance.random() < 0.4:
        return flipped(data, chance)
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    if chance.random() < 0.4:
        footer = changed(data[start:-8], [data[start:-8]], chance)
        return data[:start] + footer + len(footer).to_bytes(4, "little") + data[-4:]
    result = bytearray(data)
    pages = [chunk.first_page for group in footer_of(data).row_groups for chunk in group.columns]
    for _ in range(chance.randint(1, 4)):
        near_page = pages and chance.random() < 0.5
        at = chance.choice(pages) + chance.randrange(30) if near_page else chance.randrange(start)
        result[min(at, len(result) - 1)] = chance.choice([chance.randrange(256), *INTERESTING])
    return bytes(result)


@cache
def footer_of(data: bytes) -> Footer:
    return read_footer(io.BytesIO(data))


def case(chance: random.Random) -> int:
    """One file; returns its bytes."""
    data = changed_file(chance.choice(seeds()), chance)
    with suppress(VariantLakeError):
        read_table(io.BytesIO(data)).validate(full=True)
    with suppress(VariantLakeError):
        paths = {"a": "v:a::variant", "d": "v:c.d::int", "p": "v:l[0].p"}
        read_paths(io.BytesIO(data), paths, on_mismatch="null")
    with suppress(VariantLakeError):
        inspect_file(io.BytesIO(data))
    with suppress(VariantLakeError):  # no Parquet file any more
        for finding in check_file(io.BytesIO(data)):
            if not finding.message:
                raise AssertionError("a finding without a message")
    return len(data)


if __name__ == "__main__":
    sys.exit(run(case, MEMORY_MULTIPLE))
