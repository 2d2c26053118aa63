"""What actors do, with the package's own calls, and what each must leave of the rows."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal

import pyarrow as pa

from tests.simulation.bucket import SOURCES
from tests.simulation.model import NAMES, Work
from tests.simulation.readers import (
    KINDS,
    OLD,
    changes,
    clone,
    find,
    follow,
    hold,
    mirror,
    read,
    read_at,
    read_old,
    rehearse,
)
from tests.simulation.replaced import checkpoint_in_parts, glance, remake
from tests.simulation.rows import Row, Rows
from tests.simulation.scenario import Op
from tests.simulation.session import Operation, Session
from tests.simulation.subscriptions import subscribe
from tests.simulation.world import Violation, World
from variantlake.delta.actions.actions import DomainMetadata
from variantlake.delta.checkpoint.log_cleanup import clean_log
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes
from variantlake.errors import VariantLakeError
from variantlake.ingest.commit_load import commit_load, find_committed_load
from variantlake.ingest.encode.rows import TableRows
from variantlake.jobs.write_rows import write_rows
from variantlake.storage.opening import open_store
from variantlake.writing.files import new_load_id
from variantlake.writing.options.load_options import LoadOptions
from variantlake.writing.stream_batch import StreamBatch
from variantlake.writing.table_write import TableWrite

_SHARED_STREAM = "stream together"
_COUNTER = "sim.counter"
_REPEAT = re.compile(r"load_id='([^']+)'")
_ASCENDING: tuple[Literal["auto", "yes", "no"], ...] = ("auto", "yes", "no")
_PATIENCE = 100
"""Turns of others that a restore waits for a vacuum."""
_LANDED = 3
"""Files that appear at once."""
_FIRST = 40
"""Of so many things that are done there are rows before."""


# Rows


def new_ids(op: Op) -> range:
    """The ids of the rows that this one adds; no other one has them."""
    return range(op.serial * 100, op.serial * 100 + 1 + op.b % 30)


def first_rows(world: World) -> list[int]:
    """The ids of rows that are there from the start, so that there is something to change."""
    serials = sorted(op.serial for script in world.scenario.actors for op in script)
    return [key for each in serials[:_FIRST] for key in range(each * 100 + 30, each * 100 + 36)]


def document(key: int, value: int) -> str:
    """The document of a row."""
    return json.dumps({"id": key, "k": f"k{key % KINDS}", "v": value})


def arrow(keys: Collection[int], value: int) -> pa.Table:
    """Rows of the table."""
    return pa.table(
        {
            "event": [document(key, value) for key in keys],
            "val": pa.array([value] * len(keys), pa.int64()),
            "part": [str(key % 2) for key in keys],
        }
    )


def rows_of(op: Op, keys: Collection[int]) -> dict[int, Row]:
    """Those rows, as the model has them."""
    return dict.fromkeys(keys, (op.serial, op.serial))


def condition(op: Op) -> tuple[str, Callable[[int], bool]]:
    """Rows of another one's, as text and as a function of their id."""
    first = op.a * 100
    # All that one operation adds, or some of it.
    last = first + (100 if op.b % 2 else 20 + op.b % 20)
    if op.b % 10 == 9:  # all: files go as a whole
        return "event:id::bigint > 0", lambda _: True
    match op.b % 3:
        case 0:
            text = f"event:id::bigint >= {first} AND event:id::bigint < {last}"
            return text, lambda key: first <= key < last
        case 1:
            kind = op.a % KINDS
            text = f"event:k::string = 'k{kind}' AND event:id::bigint >= {last}"
            return text, lambda key: key % KINDS == kind and key >= last
        case _:
            some = [*range(first, last, 3), *upserted(op)[::3]]
            text = f"event:id::bigint IN ({', '.join(map(str, [*some, -1]))})"
            return text, lambda key: key in some


def upserted(op: Op) -> range:
    """Ids of rows that nobody appends, so that an upsert may find them or not."""
    first = 10_000_000 + op.a % 4 * 10
    return range(first, first + 1 + op.b % 20)


def matched(op: Op) -> list[int]:
    """Ids of rows that others appended or upserted, or did not yet."""
    return [*range(op.a * 100, op.a * 100 + op.b % 12), *upserted(op)[::2]]


# Writers


def append(session: Session, op: Op, _work: Work) -> Any:
    """Some rows."""
    return session.table().append(arrow(new_ids(op), op.serial), json_columns=["event"])


def load(session: Session, op: Op, _work: Work) -> Any:
    """Some rows, under an id."""
    rows = arrow(new_ids(op), op.serial)
    return _load(session, rows, f"load {op.serial}")


def load_again(session: Session, op: Op, _work: Work) -> Any:
    """A load that is there, once more, as by a job that is started again days later."""
    log = session.model.log
    there = sorted(session.model.loads.keys() & log.brought.keys())
    if not there:
        return None
    load_id = there[op.b % len(there)]
    rows, brought = session.model.loads[load_id], log.brought[load_id]
    done = session.table().append(rows, json_columns=["event"], load_id=load_id)
    # Once the log no longer holds that version, one before it is said.
    if not done.already_loaded or done.version > brought:
        raise Violation(f"{load_id} is in version {brought}, its repeat says {done}")
    return done


def _load(session: Session, rows: pa.Table, load_id: str) -> Any:
    session.model.loads[load_id] = rows
    done = session.table().append(rows, json_columns=["event"], load_id=load_id)
    if done.version != (brought := session.model.log.brought[load_id]):
        raise Violation(f"{load_id} is said to be version {done.version}, it is {brought}")
    return done


def load_together(session: Session, op: Op, _work: Work) -> Any:
    """Rows under an id that others load as well: once they are there, nothing happens."""
    rows = arrow(_shared(op), op.a % 4)
    return _load(session, rows, f"load together {op.a % 4}")


def _shared(op: Op) -> range:
    first = 20_000_000 + op.a % 4 * 100
    return range(first, first + 9)


def _added_together(op: Op, rows: Rows, _work: Work) -> Rows:
    value = op.a % 4
    return {**rows, **dict.fromkeys(_shared(op), (value, value))}


def repeat(session: Session, op: Op, work: Work) -> Any:
    """Some rows, without an id; what is unknown of it is asked with the id that the error says."""
    if work.is_begun:
        return None  # the process died, and nobody knows the id
    rows = arrow(new_ids(op), op.serial)
    load_id = work.load_id or None
    work.is_begun = load_id is None
    try:
        done = session.table().append(rows, json_columns=["event"], load_id=load_id)
    except VariantLakeError as error:
        work.is_begun = False
        if match := _REPEAT.search(error.hint or ""):
            work.load_id = match[1]
        raise
    again = session.table().append(rows, json_columns=["event"], load_id=done.load_id)
    if not again.already_loaded or again.version != done.version:
        raise Violation(f"{work.name} is in version {done.version}, its repeat says {again}")
    return done


def _repeated(op: Op, rows: Rows, work: Work) -> Rows:
    return _added(op, rows, work)


def stream(session: Session, op: Op, _work: Work) -> Any:
    """The next batch of a stream, as the sink of streams commits it."""
    batch = StreamBatch(f"stream {session.actor.number}", op.serial)
    return _commit_batch(session, batch, arrow(new_ids(op), op.serial))


def stream_together(session: Session, _op: Op, work: Work) -> Any:
    """The next batch of a stream that several processes run: only one of them commits it."""
    if work.batch < 0:
        work.batch = session.model.log.applications.now.get(_SHARED_STREAM, -1) + 1
    rows = arrow(_batch_ids(work.batch), work.batch)
    return _commit_batch(session, StreamBatch(_SHARED_STREAM, work.batch), rows)


def _batch_ids(number: int) -> range:
    first = 30_000_000 + number * 10
    return range(first, first + 1 + number % 9)


def _streamed_together(_op: Op, rows: Rows, work: Work) -> Rows:
    return {**rows, **dict.fromkeys(_batch_ids(work.batch), (work.batch, work.batch))}


def _commit_batch(session: Session, batch: StreamBatch, rows: pa.Table) -> Any:
    target = TableWrite.of(session.table().snapshot)
    options = LoadOptions()
    if (done := find_committed_load(target, options, batch)) is not None:
        return done
    plan = target.file_plan(new_load_id(), options)
    try:
        with plan.bad_row_log(0) as bad_rows:
            encoded = TableRows(
                rows.schema, rows.to_reader(), plan, shreddings=target.shreddings(),
                json_columns=frozenset({"event"}), bad_rows=bad_rows, inference=options.inference,
                check_texts=True,
            )  # fmt: skip
            result = write_rows(encoded, plan)
    except BaseException:
        target.clean_up(plan.load_id)
        raise
    target = target.with_shreddings(encoded.shreddings)
    started = time.perf_counter()
    return commit_load(target, plan, [result], options, started, record=batch.record())


def stage(session: Session, op: Op, _work: Work) -> Any:
    """Some rows, which wait to be published."""
    load_id = f"load {op.serial}"
    session.model.staged[load_id] = rows_of(op, new_ids(op))
    rows = session.model.loads[load_id] = arrow(new_ids(op), op.serial)
    return session.table().stage(rows, json_columns=["event"], load_id=load_id)


def publish(session: Session, op: Op, work: Work) -> Any:
    """One of the staged loads, which others may publish at the same time."""
    if not work.staged:
        stages = session.table().stages()
        if not stages:
            return None
        # The first one, so that others want the same.
        work.staged = stages[op.b % 4 // 3 % len(stages)].id
    table = session.table()
    staged = next((each for each in table.stages() if each.id == work.staged), None)
    return None if staged is None else staged.publish()


def published(session: Session, rows: Rows, work: Work) -> Rows:
    """See `publish`."""
    return {**rows, **session.model.staged[work.staged]}


def overwrite(session: Session, op: Op, _work: Work) -> Any:
    """The rows of one partition, or all."""
    where = {"part": str(op.a % 2)} if session.world.scenario.layout == "partitioned" else None
    rows = arrow(_own_part(session.world, op), op.serial)
    return session.table().overwrite(rows, where=where, json_columns=["event"])


def _own_part(world: World, op: Op) -> list[int]:
    partitioned = world.scenario.layout == "partitioned"
    return [key for key in new_ids(op) if not partitioned or key % 2 == op.a % 2]


def set_properties(session: Session, op: Op, _work: Work) -> Any:
    """A property that matters to nobody."""
    return session.table().set_properties({"sim.serial": str(op.serial)})


def alter(session: Session, op: Op, _work: Work) -> Any:
    """The schema says something else, which matters to no row."""
    return session.table().alter(f"ALTER COLUMN val COMMENT '{op.serial}'")


def stamp(session: Session, _op: Op, _work: Work) -> Any:
    """From now on commits say themselves when they were made."""
    return session.table().set_properties({"delta.enableInCommitTimestamps": "true"})


def count(session: Session, op: Op, _work: Work) -> Any:
    """A domain says one more than it said: of two at once, one has to look again.

    It may be decided on a version that was the newest days ago.
    """
    table = session.table() if session.kept is None or op.b % 3 else session.kept
    snapshot = session.table().snapshot if table.uri != session.location else table.snapshot
    said = snapshot.domains.get(_COUNTER)
    number = 0 if said is None else json.loads(said.configuration)["count"]
    for _ in range(op.b % 20):
        session.world.pause(session.actor)
    domain = DomainMetadata(_COUNTER, json.dumps({"count": number + 1}))
    return commit(snapshot, Changes("COUNT", domains=(domain,), file_metrics=False))


def delete(session: Session, op: Op, _work: Work) -> Any:
    """Some rows."""
    return session.table().delete(condition(op)[0])


def erase(session: Session, op: Op, _work: Work) -> Any:
    """Some rows, and their places in files."""
    return session.table().erase(condition(op)[0])


def update(session: Session, op: Op, _work: Work) -> Any:
    """A column of some rows."""
    return session.table().update({"val": op.serial}, condition(op)[0])


def upsert(session: Session, op: Op, _work: Work) -> Any:
    """Rows by their key, or a load whose last row of each key counts."""
    rows, key = arrow(upserted(op), op.serial), "event:id::bigint"
    table = session.table()
    if op.b % 3 or "delta.enableRowTracking" in table.properties:
        return table.upsert(rows, key, json_columns=["event"])
    twice = pa.concat_tables([arrow(upserted(op)[::2], -1), rows])
    return table.append(twice, json_columns=["event"], unique_by=key, on_duplicate="replace")


def add(session: Session, op: Op, _work: Work) -> Any:
    """Rows whose keys are not there: a load with a key, or a MERGE that only inserts."""
    table, rows = session.table(), arrow(upserted(op), op.serial)
    if op.b % 2:
        key = "event:id::bigint"
        rows = pa.concat_tables([rows, arrow(upserted(op)[::2], -1)])
        return table.append(rows, json_columns=["event"], unique_by=key, on_duplicate="skip")
    on = "t.event:id::bigint = s.event:id::bigint"
    return table.merge(rows, on, "WHEN NOT MATCHED THEN INSERT *", json_columns=["event"])


def merge(session: Session, op: Op, _work: Work) -> Any:
    """Some rows of the source delete, others update."""
    keys = matched(op)
    values = [op.serial if key % 3 else -1 for key in keys]
    source = pa.table({"id": pa.array(keys, pa.int64()), "val": pa.array(values, pa.int64())})
    return session.table().merge(
        source,
        "t.event:id::bigint = s.id",
        "WHEN MATCHED AND s.val < 0 THEN DELETE",
        "WHEN MATCHED THEN UPDATE SET val = s.val",
    )


def merged(op: Op, rows: Rows, _work: Work) -> Rows:
    """See `merge`."""
    keys = set(matched(op))
    kept = {key: row for key, row in rows.items() if key not in keys or key % 3}
    return {key: (op.serial, row[1]) if key in keys else row for key, row in kept.items()}


def land(session: Session, op: Op, _work: Work) -> None:
    """Some files of documents appear in the folder of sources."""
    partitioned = session.world.scenario.layout == "partitioned"
    folder = f"part={op.a % 2}/" if partitioned else ""
    store = open_store(session.actor.host)
    keys = _own_part(session.world, op)
    for number in range(_LANDED):
        path = f"{SOURCES}/{folder}{(op.a + number) % 4}-{op.serial}.json"
        own = keys[number::_LANDED]
        text = "".join(f"{document(key, op.serial)}\n" for key in own)
        session.model.landed[path] = dict.fromkeys(own, (None, op.serial))
        store.put(path, text.encode())


def land_one(session: Session, name: str, key: int) -> str:
    """A file of one document, in which `key` is even; its path."""
    partitioned = session.world.scenario.layout == "partitioned"
    path = f"{SOURCES}/{'part=0/' if partitioned else ''}{name}"
    session.model.landed[path] = {key: (None, 0)}
    open_store(session.actor.host).put(path, f"{document(key, 0)}\n".encode())
    return path


def autoload(session: Session, op: Op, work: Work) -> Any:
    """What is new in the folder of sources."""
    work.autoloads = True
    found = f"s3://sources/{SOURCES}"
    return session.table().autoload(found, name="sim", max_files=3, ascending=_ASCENDING[op.a % 3])


# Upkeep


def restore(session: Session, op: Op, work: Work) -> Any:
    """One of the last versions, or an older one that has other files: what a vacuum may take."""
    if op.a % 2:
        _await_vacuum(session)
    table, files = session.table(), session.model.log.files
    work.chosen = max(table.version - op.b % OLD, 0)
    others = [
        version
        for version in range(max(table.version - 4 * OLD, 0), table.version)
        if files.at(version) != files.at(table.version)
    ]
    if op.a % 2 and others:
        work.chosen = others[op.b // OLD % len(others)]
    return table.restore(work.chosen)


def _await_vacuum(session: Session) -> None:
    """Wait a while for a vacuum of another process to say that it starts."""
    world, model = session.world, session.model
    for _ in range(_PATIENCE):
        others = (actor for actor in world.actors if actor is not session.actor)
        is_vacuumed = any(actor.work.startswith("vacuum") for actor in others)
        if is_vacuumed and model.versions[-1].operation == "vacuum":
            return
        world.pause(session.actor)


def cluster(session: Session, op: Op, work: Work) -> Any:
    """Rows in the order of their ids, if the table names it."""
    table = session.table()
    # The first rows decide whether the ids are a column.
    if session.world.scenario.layout != "clustered" or not table.snapshot.files.num_rows:
        return optimize(session, op, work)
    return table.cluster(budget=1 << 30)


def optimize(session: Session, op: Op, _work: Work) -> Any:
    """Small files are joined, rows that are gone left out."""
    return session.table().optimize(max_deleted_share=op.a % 2 / 2)


def reshred(session: Session, op: Op, _work: Work) -> Any:
    """Another layout of the documents."""
    ddl = ("id BIGINT, k STRING, v BIGINT", "id BIGINT", "id INT, v BIGINT")[op.a % 3]
    return session.table().reshred(ddl)


def clean(session: Session, _op: Op, _work: Work) -> Any:
    """The old part of the log goes."""
    table = session.table()
    named = {each.version for each in table.tags()}
    return clean_log(table.snapshot.store, dict(table.properties), named=named)


def vacuum(session: Session, op: Op, _work: Work) -> Any:
    """Files that no reader needs go."""
    return session.table().vacuum(lite=op.a % 4 == 0)


def tag(session: Session, op: Op, work: Work) -> Any:
    """A name for one of the last versions that can be read; it has it then."""
    table = session.table()
    name, version = f"name-{op.a % 2}", max(table.version - op.b % (2 * OLD), 0)
    work.names = {NAMES + name: version}
    began = table.version  # the handle goes on to newer ones
    done = table.tag(name, version, move=True)
    if all(each.names.get(NAMES + name) != version for each in session.model.versions[began:]):
        raise Violation(f"{name} is said to be version {version}, and never was")
    return done


def untag(session: Session, _op: Op, work: Work) -> Any:
    """One of the names goes."""
    table = session.table()
    named = table.tags()
    if not named:
        return None
    work.names = {NAMES + named[0].name: None}
    return table.untag(named[0].name)


def _added(op: Op, rows: Rows, _work: Work) -> Rows:
    return {**rows, **rows_of(op, new_ids(op))}


def _deleted(op: Op, rows: Rows, _work: Work) -> Rows:
    fits = condition(op)[1]
    return {key: row for key, row in rows.items() if not fits(key)}


def _updated(op: Op, rows: Rows, _work: Work) -> Rows:
    fits = condition(op)[1]
    return {key: (op.serial, row[1]) if fits(key) else row for key, row in rows.items()}


def _added_new(op: Op, rows: Rows, _work: Work) -> Rows:
    return {**rows_of(op, upserted(op)), **rows}


def _upserted(op: Op, rows: Rows, _work: Work) -> Rows:
    return {**rows, **rows_of(op, upserted(op))}


OPERATIONS: Mapping[str, Operation] = {
    "append": Operation(append, _added, conflicts=False, is_single=True),
    "load": Operation(load, _added, repeats=True, conflicts=False),
    "load again": Operation(load_again),
    "load together": Operation(load_together, _added_together, repeats=True, conflicts=False),
    "stream": Operation(stream, _added, repeats=True, conflicts=False),
    "stream together": Operation(
        stream_together, _streamed_together, repeats=True, may_lack=True, is_single=True
    ),
    "repeat": Operation(repeat, _repeated, repeats=True, conflicts=False),
    "add": Operation(add, _added_new, is_single=True),
    "stage": Operation(stage, conflicts=False, may_lack=True),
    "publish": Operation(publish, repeats=True, conflicts=False),
    "overwrite": Operation(overwrite, is_single=True),
    "count": Operation(count, repeats=True),
    "set properties": Operation(set_properties),
    "alter": Operation(alter),
    "stamp": Operation(stamp),
    "remake": Operation(remake),
    "glance": Operation(glance, writes=False),
    "checkpoint in parts": Operation(checkpoint_in_parts),
    "delete": Operation(delete, _deleted, repeats=True, is_single=True),
    "erase": Operation(erase, _deleted),
    "update": Operation(update, _updated, is_single=True),
    "upsert": Operation(upsert, _upserted, is_single=True),
    "merge": Operation(merge, merged, is_single=True),
    "land": Operation(land, repeats=True),
    "autoload": Operation(autoload, repeats=True),
    "optimize": Operation(optimize),
    "cluster": Operation(cluster),
    "reshred": Operation(reshred),
    "analyze": Operation(lambda s, _op, _w: s.table().analyze()),
    "checkpoint": Operation(lambda s, _op, _w: s.table().checkpoint()),
    "clean the log": Operation(clean),
    "vacuum": Operation(vacuum),
    "restore": Operation(restore),
    "tag": Operation(tag, may_lack=True),
    "untag": Operation(untag, may_lack=True),
    "clone": Operation(clone),
    "mirror": Operation(mirror, repeats=True),
    "read": Operation(read, writes=False),
    "read old": Operation(read_old, writes=False),
    "read at": Operation(read_at, writes=False),
    "find": Operation(find, writes=False),
    "rehearse": Operation(rehearse, may_lack=True, writes=False),
    "hold": Operation(hold, writes=False),
    "follow": Operation(follow, writes=False),
    "changes": Operation(changes, writes=False),
    "subscribe": Operation(subscribe, repeats=True, writes=False),
}
