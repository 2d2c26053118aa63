"""What actors do, with the package's own calls, and what each must leave of the rows."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import variantlake as vl
from tests.simulation.bucket import SOURCES, Bucket
from tests.simulation.log_files import TABLE
from tests.simulation.model import Model, Row, Rows, Work, difference
from tests.simulation.scenario import Op
from tests.simulation.world import Actor, Violation, World
from variantlake.delta.checkpoint.log_cleanup import clean_log
from variantlake.errors import MissingSource, VariantLakeError
from variantlake.ingest.commit_load import commit_load, find_committed_load
from variantlake.ingest.encode.rows import TableRows
from variantlake.jobs.write_rows import write_rows
from variantlake.storage.opening import open_store
from variantlake.writing.files import new_load_id
from variantlake.writing.options import LoadOptions
from variantlake.writing.stream_batch import StreamBatch
from variantlake.writing.table_write import TableWrite

SELECT = (
    "event:id::bigint AS id", "val", "event:v::bigint AS v", "event:k::string AS k", "part",
)  # fmt: skip
MIRROR = "mirror"
_SHARED_STREAM = "stream together"
_REPEAT = re.compile(r"load_id='([^']+)'")
_KINDS = 5
_OLD = 4
"""So many versions back readers and restores go."""


@dataclass(slots=True)
class Session:
    """One actor at work: its process, and what a handle that it keeps shows."""

    world: World
    bucket: Bucket
    model: Model
    actor: Actor
    kept: vl.Table | None = None
    batches: int = 0

    @property
    def location(self) -> str:
        """The table, as this process calls it."""
        return f"{self.actor.host}/{TABLE}"

    @property
    def mirror(self) -> str:
        """The mirror, as this process calls it."""
        return f"{self.actor.host}/{MIRROR}"

    def table(self, version: int | None = None) -> vl.Table:
        """The table, opened now."""
        return vl.Table.open(self.location, version)


@dataclass(frozen=True, slots=True)
class Operation:
    """`perform` does it; `expected` gives the rows that its commit leaves, None for the same ones.

    `repeats` says that the actor does it again after its process died or the store failed.
    `conflicts` says that it may give way to others, `may_lack` that what it wants may be gone,
    `is_single` that it makes one commit, after which it cannot fail.
    """

    perform: Callable[[Session, Op, Work], Any]
    expected: Callable[[Op, Rows, Work], Rows] | None = None
    repeats: bool = False
    conflicts: bool = True
    may_lack: bool = False
    is_single: bool = False


# Rows


def new_ids(op: Op) -> range:
    """The ids of the rows that this one adds; no other one has them."""
    return range(op.serial * 100, op.serial * 100 + 1 + op.b % 30)


def document(key: int, value: int) -> str:
    """The document of a row."""
    return json.dumps({"id": key, "k": f"k{key % _KINDS}", "v": value})


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
    last = first + op.b % 40
    match op.b % 3:
        case 0:
            text = f"event:id::bigint >= {first} AND event:id::bigint < {last}"
            return text, lambda key: first <= key < last
        case 1:
            kind = op.a % _KINDS
            text = f"event:k::string = 'k{kind}' AND event:id::bigint >= {last}"
            return text, lambda key: key % _KINDS == kind and key >= last
        case _:
            some = range(first, last, 3)
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
    load_id = f"load {op.serial}"
    return session.table().append(rows, json_columns=["event"], load_id=load_id)


def load_together(session: Session, op: Op, _work: Work) -> Any:
    """Rows under an id that others load as well: once they are there, nothing happens."""
    rows = arrow(_shared(op), op.a % 4)
    load_id = f"load together {op.a % 4}"
    return session.table().append(rows, json_columns=["event"], load_id=load_id)


def _shared(op: Op) -> range:
    first = 20_000_000 + op.a % 4 * 100
    return range(first, first + 9)


def _added_together(op: Op, rows: Rows, _work: Work) -> Rows:
    value = op.a % 4
    return {**rows, **dict.fromkeys(_shared(op), (value, value))}


def repeat(session: Session, op: Op, work: Work) -> Any:
    """Some rows, without an id; what is unknown of it is asked with the id that the error says."""
    rows = arrow(new_ids(op), op.serial)
    load_id = work.load_id or None
    try:
        done = session.table().append(rows, json_columns=["event"], load_id=load_id)
    except VariantLakeError as error:
        if match := _REPEAT.search(error.hint or ""):
            work.load_id = match[1]
        raise
    again = session.table().append(rows, json_columns=["event"], load_id=done.load_id)
    if not again.already_loaded or again.version != done.version:
        raise Violation(f"{work.name} is in version {done.version}, its repeat says {again}")
    return done


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
    rows = arrow(new_ids(op), op.serial)
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
    """Rows by their key."""
    rows = arrow(upserted(op), op.serial)
    return session.table().upsert(rows, "event:id::bigint", json_columns=["event"])


def add(session: Session, op: Op, _work: Work) -> Any:
    """Rows whose keys are not there: a load with a key, or a MERGE that only inserts."""
    table, rows = session.table(), arrow(upserted(op), op.serial)
    if op.b % 2:
        key = "event:id::bigint"
        return table.append(rows, json_columns=["event"], unique_by=key, on_duplicate="skip")
    on = "t.event:id::bigint = s.event:id::bigint"
    return table.merge(rows, on, "WHEN NOT MATCHED THEN INSERT *", json_columns=["event"])


def merge(session: Session, op: Op, _work: Work) -> Any:
    """Some rows of the source delete, others update."""
    keys = matched(op)
    values = [-1 if key % 2 else op.serial for key in keys]
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
    kept = {key: row for key, row in rows.items() if key not in keys or not key % 2}
    return {key: (op.serial, row[1]) if key in keys else row for key, row in kept.items()}


def land(session: Session, op: Op, _work: Work) -> None:
    """A file of documents appears in the folder of sources."""
    partitioned = session.world.scenario.layout == "partitioned"
    folder = f"part={op.a % 2}/" if partitioned else ""
    path = f"{SOURCES}/{folder}{op.a % 4}-{op.serial}.json"
    keys = _own_part(session.world, op)
    text = "".join(f"{document(key, op.serial)}\n" for key in keys)
    session.model.landed[path] = dict.fromkeys(keys, (None, op.serial))
    store = open_store(session.actor.host)
    store.put(path, text.encode())


def autoload(session: Session, _op: Op, work: Work) -> Any:
    """What is new in the folder of sources."""
    work.autoloads = True
    found = f"s3://sources/{SOURCES}"
    return session.table().autoload(found, name="sim", max_files=3, ascending="no")


# Upkeep


def restore(session: Session, op: Op, work: Work) -> Any:
    """One of the last versions."""
    table = session.table()
    work.chosen = max(table.version - op.a % _OLD, 0)
    return table.restore(work.chosen)


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


def tag(session: Session, op: Op, _work: Work) -> Any:
    """A name for one of the last versions that can be read."""
    table = session.table()
    return table.tag(f"name-{op.a % 4}", max(table.version - op.b % _OLD, 0), move=True)


def untag(session: Session, _op: Op, _work: Work) -> Any:
    """One of the names goes."""
    table = session.table()
    named = table.tags()
    return table.untag(named[0].name) if named else None


# Copies


def clone(session: Session, op: Op, _work: Work) -> None:
    """A table with the rows of the newest version, whose files are copied or named.

    A process brings its copy up to date again and again.
    """
    table, deep = session.table(), op.a % 3 > 0
    name = session.actor.name if deep else str(op.serial)
    target = f"{session.actor.host}/clones/{name}"
    table.clone(target, deep=deep)
    _check_copy(session, vl.Table.open(target), table.version)


def mirror(session: Session, _op: Op, _work: Work) -> None:
    """The mirror, which all actors refresh, follows the table."""
    table = session.table()
    floor = table.version
    done = vl.mirror(table, session.mirror, list(SELECT))
    if done.source_version < floor:
        raise Violation(f"a mirror follows version {done.source_version}, not {floor}")
    _check_copy(session, vl.Table.open(session.mirror, done.version), done.source_version)


def _check_copy(session: Session, copy: vl.Table, version: int) -> None:
    select = ["id", "val", "v", "k", "part"] if MIRROR in copy.uri else SELECT
    rows, expected = seen(copy, select), session.model.rows.at(version)
    if rows != expected:
        what = difference(expected, rows)
        raise Violation(f"a copy of version {version}: {what}")


# Readers


def seen(table: vl.Table, select: Sequence[str] = SELECT) -> dict[int, Row]:
    """What a scan shows. Raises Violation for rows that cannot be."""
    rows: dict[int, Row] = {}
    for row in table.scan(list(select)).to_arrow().to_pylist():
        key = row["id"]
        if key in rows:
            raise Violation(f"a reader of version {table.version} sees row {key} twice")
        if row["k"] != f"k{key % _KINDS}" or row["part"] not in (None, str(key % 2)):
            raise Violation(f"a reader of version {table.version} sees {row}")
        rows[key] = (row["val"], row["v"])
    return rows


def compare(session: Session, table: vl.Table, *, floor: int = 0) -> None:
    """What a reader sees with what the version holds, one not older than `floor`."""
    if table.version < floor:
        raise Violation(f"a reader sees version {table.version} when {floor} is there")
    rows = seen(table)
    expected = session.model.rows.at(table.version)
    if rows != expected:
        what = difference(expected, rows)
        raise Violation(f"a reader of version {table.version}: {what}")


def read(session: Session, _op: Op, _work: Work) -> None:
    """The newest version."""
    floor = session.model.newest
    compare(session, session.table(), floor=floor)


def read_old(session: Session, op: Op, _work: Work) -> None:
    """An older version, which may be gone if it is old enough."""
    version = max(session.model.newest - op.a % (2 * _OLD), 0)
    lasting = session.model.is_readable(version)
    try:
        compare(session, session.table(version))
    except MissingSource:
        if lasting:
            raise


def hold(session: Session, _op: Op, _work: Work) -> None:
    """The newest version, read hours after it was opened."""
    floor = session.model.newest
    table = session.table()
    table.scan(list(SELECT))
    session.world.hold(session.actor)
    compare(session, table, floor=floor)


def follow(session: Session, _op: Op, _work: Work) -> None:
    """The newest version, by a handle that is kept and refreshed."""
    floor = session.model.newest
    if session.kept is None or session.kept.uri != session.location:
        session.kept = session.table()
    else:
        session.kept = session.kept.refresh()
    compare(session, session.kept, floor=floor)


def changes(session: Session, op: Op, _work: Work) -> None:
    """The changes of some versions: just what they differ by."""
    if not session.world.scenario.keeps_changes:
        return read(session, op, _work)
    table = session.table()
    first = max(table.version - op.a % _OLD, 1)
    if first > table.version:
        return None
    model = session.model
    lasting = model.is_readable(first - 1)
    try:
        rows = table.changes(
            first, table.version, select=[*SELECT, "_change_type", "_commit_version"]
        )
        found = rows.to_arrow().to_pylist()
    except MissingSource:
        if lasting:
            raise
        return None
    for version in range(first, table.version + 1):
        rows_of_version = [row for row in found if row["_commit_version"] == version]
        _check_changes(rows_of_version, model.rows.at(version - 1), model.rows.at(version), version)
        if model.versions[version].operation != "restore":  # it puts whole files back
            _check_needed(rows_of_version, version)
    return None


def _check_changes(found: list[dict[str, Any]], before: Rows, after: Rows, version: int) -> None:
    rows: dict[int, Row] = dict(before)
    for kinds in (("delete", "update_preimage"), ("insert", "update_postimage")):
        for row in found:
            if row["_change_type"] not in kinds:
                continue
            key, value = row["id"], (row["val"], row["v"])
            if kinds[0] == "delete":
                if rows.pop(key, None) != value:
                    raise Violation(f"the changes of version {version} take row {key} away twice")
            elif key in rows:
                raise Violation(f"the changes of version {version} add row {key} twice")
            else:
                rows[key] = value
    if rows != after:
        what = difference(after, rows)
        raise Violation(f"the changes of version {version} do not lead there: {what}")


def _check_needed(found: list[dict[str, Any]], version: int) -> None:
    """No row is deleted and inserted as it was: rows that are only copied did not change."""
    gone, new = (
        {(row["id"], row["val"], row["v"]) for row in found if row["_change_type"] == kind}
        for kind in ("delete", "insert")
    )
    if both := sorted(gone & new):
        raise Violation(
            f"the changes of version {version} have row {both[0]}, which did not change"
        )


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
    "load together": Operation(load_together, _added_together, repeats=True, conflicts=False),
    "stream": Operation(stream, _added, repeats=True, conflicts=False),
    "stream together": Operation(
        stream_together, _streamed_together, repeats=True, may_lack=True, is_single=True
    ),
    "repeat": Operation(repeat, _added, repeats=True, conflicts=False),
    "add": Operation(add, _added_new, is_single=True),
    "stage": Operation(stage, conflicts=False, may_lack=True),
    "publish": Operation(publish, repeats=True, conflicts=False),
    "overwrite": Operation(overwrite, is_single=True),
    "set properties": Operation(set_properties),
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
    "read": Operation(read),
    "read old": Operation(read_old),
    "hold": Operation(hold),
    "follow": Operation(follow),
    "changes": Operation(changes),
}
