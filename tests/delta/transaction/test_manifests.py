"""Lists of a table's files for engines without Delta: what a commit leaves of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import variantlake as vl
from variantlake.delta.protocol.properties import MANIFESTS
from variantlake.delta.transaction.manifests import FOLDER, write_manifests
from variantlake.errors import UnsupportedFeature


def _listed(table: Path) -> dict[str, list[Path]]:
    """By partition, the files that the manifests name."""
    folder = table / FOLDER
    return {
        str(path.parent.relative_to(folder)): [
            Path(line.removeprefix("file:")) for line in path.read_text().splitlines()
        ]
        for path in folder.rglob("manifest")
    }


def test_each_commit_keeps_up_the_manifests_of_a_table_that_has_them(tmp_path: Path) -> None:
    table = vl.Table.create(
        tmp_path, "n INT, p STRING", partition_by=["p"], properties={MANIFESTS: "true"}
    )
    assert _listed(tmp_path) == {}
    table.append([{"n": 1, "p": "a/b"}, {"n": 2, "p": None}, {"n": 3, "p": 'x="y'}])
    listed = _listed(tmp_path)
    assert listed.keys() == {"p=a%2Fb", "p=__HIVE_DEFAULT_PARTITION__", "p=x%3D%22y"}
    assert all(path.exists() for paths in listed.values() for path in paths)
    table.delete("n = 1")
    table.update({"n": 20}, "n = 2")
    files = {tmp_path / str(path) for path in table.refresh().files()["path"].to_pylist()}
    assert {path for paths in _listed(tmp_path).values() for path in paths} == files
    assert "p=a%2Fb" not in _listed(tmp_path)


def test_a_table_without_partitions_has_one(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, "n INT")
    snapshot = table.snapshot
    assert write_manifests(snapshot.store, snapshot.metadata, snapshot.files) == 1
    assert _listed(tmp_path) == {".": []}


@pytest.mark.parametrize("name", ["delta.enableDeletionVectors", "delta.columnMapping.mode"])
def test_files_that_are_not_the_rows_are_not_listed(tmp_path: Path, name: str) -> None:
    value = "name" if "mode" in name else "true"
    table = vl.Table.create(tmp_path, "n INT", properties={name: value})
    table.append([{"n": 1}, {"n": 2}])
    table.delete("n = 1")
    snapshot = table.refresh().snapshot
    with pytest.raises(UnsupportedFeature):
        write_manifests(snapshot.store, snapshot.metadata, snapshot.files)
    assert not (tmp_path / FOLDER).exists()
    other = vl.Table.create(tmp_path / "other", "n INT", properties={MANIFESTS: "true"})
    with pytest.raises(UnsupportedFeature, match="readers of manifests know files alone"):
        other.set_properties({name: value})
    with pytest.raises(UnsupportedFeature, match="readers of manifests know files alone"):
        table.set_properties({MANIFESTS: "true"})
    with pytest.raises(UnsupportedFeature, match="readers of manifests know files alone"):
        vl.Table.create(tmp_path / "third", "n INT", properties={name: value, MANIFESTS: "true"})
