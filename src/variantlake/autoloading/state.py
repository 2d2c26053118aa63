"""The state of an autoload in the table's log: a metadata domain that names its runs.

The commit that adds the rows writes the domain `variantlake.autoload.<name>`. So state and table
cannot disagree, and of two processes the second one gets a conflict.
Spec: PROTOCOL, "Domain Metadata", "Transaction Identifiers".
"""

from __future__ import annotations

import enum
import re
import urllib.parse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import orjson
import pyarrow as pa

from variantlake.autoloading.runs import (
    MAX_RUN_BYTES,
    RUN,
    Run,
    RunReader,
    appended,
    merged,
)
from variantlake.delta.actions.actions import DomainMetadata, Transaction
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import InvalidValue, MalformedLog
from variantlake.storage.store import Store
from variantlake.writing.autoload_files import DOMAIN, FOLDER, RUN_PATH
from variantlake.writing.commit_record import CommitRecord, find_commit

FEATURE = "domainMetadata"
"""The writer feature that the table needs."""

FORMAT = 2
"""The newest format of the domain and the runs; we refuse newer ones.

A state with dropped records has format 2, so that older releases do not load their files again; any
other state has format 1.
"""

MAX_NAME = 128
"""Our limit on the characters of an autoload's name."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SEARCHED_VERSIONS = 1000


class FileState(enum.IntEnum):
    """What became of a file."""

    LOADED = 1
    EMPTY = 2
    """It held no document; it is loaded once it has changed."""
    FAILED = 3
    """It could not be read; it is retried once it has changed, or by `retry_failed`."""
    RETRY = 4
    """The next round tries it again."""
    SKIPPED = 5
    """It was older than `since`."""

    @property
    def label(self) -> str:
        """The state in lower case."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class LoadState:
    """The state of one autoload at one version of the table.

    `source` is the root of the names, a path or URL. `batch` counts the batches. All files with
    names up to `after` have been handled; None if there is no such name. `listed` is when the whole
    source was listed last, in milliseconds since the epoch; 0 requires a full listing. `ordered`
    says that new files have always had names after the known ones. Files changed before `floor`
    (milliseconds since the epoch) are not loaded any more, and their records may be dropped; 0
    drops none. `logged` is the domain's configuration in the log, None if it has none yet.
    """

    name: str
    source: str
    batch: int = 0
    after: bytes | None = None
    listed: int = 0
    ordered: bool = True
    runs: tuple[Run, ...] = ()
    floor: int = 0
    logged: str | None = None

    @property
    def domain(self) -> str:
        """The name of the metadata domain, and the `appId` of `txn`."""
        return DOMAIN + self.name

    @property
    def folder(self) -> str:
        """The folder of the runs, from the table's root."""
        return f"{FOLDER}/{self.name}"

    @property
    def count(self) -> int:
        """About how many files are known; one that several runs have counts several times."""
        return sum(run.rows for run in self.runs)

    def sorted_pieces(self, reader: RunReader, *, after: bytes | None = None) -> Iterator[pa.Table]:
        """The records of all files, or at least of those after a name, as sorted pieces of RUN."""
        return merged(
            [reader.pieces(run) for run in self.runs if after is None or run.last > after]
        )

    def next(
        self,
        store: Store,
        reader: RunReader,
        rows: pa.Table,
        *,
        after: bytes | None,
        listed: int,
        ordered: bool,
        version: int,
        floor: int = 0,
    ) -> LoadState:
        """The state after a batch with these rows, sorted by name; writes its run.

        `version` is the one that the batch expects to commit. The floor never falls.
        """
        batch, floor = self.batch + 1, max(self.floor, floor)
        runs = appended(
            store, reader, self.runs, rows, folder=self.folder, batch=batch, version=version,
            floor=floor,
        )  # fmt: skip
        return replace(
            self, batch=batch, runs=runs, after=after, listed=listed, ordered=ordered, floor=floor
        )

    def record(self, before: LoadState, now: int) -> CommitRecord:
        """What the commit of this state records if the table's state is `before`."""

        def is_stale(snapshot: Snapshot) -> bool:
            if FEATURE not in snapshot.features:
                return True
            domain = snapshot.domains.get(self.domain)
            return (None if domain is None else domain.configuration) != before.logged

        return CommitRecord(
            transactions=(Transaction(self.domain, self.batch, now),),
            domains=(DomainMetadata(self.domain, self.configuration()),),
            is_stale=is_stale,
        )

    def configuration(self) -> str:
        """The domain's configuration."""
        document = {
            "format": FORMAT if self.floor else 1,
            "source": urllib.parse.quote(self.source, safe="/:", errors="surrogateescape"),
            "batch": self.batch,
            "after": None if self.after is None else urllib.parse.quote_from_bytes(self.after),
            "listed": self.listed,
            "ordered": self.ordered,
            "runs": [_run_to_json(run) for run in self.runs],
        }
        if self.floor:
            document["floor"] = self.floor
        return orjson.dumps(document).decode()


def _run_to_json(run: Run) -> dict[str, Any]:
    names = {name: urllib.parse.quote_from_bytes(getattr(run, name)) for name in ("first", "last")}
    return {name: value for name, value in (asdict(run) | names).items() if value is not None}


def check_name(name: str) -> str:
    """The name of an autoload, if it is valid; else raises InvalidValue."""
    if not isinstance(name, str) or len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise InvalidValue(
            f"the name of an autoload is {name!r:.200}",
            hint=f"it has up to {MAX_NAME} letters, digits, dots, dashes and underlines, and "
            "begins with a letter or digit",
        )
    return name


def read_state(snapshot: Snapshot, name: str) -> LoadState | None:
    """The state of an autoload in the log; None if there is none.

    Raises MalformedLog for a domain that we cannot have written.
    """
    domain = snapshot.domains.get(DOMAIN + name)
    if domain is None:
        return None
    try:
        state = _parsed(name, orjson.loads(domain.configuration))
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedLog(
            f"the metadata domain {domain.domain!r} is not what was written: {error!r:.200}",
            file=snapshot.store.uri,
        ) from error
    return replace(state, logged=domain.configuration)


def names_of_autoloads(snapshot: Snapshot) -> list[str]:
    """The sorted names of the autoloads with state in the table."""
    return sorted(
        domain.removeprefix(DOMAIN) for domain in snapshot.domains if domain.startswith(DOMAIN)
    )


def _parsed(name: str, document: Any) -> LoadState:
    if document["format"] not in (1, FORMAT):
        raise ValueError(f"its format is {document['format']!r}, known is {FORMAT}")
    after = document["after"]
    state = LoadState(
        name=check_name(name),
        source=urllib.parse.unquote(_typed(str, document["source"]), errors="surrogateescape"),
        batch=_typed(int, document["batch"]),
        after=None if after is None else urllib.parse.unquote_to_bytes(_typed(str, after)),
        listed=_typed(int, document["listed"]),
        ordered=_typed(bool, document["ordered"]),
        runs=tuple(_run_of(each) for each in _typed(list, document["runs"])),
        floor=_typed(int, document["floor"]) if document["format"] == FORMAT else 0,
    )
    if state.batch < 1:
        raise ValueError("its batch is not positive")
    return state


def _run_of(fields: Any) -> Run:
    run = Run(
        path=_typed(str, fields["path"]),
        rows=_typed(int, fields["rows"]),
        size=_typed(int, fields["size"]),
        sha256=_typed(str, fields["sha256"]),
        first=urllib.parse.unquote_to_bytes(_typed(str, fields["first"])),
        last=urllib.parse.unquote_to_bytes(_typed(str, fields["last"])),
        batch=_typed(int, fields["batch"]),
        version=_typed(int, fields["version"]),
        sure=_typed(bool, fields["sure"]),
        until=None if "until" not in fields else _typed(int, fields["until"]),
    )
    # A path in a foreign log must not lead out of our folder.
    if not RUN_PATH.fullmatch(run.path) or not 0 < run.size <= MAX_RUN_BYTES or run.rows < 1:
        raise ValueError(f"no run can have this path: {run.path!r}")
    return run


def _typed(kind: type[Any], value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{value!r:.60} is not of type {kind.__name__}")
    return value


def with_versions(state: LoadState, snapshot: Snapshot) -> LoadState:
    """The state with the true version of its newest batch, which its commit could not know.

    Searches the log from the expected version on; keeps that one if the commit is not found.
    """
    if not state.runs or state.runs[-1].sure or state.runs[-1].batch != state.batch:
        return state
    newest = state.runs[-1]
    last = min(snapshot.version, newest.version + _SEARCHED_VERSIONS)
    versions = range(newest.version, last + 1)
    found = find_commit(snapshot.store, versions, state.domain, state.batch)
    version = newest.version if found is None else found[0]
    return replace(state, runs=(*state.runs[:-1], replace(newest, version=version, sure=True)))


def rows_of_batch(files: Sequence[dict[str, Any]]) -> pa.Table:
    """Rows of RUN for these files, sorted by name."""
    return pa.Table.from_pylist(sorted(files, key=lambda file: file["name"]), schema=RUN)
