"""The plain model of a table: what each version must hold, by what was done to the one before.

It reads the log line by line and data files as a whole, knows no checkpoint and skips nothing. Each
commit is judged at the moment at which it appears, and so is each file that speaks of the log
(`log_files`); each removal of a file is judged before it happens.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.simulation import log_files
from tests.simulation.bucket import Bucket
from tests.simulation.log_files import TABLE, LogModel, decoded, row_span, vector_key, vector_path
from tests.simulation.past import GONE, Gone, Past
from tests.simulation.rows import (
    Row,
    Rows,
    changed_rows,
    check_stats,
    difference,
    file_rows,
    row_ids,
)
from tests.simulation.scenario import HOUR, LOG_RETENTION_DAYS, RETENTION, SLACK
from tests.simulation.world import Violation, World

if TYPE_CHECKING:
    from tests.simulation.subscriptions import Checkpoint

_COMMIT = re.compile(rf"{TABLE}/_delta_log/(\d{{20}})\.json")
NAMES = "variantlake.version."
OTHER = "other"
"""The place of a table that is made again and again."""
_OTHER_COMMIT = re.compile(rf"{OTHER}/_delta_log/(\d{{20}})\.json")
_LOG_FILE = re.compile(rf"{TABLE}/_delta_log/(\d{{20}})\.")
_RUN = re.compile(r"_variantlake/[^\"]+?\.parquet")
_BLIND = {"create", "append", "load", "repeat", "stream", "publish", "autoload"}
"""The first words of what may add rows without looking at others."""
_STAGED = f"{TABLE}/_variantlake/staged/"


@dataclass(frozen=True, slots=True)
class Version:
    """A version, and when it appeared.

    `blind` says that it only adds rows and looked at none. `names` are versions that have names in
    it. `stamp` is its in-commit timestamp, 0 if it has none. `appends` says that it removes no row.
    """

    number: int
    moment: int
    blind: bool
    operation: str
    names: Mapping[str, int] = field(default_factory=dict)
    stamp: int = 0
    appends: bool = False


@dataclass(slots=True)
class Work:
    """What an actor does at present. `expected` gives the rows that its commit must leave.

    It is called with the rows before and the work. `data_commits` are the versions in which it
    changed rows, `commits` all of its versions. `chosen` is the version that a restore goes back
    to, `staged` the load that is published, `load_id` the id of its own that a load repeats itself
    with, `batch` the number of a batch of a stream, `names` the names that are given to versions,
    or taken. With `is_begun` a load without an id may be in the table though its process died
    before it heard so.
    """

    name: str
    expected: Callable[[Rows, Work], Rows] | None = None
    autoloads: bool = False
    chosen: int = -1
    staged: str = ""
    load_id: str = ""
    is_begun: bool = False
    batch: int = -1
    names: Mapping[str, int | None] = field(default_factory=dict)
    commits: list[int] = field(default_factory=list)
    data_commits: list[int] = field(default_factory=list)


class Model:
    """The versions of the table in the bucket."""

    def __init__(self, world: World, bucket: Bucket) -> None:
        self.world = world
        self.bucket = bucket
        self.versions: list[Version] = []
        self.landed: dict[str, Rows] = {}
        self.loaded: set[str] = set()
        self.staged: dict[str, Rows] = {}
        self.loads: dict[str, pa.Table] = {}
        self.checkpoints: list[Checkpoint] = []
        self.part_sets: dict[str, int] = {}
        self.remakes = 0
        self.others: dict[tuple[str, int], list[int]] = {}
        self._other: tuple[str, list[int]] = "", []
        self.log = LogModel(bucket)
        self.rows: Past[int, Row] = Past()
        self._moments: list[int] = []
        self._uses: dict[str, list[list[int]]] = {}
        self._users: dict[str, int] = {}
        self._change_files: dict[str, int] = {}
        self._stages: dict[str, frozenset[str]] = {}
        self._stage_ids: dict[str, str] = {}
        self._changed: dict[str, int] = {}
        self._ids: dict[int, int] = {}
        self._row_commits: dict[int, int] = {}
        self._rows: dict[str, dict[str, Rows]] = {}
        self._stored: dict[str, list[tuple[int, Row]]] = {}

    @property
    def newest(self) -> int:
        """The newest version; -1 if there is none."""
        return len(self.versions) - 1

    # What the bucket asks

    def before_put(self, path: str, data: bytes, old: bytes | None, work: Work | None) -> None:
        """A commit is judged when it appears, what speaks of it too; nothing may replace one."""
        if path.startswith(_STAGED):
            actions = [json.loads(line) for line in data.splitlines()]
            adds = (action.get("add") for action in actions)
            self._stages[path] = frozenset(decoded(add)["path"] for add in adds if add)
            self._stage_ids[path] = actions[0]["commitInfo"]["loadId"]
        if match := _OTHER_COMMIT.fullmatch(path):
            self._commit_other(int(match[1]), [json.loads(line) for line in data.splitlines()])
        if (match := _COMMIT.fullmatch(path)) is None:
            self.log.judge(path, data, self.newest, self.world.now)
            return
        if old is not None:
            raise Violation(f"version {int(match[1])} is written over")
        if int(match[1]) != len(self.versions):
            raise Violation(f"version {int(match[1])} follows version {self.newest}")
        if work is None:
            raise Violation(f"nobody commits version {int(match[1])}")
        self._commit([json.loads(line) for line in data.splitlines()], work)

    def _commit_other(self, version: int, actions: Sequence[Mapping[str, Any]]) -> None:
        """Note which rows a version of the other table has, and of which one it is."""
        table_id, ids = self._other if version else ("", [])
        for action in actions:
            if metadata := action.get("metaData"):
                table_id = metadata["id"]
            if add := action.get("add"):
                stats = json.loads(add["stats"])
                ids = sorted([*ids, stats["minValues"]["id"]])
        self._other = table_id, ids
        self.others[table_id, version] = ids

    def before_delete(self, path: str) -> None:
        """Whether a version within the retention needs the file."""
        name = path.removeprefix(f"{TABLE}/")
        if (match := _LOG_FILE.match(path)) is not None:
            self._check_log_without(path, int(match[1]))
            self.log.forget(path)
        elif path.startswith(f"{TABLE}/_delta_log/"):
            self.log.forget(path)
        elif name in self._change_files:
            number = self._change_files[name]
            if self.versions[number].moment > self.world.now - RETENTION + SLACK:
                raise Violation(f"{name} is removed, version {number} needs it")
        elif path.startswith(_STAGED):
            if self._stage_ids[path] not in self.log.applications.now:
                raise Violation(f"{path} is removed, and its load was not published")
            self._stages.pop(path, None)
        elif path.startswith(f"{TABLE}/"):
            if (needed := self._user(name)) is not None:
                raise Violation(f"{name} is removed, version {needed} needs it")
            if stages := [stage for stage, files in self._stages.items() if name in files]:
                raise Violation(f"{name} is removed, {stages[0]} needs it")
            self._rows.pop(name, None)
            self._stored.pop(name, None)

    def _user(self, name: str) -> int | None:
        """A version that needs a file and can still be read."""
        spans = self._uses.get(name, [])
        first = self._first_since(self.world.now - RETENTION + SLACK)
        for start, end in spans:
            if end < 0 or end > first:
                return max(start, first)
            for named in self._named():
                if start <= named < end:
                    return named
        return None

    def needless(self) -> list[str]:
        """Files of the table that a vacuum of now has to take: no version needs them for hours."""
        return [
            path
            for path, blob in self.bucket.blobs.items()
            if path.startswith(f"{TABLE}/")
            and not path.startswith((f"{TABLE}/_delta_log/", f"{TABLE}/_variantlake/"))
            and blob.modified < self.world.now - RETENTION - SLACK
            and self._user(name := path.removeprefix(f"{TABLE}/")) is None
            and not any(name in files for files in self._stages.values())
        ]

    def is_readable(self, number: int) -> bool:
        """Whether readers within the retention may still read a version."""
        return self.is_young(number) or number in self._named()

    def is_young(self, number: int) -> bool:
        """Whether readers may still read a version and all that came since."""
        return number >= self._first_since(self.world.now - RETENTION + SLACK)

    def in_log(self) -> list[int]:
        """The versions that the log must still know."""
        first = self._first_since(self.world.now - LOG_RETENTION_DAYS * 24 * HOUR + SLACK)
        return [*sorted(n for n in self._named() if n < first), *range(first, self.newest + 1)]

    def times(self) -> dict[int, int]:
        """When the versions were there that the log still knows, as time travel goes by it."""
        plain = [each.number for each in self.versions if not each.stamp]
        found: dict[int, int] = {}
        time = -1
        for each in self.versions:
            if (blob := self.bucket.blobs.get(commit_file(each.number))) is None:
                continue
            if plain and each.number <= plain[-1]:
                time = found[each.number] = max(blob.modified, time + 1)
            else:
                found[each.number] = each.stamp
        return found

    def _first_since(self, moment: float) -> int:
        """The first version that was the newest after a moment."""
        return max(bisect_right(self._moments, moment) - 1, 0)

    def _named(self) -> set[int]:
        """Versions that have had names for a while: who cleans up may not know of newer ones."""
        recent = self.versions[self._first_since(self.world.now - SLACK) :]
        names = {id(version.names): set(version.names.values()) for version in recent}
        found = set.intersection(*names.values()) if names else set()
        # One that got its name while a cleanup took its log is lost, and known to be.
        return {number for number in found if self.can_rebuild(number, "")}

    def _check_log_without(self, path: str, version: int) -> None:
        wanted = self.in_log()
        if not wanted or version > self.newest:
            return
        first = self._first_since(self.world.now - LOG_RETENTION_DAYS * 24 * HOUR + SLACK)
        # Of an older version's file those that come later need what the first of them needs.
        for each in wanted if version >= first else [n for n in wanted if n <= first]:
            if not self.can_rebuild(each, path):
                raise Violation(f"{path} is removed, version {each} needs it")

    def can_rebuild(self, version: int, without: str) -> bool:
        """Whether the log, less one of its files, says what a version holds."""
        for start in range(version, -1, -1):
            if any(without not in files for files in self.log.checkpoints.get(start, ())):
                return True
            commit = commit_file(start)
            if commit == without or commit not in self.bucket.blobs:
                return False
        return True

    # Commits

    def _commit(self, actions: list[dict[str, Any]], work: Work) -> None:
        number = len(self.versions)
        before = self.versions[-1] if self.versions else None
        for action in actions:
            if transaction := action.get("txn"):
                self._check_once(transaction, number)
        removes = [decoded(action["remove"]) for action in actions if "remove" in action]
        adds = [decoded(action["add"]) for action in actions if "add" in action]
        gone, changes = self._file_changes(removes, adds, number)
        new = self._row_changes(gone, adds, number)
        info: dict[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
        read = int(info.get("readVersion", number - 1))
        after = {**self.rows.now, **{k: v for k, v in new.items() if not isinstance(v, Gone)}}
        for key, row in new.items():
            if isinstance(row, Gone):
                del after[key]
        if before is not None:
            self._judge(work, self.rows.now, after, read, number)
            files = [decoded(action["cdc"])["path"] for action in actions if "cdc" in action]
            if files:
                self._judge_changes(files, after, number)
            elif self.world.scenario.keeps_changes and not work.name.startswith("restore"):
                self._check_copied(gone, adds, number)
        self._check_read(actions, read, number)
        self._check_moved(removes, gone, adds, number)
        if adds and info.get("isBlindAppend") and work.name.split(" ")[0] not in _BLIND:
            raise Violation(f"version {number} ({work.name}) says that it looked at no row")
        stamp = info.get("inCommitTimestamp", 0)
        if before is not None and 0 < stamp <= before.stamp:
            raise Violation(f"version {number} is not stamped later than the one before")
        self._check_row_ids(adds, gone, info, number)
        self.rows.advance(new)
        self.log.advance(actions, changes)
        self._use(number, gone, adds, actions)
        names = _names_after({} if before is None else before.names, actions)
        self._check_names({} if before is None else before.names, names, work, number)
        self.versions.append(
            Version(
                number, self.world.now, bool(info.get("isBlindAppend")),
                work.name.split(" ")[0], names, stamp,
                not any(remove["dataChange"] for remove in removes),
            )
        )  # fmt: skip
        self._moments.append(self.world.now)
        work.commits.append(number)
        count = len(self.log.files.now)
        self.world.say(f"version {number}: {work.name}, {len(after)} rows in {count} files")

    def _check_read(self, actions: Sequence[dict[str, Any]], read: int, number: int) -> None:
        """Raise Violation if a commit changes what was changed since the version that it read."""
        for name in _said_of(actions):
            if self._changed.get(name, -1) > read:
                changed = self._changed[name]
                raise Violation(
                    f"version {number} read {read}, and {name} was changed in {changed}"
                )
        for name in ("metaData", "protocol"):
            if self._changed.get(name, -1) > read:
                raise Violation(f"version {number} read {read}, and {name} is another since")
        self._changed |= dict.fromkeys(_said_of(actions), number)

    def _check_names(
        self, before: Mapping[str, int], after: Mapping[str, int], work: Work, number: int
    ) -> None:
        """Raise Violation if versions have other names than the work gives them."""
        wanted: dict[str, int | None] = {**before, **work.names}
        if after != {name: version for name, version in wanted.items() if version is not None}:
            raise Violation(f"version {number} ({work.name}) leaves the names {dict(after)}")

    def _check_once(self, transaction: Mapping[str, Any], number: int) -> None:
        name, value = transaction["appId"], transaction["version"]
        known = self.log.applications.now
        if known.get(name, -1) >= value or (name.startswith("load ") and name in known):
            raise Violation(f"version {number} has {name} {value} once more")

    def _file_changes(
        self, removes: Sequence[dict[str, Any]], adds: Sequence[dict[str, Any]], number: int
    ) -> tuple[list[Mapping[str, Any]], dict[str, Mapping[str, Any] | Gone]]:
        """The entries that go, and what becomes of each path."""
        files = self.log.files.now
        gone: list[Mapping[str, Any]] = []
        changes: dict[str, Mapping[str, Any] | Gone] = {}
        for remove in removes:
            path = remove["path"]
            if path not in files or path in changes:
                raise Violation(f"version {number} removes {path}, which is not in the table")
            if vector_key(files[path]) != vector_key(remove):
                raise Violation(f"version {number} removes {path} with another vector")
            gone.append(files[path])
            changes[path] = GONE
        for add in adds:
            path = add["path"]
            if f"{TABLE}/{path}" not in self.bucket.blobs:
                raise Violation(f"version {number} names {path}, which is not there")
            old = files.get(path) if path not in changes else None
            if old is not None:
                if vector_key(old) != vector_key(add):
                    raise Violation(f"version {number} adds {path} once more")
                gone.append(old)
            changes[path] = add
        return gone, changes

    def _row_changes(
        self, gone: Iterable[Mapping[str, Any]], adds: Iterable[Mapping[str, Any]], number: int
    ) -> dict[int, Row | Gone]:
        rows = self.rows.now
        changes: dict[int, Row | Gone] = {}
        for entry in gone:
            changes |= dict.fromkeys(self._file_rows(entry), GONE)
        for add in adds:
            for key, row in self._file_rows(add).items():
                if not isinstance(changes.get(key, rows.get(key, GONE)), Gone):
                    raise Violation(f"version {number} holds row {key} twice")
                changes[key] = row
        same = [key for key, row in changes.items() if not isinstance(row, Gone) and key in rows]
        for key in same:
            if changes[key] == rows[key]:
                del changes[key]
        return changes

    def _use(
        self,
        number: int,
        gone: Iterable[Mapping[str, Any]],
        adds: Iterable[Mapping[str, Any]],
        actions: Iterable[Mapping[str, Any]],
    ) -> None:
        """Note from which version to which each file is needed."""
        less = [name for entry in gone for name in _names_of(entry)]
        more = [name for add in adds for name in _names_of(add)]
        for old, new in self.log.changed_domains:
            less += sorted(set(_RUN.findall(old)))
            more += sorted(set(_RUN.findall(new)))
        for name in more:
            self._users[name] = self._users.get(name, 0) + 1
            if self._users[name] == 1 and name not in less:
                self._uses.setdefault(name, []).append([number, -1])
        for name in less:
            self._users[name] -= 1
            if not self._users[name]:
                self._uses[name][-1][1] = number
        for action in actions:
            if cdc := action.get("cdc"):
                self._change_files[decoded(cdc)["path"]] = number

    def _judge(self, work: Work, before: Rows, rows: Rows, read: int, number: int) -> None:
        if rows != before:
            work.data_commits.append(number)
            if len(work.data_commits) > 1 and not work.autoloads:
                raise Violation(f"{work.name} changes rows in versions {work.data_commits}")
        expected = before
        if work.autoloads:
            expected = self._autoloaded(before, rows)
        elif work.expected is not None:
            weak = self.world.scenario.weak
            unseen = self._unseen(before, read, number) if weak else {}
            seen = {key: row for key, row in before.items() if key not in unseen}
            expected = {**unseen, **work.expected(seen, work)}
        if expected != rows:
            what = difference(expected, rows)
            raise Violation(f"version {number} ({work.name}, which read {read}): {what}")

    def _judge_changes(self, files: Iterable[str], after: Rows, number: int) -> None:
        """Raise Violation unless its change files say all that a commit changed, and no more."""
        rows = dict(self.rows.now)
        changed = [
            row for path in files for row in changed_rows(self.bucket.blobs[f"{TABLE}/{path}"].data)
        ]
        for kind, key, row in changed:
            if kind in ("delete", "update_preimage") and rows.pop(key, None) != row:
                raise Violation(f"the change files of version {number} take row {key} away: {row}")
        for kind, key, row in changed:
            if kind in ("insert", "update_postimage"):
                if key in rows:
                    raise Violation(f"the change files of version {number} add row {key} twice")
                rows[key] = row
        if rows != after:
            what = difference(after, rows)
            raise Violation(f"the change files of version {number} do not lead there: {what}")

    def _check_moved(
        self,
        removes: Sequence[Mapping[str, Any]],
        gone: Sequence[Mapping[str, Any]],
        adds: Sequence[Mapping[str, Any]],
        number: int,
    ) -> None:
        """Raise Violation unless what is said to be no change of data only moves rows."""
        said = {entry["path"]: entry["dataChange"] for entry in (*adds, *removes)}
        old, new = (
            {k: v for each in entries if not said[each["path"]] for k, v in self._rows_of(each)}
            for entries in (gone, adds)
        )
        if old != new:
            what = difference(old, new)
            raise Violation(f"version {number} changes data and does not say so: {what}")

    def _rows_of(self, file: Mapping[str, Any]) -> Iterable[tuple[int, Row]]:
        return self._file_rows(file).items()

    def _check_copied(
        self, gone: Sequence[Mapping[str, Any]], adds: Sequence[Mapping[str, Any]], number: int
    ) -> None:
        """Raise Violation if rows without a change file are only copied, which is no change."""
        paths = {entry["path"] for entry in gone}
        old: dict[int, Row] = {}
        for entry in gone:
            old |= self._file_rows(entry)
        for add in adds:
            if add["dataChange"] and add["path"] not in paths:
                for key, row in self._file_rows(add).items():
                    if old.get(key) == row:
                        raise Violation(
                            f"version {number} has row {key} anew, without change files"
                        )

    def _unseen(self, rows: Rows, read: int, number: int) -> dict[int, Row]:
        """Rows of appends that a change need not have seen, in a table that allows it."""
        new: set[int] = set()
        for version in self.versions[read + 1 : number]:
            if version.blind:
                new |= self.rows.new_in(version.number)
        return {key: row for key, row in rows.items() if key in new}

    def _autoloaded(self, before: Rows, rows: Rows) -> Rows:
        """The rows before, with those of all new files of which one is there."""
        expected = dict(before)
        for name, held in self.landed.items():
            if held and held.keys() & (rows.keys() - before.keys()):
                if name in self.loaded:
                    raise Violation(f"{name} is loaded once more")
                self.loaded.add(name)
                expected.update(held)
        return expected

    # Rows

    def _file_rows(self, file: Mapping[str, Any]) -> Rows:
        known = self._rows.setdefault(file["path"], {})
        key = vector_key(file)
        if key not in known:
            if file["path"] not in self._stored:
                data = self.bucket.blobs[f"{TABLE}/{file['path']}"].data
                self._stored[file["path"]] = file_rows(data)
            gone = log_files.deleted(self.bucket, file.get("deletionVector"))
            stored = self._stored[file["path"]]
            check_stats(file, stored)
            alive = [item for at, item in enumerate(stored) if at not in gone]
            known[key] = dict(alive)
            if len(known[key]) != len(alive):
                raise Violation("a file holds a row twice")
        return known[key]

    def _check_row_ids(
        self,
        adds: Sequence[Mapping[str, Any]],
        gone: Sequence[Mapping[str, Any]],
        info: Mapping[str, Any],
        number: int,
    ) -> None:
        """Raise Violation if rows get ids that others have, or others than they had."""
        lost = [key for entry in gone for key in self._file_rows(entry)]
        if not any(row_span(add) is not None for add in adds):
            for key in lost:
                self._ids.pop(key, None)
                self._row_commits.pop(key, None)
            return
        spans = {path: row_span(file) for path, file in self.log.files.now.items()}
        for entry in gone:
            spans.pop(entry["path"], None)
        for add in adds:
            own = row_span(add)
            for path, other in spans.items():
                overlap = own and other and own.start < other.stop and other.start < own.stop
                if overlap and path != add["path"]:
                    raise Violation(f"version {number} gives ids to rows that {path} gave")
            spans[add["path"]] = own
        found: dict[int, int] = {}
        commits: dict[int, int] = {}
        changed: set[int] = set()
        for add in adds:
            data = self.bucket.blobs[f"{TABLE}/{add['path']}"].data
            there = self._file_rows(add)
            gone_rows = log_files.deleted(self.bucket, add.get("deletionVector"))
            version = add["defaultRowCommitVersion"]
            ids, last = row_ids(data, add["baseRowId"], version, gone_rows)
            found |= {key: ids[key] for key in there}
            commits |= {key: last[key] for key in there}
            changed |= {key for key, row in there.items() if self.rows.now.get(key) != row}
        kept = info.get("tags", {}).get("delta.rowTracking.preserved") == "true"
        if kept:
            for key, row_id in found.items():
                if self._ids.get(key, row_id) != row_id:
                    raise Violation(
                        f"version {number} gives row {key} the id {row_id}, it had {self._ids[key]}"
                    )
            for key, commit in commits.items():
                expected = number if key in changed else self._row_commits.get(key, commit)
                if commit != expected:
                    raise Violation(
                        f"version {number} says that row {key} is of version {commit}, it is of "
                        f"{expected}"
                    )
        for key in lost:
            self._ids.pop(key, None)
            self._row_commits.pop(key, None)
        self._row_commits |= commits
        others = {row_id: key for key, row_id in self._ids.items()}
        for key, row_id in found.items():
            if others.get(row_id, key) != key:
                raise Violation(f"version {number} gives row {key} the id of {others[row_id]}")
        self._ids |= found


def commit_file(version: int) -> str:
    """Where a commit is in the bucket."""
    return f"{TABLE}/_delta_log/{version:020d}.json"


def _said_of(actions: Iterable[Mapping[str, Any]]) -> list[str]:
    """What a commit says that only one of two at the same time may say."""
    names = [name for action in actions for name in ("metaData", "protocol") if name in action]
    names += [f"txn {action['txn']['appId']}" for action in actions if "txn" in action]
    domains = [
        action["domainMetadata"]["domain"] for action in actions if "domainMetadata" in action
    ]
    return [*names, *(name for name in domains if name != "delta.rowTracking")]


def _names_of(entry: Mapping[str, Any]) -> list[str]:
    return [name for name in (entry["path"], vector_path(entry)) if name]


def _names_after(
    before: Mapping[str, int], actions: Iterable[Mapping[str, Any]]
) -> Mapping[str, int]:
    """The versions that have names after a commit."""
    changed = [
        action["domainMetadata"]
        for action in actions
        if action.get("domainMetadata", {}).get("domain", "").startswith(NAMES)
    ]
    if not changed:
        return before
    names = dict(before)
    for domain in changed:
        names.pop(domain["domain"], None)
        if not domain["removed"]:
            names[domain["domain"]] = json.loads(domain["configuration"])["version"]
    return names
