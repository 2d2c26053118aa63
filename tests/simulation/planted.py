"""Whether the simulation finds faults: each is planted in a copy of the sources, and seeds are run.

`python -m tests.simulation.planted` plants all of them, a name only that one. A fault that no seed
finds is a failure. The checkout itself is never changed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.corpora import REPOSITORY
from tests.places import replace_code

SEEDS = 300
"""Each fault must be found within so many."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A place in the package (see `tests.places`), and the code that takes the old one's place."""

    name: str
    place: str
    old: str
    new: str


FAULTS = (
    Fault(
        "no commit conflicts with another",
        "commit.commit",
        "check_conflicts(changes, against, version, write_serializable=weak)", "None",
    ),
    Fault(
        "a commit whose answer was lost counts as another's",
        "commit._put", "winner is not None and not payload.is_in(winner)", "winner is not None",
    ),
    Fault(
        "a commit replaces the one that is there",
        "commit._put", "store.put_if_absent(commit_path(version), payload.data)",
        "store.put(commit_path(version), payload.data) is None",
    ),
    Fault(
        "vacuum knows no retention",
        "_Span.of", "cls(millis, default, specified, is_checked=not force)",
        "cls(0, default, specified, is_checked=not force)",
    ),
    Fault(
        "a load does not look whether its id is there",
        "find_committed_load", "None if options.load_id is None else loaded(...)", "None",
    ),
    Fault(
        "checkpoints lack what others committed meanwhile",
        "commit._confirm", "[*winners, payload.actions]", "[payload.actions]",
    ),
    Fault(
        "a removed file stays in the state",
        "apply_commits", "changes.remove(action)", "pass",
    ),
    Fault(
        "a refresh leaves the last commit out",
        "Snapshot.refresh", "apply_commits(self.state(), actions)",
        "apply_commits(self.state(), actions[:-1] or actions)",
    ),
    Fault(
        "a rebased delete forgets the other's rows",
        "RowLevel._after", "replace(taken, add=add, before=theirs, rows=rows)",
        "replace(taken, add=add, rows=rows)",
    ),
    Fault(
        "a load removes its files though its commit may arrive",
        "commit_load.commit_load", "NOT_COMMITTED", "(*NOT_COMMITTED, StoreFailed)",
    ),
    Fault(
        "log cleanup needs no checkpoint",
        "_cutoff_checkpoint",
        "max((version for version in versions if version >= least), default=None)", "expired",
    ),
    Fault(
        "an autoload does not hold its state against the table's",
        "commit_files.commit_files", "record is not None and record.is_stale(newest)", "False",
    ),
    Fault(
        "in-commit timestamps follow the clock alone",
        "commit._payload", "max(timestamp, base.stamp + 1)", "timestamp",
    ),
    Fault(
        "what another one removed may be removed again",
        "check_conflicts", "again | {decode_path(action.path) for action in changes.removes}",
        "again",
    ),
    Fault(
        "log cleanup takes the checkpoint that it needs",
        "_is_before", "int(found[1]) < kept", "int(found[1]) <= kept",
    ),
    Fault(
        "log cleanup knows no retention",
        "clean_log", "(now - retention) // DAY_MILLIS * DAY_MILLIS", "now",
    ),
    Fault(
        "vacuum forgets deletion vectors",
        "_keep_vectors", "found.keep_plain(plain)", "pass",
    ),
    Fault(
        "vacuum takes what a running writer wrote",
        "list_unneeded", "is_needed or entry.modified >= cutoff", "is_needed",
    ),
    Fault(
        "a deletion vector lacks the rows of the one before",
        "RemovedRows.deleted", "np.union1d(self.before, self.rows)", "self.rows",
    ),
    Fault(
        "a checkpoint stands for the version before",
        "run_post_commit_hooks", "write_state(store, version, state)",
        "write_state(store, version - 1, state)",
    ),
    Fault(
        "a compaction of the log forgets what was removed",
        "write_compaction", "state.removes or {}", "{}",
    ),
    Fault(
        "a checkpoint leaves tombstones out", "_tombstones",
        "[remove for remove in removes if (remove.deletion_timestamp or 0) >= oldest]", "[]",
    ),
    Fault(
        "a checkpoint forgets applications", "checkpoint_writer._transactions",
        "transaction.last_updated is None or transaction.last_updated >= oldest", "False",
    ),
    Fault(
        "a checkpoint forgets domains", "_small_actions",
        "[protocol, metadata, *_transactions(state, metadata), *state.domains.values()]",
        "[protocol, metadata, *_transactions(state, metadata)]",
    ),
    Fault(
        "the hint names another checkpoint", "write_state",
        "write_last_checkpoint(store, version=version, size=size, "
        "size_in_bytes=size_in_bytes, num_of_add_files=state.files.num_rows)",
        "write_last_checkpoint(store, version=version - 1, size=size, "
        "size_in_bytes=size_in_bytes, num_of_add_files=state.files.num_rows)",
    ),
    Fault("a checksum counts no bytes", "version_checksum.checksum", "bytes_of(state.files)", "0"),
    Fault("a checksum counts vectors as deleted rows", "version_checksum._histograms",
          "int(counts.sum())", "len(vectors) - vectors.null_count"),
    Fault(
        "a commit after another one gives row ids again",
        "_CommitBase.after", "max(mark, self.high_water)", "self.high_water",
    ),
    Fault(
        "a change of rows does not look at rows that came meanwhile",
        "RowLevel._adds_rows", "self.finds(add)", "False",
    ),
    Fault(
        "a restore leaves what came since",
        "restore._changes", "removes_of(adds_of(found.gone))", "()",
    ),
    Fault(
        "a restore does not look at what came meanwhile",
        "restore._changes", "whole_table", "None",
    ),
    Fault(
        "a batch of a stream that is there is written again",
        "StreamBatch.version_in", "found.version < self.number", "found.version <= self.number",
    ),
    Fault(
        "what another commit says of an application does not matter",
        "check_conflicts", "action.app_id in applications", "False",
    ),
    Fault(
        "another commit's domains do not matter",
        "check_conflicts", "action.domain in domains", "False",
    ),
    Fault(
        "another schema does not matter", "check_conflicts",
        'raise _conflict(version, "changed the schema or the properties of the table")', "pass",
    ),
    Fault(
        "a rewrite does not look whether its files are there",
        "commit_rewrite", "present.keys() >= set(group.keys)", "True",
    ),
    Fault(
        "a rewrite changes data", "commit_rewrite._changes",
        "removes_of(removed, data_change=False)", "removes_of(removed)",
    ),
    Fault("row ids begin one too low", "with_row_ids", "following = high_water + 1",
          "following = max(high_water, 0)"),
    Fault(
        "the mark of row ids is one too low", "with_row_ids",
        "orjson.dumps({_HIGH_WATER_MARK: following - 1})",
        "orjson.dumps({_HIGH_WATER_MARK: following - 2})",
    ),
    Fault("rows of a file have one id", "with_row_ids", "following += _num_records(add)",
          "following += 1"),
    Fault(
        "a repeated load is looked for too late", "find_own_load",
        "range(int(match[1]), snapshot.version + 1)",
        "range(int(match[1]) + 1, snapshot.version + 1)",
    ),
    Fault("a staged load is published again", "publish_stage", "version is not None", "False"),
    Fault(
        "a published load has no id in the table", "publish_stage",
        "LoadId(load_id, is_own=False)", "LoadId(load_id, is_own=True)",
    ),
    Fault(
        "a serializable table is not", "commit.commit",
        'isolation.lower() != "serializable" and not changes.serializable', "True",
    ),
    Fault("sidecars in use are cleaned up", "_clean_sidecars", "entry.path not in named", "True"),
    Fault("an answer that cannot be read is passed over", "_unknown_if_unread",
          "raise unknown from error", "return"),
    Fault("a refresh says a version too few", "Snapshot.refresh", "self.version + len(commits)",
          "self.version + len(commits) - 1"),
    Fault("a commit leaves a version out", "commit.commit", "snapshot.version + attempt",
          "snapshot.version + attempt + 1"),
    Fault(
        "the first in-commit timestamp follows nothing", "_CommitBase.of",
        "_last_stamp(snapshot) if before else snapshot.last.modified", "0",
    ),
    Fault(
        "rows that a change depends on may go",
        "RowLevel.__call__", "self._check_watched(removed, again, version)", "None",
    ),
    Fault("rows that came back are not seen", "RowLevel._after",
          "not np.isin(taken.before, theirs).all()", "False"),
    Fault("two changes may take one row", "RowLevel._after",
          "lost and not self.overlaps", "False"),
    Fault("two deletes both count the row that they take", "RowLevel._without_lost",
          "self.lost += lost", "pass"),
    Fault(
        "files that another one rewrote are touched all the same",
        "RowLevel.__call__", "touched & (removed.keys() | again.keys())", "touched & again.keys()",
    ),
    Fault(
        "the daily cleanup knows no names", "_clean_daily",
        "[each.version for each in named_versions(state.domains.values())]", "[]",
    ),
    Fault(
        "a sidecar of changed files is used again", "_unchanged",
        "not pc.any(pc.is_in(paths, value_set=changed)).as_py()", "True",
    ),
    Fault(
        "a restore forgets deletion vectors", "restore._changes",
        "replace(add, data_change=True)", "replace(add, data_change=True, deletion_vector=None)",
    ),
    Fault(
        "a restore looks at paths alone", "files_only_in",
        "keys_of(other.files)", "other.files['path']",
    ),
    Fault("a mirror does not look at the files that there are", "_MirrorRefresh.of",
          "groups.settle(files_in(table))", "None"),
    Fault(
        "a mirror keeps files whose rows are in others", "_MirrorRefresh.run",
        "[add for group in stale for add in group.mirrored] + deleted.gone",
        "[add for group in stale for add in group.mirrored]",
    ),
    Fault("the change feed has rows that only moved", "commits._changes",
          "isinstance(each, RemoveFile) and each.data_change", "isinstance(each, RemoveFile)"),
    Fault("the change feed leaves out files that went", "commits._changes",
          "for add in gone.values():\n    yield DELETE, add, None", "pass"),
    Fault("a load with a key keeps rows that the table has", "UniqueRows.__call__",
          "kept &= ~matched", "pass"),
    Fault(
        "a vacuum passes over commits that it did not list",
        "vacuum._Run._still_unneeded",
        "keep_commits(self.retained, newest.store, self._commits())", "None",
    ),
    Fault("a stream passes over a file", "stream_files._numbered",
          "index <= begin.index", "index <= begin.index + 1"),
    Fault("a stream reads a file again", "stream_files._numbered",
          "index <= begin.index", "index < begin.index"),
    Fault("a stream that is started again leaves out the last file of its batch",
          "TableStream.partitions", "unit.after.place <= until.place",
          "unit.after.place < until.place"),
    Fault("a stream that is started again leaves out the last version of its batch",
          "TableStream.partitions",
          "until.version if until.index > NONE_READ else until.version - 1", "until.version - 1"),
    Fault("a batch of a stream ends before what it reads", "TableStream.next_offset",
          "end = unit.after", "end = units[-1].after if units else unit.after"),
    Fault("a stream gives rows that only moved", "appended_files",
          "isinstance(each, AddFile) and each.data_change", "isinstance(each, AddFile)"),
    Fault("a stream does not skip changes", "appended_files",
          "policy is ChangeCommits.SKIP or (policy is ChangeCommits.IGNORE_DELETES and not adds)",
          "policy is ChangeCommits.IGNORE_DELETES and not adds"),
    Fault("a stream begins with the newest version and says an older one",
          "stream_files._starting", "read if read.version == version else read.at(version)",
          "read"),
    Fault("a condition that some rows fulfil counts as that of all", "Skipper.may_fail",
          "found.may(part) != TRUE", "found.may(part) & TRUE == 0"),
    Fault("a time means the version before", "time_travel.find_version", "bisect_right",
          "__import__('bisect').bisect_left"),
    Fault("an autoload forgets a file between two pages", "_SortedPieces.up_to",
          "self._pending.append(piece.slice(cut))", "self._pending.append(piece.slice(cut + 1))"),
    Fault("of two commits the older one's file counts", "_superseded",
          "last[codes] != rows", "last[codes] == rows"),
    Fault("a domain that was removed stays", "apply_commits",
          "{name: domain for name, domain in domains.items() if not domain.removed}", "domains"),
    Fault("a sidecar lacks its last file", "_sidecars", "files.slice(start, SIDECAR_FILES)",
          "files.slice(start, SIDECAR_FILES - 1)"),
    Fault("a commit's timestamp does not follow the winner's", "_CommitBase.after",
          "max(self.stamp, stamp_of(winner))", "self.stamp"),
    Fault("a vacuum knows no staged loads", "retained_paths", "list_stages(snapshot.store)", "[]"),
    Fault("a vacuum knows no names", "keep_named",
          "{each.version for each in named_versions(snapshot.domains.values())}", "set()"),
    Fault("a name does not move", "name_version",
          "before is not None and before.version == version", "before is not None"),
    Fault("a name is of the newest version", "name_version",
          "NamedVersion(name, version, time.time_ns() // 1_000_000)",
          "NamedVersion(name, newest.version, time.time_ns() // 1_000_000)"),
    Fault("log cleanup keeps the newest name alone", "clean_log", "min([expired, *named])",
          "max([expired, *named])"),
    Fault("a log compaction goes beyond the version", "log_segment._compacted",
          "last < end <= target", "last < end and number < target"),
    Fault("a log compaction is followed by one commit too few", "log_segment._compacted",
          "min(last + 1, target)", "min(last + 2, target)"),
    Fault("a snapshot is refreshed over the log of another table", "commits_after",
          "not last.is_same(now) and "
          "(now is not None or not last.is_same(store.entry(last.path)))",
          "now is None and not last.is_same(store.entry(last.path))"),
    Fault("an autoload's listings that begin late count as whole ones", "batch._progress",
          "discovery.is_full and last >= after", "last >= after"),
    Fault("files come back while a vacuum starts", "check_conflicts",
          "changes.revives and action.fields.get('operation') == VACUUM_START", "False"),
    Fault("a vacuum keeps what autoloads remembered a version too late", "_keep_earlier_runs",
          "snapshot.at(first - 1)", "snapshot.at(first)"),
    Fault("parts of a checkpoint need not be all", "log_segment._read_names",
          "len(found) == count and all(1 <= part <= count for part in found)",
          "all(part in found for part in range(1, len(found) + 1))"),
    Fault("files in parts forget what was removed before", "PartedFiles.changed",
          "pa.chunked_array([*self._gone.chunks, *keys.chunks], pa.string())", "keys"),
    Fault("updated rows keep the version that changed them before", "RowIds.updated",
          "self._joined(tables, add, file, places, 1)",
          "self._joined(tables, add, file, places, 2)"),
    Fault("a staged load is forgotten before it is published", "publish_stage",
          "_check_files(newest.store, staged)", "newest.store.delete(stage_path(load_id))"),
    Fault("a change in partitions does not look at what it read", "conflicts._read",
          "action.partition_values is None or changes.reads(action.partition_values)",
          "bool(action.partition_values) and changes.reads(action.partition_values or {})"),
    Fault("a hole in the log is passed over", "log_segment._segment",
          "raise _hole(store, listing, number, target, checkpoint)", "continue"),
    Fault("a refresh passes over a hole in the log", "commits_after",
          "found if len(found) == len(commits) else None", "list(commits.values())"),
    Fault("files that were read may go", "check_conflicts",
          "action.data_change and _read(changes, action)", "False"),
    Fault("a load whose commit was cleaned up is loaded again", "commit_files.loaded",
          "min(first, target.snapshot.version) if found is None else found[0]",
          "None if found is None else found[0]"),
    Fault("a vacuum keeps the data files of names alone", "keep_named", "_keep_live(found, old)",
          "found.keep(old.files['path'].to_pylist())"),
    Fault("files whose tombstones are there never expire", "are_expired",
          "remove is None or (remove.deletion_timestamp or 0) < cutoff", "remove is None"),
)  # fmt: skip

CHEAP = (
    "a load whose commit was cleaned up is loaded again",
    "a refresh leaves the last commit out",
)
"""Those that a few seeds find."""


def find(fault: Fault, folder: Path, seeds: int = SEEDS) -> tuple[int, str] | None:
    """The first seed that finds a fault, and what it says; None if none does."""
    copy = copied(folder)
    file, text = replace_code(copy / "src" / "variantlake", fault.place, fault.old, fault.new)
    original = file.read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    try:
        done = simulate(copy, seeds)
    finally:
        file.write_text(original, encoding="utf-8")
    match = re.search(r"^seed (\d+) FAILS at step \d+: (.*)$", done.stdout, re.MULTILINE)
    if done.returncode == 0:
        return None
    if match is None or "NotCompiled" in match[2]:
        raise RuntimeError(f"the simulation did not run\n{done.stdout}{done.stderr}")
    return int(match[1]), match[2]


def simulate(copy: Path, seeds: int) -> subprocess.CompletedProcess[str]:
    """Run seeds on the sources of a copy, until one fails."""
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", "--seeds", str(seeds), "--no-shrink"],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(copy / "src"), str(copy))),
             "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip


def copied(folder: Path) -> Path:
    """What the simulation needs of the checkout, once in a folder."""
    for name in ("src", "tests"):
        if not (folder / name).exists():
            ignored = shutil.ignore_patterns("__pycache__", ".*", "data")
            shutil.copytree(REPOSITORY / name, folder / name, ignore=ignored)
    return folder


def main(arguments: Sequence[str]) -> int:
    """The exit code: 0 if each fault was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.planted", description=__doc__)
    parser.add_argument("names", nargs="*", help="faults; all if none")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"so many seeds ({SEEDS})")
    options = parser.parse_args(arguments)
    chosen = [fault for fault in FAULTS if not options.names or fault.name in options.names]
    missed = 0
    with tempfile.TemporaryDirectory(prefix="variantlake-simulation-") as folder:
        for fault in chosen:
            seed = find(fault, Path(folder), options.seeds)
            missed += seed is None
            said = "NOT FOUND" if seed is None else f"seed {seed[0]}: {seed[1]}"
            sys.stdout.write(f"{fault.name}: {said}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(chosen) - missed} of {len(chosen)} planted faults found\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
