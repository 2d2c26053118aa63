"""How fast the kernels are on one core: MB of JSON text a second, best of several runs.

    python -m benchmarks.kernels [EVENTS]

The data is synthetic: events of nested objects with strings (as the JSONBench set), and wide rows
with many decimals. A step stands beside what limits it: copying memory, and pyarrow's encoder.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.documents import event_documents, wide_documents
from benchmarks.report import best
from variantlake.kernels.json.json_reader import JsonReader
from variantlake.kernels.json.json_writer import write_json
from variantlake.kernels.json.lines import split_lines
from variantlake.kernels.shredded.shredder import Shredder
from variantlake.kernels.tape.tape import Tape
from variantlake.kernels.tape.words import PADDING
from variantlake.kernels.variant.profiler import profile
from variantlake.kernels.variant.variant_reader import VariantReader
from variantlake.kernels.variant.variant_writer import write_variant
from variantlake.parquet.write.file_writer import FileWriter
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.inference.infer import infer
from variantlake.shredding.layout import arrow_type
from variantlake.shredding.schema import ShreddingSchema

EVENTS = parse_ddl(
    "did STRING, time_us BIGINT, kind STRING, commit STRUCT<rev: STRING, operation: STRING,"
    " collection: STRING, rkey: STRING, cid: STRING, record: STRUCT<`$type`: STRING,"
    " createdAt: STRING, text: STRING, subject: STRUCT<cid: STRING, uri: STRING>,"
    " reply: STRUCT<parent: STRUCT<cid: STRING, uri: STRING>,"
    " root: STRUCT<cid: STRING, uri: STRING>>>>"
)
CHUNK = 2 << 20
"""Bytes of text in a batch: its tape stays in the processor's cache."""

RUNS = 7


class Text:
    """The documents of one data set, cut into batches."""

    def __init__(self, documents: Iterator[bytes]) -> None:
        self.data = b"\n".join(documents)
        text = np.frombuffer(self.data, np.uint8)
        lines = split_lines(text)
        padded = np.concatenate([text, np.zeros(PADDING, np.uint8)])
        cuts = np.searchsorted(lines.starts, np.arange(0, len(text), CHUNK)).tolist()
        self.batches = []
        for first, last in zip(cuts, [*cuts[1:], len(lines.starts)], strict=True):
            start, end = int(lines.starts[first]), int(lines.ends[last - 1])
            part = slice(first, last)
            self.batches.append(
                (
                    padded[start : end + PADDING],
                    lines.starts[part] - start,
                    lines.ends[part] - start,
                )
            )

    def tapes(self) -> Iterator[Tape]:
        """All batches, through one reader."""
        reader = JsonReader()
        for text, starts, ends in self.batches:
            tape = reader.read(text, starts, ends)
            yield tape
            del tape


def measure(name: str, text: Text, schema: ShreddingSchema) -> None:
    """Print one data set's table."""
    variants: list[pa.StructArray] = [write_variant(tape) for tape in text.tapes()]

    def shred() -> None:
        shredder = Shredder(schema)
        for tape in text.tapes():
            shredder.shred(tape)

    def shred_variants() -> None:
        shredder, reader = Shredder(schema), VariantReader()
        for array in variants:
            shredder.shred(reader.read(array))

    def write_texts() -> None:
        reader = VariantReader()
        for array in variants:
            write_json(reader.read(array))

    def each(step: Callable[[Tape], object]) -> Callable[[], None]:
        def work() -> None:
            for tape in text.tapes():
                step(tape)

        return work

    shredder = Shredder(schema)
    columns = pa.schema([pa.field("event", arrow_type(schema))])
    batches = [pa.record_batch([shredder.shred(tape)], schema=columns) for tape in text.tapes()]
    folder = Path(tempfile.mkdtemp(prefix="variantlake-bench-"))

    def write_file() -> None:
        with FileWriter(folder / "a.parquet", columns, variant_columns=[("event",)]) as writer:
            for batch in batches:
                writer.write(batch)

    def write_by_pyarrow() -> None:
        table = pa.Table.from_batches(batches)
        pq.write_table(table, folder / "b.parquet", compression="zstd", write_page_index=True)

    size = len(text.data)
    whole = np.frombuffer(text.data, np.uint8)
    steps: dict[str, Callable[[], object]] = {
        "memory copy": whole.copy,
        "text -> lines": lambda: split_lines(whole),
        "JSON -> tape": each(lambda _: None),
        "JSON -> tape -> Variant": each(write_variant),
        "JSON -> tape -> shredded": shred,
        "shredded -> Parquet file": write_file,
        "shredded -> Parquet file, pyarrow alone with its defaults": write_by_pyarrow,
        "JSON -> tape -> profile": each(profile),
        "Variant -> tape -> shredded": shred_variants,
        "Variant -> tape -> JSON": write_texts,
    }
    print(f"\n{name}: {size / 1e6:.0f} MB\n")
    print("| step | MB/s of JSON text |\n|---|---|")
    for step, work in steps.items():
        print(f"| {step} | {size / 1e6 / best(work, RUNS):,.0f} |", flush=True)
    shutil.rmtree(folder)


def main() -> None:
    """Measure all data sets; the argument is how many events."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 40_000
    measure("events", Text(event_documents(count)), EVENTS)
    wide = Text(wide_documents(count // 3))
    sample = next(wide.tapes())
    measure("wide rows with decimals", wide, infer(profile(sample)).schema)


if __name__ == "__main__":
    main()
