"""Sidecars of a clustered table hold its files in the order of the clustering."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.delta.tables import bounds, create_table, facts, number
from tests.strategies import MORE
from variantlake.delta.actions.actions import AddFile, RemoveFile
from variantlake.delta.checkpoint import checkpoint_schema, checkpoint_writer, clustered_order
from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.cluster_paths import PROPERTY
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes
from variantlake.delta.transaction.new_actions import new_add
from variantlake.parquet.stats.facts import ColumnFacts
from variantlake.paths import Path as VariantPath
from variantlake.storage.opening import open_store

SCHEMA = parse_table_ddl("event VARIANT, n INT")
V2 = {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "1000000"}


def _add(name: str, at: int | None, layout: str = "a BIGINT, s STRING") -> AddFile:
    """A file whose least values are `at`, in every column; without bounds if None."""
    paths = {}
    columns: tuple[ColumnFacts, ...] = ()
    if at is not None:
        texts = bounds(f"s{at:03d}", f"s{at:03d}z")
        paths = {_normalized("a"): bounds(at, at + 5), _normalized("s"): texts}
        columns = (number("n", at, at + 5),)
    known = facts(layout, paths=paths, columns=columns)
    return new_add(name, known, schema=SCHEMA, properties={})


def _normalized(name: str) -> str:
    return VariantPath.of(name).normalized()


def _written(root: Path) -> list[str]:
    """The files as the sidecars of the newest checkpoint have them, one after the other."""
    top = max((root / "_delta_log").glob("*.checkpoint.*.parquet"))
    names = [row["path"] for row in pq.read_table(top)["sidecar"].to_pylist() if row]
    found = []
    for name in names:
        adds = pq.read_table(root / "_delta_log/_sidecars" / name)["add"].to_pylist()
        found += [row["path"] for row in adds if row is not None]
    return found


def _table(root: Path, by: str, adds: list[AddFile]) -> None:
    ordinary = by == "n"
    create_table(
        open_store(root),
        SCHEMA,
        cluster_columns=["n"] if ordinary else [],
        properties=V2 if ordinary or not by else {**V2, PROPERTY: by},
        adds=adds,
    )


@pytest.mark.parametrize("by", ["n", "event:a::bigint", "event:s::string, n"])
def test_files_stand_in_the_order_of_their_bounds_and_paths(tmp_path: Path, by: str) -> None:
    values = [7, 3, None, 3, 9, 1, 7, None, 3]
    adds = [_add(f"f{place}", at) for place, at in reversed(list(enumerate(values)))]
    # The same path as another type in one file: its bounds compare with no others.
    adds.append(_add("g", None, "a STRING, s BIGINT"))
    _table(tmp_path, by, adds)
    with patch.object(checkpoint_writer, "SIDECAR_FILES", 4):
        write_checkpoint(open_store(tmp_path))
    assert _written(tmp_path) == ["f5", "f1", "f3", "f8", "f0", "f6", "f4", "f2", "f7", "g"]


def test_files_of_a_table_that_is_not_clustered_stay_as_they_are(tmp_path: Path) -> None:
    _table(tmp_path, "", [_add(f"f{at}", at) for at in (3, 1, 2)])
    write_checkpoint(open_store(tmp_path))
    assert _written(tmp_path) == ["f3", "f1", "f2"]


def test_files_in_no_order_at_all_are_ordered_within_pieces(tmp_path: Path) -> None:
    """Else the texts of each would be read for every piece."""
    _table(tmp_path, "n", [])
    for start in range(3):
        adds = tuple(_add(f"f{at:02d}", at) for at in range(8 + start, 1, -3))
        commit(Snapshot.read(tmp_path), Changes("WRITE", adds=adds))
    with (
        patch.object(checkpoint_schema, "PIECE_FILES", 3),
        patch.object(checkpoint_writer, "PIECE_FILES", 3),
        patch.object(clustered_order, "_MOST_READ", 0),
    ):
        write_checkpoint(open_store(tmp_path))
    written = _written(tmp_path)
    assert len(written) == 9
    assert all(written[at : at + 3] == sorted(written[at : at + 3]) for at in range(0, 9, 3))
    assert written != sorted(written)


@settings(max_examples=15 * MORE, deadline=None)
@given(
    steps=st.lists(
        st.tuples(
            st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=5),
            st.sets(st.integers(0, 30), max_size=2),
            st.booleans(),
        ),
        min_size=1,
        max_size=5,
    ),
    by=st.sampled_from(["n", "event:a::bigint", "event:s::string"]),
)
def test_ordered_checkpoints_say_what_their_commits_say(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[list[int | None], set[int], bool]],
    by: str,
) -> None:
    root = tmp_path_factory.mktemp("table")
    _table(root, by, [_add(f"f{at}", at) for at in (5, 2, 8, 1)])
    with patch.object(checkpoint_writer, "SIDECAR_FILES", 4):
        for name, (new, gone, checkpoint) in enumerate(steps):
            snapshot = Snapshot.read(root)
            files = list(snapshot.add_files())
            going = {at % len(files) for at in gone} if files else set()
            removes = [RemoveFile(files[at].path, deletion_timestamp=1) for at in sorted(going)]
            adds = [_add(f"{name}-{place}", at) for place, at in enumerate(new)]
            commit(snapshot, Changes("WRITE", adds=tuple(adds), removes=tuple(removes)))
            wanted = sorted(map(_fields, Snapshot.read(root).add_files()))
            if checkpoint:
                write_checkpoint(open_store(root))
            assert sorted(map(_fields, Snapshot.read(root).add_files())) == wanted


def _fields(add: AddFile) -> str:
    return str(replace(add, modification_time=0))
