"""Time planning on a table of many files: a log alone, with adds as our own ingest writes them.

    python benchmarks/planning.py --files 100000
    python benchmarks/planning.py --files 1000000 --checkpoint
    python benchmarks/planning.py --files 100000 --delta-spark     # Delta Spark on the same log

The data files do not exist: planning never looks at them.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path as FilePath
from typing import TypeVar

import pyarrow as pa

from variantlake.delta.actions import Action, AddFile, CommitInfo, serialise
from variantlake.delta.ddl import parse_table_ddl
from variantlake.delta.file_actions import new_add
from variantlake.delta.listing import commit_path
from variantlake.delta.new_table import new_table
from variantlake.parquet.facts import ColumnFacts, FileFacts, PathFacts, VariantFacts
from variantlake.paths import Path
from variantlake.planning.predicates import And, Compare, Literal, Predicate, Ref
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.schema import Leaf
from variantlake.types import Kind

SCHEMA = parse_table_ddl("event VARIANT, day DATE, n BIGINT")
LAYOUT = parse_ddl(
    "did STRING, time_us BIGINT, kind STRING, commit STRUCT<rev: STRING, operation: STRING, "
    "collection: STRING, rkey: STRING, cid: STRING, record: STRUCT<`$type`: STRING, "
    "createdAt: STRING, text: STRING, subject: STRUCT<cid: STRING, uri: STRING>, "
    "reply: STRUCT<parent: STRUCT<cid: STRING, uri: STRING>, root: STRUCT<cid: STRING, "
    "uri: STRING>>>>, identity: STRUCT<did: STRING, handle: STRING, seq: BIGINT, time: STRING>"
)
ROWS = 50_000
FIRST_TIME_US = 1_732_206_349_000_000
ADDS_A_COMMIT = 10_000
TEMPLATES = 500
"""Different adds; the files of a table take them in turns."""

T = TypeVar("T")


def templates() -> list[AddFile]:
    """Adds of files clustered by time."""
    return [
        new_add("x.parquet", _facts(number), schema=SCHEMA, properties={})
        for number in range(TEMPLATES)
    ]


def _facts(number: int) -> FileFacts:
    paths = []
    for at, node in LAYOUT.nodes():
        facts = PathFacts(at, node, typed=ROWS - number % 7, nulls=0, residuals=0)
        if isinstance(node, Leaf) and node.type.kind is Kind.INT64:
            low = FIRST_TIME_US + number * 500_000_000
            high = low + 499_999_999
            facts = replace(facts, minimum=low, maximum=high, minimum_exact=True)
        elif isinstance(node, Leaf):
            low_text = f"{at.steps[-1]}-{number:06d}-aaaaaaaaaaaaaaaaaaaaaaaa"
            facts = replace(facts, minimum=low_text, maximum=low_text + "zz")
        paths.append(facts)
    variant = VariantFacts(("event",), LAYOUT, 0, tuple(paths))
    columns = (ColumnFacts(("n",), pa.int64(), 0, number, number + 9),)
    return FileFacts(14_000_000 + number, ROWS, 1, (variant,), columns)


def adds(count: int) -> Iterator[AddFile]:
    """`count` adds of different files."""
    known = templates()
    for number in range(count):
        yield replace(
            known[number % TEMPLATES],
            path=f"part-{number:08d}-e3b0c442-98fc-4c14-9afb-f4c8996fb924.c000.zstd.parquet",
            partition_values={"day": f"2024-11-{1 + number % 30:02d}"},
        )


def write_table(root: FilePath, files: int) -> int:
    """Write the log; returns its bytes."""
    log = root / "_delta_log"
    log.mkdir(parents=True)
    protocol, metadata = new_table(SCHEMA, ["day"], {})
    remaining, version, size = adds(files), 0, 0
    actions: list[Action] = [protocol, metadata]
    while True:
        actions.insert(0, CommitInfo({"timestamp": version, "operation": "WRITE"}))
        actions += [add for _, add in zip(range(ADDS_A_COMMIT), remaining, strict=False)]
        if version and len(actions) == 1:
            return size
        text = serialise(actions)
        (root / commit_path(version)).write_bytes(text)
        size += len(text)
        actions, version = [], version + 1


def timed(what: str, work: Callable[[], T]) -> T:
    """Run and print the seconds."""
    start = time.perf_counter()
    result = work()
    print(f"  {what:<42} {time.perf_counter() - start:8.3f} s   peak {peak_mb():,.0f} MB")
    return result


def peak_mb() -> float:
    """Greatest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


TIME = Ref(("event",), Path.of("time_us"), "bigint")
KIND = Ref(("event",), Path.of("kind"), "string")
COLLECTION = Ref(("event",), Path.of("commit", "collection"), "string")


def time_range(first: int, files: int = 3) -> Predicate:
    """Events of about `files` of the templates."""
    low = FIRST_TIME_US + first * 500_000_000
    return And(
        (
            Compare(">=", TIME, Literal(low, "bigint")),
            Compare("<", TIME, Literal(low + files * 500_000_000, "bigint")),
        )
    )
