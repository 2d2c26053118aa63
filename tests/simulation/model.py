"""The plain model of a table: what each version must hold, by what was done to the one before.

It reads the log line by line and data files as a whole, knows no checkpoint and skips nothing. Each
commit is judged at the moment at which it appears, and each removal of a file before it happens.
"""

from __future__ import annotations

import io
import json
import re
import struct
import urllib.parse
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyroaring import BitMap64

import variantlake as vl
from tests.simulation.bucket import Bucket
from tests.simulation.scenario import HOUR, LOG_RETENTION_DAYS, RETENTION, SLACK
from tests.simulation.world import Violation, World
from variantlake.delta.stats import z85

TABLE = "table"
_COMMIT = re.compile(rf"{TABLE}/_delta_log/(\d{{20}})\.json")
_NAMES = "variantlake.version."
_LOG_FILE = re.compile(rf"{TABLE}/_delta_log/(\d{{20}})\.")

Row = tuple[int | None, int | None]
"""What can change of a row: its column `val`, and `$.v` of its document."""

Rows = Mapping[int, Row]
"""By `$.id`, which no two rows of the table share."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version: its files with their deletion vectors, its rows, and when it appeared.

    `blind` says that it only adds rows and looked at none. `changes` are the paths of its change
    files; `names` are versions that have names in it. `stamp` is its in-commit timestamp, 0 if it
    has none.
    """

    number: int
    moment: int
    files: Mapping[str, Mapping[str, Any]]
    rows: Rows
    blind: bool
    operation: str
    applications: Mapping[str, int]
    changes: frozenset[str] = frozenset()
    names: Mapping[str, int] = field(default_factory=dict)
    stamp: int = 0


@dataclass(slots=True)
class Work:
    """What an actor does at present. `expected` gives the rows that its commit must leave.

    It is called with the rows before and the work. `data_commits` are the versions in which it
    changed rows, `commits` all of its versions. `chosen` is the version that a restore goes back
    to, `staged` the load that is published.
    """

    name: str
    expected: Callable[[Rows, Work], Rows] | None = None
    autoloads: bool = False
    chosen: int = -1
    staged: str = ""
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
        self._rows: dict[tuple[str, str], Rows] = {}

    @property
    def newest(self) -> int:
        """The newest version; -1 if there is none."""
        return len(self.versions) - 1

    # What the bucket asks

    def before_put(self, path: str, data: bytes, old: bytes | None, work: Work | None) -> None:
        """A commit is judged when it appears; nothing else may replace one."""
        if (match := _COMMIT.fullmatch(path)) is None:
            return
        if old is not None:
            raise Violation(f"version {int(match[1])} is written over")
        if int(match[1]) != len(self.versions):
            raise Violation(f"version {int(match[1])} follows version {self.newest}")
        if work is None:
            raise Violation(f"nobody commits version {int(match[1])}")
        self._commit([json.loads(line) for line in data.splitlines()], work)

    def before_delete(self, path: str) -> None:
        """Whether a version within the retention needs the file."""
        if (match := _LOG_FILE.match(path)) is not None:
            self._check_log_without(path, int(match[1]))
        elif path.startswith(f"{TABLE}/_change_data/"):
            name = path.removeprefix(f"{TABLE}/")
            oldest = self.world.now - RETENTION + SLACK
            for version in self.versions:
                if version.moment > oldest and name in version.changes:
                    raise Violation(f"{name} is removed, version {version.number} needs it")
        elif path.startswith(f"{TABLE}/") and "/_" not in path:
            name = path.removeprefix(f"{TABLE}/")
            for version in self.readable():
                used = version.files.get(name)
                vectors = (_vector_path(entry) for entry in version.files.values())
                if used is not None or name in vectors:
                    raise Violation(f"{name} is removed, version {version.number} needs it")

    def readable(self) -> list[Version]:
        """The versions that readers within the retention may still read."""
        oldest = self.world.now - RETENTION + SLACK
        return [v for v in self.versions if self._until(v) > oldest or v.number in self._named()]

    def in_log(self) -> list[Version]:
        """The versions that the log must still know."""
        oldest = self.world.now - LOG_RETENTION_DAYS * 24 * HOUR + SLACK
        return [v for v in self.versions if self._until(v) > oldest or v.number in self._named()]

    def _named(self) -> set[int]:
        """Versions that have had names for a while: who cleans up may not know of newer ones."""
        recent = [v for v in self.versions if self._until(v) > self.world.now - SLACK]
        names = [set(version.names.values()) for version in recent]
        return set.intersection(*names) if names else set()

    def _until(self, version: Version) -> float:
        """Until when it was the newest."""
        last = version.number == self.newest
        return float("inf") if last else self.versions[version.number + 1].moment

    def _check_log_without(self, path: str, version: int) -> None:
        wanted = self.in_log()
        if not wanted or version > self.newest:
            return
        names = {name for name in self.bucket.blobs if name != path}
        for each in wanted:
            if not self._can_rebuild(each.number, names):
                raise Violation(f"{path} is removed, version {each.number} needs it")

    def _can_rebuild(self, version: int, names: set[str]) -> bool:
        log = f"{TABLE}/_delta_log"
        for start in range(version, -1, -1):
            point = f"{log}/{start:020d}.checkpoint."
            if any(name.startswith(point) and name.endswith(".parquet") for name in names):
                return True
            if f"{log}/{start:020d}.json" not in names:
                return False
        return True

    # Commits

    def _commit(self, actions: list[dict[str, Any]], work: Work) -> None:
        number = len(self.versions)
        before = self.versions[-1] if self.versions else None
        files = dict(before.files) if before else {}
        applications = dict(before.applications) if before else {}
        for action in actions:
            if transaction := action.get("txn"):
                self._check_once(applications, transaction, number)
        removes = [_decoded(action["remove"]) for action in actions if "remove" in action]
        adds = [_decoded(action["add"]) for action in actions if "add" in action]
        for remove in removes:
            key = _key(files.pop(remove["path"], None), remove["path"], number)
            if key != _vector_key(remove):
                raise Violation(f"version {number} removes {remove['path']} with another vector")
        for add in adds:
            path = add["path"]
            if f"{TABLE}/{path}" not in self.bucket.blobs:
                raise Violation(f"version {number} names {path}, which is not there")
            if (old := files.get(path)) is not None and _vector_key(old) != _vector_key(add):
                raise Violation(f"version {number} adds {path} once more")
            files[path] = add
        rows = self._rows_of(files.values(), number)
        info: dict[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
        blind = bool(info.get("isBlindAppend"))
        if before is not None:
            self._judge(work, before, rows, int(info.get("readVersion", before.number)), number)
        stamp = info.get("inCommitTimestamp", 0)
        if before is not None and 0 < stamp <= before.stamp:
            raise Violation(f"version {number} is not stamped later than the one before")
        _check_row_ids(adds, files, number)
        version = Version(
            number, self.world.now, files, rows, blind, work.name.split(" ")[0], applications,
            frozenset(action["cdc"]["path"] for action in actions if "cdc" in action),
            _names_after({} if before is None else before.names, actions), stamp,
        )  # fmt: skip
        self.versions.append(version)
        work.commits.append(number)
        self.world.say(f"version {number}: {work.name}, {len(rows)} rows in {len(files)} files")

    def _check_once(
        self, applications: dict[str, int], transaction: Mapping[str, Any], number: int
    ) -> None:
        name, value = transaction["appId"], transaction["version"]
        is_load = name.startswith("load ")
        if applications.get(name, -1) >= value or (is_load and name in applications):
            raise Violation(f"version {number} has {name} {value} once more")
        applications[name] = value

    def _judge(self, work: Work, before: Version, rows: Rows, read: int, number: int) -> None:
        if rows != before.rows:
            work.data_commits.append(number)
            if len(work.data_commits) > 1 and not work.autoloads:
                raise Violation(f"{work.name} changes rows in versions {work.data_commits}")
        expected = before.rows
        if work.autoloads:
            expected = self._autoloaded(before.rows, rows)
        elif work.expected is not None:
            weak = self.world.scenario.weak
            unseen = self._unseen(before.rows, read, number) if weak else {}
            seen = {key: row for key, row in before.rows.items() if key not in unseen}
            expected = {**unseen, **work.expected(seen, work)}
        if expected != rows:
            what = difference(expected, rows)
            raise Violation(f"version {number} ({work.name}, which read {read}): {what}")

    def _unseen(self, rows: Rows, read: int, number: int) -> dict[int, Row]:
        """Rows of appends that a change need not have seen, in a table that allows it."""
        new: set[int] = set()
        for version in self.versions[read + 1 : number]:
            if version.blind:
                new |= version.rows.keys() - self.versions[version.number - 1].rows.keys()
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

    def _rows_of(self, files: Iterable[Mapping[str, Any]], number: int) -> Rows:
        rows: dict[int, Row] = {}
        for file in files:
            for key, row in self._file_rows(file).items():
                if key in rows:
                    raise Violation(f"version {number} holds row {key} twice")
                rows[key] = row
        return rows

    def _file_rows(self, file: Mapping[str, Any]) -> Rows:
        key = (file["path"], _vector_key(file))
        if key not in self._rows:
            whole = (file["path"], "")
            data = self.bucket.blobs[f"{TABLE}/{file['path']}"].data
            if whole not in self._rows:
                self._rows[whole] = file_rows(data)
            gone = self._deleted(file.get("deletionVector"))
            kept = enumerate(self._rows[whole].items())
            self._rows[key] = dict(item for at, item in kept if at not in gone)
        return self._rows[key]

    def _deleted(self, vector: Mapping[str, Any] | None) -> set[int]:
        if vector is None:
            return set()
        size = vector["sizeInBytes"]
        if vector["storageType"] == "i":
            data = z85.decode(vector["pathOrInlineDv"])[:size]
        else:
            start = vector.get("offset", 1) + 4
            path = f"{TABLE}/{_vector_path({'deletionVector': vector})}"
            data = self.bucket.blobs[path].data[start : start + size]
        (magic,) = struct.unpack("<i", data[:4])
        if magic != 1681511377:
            raise Violation("a deletion vector of an unknown form")
        return set(BitMap64.deserialize(data[4:]))


def _names_after(before: Mapping[str, int], actions: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The versions that have names after a commit."""
    names = dict(before)
    for action in actions:
        domain = action.get("domainMetadata", {})
        if domain.get("domain", "").startswith(_NAMES):
            names.pop(domain["domain"], None)
            if not domain["removed"]:
                names[domain["domain"]] = json.loads(domain["configuration"])["version"]
    return names


def _check_row_ids(
    adds: Iterable[Mapping[str, Any]], files: Mapping[str, Mapping[str, Any]], number: int
) -> None:
    """Raise Violation if new files give ids to their rows that other files of the table gave."""
    spans = {path: span for path, file in files.items() if (span := _row_ids(file)) is not None}
    for add in adds:
        own = spans.get(add["path"])
        if own is None:
            continue
        for path, other in spans.items():
            if path != add["path"] and own.start < other.stop and other.start < own.stop:
                raise Violation(f"version {number} gives ids to rows that {path} gave")


def _row_ids(file: Mapping[str, Any]) -> range | None:
    first = file.get("baseRowId")
    if first is None:
        return None
    return range(first, first + json.loads(file["stats"])["numRecords"])


def file_rows(data: bytes) -> dict[int, Row]:
    """The rows of a data file, in their order."""
    table = vl.parquet.read_table(io.BytesIO(data))
    events: list[Any] = table["event"].to_pylist()
    values = table["val"].to_pylist() if "val" in table.column_names else [None] * len(events)
    rows: dict[int, Row] = {}
    for event, value in zip(events, values, strict=True):
        document: Any = vl.Variant(event["metadata"], event["value"]).to_python()
        rows[document["id"]] = (value, document["v"])
    if len(rows) != len(events):
        raise Violation("a file holds a row twice")
    return rows


def difference(expected: Rows, actual: Rows) -> str:
    """What is wrong of rows, in a line."""
    lost = sorted(expected.keys() - actual.keys())
    new = sorted(actual.keys() - expected.keys())
    other = sorted(k for k in expected.keys() & actual.keys() if expected[k] != actual[k])
    first = f", such as {other[0]}: {expected[other[0]]} is {actual[other[0]]}" if other else ""
    counts = f"{len(lost)} rows lost {lost[:5]}, {len(new)} new {new[:5]}"
    return f"{counts}, {len(other)} changed {other[:5]}{first}"


def _decoded(action: Mapping[str, Any]) -> dict[str, Any]:
    return {**action, "path": urllib.parse.unquote(action["path"])}


def _key(file: Mapping[str, Any] | None, path: str, number: int) -> str:
    if file is None:
        raise Violation(f"version {number} removes {path}, which is not in the table")
    return _vector_key(file)


def _vector_key(file: Mapping[str, Any]) -> str:
    vector = file.get("deletionVector")
    return f"{vector['pathOrInlineDv']}@{vector.get('offset')}" if vector else ""


def _vector_path(file: Mapping[str, Any]) -> str:
    vector = file.get("deletionVector")
    if not vector or vector["storageType"] != "u":
        return ""
    text = vector["pathOrInlineDv"]
    prefix, encoded = text[:-20], text[-20:]
    name = f"deletion_vector_{uuid.UUID(bytes=z85.decode(encoded))}.bin"
    return f"{prefix}/{name}" if prefix else name
