"""Random changes of the metadata and value of Variants, through all that reads them.

`python -m tests.fuzz.values --seconds 60`; a case that fails prints its seed, and `--seed N` runs
it again. Whatever the bytes are, the outcome is a value or VariantLakeError, in bounded time and
memory; the compiled reader takes what the plain one takes and refuses what it refuses.
"""

from __future__ import annotations

import random
import sys
from contextlib import suppress
from typing import Any

import pyarrow as pa

from tests.fuzz.runner import changed, run
from tests.kernels.fuzz import SCHEMA, Documents
from variantlake.encoding import limits
from variantlake.encoding.json import parse_json
from variantlake.encoding.tree import decode, logical_key
from variantlake.encoding.value import validate
from variantlake.encoding.variant import Variant
from variantlake.errors import UnknownVariantType, VariantLakeError
from variantlake.kernels.shredded.shredder import Shredder
from variantlake.kernels.tape.tape import Tape
from variantlake.kernels.variant.profiler import profile
from variantlake.kernels.variant.variant_reader import GOOD, VariantReader, bad_variant
from variantlake.kernels.variant.variant_writer import write_variant
from variantlake.shredding.layout import VARIANT_TYPE

MEMORY_MULTIPLE = 2 * limits.MEMORY_MULTIPLE
"""Bytes of memory for each byte of input, for the plain and the compiled way together."""

ROWS = 8


def seeds() -> list[Variant]:
    """Values to start from: all that documents of the kernels' fuzzer make."""
    found = []
    for document in Documents(1)(300):
        with suppress(VariantLakeError):
            found.append(parse_json(document))
    return [variant for variant in found if len(variant.value) < 4096]


SEEDS = seeds()
METADATA = [variant.metadata for variant in SEEDS]
VALUES = [variant.value for variant in SEEDS]
SHREDDER = Shredder(SCHEMA)


def case(chance: random.Random) -> int:
    """A batch of changed values; returns its bytes."""
    rows = []
    for _ in range(ROWS):
        variant = chance.choice(SEEDS)
        metadata, value = variant.metadata, variant.value
        if chance.random() < 0.5:
            metadata = changed(metadata, METADATA, chance)
        if chance.random() < 0.7:
            value = changed(value, VALUES, chance)
        rows.append((metadata, value))
        _use_plain(metadata, value)
    _use_kernels(rows)
    return sum(len(metadata) + len(value) for metadata, value in rows)


def _use_plain(metadata: bytes, value: bytes) -> None:
    with suppress(VariantLakeError):
        validate(metadata, value)
    with suppress(VariantLakeError):
        variant = Variant(metadata, value)
        repr(variant)
        for call in (variant.to_json, variant.to_python, variant.__hash__):
            with suppress(VariantLakeError):
                call()
        for path in ("$.a", "$.c.d", "$['é'][0]", "$[1]"):
            with suppress(VariantLakeError):
                variant.get(path)


def _use_kernels(rows: list[tuple[bytes, bytes]]) -> None:
    members = [pa.array([row[i] for row in rows], pa.binary()) for i in range(2)]
    array = pa.StructArray.from_arrays(members, fields=list(VARIANT_TYPE))
    tape = VariantReader().read(array)
    profile(tape)
    SHREDDER.shred(tape).validate(full=True)
    written = write_variant(tape)
    for row in range(len(rows)):
        compare(array, tape, written, row)


def compare(array: pa.StructArray, tape: Tape, written: pa.StructArray, row: int) -> None:
    """Raise AssertionError unless the kernels make of a row what the plain reader makes of it."""
    given: Any = array[row].as_py()
    if tape.status[row] != GOOD:
        if not str(bad_variant(array, row)):
            raise AssertionError("an error without a message")
        return
    try:
        tree = decode(given["metadata"], given["value"])
    except UnknownVariantType:
        return  # kept as it is: it fails when that value is touched
    found: Any = written[row].as_py()
    if logical_key(decode(found["metadata"], found["value"])) != logical_key(tree):
        raise AssertionError(f"row {row}: {given['metadata'].hex()} {given['value'].hex()}")


if __name__ == "__main__":
    sys.exit(run(case, MEMORY_MULTIPLE))
