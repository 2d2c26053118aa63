"""What readers do, and those who copy: each look is held against the model."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

import variantlake as vl
from tests.simulation.model import NAMES, Work, commit_file
from tests.simulation.rows import Row, Rows, difference
from tests.simulation.scenario import Op
from tests.simulation.session import MIRROR, Session
from tests.simulation.world import Violation
from variantlake.delta.log.files.file_paths import decode_path
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import MalformedLog, MissingSource

SELECT = (
    "event:id::bigint AS id", "val", "event:v::bigint AS v", "event:k::string AS k", "part",
)  # fmt: skip
KINDS = 5
OLD = 4
"""So many versions back readers and restores go."""


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
        if row["k"] != f"k{key % KINDS}" or row["part"] not in (None, str(key % 2)):
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
    version = max(session.model.newest - op.a % (2 * OLD), 0)
    if op.b % 3 == 0 and (names := session.model.versions[-1].names):
        read_named(session, min(names))
        return
    lasting = session.model.is_readable(version)
    try:
        compare(session, session.table(version))
    except MissingSource:
        if lasting:
            raise


def read_named(session: Session, name: str) -> None:
    """The version that has a name, which others may move."""
    model = session.model
    first = model.newest
    try:
        table = vl.Table.open(session.location, name.removeprefix(NAMES))
    except MissingSource:
        if all(name in each.names for each in model.versions[first:]) and model.is_readable(
            model.versions[-1].names[name]
        ):
            raise
        return
    if table.version not in {each.names.get(name) for each in model.versions[first:]}:
        raise Violation(f"{name} is version {table.version}, which never had it")
    compare(session, table)


def read_past_hole(session: Session) -> None:
    """A commit is gone, by hand or by a rule of the bucket: readers say so, or do not need it."""
    model, bucket = session.model, session.bucket
    paths = {commit_file(number): number for number in range(1, model.newest)}
    there = [path for path in paths if path in bucket.blobs]
    if not there:
        return
    path = session.world.chance.choice(there)
    reads: list[Callable[[], Snapshot]] = [lambda: session.table().snapshot]
    with contextlib.suppress(MissingSource):  # cleaned up
        reads.append(session.table(paths[path] - 1).snapshot.refresh)
    blob = bucket.blobs[path]
    bucket.remove(path)
    for look in reads:
        try:
            found = look()
        except MalformedLog:
            if model.can_rebuild(model.newest, path):
                raise
            continue
        files = {decode_path(name) for name in found.files["path"].to_pylist()}
        if found.version != model.newest or files != model.log.files.now.keys():
            raise Violation(f"version {found.version} is read past the hole {path}")
    bucket.keep(path, blob)


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


def find(session: Session, op: Op, _work: Work) -> None:
    """Rows of the newest version by a condition, and what aggregates say of them."""
    table = session.table()
    text, fits = _search(session, op)
    expected = {
        key: row for key, row in session.model.rows.at(table.version).items() if fits(key, row)
    }
    names = ("event:id::bigint AS id", "val")
    found = {row["id"]: row["val"] for row in table.scan(names, text).to_arrow().to_pylist()}
    if found != {key: val for key, (val, _) in expected.items()}:
        raise Violation(f"a reader of version {table.version} finds {sorted(found)} by {text}")
    for where, rows in (("", session.model.rows.at(table.version)), (f" WHERE {text}", expected)):
        vals = [val for val, _ in rows.values() if val is not None]
        wanted = (len(rows), len(vals), min(vals, default=None), max(vals, default=None))
        query = f"SELECT count(*), count(val), min(val), max(val) FROM t{where}"
        (said,) = table.sql(query).to_arrow().to_pylist()
        if tuple(said.values()) != wanted:
            raise Violation(f"version {table.version} says {said} to {query}, expected {wanted}")


def _search(session: Session, op: Op) -> tuple[str, Callable[[int, Row], bool]]:
    """A condition, and the same of a row of the model."""
    val, key = op.a + op.b % 3 - 1, op.a * 100 + op.b % 40
    choices: list[tuple[str, Callable[[int, Row], bool]]] = [
        (f"val >= {val}", lambda _, row: row[0] is not None and row[0] >= val),
        (f"val < {val}", lambda _, row: row[0] is not None and row[0] < val),
        (f"val = {val}", lambda _, row: row[0] == val),
        (f"val <> {val}", lambda _, row: row[0] not in (None, val)),
        ("val IS NULL", lambda _, row: row[0] is None),
        (f"event:id::bigint <= {key}", lambda id_, _: id_ <= key),
        (f"event:v::bigint > {val}", lambda _, row: row[1] is not None and row[1] > val),
        (f"event:id::bigint > {key} AND val IS NOT NULL",
         lambda id_, row: id_ > key and row[0] is not None),
    ]  # fmt: skip
    if session.world.scenario.layout == "partitioned":
        choices.append((f"part = '{op.a % 2}'", lambda id_, _: id_ % 2 == op.a % 2))
    return choices[op.b // 3 % len(choices)]


def read_at(session: Session, op: Op, _work: Work) -> None:
    """A version by a time: its own, or the last millisecond before the next one's."""
    model, newest = session.model, session.model.newest
    version = max(newest - op.a % (2 * OLD), 0)
    lasting = model.is_readable(version)
    times = model.times()
    if version not in times:
        return
    time = times[version]
    if op.b % 2 and times.get(version + 1, 0) > time:
        time = times[version + 1] - 1
    try:
        moment = dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(milliseconds=time)
        table = vl.Table.open(session.location, timestamp=moment)
        listed = {each.version: each.timestamp for each in table.history()}
    except MissingSource:
        if lasting:
            raise
        return
    if model.times() != times:
        return  # the log was cleaned up, or is longer
    if table.version != version or listed.get(version, times[version]) != times[version]:
        raise Violation(
            f"at {time} version {table.version} is read, {version} is of {times[version]}"
        )
    compare(session, table)


def rehearse(session: Session, op: Op, _work: Work) -> None:
    """Something that is said to be only tried."""
    table = session.table()
    match op.a % 4:
        case 0:
            table.vacuum(dry_run=True)
        case 1:
            table.delete(f"val >= {op.a}", dry_run=True)
        case 2:
            table.optimize(dry_run=True)
        case _:
            table.restore(max(table.version - op.b % OLD, 0), dry_run=True)


def changes(session: Session, op: Op, _work: Work) -> None:
    """The changes of some versions: just what they differ by."""
    if not session.world.scenario.keeps_changes:
        read(session, op, _work)
        return
    table = session.table()
    first = max(table.version - op.a % OLD, 1)
    if first <= table.version:
        compare_changes(session, table, first)


def compare_changes(session: Session, table: vl.Table, first: int) -> None:
    """The changes from a version on, each version's held against the model."""
    model = session.model
    lasting = model.is_young(first - 1)
    try:
        rows = table.changes(
            first, table.version, select=[*SELECT, "_change_type", "_commit_version"]
        )
        found = rows.to_arrow().to_pylist()
    except MissingSource:
        if lasting:
            raise
        return
    for version in range(first, table.version + 1):
        rows_of_version = [row for row in found if row["_commit_version"] == version]
        before, after = model.rows.at(version - 1), model.rows.at(version)
        _check_changes(rows_of_version, before, after, version)
        if model.versions[version].operation in _BY_ROWS:
            _check_kinds(rows_of_version, before, after, version)
        if model.versions[version].operation != "restore":  # it puts whole files back
            _check_needed(rows_of_version, version)
    return


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


_BY_ROWS = {"delete", "erase", "update", "upsert", "merge"}
"""The first words of what says of each row whether it is another one or changed."""


def _check_kinds(found: list[dict[str, Any]], before: Rows, after: Rows, version: int) -> None:
    """Rows that change have both images; those that come or go are inserted or deleted."""
    for row in found:
        changes = row["id"] in before and row["id"] in after
        if changes != row["_change_type"].startswith("update_"):
            raise Violation(
                f"the changes of version {version} have a {row['_change_type']} of row {row['id']}"
            )


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
