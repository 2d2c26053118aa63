"""What the files must say that speak of the log: checkpoints, checksums, compactions, the hint.

Each is read with a plain reader and held against the commits, at the moment at which it appears.
"""

from __future__ import annotations

import io
import json
import re
import struct
import urllib.parse
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from pyroaring import BitMap64

from tests.simulation.past import GONE, Gone, Past
from tests.simulation.scenario import RETENTION, SLACK
from tests.simulation.world import Violation
from variantlake.delta.stats import z85

if TYPE_CHECKING:
    from tests.simulation.bucket import Bucket

TABLE = "table"
_LOG = f"{TABLE}/_delta_log"
_CHECKPOINT = re.compile(rf"{_LOG}/(\d{{20}})\.checkpoint\..*parquet")
_PART = re.compile(rf"({_LOG}/(\d{{20}})\.checkpoint)\.(\d{{10}})\.(\d{{10}})\.parquet")
_CHECKSUM = re.compile(rf"{_LOG}/(\d{{20}})\.crc")
_COMPACTION = re.compile(rf"{_LOG}/(\d{{20}})\.(\d{{20}})\.compacted\.json")
_DESCRIBED = ("id", "schemaString", "partitionColumns", "configuration")

Entry = Mapping[str, Any]
Key = tuple[str, str]
"""A path, decoded, and its deletion vector."""


class LogModel:
    """The state of the log at each version, by the commits alone."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self.files: Past[str, Entry] = Past()
        self.removes: Past[Key, int] = Past()
        self.applications: Past[str, int] = Past()
        self.domains: Past[str, str] = Past()
        self.described: Past[str, Entry] = Past()
        self.checkpoints: dict[int, set[frozenset[str]]] = {}
        self.infos: list[Entry] = []
        self.brought: dict[str, int] = {}
        self.changed_domains: list[tuple[str, str]] = []
        self._sidecars: dict[str, frozenset[str]] = {}
        self._ever: set[int] = set()

    def advance(self, actions: Sequence[Entry], files: Mapping[str, Entry | Gone]) -> None:
        """The next version. `files` are what becomes of each path."""
        self.changed_domains = []
        self.infos += [action["commitInfo"] for action in actions if "commitInfo" in action]
        removes: dict[Key, int | Gone] = {}
        applications: dict[str, int | Gone] = {}
        domains: dict[str, str | Gone] = {}
        described: dict[str, Entry | Gone] = {}
        for action in actions:
            if remove := action.get("remove"):
                removes[_key(remove)] = remove.get("deletionTimestamp", 0)
            if add := action.get("add"):
                removes[_key(add)] = GONE
            if transaction := action.get("txn"):
                applications[transaction["appId"]] = transaction["version"]
                self.brought[transaction["appId"]] = len(self.infos) - 1
            if domain := action.get("domainMetadata"):
                name, text = domain["domain"], domain["configuration"]
                new = "" if domain["removed"] else text
                self.changed_domains.append((self.domains.now.get(name, ""), new))
                domains[name] = GONE if domain["removed"] else text
            for kind in ("metaData", "protocol"):
                if kind in action:
                    described[kind] = action[kind]
        self.files.advance(files)
        self.removes.advance(removes)
        self.applications.advance(applications)
        self.domains.advance(domains)
        self.described.advance(described)

    # What speaks of it

    def judge(self, path: str, data: bytes, newest: int, now: int) -> None:
        """Raise Violation if a file that is about to be there says what is not so."""
        if match := _PART.fullmatch(path):
            parts = [f"{match[1]}.{at + 1:010d}.{match[4]}.parquet" for at in range(int(match[4]))]
            blobs = {each: blob.data for each in parts if (blob := self.bucket.blobs.get(each))}
            if len(found := {**blobs, path: data}) == len(parts):
                self._judge_checkpoint(int(match[2]), found, newest, now)
        elif match := _CHECKPOINT.fullmatch(path):
            self._judge_checkpoint(int(match[1]), {path: data}, newest, now)
        elif match := _CHECKSUM.fullmatch(path):
            self._judge_checksum(int(match[1]), json.loads(data), newest)
        elif match := _COMPACTION.fullmatch(path):
            self._judge_compaction(int(match[1]), int(match[2]), data)
        elif path == f"{_LOG}/_last_checkpoint":
            version = json.loads(data)["version"]
            if version not in self._ever:
                raise Violation(f"the hint names a checkpoint of version {version}")

    def forget(self, path: str) -> None:
        """A file of the log is about to be gone. Raises Violation if a checkpoint names it."""
        if match := _CHECKPOINT.fullmatch(path):
            there = self.checkpoints.get(int(match[1]), set())
            there -= {files for files in there if path in files}
            self._sidecars.pop(path, None)
        for checkpoint, names in self._sidecars.items():
            if path in names:
                raise Violation(f"{path} is removed, {checkpoint} names it")

    def _judge_checkpoint(
        self, version: int, files: Mapping[str, bytes], newest: int, now: int
    ) -> None:
        what = f"the checkpoint of version {version}"
        if version > newest:
            raise Violation(f"{what} is there before that version")
        actions = [action for data in files.values() for action in _rows_of(data)]
        sidecars = [
            f"{_LOG}/_sidecars/{urllib.parse.unquote(action['sidecar']['path'])}"
            for action in actions if action.get("sidecar")
        ]  # fmt: skip
        for sidecar in sidecars:
            if sidecar not in self.bucket.blobs:
                raise Violation(f"{what} names {sidecar}, which is not there")
            actions += _rows_of(self.bucket.blobs[sidecar].data)
        self._judge_files(what, version, actions)
        self._judge_rest(what, version, actions)
        needed = {
            key
            for key, removed in self.removes.at(version).items()
            if removed >= now - RETENTION + SLACK
        }
        removes = [_key(action["remove"]) for action in actions if action.get("remove")]
        self._equal(what, "removes", sorted(needed - set(removes)), [])
        self._equal(what, "no", sorted(set(removes) - self.removes.at(version).keys()), [])
        self._equal(what, "removes", len(set(removes)), len(removes))
        self.checkpoints.setdefault(version, set()).add(frozenset(files))
        self._sidecars |= dict.fromkeys(files, frozenset(sidecars))
        self._ever.add(version)

    def _judge_files(self, what: str, version: int, actions: Sequence[Entry]) -> None:
        adds = [action["add"] for action in actions if action.get("add")]
        found = {_key(add): add for add in adds}
        files = self.files.at(version)
        expected = {_key_of_decoded(entry): entry for entry in files.values()}
        self._equal(what, "files", sorted(found), sorted(expected))
        self._equal(what, "files", len(found), len(adds))
        for key, entry in expected.items():
            for name in ("size", "baseRowId", "defaultRowCommitVersion"):
                self._equal(f"{what}: {key[0]}", name, found[key].get(name), entry.get(name))
            values = dict(found[key].get("partitionValues") or {})
            self._equal(f"{what}: {key[0]}", "values", values, dict(entry["partitionValues"]))
            stats = found[key].get("stats")
            if stats and entry.get("stats"):
                counts = [json.loads(text)["numRecords"] for text in (stats, entry["stats"])]
                self._equal(f"{what}: {key[0]}", "numRecords", *counts)

    def _judge_rest(self, what: str, version: int, actions: Sequence[Entry]) -> None:
        applications = [action["txn"] for action in actions if action.get("txn")]
        found = {each["appId"]: each["version"] for each in applications}
        self._equal(what, "applications", found, self.applications.at(version))
        domains = [action["domainMetadata"] for action in actions if action.get("domainMetadata")]
        texts = {each["domain"]: each["configuration"] for each in domains if not each["removed"]}
        self._equal(what, "domains", texts, self.domains.at(version))
        for kind in ("metaData", "protocol"):
            given = [action[kind] for action in actions if action.get(kind)]
            self._equal(what, kind, len(given), 1)
            self._judge_described(what, kind, version, given[0])

    def _judge_described(self, what: str, kind: str, version: int, given: Entry) -> None:
        expected = self.described.at(version)[kind]
        for name in _DESCRIBED if kind == "metaData" else expected:
            one, other = given.get(name), expected.get(name)
            if isinstance(other, Mapping):
                one = dict(one or {})
            if kind == "protocol" and isinstance(other, list):
                one, other = sorted(one or ()), sorted(other)
            self._equal(what, f"{kind}.{name}", one, other)

    def _judge_checksum(self, version: int, document: Entry, newest: int) -> None:
        what = f"the checksum of version {version}"
        if version > newest:
            raise Violation(f"{what} is there before that version")
        files = self.files.at(version)
        self._equal(what, "numFiles", document["numFiles"], len(files))
        size = sum(entry["size"] for entry in files.values())
        self._equal(what, "tableSizeBytes", document["tableSizeBytes"], size)
        vectors = [vector for e in files.values() if (vector := e.get("deletionVector"))]
        deleted_rows = sum(vector["cardinality"] for vector in vectors)
        info = self.infos[version]
        for name, expected in (
            ("numDeletionVectorsOpt", len(vectors)),
            ("numDeletedRecordsOpt", deleted_rows),
            ("txnId", info.get("txnId")),
            ("inCommitTimestampOpt", info.get("inCommitTimestamp")),
        ):
            self._equal(what, name, document.get(name, expected), expected)
        found = {each["appId"]: each["version"] for each in document["setTransactions"]}
        # Who wrote it may have read a checkpoint that had forgotten old ones: none is, here.
        self._equal(what, "applications", found, self.applications.at(version))
        texts = {each["domain"]: each["configuration"] for each in document["domainMetadata"]}
        self._equal(what, "domains", texts, self.domains.at(version))
        self._judge_described(what, "metaData", version, document["metadata"])
        self._judge_described(what, "protocol", version, document["protocol"])

    def _judge_compaction(self, first: int, last: int, data: bytes) -> None:
        what = f"the compaction of versions {first} to {last}"
        commits = []
        for version in range(first, last + 1):
            blob = self.bucket.blobs.get(f"{_LOG}/{version:020d}.json")
            if blob is None:
                return
            commits += [json.loads(line) for line in blob.data.splitlines()]
        expected = _reconciled(commits)
        found = _reconciled([json.loads(line) for line in data.splitlines()])
        for kind in expected.keys() | found.keys():
            self._equal(what, kind, found.get(kind, {}), expected.get(kind, {}))

    @staticmethod
    def _equal(what: str, name: str, found: object, expected: object) -> None:
        if found != expected:
            raise Violation(f"{what} says {name} {found!r:.300}, expected {expected!r:.300}")


def _reconciled(actions: Iterable[Entry]) -> dict[str, dict[Any, Any]]:
    """What actions say together, by kind."""
    found: dict[str, dict[Any, Any]] = {}
    files: dict[Key, tuple[str, Any]] = {}
    for action in actions:
        for kind, fields in action.items():
            if kind in ("add", "remove"):
                detail = fields.get("size" if kind == "add" else "deletionTimestamp")
                files[_key(fields)] = (kind, detail)
            elif kind == "txn":
                found.setdefault(kind, {})[fields["appId"]] = fields["version"]
            elif kind == "domainMetadata":
                said = (fields["configuration"], fields["removed"])
                found.setdefault(kind, {})[fields["domain"]] = said
            elif kind in ("metaData", "protocol"):
                found[kind] = dict(fields)
    return {**found, "files": files}


def _rows_of(data: bytes) -> list[Any]:
    """The actions of a checkpoint's file; maps are lists of pairs."""
    columns = ("txn", "metaData", "protocol", "domainMetadata", "remove", "add", "sidecar")
    file = pq.ParquetFile(io.BytesIO(data))
    names = [name for name in columns if name in file.schema_arrow.names]
    return file.read(columns=names).to_pylist()


def _key(action: Entry) -> Key:
    return urllib.parse.unquote(action["path"]), vector_key(action)


def _key_of_decoded(entry: Entry) -> Key:
    return entry["path"], vector_key(entry)


def decoded(action: Entry) -> dict[str, Any]:
    """An action whose path is a name in the bucket."""
    return {**action, "path": urllib.parse.unquote(action["path"])}


def vector_key(file: Entry) -> str:
    """What tells the deletion vectors of a file apart; empty if it has none."""
    vector = file.get("deletionVector")
    return f"{vector['pathOrInlineDv']}@{vector.get('offset')}" if vector else ""


def vector_path(file: Entry) -> str:
    """The file of a deletion vector; empty if there is none."""
    vector = file.get("deletionVector")
    if not vector or vector["storageType"] != "u":
        return ""
    text = vector["pathOrInlineDv"]
    prefix, encoded = text[:-20], text[-20:]
    name = f"deletion_vector_{uuid.UUID(bytes=z85.decode(encoded))}.bin"
    return f"{prefix}/{name}" if prefix else name


def deleted(bucket: Bucket, vector: Entry | None) -> set[int]:
    """The rows that a deletion vector takes from its file."""
    if vector is None:
        return set()
    size = vector["sizeInBytes"]
    if vector["storageType"] == "i":
        data = z85.decode(vector["pathOrInlineDv"])[:size]
    else:
        start = vector.get("offset", 1) + 4
        path = f"{TABLE}/{vector_path({'deletionVector': vector})}"
        data = bucket.blobs[path].data[start : start + size]
    (magic,) = struct.unpack("<i", data[:4])
    if magic != 1681511377:
        raise Violation("a deletion vector of an unknown form")
    rows = set(BitMap64.deserialize(data[4:]))
    if len(rows) != vector["cardinality"]:
        raise Violation(f"a deletion vector of {len(rows)} rows says {vector['cardinality']}")
    return rows


def row_span(file: Entry) -> range | None:
    """The ids that a file gives to its rows by their places."""
    first = file.get("baseRowId")
    if first is None:
        return None
    return range(first, first + json.loads(file["stats"])["numRecords"])
