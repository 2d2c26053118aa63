"""A file of texts that begin like the one before, which is written as DELTA_BYTE_ARRAY."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from variantlake.encoding.json import parse_json
from variantlake.parquet.variant.variant_arrays import variant_array
from variantlake.parquet.write.file_writer import WriteOptions
from variantlake.parquet.write.table_writer import write_table

ROWS = 6000


def texts() -> list[str | None]:
    """Ids behind one prefix, with nulls, empty texts, long ones, and such as begin others."""
    pick = random.Random(11)
    odd = (None, "", "bafyrei", "bafyreí😀", "x" * 3000, "bafyrei\0\0")
    return [
        pick.choice(odd) if pick.random() < 0.1 else f"bafyrei{pick.getrandbits(250):x}"
        for _ in range(ROWS)
    ]


def write_alike(file: Path) -> list[str | None]:
    """Write the columns `number`, `id`, and `event` with the path `id`; the ids."""
    ids = texts()
    documents = [parse_json(json.dumps({"id": text})) for text in ids]
    columns = {"number": range(ROWS), "id": ids, "event": variant_array(documents)}
    write_table(
        pa.table(columns),
        file,
        shredding="id STRING",
        options=WriteOptions(page_rows=1000),
    )
    group = pq.read_metadata(file).row_group(0)
    leaves = [group.column(index) for index in range(group.num_columns)]
    begin_alike = [leaf.path_in_schema for leaf in leaves if "DELTA_BYTE_ARRAY" in leaf.encodings]
    assert begin_alike == ["id", "event.typed_value.id.typed_value"]
    return ids
