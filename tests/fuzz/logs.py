"""Logs that chance changes: an answer that all ways of reading share, or an error of ours.

python -m tests.fuzz.logs --seconds 60
"""

from __future__ import annotations

import functools
import random
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import obstore
import orjson
from obstore.store import MemoryStore

from tests.delta.tables import bounds, facts, facts_in_log, first_commit, number
from tests.fuzz.runner import changed, flipped, run
from variantlake.delta.actions.actions import AddFile, parse_log, serialise
from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
from variantlake.delta.checkpoint.log_compaction import write_compaction
from variantlake.delta.log.commit_reader import read_by_columns
from variantlake.delta.log.files.logical_files import adds_of, files_of
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.log.version_checksum import write_checksum
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.stats.columns.log_facts import LogFacts
from variantlake.delta.transaction.new_actions import new_add
from variantlake.errors import VariantLakeError
from variantlake.parquet.stats.fact_columns import FactColumns, RecordColumns
from variantlake.shredding.schema import Leaf
from variantlake.storage.objects import ObjectStore

MEMORY_MULTIPLE = 2000
"""A table of columns has its fixed cost, and a checkpoint of few bytes may unfold."""

SCHEMA = parse_table_ddl("event VARIANT, n INT")


@functools.cache
def adds() -> list[AddFile]:
    """Files with statistics and tags of both kinds of layouts."""
    known = [
        facts("a BIGINT, s STRING", paths={"$['a']": bounds(1, 9), "$['s']": bounds("a", "é")}),
        facts(
            "d DECIMAL(20,2), s STRING, o STRUCT<x: DOUBLE>",
            paths={"$['o']['x']": bounds(0.5, 1.5, nulls=1, plain_floats=True)},
            columns=(number("n", 3, 4),),
        ),
    ]
    return [new_add(f"f{i}", each, schema=SCHEMA, properties={}) for i, each in enumerate(known)]


def commit_case(chance: random.Random) -> int:
    """A commit with changed bytes, by columns and action by action."""
    lines = [orjson.dumps(action) for action in first_commit(name="x")]
    good = b"\n".join(lines) + b"\n" + serialise(adds())
    text = changed(good, [good], chance)
    plain = _or_none(lambda: [*parse_log([text], "f")])
    columns = _or_none(lambda: read_by_columns([text], "f"))
    assert (plain is None) == (columns is None), text
    if plain is not None and columns is not None:
        table, others = columns
        assert [action for action in plain if not isinstance(action, AddFile)] == others, text
        found = map(_without_order, adds_of(table))
        wanted = (_without_order(action) for action in plain if isinstance(action, AddFile))
        assert sorted(found) == sorted(wanted), text
    return len(text)


def _without_order(add: AddFile) -> bytes:
    """A file as JSON; the order of names says nothing, where one stands twice in a map either."""
    return orjson.dumps(add.to_json() | {"dataChange": 0}, option=orjson.OPT_SORT_KEYS)


def facts_case(chance: random.Random) -> int:
    """Statistics and tags with changed bytes, by kernels and one by one."""
    made = []
    for add in adds():
        stats = (add.stats or "").encode()
        tags = {name: text or "" for name, text in (add.tags or {}).items()}
        if chance.random() < 0.7:
            stats = changed(stats, [stats], chance)
        else:
            name = chance.choice(list(tags))
            tags[name] = changed(tags[name].encode(), [stats], chance).decode("utf-8", "replace")
        made.append(replace(add, stats=stats.decode("utf-8", "replace"), tags=tags))
    plain = RecordColumns([facts_in_log(add, SCHEMA) for add in made])
    compare(LogFacts(files_of(made), SCHEMA), plain)
    return sum(len(add.stats or "") for add in made)


def compare(mine: FactColumns, plain: FactColumns) -> None:
    """Where both know a bound it is the same; the kernels look at less, and may know more."""
    assert mine.num_records.tolist() == plain.num_records.tolist()
    one, other = mine.variant(("event",)), plain.variant(("event",))
    if one is None or other is None:
        return
    for row, code in enumerate(other.layout.tolist()):
        if code < 0 or one.layout[row] < 0:
            continue
        for index, (_, node) in enumerate(other.schemas[code].nodes()):
            at = np.array([row]), np.array([index])
            assert one.counts(*at).typed.tolist() == other.counts(*at).typed.tolist()
            if isinstance(node, Leaf):
                own, twin = (each.bounds(*at, node.type) for each in (one, other))
                for side in ("minimum", "maximum"):
                    left, right = (getattr(each, side).raw(0) for each in (own, twin))
                    assert left is None or right is None or left == right or left != left


@functools.cache
def _log() -> dict[str, bytes]:
    """A log: four commits with their checksums, a checkpoint with its hint, and a compaction."""
    commits = [_commit(), *(_more(at) for at in range(3))]
    store = _store({commit_path(at): data for at, data in enumerate(commits)})
    write_checkpoint(store, 1)
    for version in range(len(commits)):
        write_checksum(store, version, Snapshot.read("memory://t", version, store=store).state())
    write_compaction(store, 2, 3)
    return {entry.path: store.read(entry.path) for entry in store.list_from("_delta_log")}


def _more(serial: int) -> bytes:
    return serialise([replace(add, path=f"{serial}-{add.path}") for add in adds()])


def _commit() -> bytes:
    lines = [orjson.dumps(action) for action in first_commit(name="x")]
    return b"\n".join(lines) + b"\n" + serialise(adds())


def _store(files: dict[str, bytes]) -> ObjectStore:
    memory = MemoryStore()
    for path, data in files.items():
        obstore.put(memory, path, data)
    return ObjectStore("memory://t", memory)


def table_case(chance: random.Random) -> int:
    """A whole table, of which one file of the log is damaged."""
    files = dict(_log())
    path = chance.choice(sorted(files))
    if path.endswith(".parquet") or chance.random() < 0.3:
        files[path] = flipped(files[path], chance)
    else:
        files[path] = changed(files[path], [*files.values()], chance)
    store = _store(files)
    found = _or_none(lambda: Snapshot.read("memory://t", store=store))
    if found is not None:
        _or_none(lambda: list(found.add_files()))
    return sum(map(len, files.values()))


def case(chance: random.Random) -> int:
    """One of the three."""
    return chance.choice([commit_case, facts_case, facts_case, table_case])(chance)


def _or_none(work: Any) -> Any:
    try:
        return work()
    except VariantLakeError:
        return None


if __name__ == "__main__":
    sys.exit(run(case, MEMORY_MULTIPLE))
