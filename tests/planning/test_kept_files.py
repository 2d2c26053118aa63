"""Files of a table whose checkpoint is read part by part: the plan is that of all files in memory.

A plan of the plain reader, which has every file in memory, is compared with that by parts in this
process and with that by the tasks of a job.
"""

from __future__ import annotations

import contextlib
import pickle
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import variantlake as vl
from tests.delta.parts import in_parts
from tests.delta.tables import bounds, create_table, facts, number
from tests.strategies import MORE
from variantlake.delta.actions.actions import AddFile, DeletionVectorDescriptor, RemoveFile
from variantlake.delta.checkpoint import checkpoint_schema, checkpoint_writer
from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
from variantlake.delta.log.checkpoint_reader import CheckpointPart
from variantlake.delta.log.files import checkpoint_texts
from variantlake.delta.log.files.file_paths import AbsolutePaths
from variantlake.delta.log.files.parted_files import PartedFiles, is_unread
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.features import SCAN_FEATURES
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.stats.columns.files_part import FilesPart
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes
from variantlake.delta.transaction.new_actions import new_add
from variantlake.errors import AbsolutePathRefused, MalformedLog
from variantlake.planning.choose_files import MAX_KEPT_SAMPLE
from variantlake.planning.kept_files import KeepFiles, without_skipped
from variantlake.planning.log_files import LogFiles
from variantlake.scan.decoded_log import DecodedLog
from variantlake.scan.table_scan import Scan, scan_of
from variantlake.storage.opening import open_store

SCHEMA = parse_table_ddl("event VARIANT, n INT, day STRING")
CONDITIONS = (
    "n = 7",
    "n > 12 AND event:a::bigint < 6",
    "event:a::bigint BETWEEN 5 AND 9",
    "event:a::bigint = 3 OR n = 20",
    "day = 'd1'",
    "day = 'd2' AND event:s::string = 's4'",
    "n IS NULL",
    "n >= 0",
    "n = -1",
    "day > 'd0' AND NOT (n = 3)",
)


def _add(at: int, name: str) -> AddFile:
    """A file whose bounds are about `at`, one of four days."""
    known = facts(
        size=100 + at,
        paths={
            facts_path("a"): bounds(at, at + 1),
            facts_path("s"): bounds(f"s{at % 7}", f"s{at % 7}"),
        },
        columns=(number("n", at, at + 2),),
    )
    add = new_add(name, known, schema=SCHEMA, properties={})
    return replace(add, partition_values={"day": f"d{at % 4}"})


def facts_path(name: str) -> str:
    return vl.paths.Path.of(name).normalized()


@contextlib.contextmanager
def _small_pieces() -> Iterator[None]:
    """Checkpoints have row groups and sidecars of few files."""
    with (
        patch.object(checkpoint_schema, "PIECE_FILES", 3),
        patch.object(checkpoint_writer, "SIDECAR_FILES", 8),
    ):
        yield


def _read(root: Path, version: int | None = None) -> Snapshot:
    return Snapshot.read(root, version, applies=SCAN_FEATURES)


def _plan(scan: Scan) -> tuple[Any, Any]:
    """The files that are read, and what `explain` says of all."""
    files = sorted(
        (f.path, f.size, tuple(f.partition.items()), f.vector) for f in scan.choice.files
    )
    told = scan.explain().to_dict()
    # A sample of many files depends on their order.
    told["kept"] = sorted(map(str, told["kept"])) if len(files) <= MAX_KEPT_SAMPLE else []
    return files, told


def _by_job(snapshot: Snapshot, where: str) -> Scan:
    """The scan whose files tasks have found, each of which came through bytes."""
    scan = scan_of(snapshot, "*", where, None)

    def run(task: KeepFiles) -> list[bytes]:
        sent = pickle.loads(pickle.dumps(task))  # noqa: S301 - our own
        numbers = range(len(task.shares))
        return [payload for each in reversed(numbers) for payload in sent(each)]

    kept = without_skipped(LogFiles(snapshot), scan.predicate, scan.partition_types, run)
    scan.decoded._last = (snapshot, kept)
    return scan


def _check(root: Path, where: str, version: int | None = None) -> None:
    plain = _read(root, version)
    assert not is_unread(plain.files)
    wanted = _plan(scan_of(plain, "*", where, None))
    with in_parts():
        parted = _read(root, version)
    assert is_unread(parted.files)
    assert _plan(scan_of(parted, "*", where, None)) == wanted
    assert _plan(_by_job(parted, where)) == wanted
    assert is_unread(parted.files)  # nothing asked for all of them
    assert _sorted(parted) == _sorted(plain)
    assert _plan(scan_of(parted, "*", where, None)) == wanted  # and now they are there


def _keys(snapshot: Snapshot) -> Any:
    """Without texts, which a checkpoint may have in another form than its commits."""
    return snapshot.files.whole(texts=False).sort_by("path").to_pylist()


def _sorted(snapshot: Snapshot) -> Any:
    return snapshot.files.whole().sort_by("path").to_pylist()


PROPERTIES = st.fixed_dictionaries(
    {
        "delta.checkpointPolicy": st.sampled_from(["classic", "v2"]),
        "delta.checkpoint.writeStatsAsStruct": st.sampled_from(["true", "false"]),
        "delta.checkpoint.writeStatsAsJson": st.sampled_from(["true", "false"]),
    }
)
STEPS = st.lists(
    st.tuples(
        st.lists(st.integers(0, 25), max_size=3),  # new files, by their bounds
        st.sets(st.integers(0, 40), max_size=3),  # files that go
        st.sets(st.integers(0, 40), max_size=2),  # files that get a deletion vector
        st.booleans(),  # a checkpoint
    ),
    max_size=5,
)


Step = tuple[list[int], set[int], set[int], bool]


@settings(max_examples=15 * MORE, deadline=None)
@given(
    first=st.lists(st.integers(0, 25), min_size=1, max_size=30),
    steps=STEPS,
    properties=PROPERTIES,
    where=st.sampled_from(CONDITIONS),
)
def test_plans_by_parts_are_those_of_all_files(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[int],
    steps: list[Step],
    properties: dict[str, str],
    where: str,
) -> None:
    root = tmp_path_factory.mktemp("table")
    properties = {**properties, "delta.checkpointInterval": "1000000"}
    properties["delta.enableDeletionVectors"] = "true"
    store = open_store(root)
    adds = [_add(at, f"{name}%20x.parquet") for name, at in enumerate(first)]
    create_table(store, SCHEMA, partition_columns=["day"], properties=properties, adds=adds)
    with _small_pieces(), patch.object(checkpoint_texts, "LEAST_ROWS", len(first) % 2 * 4096):
        write_checkpoint(store)
        with in_parts():
            parted = _read(root)
        for name, step in enumerate(steps):
            _commit(root, name, step)
        # By a refresh from the version of the checkpoint, as by reading what is there now.
        assert _keys(parted.refresh()) == _keys(_read(root))
        _check(root, where)


def _commit(root: Path, name: int, step: Step) -> None:
    new, gone, marked, checkpoint = step
    snapshot = _read(root)
    files = list(snapshot.add_files())
    there = {at % len(files) for at in marked} if files else set()
    adds = [_add(at, f"{name}-{place}.parquet") for place, at in enumerate(new)]
    adds += [replace(files[at], deletion_vector=_vector(name)) for at in sorted(there)]
    going = sorted({at % len(files) for at in gone} | there) if files else []
    removes = [
        RemoveFile(files[at].path, deletion_vector=files[at].deletion_vector, deletion_timestamp=1)
        for at in going
    ]
    commit(snapshot, Changes("WRITE", adds=tuple(adds), removes=tuple(removes)))
    if checkpoint:
        write_checkpoint(snapshot.store)


def _vector(name: int) -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor("u", f"ab^-aqEH.-t@S}}K{{vb[*k{name:02d}", 34, 1 + name, 1)


def _table(root: Path, **properties: str) -> None:
    store = open_store(root)
    found = {"delta.checkpointPolicy": "v2", **properties}
    adds = [_add(at, f"f{at}.parquet") for at in range(20)]
    create_table(store, SCHEMA, partition_columns=["day"], properties=found, adds=adds)
    with _small_pieces():
        write_checkpoint(store)


def _sidecars(root: Path) -> list[Path]:
    return sorted((root / "_delta_log/_sidecars").iterdir())


def test_a_table_is_opened_and_queried_without_all_of_its_files(tmp_path: Path) -> None:
    made = vl.Table.create(tmp_path, "event VARIANT, n INT")
    for at in range(5):
        made.append([{"event": {"a": at}, "n": at}])
    made.checkpoint()
    made.append([{"event": {"a": 9}, "n": 9}])
    with in_parts():
        table = vl.Table.open(tmp_path)
    rows = table.scan("event:a::bigint AS a", where="n >= 3").to_arrow()
    assert {*rows["a"].to_pylist()} == {3, 4, 9}
    found = table.sql("SELECT sum(n) AS s FROM t WHERE event:a::bigint < 2").to_arrow()
    assert found.to_pylist() == [{"s": 1}]
    table.refresh()
    assert table.scan("n", where="n = 3").explain().to_dict()["files"] == {
        "total": 6, "read": 1, "skipped": 5,
    }  # fmt: skip
    assert is_unread(table.snapshot.files)


def test_changes_of_rows_count_files_as_the_log_does(tmp_path: Path) -> None:
    made = vl.Table.create(tmp_path, "event VARIANT, n INT")
    for at in range(5):
        made.append([{"event": {"a": at}, "n": at}])
    made.checkpoint()
    for where, left in (("n = 3", [0, 1, 2, 4]), ("event:a::bigint = 0", [1, 2, 4])):
        with in_parts():
            table = vl.Table.open(tmp_path)
        table.delete(where)
        assert table.scan("n").to_arrow().sort_by("n")["n"].to_pylist() == left
    with in_parts():
        table = vl.Table.open(tmp_path)
    table.merge([{"event": {"a": 4}, "n": 40}], "t.event:a::bigint = s.event:a::bigint")
    assert table.scan("n").to_arrow().sort_by("n")["n"].to_pylist() == [1, 2, 40]


def test_a_scan_that_was_planned_by_parts_gives_places_by_all_files(tmp_path: Path) -> None:
    made = vl.Table.create(tmp_path, "n INT")
    for at in range(5):
        made.append([{"n": at}])
    made.checkpoint()
    with in_parts():
        scan = scan_of(_read(tmp_path), "*", "n = 3", None)
    assert scan.choice.table.left_out.files == 4
    (place,) = scan.places()
    assert scan.snapshot.files["path"][place.number].as_py() in place.file.path


def test_a_condition_that_comes_again_reads_no_parts(tmp_path: Path) -> None:
    _table(tmp_path)
    decoded = DecodedLog()
    with in_parts():
        parted = _read(tmp_path)
    assert isinstance(parted.files, PartedFiles)
    read = CheckpointPart.read
    with patch.object(CheckpointPart, "read", autospec=True, side_effect=read) as asked:
        for where, again in (("n = 7", 1), ("n = 7", 1), ("n = 8", 2)):
            choice = scan_of(parted, "*", where, None, decoded).choice
            assert choice.read_files == 3
            assert asked.call_count == again * len(parted.files.parts)


def test_a_part_that_one_conjunct_skips_is_not_asked_by_the_next(tmp_path: Path) -> None:
    _table(tmp_path)
    with in_parts():
        parted = _read(tmp_path)
    asked = FilesPart.variant_bounds
    with patch.object(FilesPart, "variant_bounds", autospec=True, side_effect=asked) as bounds_of:
        scan = scan_of(parted, "*", "day = 'never' AND event:a::bigint = 3", None)
        assert scan.choice.read_files == 0
        assert not bounds_of.called
        assert [each["files"] for each in scan.explain().to_dict()["skipped_by"]] == [20]


def test_a_commit_reads_no_parts(tmp_path: Path) -> None:
    _table(tmp_path)
    with in_parts():
        parted = _read(tmp_path)
    commit(parted, Changes("WRITE", adds=(_add(7, "new.parquet"),)))
    newest = parted.refresh()
    assert is_unread(parted.files)
    assert is_unread(newest.files)
    assert not (tmp_path / "_delta_log/00000000000000000001.crc").exists()
    assert scan_of(newest, "*", "n = 7", None).choice.read_files == 4
    assert _keys(_read(tmp_path)) == _keys(newest)


def test_a_missing_sidecar_is_named_when_the_table_is_opened_and_later(tmp_path: Path) -> None:
    _table(tmp_path)
    with in_parts():
        parted = _read(tmp_path)
    first, *_ = _sidecars(tmp_path)
    first.unlink()
    with pytest.raises(MalformedLog, match=first.name):
        _ = scan_of(parted, "*", "n = 3", None).choice
    with pytest.raises(MalformedLog, match=first.name) as error:
        _by_job(parted, "n = 3")
    assert "open the table again" in (error.value.hint or "")
    with pytest.raises(MalformedLog, match=first.name):
        parted.files.whole()
    (tmp_path / "_delta_log/00000000000000000000.json").unlink()
    with in_parts(), pytest.raises(MalformedLog, match=first.name):
        _read(tmp_path)


def test_another_file_in_the_place_of_a_checkpoint_is_not_read(tmp_path: Path) -> None:
    _table(tmp_path, **{"delta.checkpointPolicy": "classic"})
    with in_parts():
        parted = _read(tmp_path)
    (path,) = (tmp_path / "_delta_log").glob("*.checkpoint.parquet")
    table = pq.read_table(path)
    path.unlink()
    pq.write_table(table, path, row_group_size=5)
    with pytest.raises(MalformedLog, match="has changed"):
        _ = scan_of(parted, "*", "n = 3", None).choice


def test_bounds_of_a_sidecars_footer_skip_nothing(tmp_path: Path) -> None:
    """A footer may say what it likes of the values: these alone decide."""
    _table(tmp_path, **{"delta.checkpoint.writeStatsAsStruct": "true"})
    for path in _sidecars(tmp_path):
        data = path.read_bytes()
        start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        path.write_bytes(data[:start] + re.sub(rb"d[0-3]", b"d1", data[start:]))
        statistics: Any = pq.ParquetFile(path).metadata.row_group(0).to_dict()
        assert "'max': 'd1'" in str(statistics)
        assert "'max': 'd2'" not in str(statistics)
    wanted = _plan(scan_of(_read(tmp_path), "*", "day = 'd3'", None))
    assert len(wanted[0]) == 5
    with in_parts():
        assert _plan(scan_of(_read(tmp_path), "*", "day = 'd3'", None)) == wanted


def test_absolute_paths_are_refused_when_they_are_read(tmp_path: Path) -> None:
    _table(tmp_path)
    store = open_store(tmp_path)
    commit(_read(tmp_path), Changes("WRITE", adds=(_add(30, "/elsewhere/x.parquet"),)))
    with _small_pieces():
        write_checkpoint(store)
    with in_parts():
        parted = Snapshot.read(tmp_path, applies=SCAN_FEATURES, absolute_paths=AbsolutePaths.REFUSE)
    with pytest.raises(AbsolutePathRefused):
        _ = scan_of(parted, "*", "n = 31", None).choice
    with pytest.raises(AbsolutePathRefused):
        parted.files.whole()


def test_a_file_that_is_there_twice_is_refused_when_it_is_kept(tmp_path: Path) -> None:
    _table(tmp_path)
    first, second, *_ = _sidecars(tmp_path)
    second.write_bytes(first.read_bytes())
    with in_parts():
        parted = _read(tmp_path)
    adds: Any = pq.ParquetFile(first).read()["add"].to_pylist()
    at = next(re.findall(r"\d+", add["path"])[0] for add in adds if add)
    with pytest.raises(MalformedLog, match="twice"):
        _ = scan_of(parted, "*", f"n = {at}", None).choice
    with pytest.raises(MalformedLog, match="twice"):
        parted.files.whole()


def test_a_copy_of_parts_reads_them_anew(tmp_path: Path) -> None:
    _table(tmp_path)
    with in_parts():
        parted = _read(tmp_path).files
    whole = parted.whole()
    copy = pickle.loads(pickle.dumps(parted))  # noqa: S301 - our own
    assert is_unread(copy)
    assert copy.whole() == whole
