"""Change footers at random for a while: `python -m tests.fuzz.footers --seconds 60`.

Starts from the conformance files and from files of ours. Whatever the bytes, the answer must be a
footer (with facts) or MalformedFile, within a second; anything else is printed with the seed that
makes it again, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import io
import random
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq

from tests import corpora
from variantlake.errors import MalformedFile
from variantlake.parquet.metadata.annotate import annotate_footer
from variantlake.parquet.metadata.footer import parse_footer, read_tail
from variantlake.parquet.stats.facts import facts_of, row_group_facts
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.layout import arrow_type

MAX_SECONDS = 1.0
INTERESTING = (0x00, 0x01, 0x0F, 0x15, 0x1C, 0x48, 0x7F, 0x80, 0xF9, 0xFC, 0xFF)


def main() -> int:
    """Run until the time is up or a case fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=None, help="run this one case")
    arguments = parser.parse_args()
    footers = list(seeds())
    if arguments.seed is not None:
        return int(not survives(footers, arguments.seed))
    end = time.monotonic() + arguments.seconds
    first = random.randrange(2**40)
    cases = 0
    while time.monotonic() < end:
        if not survives(footers, first + cases):
            return 1
        cases += 1
    sys.stdout.write(f"{cases} changed footers of {len(footers)} files: all read or refused\n")
    return 0


def seeds() -> Iterator[bytes]:
    """Footers to start from."""
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


def survives(footers: list[bytes], seed: int) -> bool:
    """Whether the case of this seed is read or refused; prints what it did otherwise."""
    footer = changed(footers, random.Random(seed))
    start = time.monotonic()
    try:
        with suppress(MalformedFile):
            use(footer)
    except Exception:  # noqa: BLE001  # this is what we are looking for
        sys.stderr.write(f"seed {seed}\n{traceback.format_exc()}")
        return False
    seconds = time.monotonic() - start
    if seconds > MAX_SECONDS:
        sys.stderr.write(f"seed {seed} took {seconds:.1f} s for {len(footer)} bytes\n")
    return seconds <= MAX_SECONDS


def changed(footers: list[bytes], chance: random.Random) -> bytes:
    """One of the footers with some bytes set, cut out, repeated or taken from another."""
    footer = bytearray(chance.choice(footers))
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(footer) + 1)
        match chance.randrange(5):
            case 0:
                footer[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                footer[at : at + 1] = bytes([chance.choice(INTERESTING)])
            case 2:
                del footer[at : at + chance.randint(1, 20)]
            case 3:
                footer[at:at] = footer[at : at + chance.randint(1, 40)] * chance.randint(1, 50)
            case 4:
                other = chance.choice(footers)
                start = chance.randrange(len(other))
                footer[at:at] = other[start : start + chance.randint(1, 60)]
    return bytes(footer)


def use(footer: bytes) -> None:
    """All that is done with a footer."""
    with suppress(MalformedFile):
        annotate_footer(footer, [("v",), ("var",)])
    parsed = parse_footer(footer)
    facts_of(parsed, 0, [("v",), ("id",)])
    row_group_facts(parsed)


if __name__ == "__main__":
    sys.exit(main())
