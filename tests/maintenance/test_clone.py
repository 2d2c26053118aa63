"""A shallow clone is kept in shape, and no file of its source is touched."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import variantlake as vl
from tests.cli.command import run
from tests.maintenance.folders import found


def cloned(source: vl.Table, target: Path) -> vl.Table:
    """A table whose log names the source's files and vectors, as Delta Spark's SHALLOW CLONE."""
    log = target / "_delta_log"
    shutil.copytree(Path(source.uri) / "_delta_log", log)
    for commit in log.glob("*.json"):
        lines = []
        for line in commit.read_text().splitlines():
            action = json.loads(line)
            for name in ("add", "remove"):
                file = action.get(name)
                if file is None:
                    continue
                file["path"] = f"{source.uri}/{file['path']}"
                vector = file.get("deletionVector")
                if vector is not None and vector["storageType"] == "u":
                    (path,) = Path(source.uri).glob("deletion_vector_*.bin")
                    vector |= {"storageType": "p", "pathOrInlineDv": str(path)}
            lines.append(json.dumps(action))
        commit.write_text("\n".join(lines) + "\n")
    for path in log.glob("*.crc"):
        path.unlink()
    return vl.Table.open(target)


def test_upkeep_of_a_clone_leaves_its_source_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    properties = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
    source = vl.Table.create(tmp_path / "a b", "event VARIANT, n INT", properties=properties)
    for first in (0, 400):
        numbers = range(first, first + 400)
        events = [f'{{"k": {n * 7919 % 1000}, "s": "x{n}"}}' for n in numbers]
        rows = pa.table({"event": events, "n": pa.array(numbers, pa.int32())})
        source.append(rows, json_columns=["event"])
    source.delete(f"n IN ({', '.join(map(str, range(0, 399, 2)))})")
    source = source.refresh()
    files, digest = found(Path(source.uri)), source.digest()
    assert any(name.endswith(".bin") for name in files)
    clone = cloned(source, tmp_path / "clone")
    assert clone.digest() == digest
    shown = run(monkeypatch, capfd, "vacuum", clone.uri, "--dry-run").out
    assert "3, of the table that this is a clone of; they stay" in shown
    first = clone.version
    clone.set_clustering("event:k::bigint")
    assert clone.refresh().cluster(budget=1 << 30).files_read == 2
    assert clone.refresh().reshred("k BIGINT").files_read
    assert clone.refresh().optimize(max_deleted_share=0).dry_run is False
    assert clone.refresh().restore(first).files_restored == 2
    assert clone.refresh().vacuum(0, force=True).files_outside == 3
    newest = clone.refresh()
    assert newest.digest() == digest
    assert newest.unshred().files_read == 2
    assert newest.vacuum(0, force=True).files_outside == 0
    assert clone.refresh().digest() == digest == source.refresh().digest()
    assert found(Path(source.uri)) == files
