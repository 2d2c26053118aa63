"""Shallow and deep clones: rows, files and history of both, and what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import variantlake as vl
from tests.maintenance.folders import found

PROPERTIES = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}


@pytest.fixture
def source(tmp_path: Path) -> vl.Table:
    """Two files in two partitions, one of them with a deletion vector."""
    table = vl.Table.create(
        tmp_path / "a b", "event VARIANT, n INT, k INT", partition_by="k", properties=PROPERTIES
    )
    for first in (0, 400):
        numbers = range(first, first + 400)
        rows = {
            "event": [f'{{"k": {n}}}' for n in numbers],
            "n": pa.array(numbers, pa.int32()),
            "k": pa.array([first] * 400, pa.int32()),
        }
        table.append(pa.table(rows), json_columns=["event"])
    table.delete(f"n IN ({', '.join(map(str, range(0, 399, 2)))})")
    return table


@pytest.mark.parametrize("deep", [False, True], ids=["shallow", "deep"])
def test_a_clone_has_the_rows_of_its_source(source: vl.Table, tmp_path: Path, deep: bool) -> None:
    files = found(Path(source.uri))
    done = source.clone(tmp_path / "clone", deep=deep)
    clone = vl.Table.open(tmp_path / "clone")
    assert (done.version, done.source_version, done.table_files) == (0, source.version, 2)
    assert clone.digest() == source.digest()
    assert clone.schema == source.schema
    assert clone.snapshot.metadata.id != source.snapshot.metadata.id
    assert clone.protocol == source.protocol
    (line,) = clone.history()
    assert line.operation == "CLONE"
    assert line.info["operationParameters"] == {
        "source": f"delta.`file:{source.uri}`",
        "sourceVersion": source.version,
    }
    assert int(line.info["operationMetrics"]["numCopiedFiles"]) == (3 if deep else 0)
    # The clone goes its own way.
    clone.delete("n = 5")
    clone.optimize()
    clone.vacuum(0, force=True)
    assert found(Path(source.uri)) == files
    assert source.refresh().scan().to_arrow().num_rows == clone.scan().to_arrow().num_rows + 1


def test_a_deep_clone_does_without_its_source(source: vl.Table, tmp_path: Path) -> None:
    digest = source.digest()
    source.clone(tmp_path / "shallow")
    vl.Table.open(tmp_path / "shallow").clone(tmp_path / "clone", deep=True)
    shutil.rmtree(source.uri)
    clone = vl.Table.open(tmp_path / "clone")
    assert clone.digest() == digest
    assert not any(str(path).startswith("file:") for path in clone.files()["path"].to_pylist())
    with pytest.raises(vl.MissingSource):
        vl.Table.open(tmp_path / "shallow").scan().to_arrow()


def test_a_clone_of_a_version(source: vl.Table, tmp_path: Path) -> None:
    assert source.clone(tmp_path / "old", version=1).source_version == 1
    assert vl.Table.open(tmp_path / "old").scan().to_arrow().num_rows == 400


def test_a_deep_clone_is_brought_up_to_date(source: vl.Table, tmp_path: Path) -> None:
    source.clone(tmp_path / "clone", deep=True)
    assert source.clone(tmp_path / "clone", deep=True).version is None
    source.delete("n = 450")
    source.append(
        pa.table({"n": pa.array([100], pa.int32()), "k": pa.array([7], pa.int32())}),
    )
    source.delete("k = 0")
    source.set_properties({"delta.appendOnly": "false", "owner": "me"})
    planned = source.clone(tmp_path / "clone", deep=True, dry_run=True)
    assert (planned.version, planned.files_copied, planned.files_removed) == (None, 1, 2)
    steps: list[vl.Progress] = []
    done = source.clone(tmp_path / "clone", deep=True, progress=steps.append)
    assert (done.version, done.files_copied, done.files_removed) == (1, 1, 2)
    clone = vl.Table.open(tmp_path / "clone")
    assert clone.digest() == source.digest()
    assert clone.properties["owner"] == "me"
    assert steps[-1] == vl.Progress(2, 2, "files", "copied")
    clone.delete("n = 460")
    with pytest.raises(vl.InvalidValue, match="changed after its version 1"):
        source.clone(tmp_path / "clone", deep=True)
    clone.restore(1)
    assert source.clone(tmp_path / "clone", deep=True).version is None


def test_an_interrupted_copy_is_taken_up_again(source: vl.Table, tmp_path: Path) -> None:
    files = sorted(Path(source.uri).rglob("*.parquet"))
    hidden = files[0].rename(tmp_path / "hidden")
    with pytest.raises(vl.MissingSource, match="no such file"):
        source.clone(tmp_path / "clone", deep=True)
    hidden.rename(files[0])
    left = sorted((tmp_path / "clone").rglob("*.parquet"))
    if left:
        left[0].write_bytes(b"cut")
    done = source.clone(tmp_path / "clone", deep=True)
    assert done.version == 0
    assert vl.Table.open(tmp_path / "clone").digest() == source.digest()
    files[0].write_bytes(b"cut")
    with pytest.raises(vl.StoreFailed, match="3 bytes, and the log says"):
        source.clone(tmp_path / "another", deep=True)


def _in_source(source: vl.Table, _other: Path) -> None:
    source.clone(Path(source.uri) / "clone")


def _onto_another(source: vl.Table, other: Path) -> None:
    vl.Table.create(other, "a INT")
    source.clone(other, deep=True)


def _twice(source: vl.Table, other: Path) -> None:
    source.clone(other)
    source.clone(other)


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (_in_source, "within its source"),
        (_onto_another, "not a clone of"),
        (_twice, "a shallow clone is a new one"),
    ],
)
def test_where_no_clone_can_be(
    attempt: Callable[[vl.Table, Path], None], words: str, source: vl.Table, tmp_path: Path
) -> None:
    with pytest.raises(vl.InvalidValue, match=words):
        attempt(source, tmp_path / "other")


def test_a_clone_has_time_and_row_ids_of_its_own(tmp_path: Path) -> None:
    source = vl.Table.create(tmp_path / "t", "n INT", properties=PROPERTIES)
    source.append(pa.table({"n": pa.array([1, 2], pa.int32())}))
    source.set_properties({"delta.enableInCommitTimestamps": "true"})
    source.clone(tmp_path / "clone")
    clone = vl.Table.open(tmp_path / "clone")
    names = [name for name in clone.properties if name.startswith("delta.rowTracking.")]
    assert names
    assert all(clone.properties[name] != source.properties[name] for name in names)
    assert not any("Enablement" in name for name in clone.properties)
    assert clone.files()["base_row_id"].to_pylist() == [0]
    assert clone.files()["default_row_commit_version"].to_pylist() == [0]
