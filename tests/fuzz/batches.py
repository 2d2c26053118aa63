"""Thousands of changed inputs in one call, for what works on columns.

`python -m tests.fuzz.batches --seconds 60`; a case that fails prints its seed, and `--seed N` runs
it again. Each input gets an answer or an error of its own, whatever stands beside it; for some of
them the plain twin has to say the same.
"""

from __future__ import annotations

import functools
import random
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tests.delta.tables import facts_in_log
from tests.fuzz import logs, texts, values
from tests.fuzz.runner import INTERESTING, changed, run
from tests.fuzz.targets import BULK
from tests.kernels.batches import expected, same, trees
from tests.kernels.fuzz import Documents
from variantlake.delta.log.deletion_vectors import _rows
from variantlake.delta.log.files.logical_files import files_of
from variantlake.delta.stats.columns.log_facts import LogFacts
from variantlake.dml.files.deletion_vectors import serialised
from variantlake.encoding.json_text import to_json
from variantlake.errors import MalformedLog
from variantlake.kernels.json.bad_document import json_error, mistakes_of, reasons
from variantlake.kernels.json.json_reader import JsonReader
from variantlake.kernels.json.json_writer import write_json
from variantlake.kernels.tape.words import PADDING
from variantlake.kernels.variant.profiler import profile
from variantlake.kernels.variant.variant_reader import VariantReader
from variantlake.kernels.variant.variant_writer import write_variant
from variantlake.parquet.stats.fact_columns import RecordColumns
from variantlake.shredding.layout import VARIANT_TYPE

MEMORY_MULTIPLE = values.MEMORY_MULTIPLE + logs.MEMORY_MULTIPLE

_COMPARED = 6
"""Inputs of one call that the plain twin reads, too."""

Generator = np.random.Generator


def bulk(seeds: pa.Array[Any], rows: npt.NDArray[np.int64], chance: Generator) -> pa.Array[Any]:
    """Some of these values with bytes set or flipped, and bytes moved to a neighbour."""
    taken: Any = seeds.take(rows)
    _, offsets, data = taken.buffers()
    ends = np.frombuffer(offsets, np.int32)[: len(rows) + 1].copy()
    text = np.frombuffer(data, np.uint8)[: ends[-1]].copy()
    for change in range(3):
        count = chance.poisson(len(rows) * chance.choice([0.05, 0.3, 1.0]))
        at = chance.integers(0, len(text), count)
        if change == 0:
            text[at] = chance.integers(0, 256, count)
        elif change == 1:
            text[at] = chance.choice(np.array(INTERESTING, np.uint8), count)
        else:
            text[at] ^= np.uint8(1) << chance.integers(0, 8, count, np.uint8)
    moved = chance.random(len(ends) - 2) < 0.05
    ends[1:-1] += (moved * chance.integers(-4, 5, len(moved))).astype(np.int32)
    ends = np.clip(np.maximum.accumulate(ends), 0, len(text)).astype(np.int32)
    buffers = [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(text.tobytes())]
    return pa.Array.from_buffers(pa.binary(), len(rows), buffers)


@functools.cache
def variant_seeds() -> tuple[pa.Array[Any], pa.Array[Any]]:
    """Metadata and values of short Variants."""
    short = [each for each in values.SEEDS if len(each.value) + len(each.metadata) < 400]
    return (
        pa.array([each.metadata for each in short], pa.binary()),
        pa.array([each.value for each in short], pa.binary()),
    )


def variants_case(chance: random.Random) -> int:
    """Values with metadata, either of them changed or both."""
    rng = np.random.default_rng(chance.getrandbits(64))
    metadata, value = variant_seeds()
    rows = rng.integers(0, len(value), BULK["many-variants"])
    which = chance.randrange(3)
    made = [
        bulk(each, rows, rng) if which in (at, 2) else each.take(rows)
        for at, each in enumerate((metadata, value))
    ]
    array: Any = pa.StructArray.from_arrays(made, fields=list(VARIANT_TYPE))
    tape = VariantReader().read(array)
    profile(tape)
    values.SHREDDER.shred(tape).validate(full=True)
    written: Any = write_variant(tape)
    written.validate(full=True)
    for row in chance.sample(range(len(rows)), _COMPARED):
        values.compare(array, tape, written, row)
    return sum(each.nbytes for each in made)


@functools.cache
def document_seeds() -> pa.Array[Any]:
    """Short documents."""
    found = [each for each in Documents(5)(2000) if 0 < len(each) < 300]
    return pa.array(found, pa.binary())


def documents_case(chance: random.Random) -> int:
    """JSON documents, through all kernels that take them."""
    rng = np.random.default_rng(chance.getrandbits(64))
    seeds = document_seeds()
    column: Any = bulk(seeds, rng.integers(0, len(seeds), BULK["many-documents"]), rng)
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32).astype(np.int64)
    text = np.concatenate([np.frombuffer(data, np.uint8), np.zeros(PADDING, np.uint8)])
    tape = JsonReader().read(text, ends[:-1], ends[1:])
    profile(tape)
    values.SHREDDER.shred(tape).validate(full=True)
    written: Any = write_variant(tape)
    written.validate(full=True)
    json: Any = write_json(VariantReader().read(written))[0]
    bad = np.flatnonzero(tape.status)
    places = ends[:-1][bad], ends[1:][bad]
    reasons(text, *places, mistakes_of(text, *places, tape.position[bad]))
    for row in chance.sample(range(len(column)), _COMPARED):
        document: bytes = column[row].as_py()
        (found,) = trees(written.slice(row, 1))
        tree = expected(document)
        if not same(tree, found):
            raise AssertionError(f"row {row}: {document!r} is {found!r}, the twin says {tree!r}")
        if tree is None:
            if not str(json_error(document, int(tape.status[row]), int(tape.position[row]))):
                raise AssertionError("an error without a message")
        elif json[row].as_py() != to_json(**written[row].as_py()):
            raise AssertionError(f"row {row}: {document!r} is written as {json[row]}")
    return len(text)


def statistics_case(chance: random.Random) -> int:
    """Statistics and tags of files, by kernels; those of some files one by one."""
    rng = np.random.default_rng(chance.getrandbits(64))
    seeds = logs.adds()
    count = BULK["many-statistics"]
    stats = pa.array([(add.stats or "").encode() for add in seeds], pa.binary())
    rows = rng.integers(0, len(seeds), count)
    made_stats: list[Any] = bulk(stats, rows, rng).to_pylist()
    names = [sorted(add.tags or {}) for add in seeds]
    made = []
    for at, (row, text) in enumerate(zip(rows.tolist(), made_stats, strict=True)):
        add, tags = seeds[row], dict(seeds[row].tags or {})
        if at % 4 == 0:  # its tag is another's, cut
            name = names[row][at % len(names[row])]
            tags[name] = text.decode("utf-8", "replace")[: at % 97]
            text = (add.stats or "").encode()  # noqa: PLW2901
        made.append(replace(add, path=f"f{at}", stats=text.decode("utf-8", "replace"), tags=tags))
    found = LogFacts(files_of(made), logs.SCHEMA)
    found.variant(("event",))
    some = sorted(chance.sample(range(count), _COMPARED))
    kept = [made[at] for at in some]
    plain = RecordColumns([facts_in_log(add, logs.SCHEMA) for add in kept])
    logs.compare(LogFacts(files_of(kept), logs.SCHEMA), plain)
    if found.num_records[some].tolist() != plain.num_records.tolist():
        raise AssertionError(f"rows {some}: other counts than alone")
    return sum(len(add.stats or "") for add in made)


@functools.cache
def vector_seeds() -> list[bytes]:
    """Short deletion vectors of each form of container, and their like."""
    sets = [range(1), range(40), range(0, 400, 7), [1, 1 << 20, 1 << 33], [*range(9), 70_000]]
    found = [serialised(np.array(list(rows), np.int64)) for rows in sets]
    head = (1681511376).to_bytes(4, "big") + (1).to_bytes(4, "big")
    bitmaps = [vector[16:] for vector in found]
    older = [head + len(each).to_bytes(4, "big") + each for each in bitmaps]
    return [*found, *older, *(each for each in texts.vectors() if len(each) < 500)]


def vectors_case(chance: random.Random) -> int:
    """Deletion vectors, as a file or the log holds them."""
    seeds = vector_seeds()
    size = 0
    for _ in range(BULK["many-vectors"]):
        data = changed(chance.choice(seeds), seeds, chance)
        size += len(data)
        cardinality = chance.choice((1, 3, 10, 40, 58))
        try:
            rows = _rows(data, cardinality, 100_000)
        except MalformedLog:
            continue
        if len(rows) != cardinality or rows[-1] >= 100_000 or (np.diff(rows) <= 0).any():
            raise AssertionError(data.hex())
    return size


def case(chance: random.Random) -> int:
    """One of them. What they start from is made first, which takes seconds."""
    for seeds in (variant_seeds, document_seeds, vector_seeds, logs.adds):
        seeds()
    cases = (variants_case, documents_case, statistics_case, vectors_case)
    return chance.choice(cases)(chance)


if __name__ == "__main__":
    sys.exit(run(case, MEMORY_MULTIPLE))
