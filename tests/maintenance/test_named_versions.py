"""Versions with names: read by them, kept by vacuum and cleanup as long as the name lives."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest

import variantlake as vl
from tests.cli.command import run
from variantlake.delta.checkpoint.log_cleanup import clean_log
from variantlake.delta.protocol.named_versions import named_versions
from variantlake.storage.opening import open_store

DAYS = {
    "delta.logRetentionDuration": "interval 1 day",
    "delta.deletedFileRetentionDuration": "interval 1 day",
}


def _ints(*numbers: int) -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int32())})


@pytest.fixture
def table(tmp_path: Path) -> vl.Table:
    """Versions 0 to 3, the last of which replaced all rows."""
    made = vl.Table.create(tmp_path / "t", "n INT", properties=DAYS)
    made.append(_ints(1, 2))
    made.append(_ints(3))
    made.delete("n > 0")
    return made


def test_a_version_is_opened_by_its_name(table: vl.Table) -> None:
    assert "domainMetadata" not in table.snapshot.features
    named = table.tag("audit-2026", version=1)
    assert (named.name, named.version) == ("audit-2026", 1)
    assert "domainMetadata" in table.snapshot.features
    (line,) = table.history(1)
    assert (line.operation, line.info["operationParameters"]["version"]) == ("TAG VERSION", 1)
    table.tag("now")
    assert [(each.name, each.version) for each in table.tags()] == [("audit-2026", 1), ("now", 4)]
    old = vl.Table.open(table.uri, "audit-2026")
    assert (old.version, old.scan().to_arrow().num_rows) == (1, 2)
    assert vl.Table.open(table.uri, version="now").version == 4
    with pytest.raises(vl.MissingSource, match=r"no version .* 'audit-2025'") as caught:
        vl.Table.open(table.uri, "audit-2025")
    assert "audit-2026" in caught.value.hint
    version = table.version
    assert table.tag("audit-2026", version=1) == named
    assert table.version == version
    with pytest.raises(vl.InvalidValue, match="is the name of version 1"):
        table.tag("audit-2026", version=2)
    assert table.tag("audit-2026", version=2, move=True).version == 2
    assert table.restore("audit-2026").restored_version == 2
    assert table.untag("audit-2026").version == 2
    with pytest.raises(vl.MissingSource, match="'audit-2026'"):
        table.untag("audit-2026")
    with pytest.raises(vl.MissingSource):
        table.tag("later", version=99)


@pytest.mark.parametrize("name", ["", "7", "a b", "ä", "x" * 129, "../a"])
def test_what_is_not_a_name(name: str, table: vl.Table) -> None:
    with pytest.raises(vl.InvalidValue, match="cannot be the name"):
        table.tag(name)


def test_vacuum_keeps_a_named_version(table: vl.Table) -> None:
    table.tag("audit", version=2)
    for lite in (False, True):
        assert table.vacuum(0, force=True, lite=lite).files_removed == 0
    assert vl.Table.open(table.uri, "audit").scan().to_arrow().num_rows == 3
    table.tag("audit", version=1, move=True)
    assert table.vacuum(0, force=True).files_removed == 1
    assert vl.Table.open(table.uri, "audit").scan().to_arrow().num_rows == 2
    table.untag("audit")
    assert table.vacuum(0, force=True).files_removed == 1


def test_cleanup_of_the_log_keeps_a_named_version(table: vl.Table) -> None:
    table.checkpoint()
    table.tag("audit", version=3)
    for number in range(3):
        table.append(_ints(number))
    table.checkpoint()
    for file in Path(table.uri, "_delta_log").iterdir():
        os.utime(file, (0, 0))
    named = [each.version for each in named_versions(table.snapshot.domains.values())]
    clean_log(open_store(table.uri), DAYS, named=named)
    assert not Path(table.uri, "_delta_log", f"{2:020}.json").exists()
    assert vl.Table.open(table.uri, "audit").version == 3
    clean_log(open_store(table.uri), DAYS)
    with pytest.raises(vl.MissingSource):
        vl.Table.open(table.uri, 3)


def test_names_on_the_command_line(
    table: vl.Table, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    shown = run(monkeypatch, capfd, "tag", table.uri, "audit", "--version", "1", "--json")
    assert json.loads(shown.out)[0]["version"] == 1
    assert "audit\t1" in run(monkeypatch, capfd, "tag", table.uri).out
    read = run(monkeypatch, capfd, "cat", table.uri, "--version", "audit", "--json")
    assert read.out.splitlines() == ['{"n": 1}', '{"n": 2}']
    assert run(monkeypatch, capfd, "cat", table.uri, "--version", "-1").code == 2
    assert run(monkeypatch, capfd, "tag", table.uri, "--move").code == 2
    cloned = run(monkeypatch, capfd, "clone", table.uri, f"{table.uri}-2", "--version", "audit")
    assert "version 0" in cloned.out
    assert vl.Table.open(f"{table.uri}-2").scan().to_arrow().num_rows == 2
    assert run(monkeypatch, capfd, "tag", table.uri, "audit", "--delete").code == 0
    assert run(monkeypatch, capfd, "cat", table.uri, "--version", "audit").code == 1
