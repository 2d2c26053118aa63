"""Digests of tables, and the comparison of two versions by them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl
from tests.cli.command import run
from variantlake.delta.log.snapshot import Snapshot
from variantlake.encoding.json import parse_json
from variantlake.errors import InvalidQuery, InvalidValue, MissingSource
from variantlake.maintenance import compare_versions as comparing
from variantlake.maintenance.digest import DigestFile, FileDigester
from variantlake.parquet.variant.variant_arrays import variant_array
from variantlake.storage.opening import open_store

DDL = "id BIGINT, event VARIANT, day STRING"


def rows(start: int, stop: int) -> pa.Table:
    texts = [json.dumps({"n": i, "k": f"k{i}", "x": [i, {"y": i / 4}]}) for i in range(start, stop)]
    return pa.table(
        {
            "id": pa.array(range(start, stop), pa.int64()),
            "event": variant_array([parse_json(text) for text in texts]),
            "day": [f"d{i % 2}" for i in range(start, stop)],
        }
    )


def made(folder: Path, *parts: tuple[int, int], **options: Any) -> vl.Table:
    vl.Table.create(folder, DDL, **options)
    for start, stop in parts:
        vl.Table.open(folder).append(rows(start, stop))
    return vl.Table.open(folder)


def test_layout_and_files_make_no_difference(tmp_path: Path) -> None:
    one = made(tmp_path / "1", (0, 300), shredding={"event": "n BIGINT, x ARRAY<VARIANT>"})
    two = made(tmp_path / "2", (200, 300), (0, 200), shredding={"event": "k STRING"})
    plain = made(tmp_path / "3", (0, 300), properties={"delta.enableVariantShredding": "false"})
    digest = one.digest()
    assert digest.rows == 300
    assert len(digest.hex) == 32
    assert digest == two.digest() == plain.digest()
    assert digest != made(tmp_path / "4", (1, 301)).digest()


def test_a_condition_chooses_rows(tmp_path: Path) -> None:
    whole = made(tmp_path / "1", (0, 100), partition_by="day")
    part = made(tmp_path / "2", (0, 40), partition_by="day")
    assert whole.digest("id < 40") == part.digest() == whole.digest("event:n::long < 40")
    days = [whole.digest(f"day = 'd{n}'") for n in (0, 1)]
    assert days[0] + days[1] == whole.digest()


def test_deleted_rows_do_not_count(tmp_path: Path) -> None:
    whole = made(tmp_path / "1", (0, 50), properties={"delta.enableDeletionVectors": "true"})
    whole.delete("id >= 30")
    left = vl.Table.open(tmp_path / "1")
    assert left.digest() == made(tmp_path / "2", (0, 30)).digest()
    assert left.digest().rows == 30


def test_columns_added_since_do_not_count(tmp_path: Path) -> None:
    table = made(tmp_path, (0, 20))
    digest = table.digest()
    table.add_column("note STRING")
    assert vl.Table.open(tmp_path).digest() == digest


def test_the_padding_of_char_columns_does_not_count(tmp_path: Path) -> None:
    """Some writers pad; readers always do. All else of a string counts."""
    columns = "c CHAR(4), s STRUCT<a: CHAR(3)>, l ARRAY<CHAR(2)>, v VARCHAR(4), p CHAR(3)"

    def of(c: str, pad: str = "", v: str = "w", p: str = "x") -> vl.Table:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        table = vl.Table.create(folder, columns, partition_by="p")
        inner, elements = {"a": f"é{pad}"}, [f"{pad}"]
        table.append(pa.table({"c": [c], "s": [inner], "l": [elements], "v": [v], "p": [p]}))
        return table.refresh()

    digest = of("ab").digest()
    assert digest == of("ab  ", " ").digest() == of("ab ", p="x  ").digest()
    for other in (of(" ab"), of("ab", v="w "), of("ab", p="xx")):
        assert other.digest() != digest
    table = of("ab")
    table.append(pa.table({"c": ["ab "], "s": [{"a": " "}], "p": ["x"]}))
    assert table.refresh().optimize().files_read == 2
    assert table.refresh().check_rewrite().equal


def rewritten(folder: Path, change: Any = None) -> vl.Table:
    """A table whose rows were written anew by a commit that calls itself OPTIMIZE."""
    table = made(folder, (0, 60), (60, 100))
    new = rows(0, 100)
    table.overwrite(new if change is None else change(new))
    log = folder / "_delta_log"
    last = log / f"{vl.Table.open(folder).version:020}.json"
    lines = [json.loads(line) for line in last.read_text().splitlines()]
    for line in lines:
        if "commitInfo" in line:
            line["commitInfo"]["operation"] = "OPTIMIZE"
    last.write_text("\n".join(map(json.dumps, lines)))
    for crc in log.glob("*.crc"):
        crc.unlink()
    return vl.Table.open(folder)


def test_a_rewrite_that_keeps_all_rows_is_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    table = rewritten(tmp_path)
    table.append(rows(100, 110))
    found = vl.Table.open(tmp_path).check_rewrite()
    assert found.equal
    assert (found.from_version, found.to_version) == (2, 3)
    assert (found.files_before, found.files_after, found.shared_files) == (2, 1, 0)
    assert found.before.rows == 100
    shown = run(monkeypatch, capfd, "check", tmp_path, "--deep")
    assert (shown.code, "same rows: 100" in shown.out) == (0, True)
    seen: list[vl.Progress] = []
    table.check_rewrite(2, 3, progress=seen.append)
    assert seen[-1] == vl.Progress(200, None, "rows", "read")


def test_a_changed_row_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def change(table: pa.Table) -> pa.Table:
        texts = [json.dumps({"n": 7, "k": "other"})]
        other = variant_array([parse_json(text) for text in texts])
        events = pa.concat_arrays(
            [*table["event"].slice(0, 70).chunks, other, *table["event"].slice(71).chunks]
        )
        return table.set_column(1, "event", events)

    rewritten(tmp_path, change)
    found = vl.Table.open(tmp_path).check_rewrite()
    assert not found.equal
    before, after = found.differences
    assert (before.version, before.row) == (2, 10)
    assert (after.version, after.row) == (3, 70)
    shown = run(monkeypatch, capfd, "check", tmp_path, "--deep", "--from", "2")
    assert shown.code == 4
    assert "row 70 of version 3 is not in 2" in shown.out
    document = json.loads(run(monkeypatch, capfd, "check", tmp_path, "--deep", "--json").out)
    assert document["equal"] is False
    assert len(document["differences"]) == 2


def test_lost_and_doubled_rows_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where hashes are compared by shares."""
    table = rewritten(tmp_path, lambda new: pa.concat_tables([new.slice(1), new.slice(50, 1)]))
    for at_once in (1 << 25, 30):
        monkeypatch.setattr(comparing, "_ROWS_AT_ONCE", at_once)
        found = table.check_rewrite()
        places = {(each.version, each.row) for each in found.differences}
        assert places & {(2, 0), (3, 49), (3, 99)}
        assert at_once == 30 or (2, 0) in places
        assert found.before.rows == found.after.rows


def test_versions_default_to_the_last_rewrite(tmp_path: Path) -> None:
    table = made(tmp_path, (0, 10), (10, 20))
    with pytest.raises(InvalidQuery, match="no commit"):
        table.check_rewrite()
    assert table.check_rewrite(2, 2).equal
    assert table.check_rewrite(2).shared_files == 2
    found = table.check_rewrite(to_version=2)
    assert (found.from_version, found.to_version, found.equal) == (1, 2, False)
    assert found.after.rows == 10
    with pytest.raises(InvalidValue):
        table.check_rewrite(2, 1)
    with pytest.raises(MissingSource):
        table.check_rewrite(1, 99)


def test_without_a_rewrite_the_command_tells_the_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    table = made(tmp_path, (0, 10))
    shown = run(monkeypatch, capfd, "check", tmp_path, "--deep")
    assert shown.code == 0
    assert table.digest().hex in shown.out
    wrong = run(monkeypatch, capfd, "check", tmp_path, "--from", "1")
    assert wrong.code == 2


def test_a_file_can_be_read_before_it_is_in_its_place(tmp_path: Path) -> None:
    table = made(tmp_path / "table", (0, 30))
    snapshot = Snapshot.read(table.uri, store=open_store(table.uri))
    (add,) = snapshot.add_files()
    elsewhere = tmp_path / "elsewhere.parquet"
    shutil.copy(snapshot.location(add.path), elsewhere)
    file = DigestFile.of(snapshot, add)
    digester = FileDigester(snapshot)
    assert digester.digest(file, source=str(elsewhere)) == table.digest()


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("TIMESTAMP", "2024-01-31T01:02:03.5Z", "2024-01-31 01:02:03.5"),
        ("TIMESTAMP_NTZ", "2024-01-31 01:02:03", "2024-01-31 01:02:03.0"),
        ("DECIMAL(8,3)", "1.500", "1.5"),
        ("DOUBLE", "100.0", "1.0E2"),
        ("FLOAT", "-0.5", "-0.50"),
    ],
)
def test_a_partition_value_is_one_in_whatever_text(
    tmp_path: Path, kind: str, value: str, text: str
) -> None:
    digests: list[object] = []
    for written in (value, text, None):
        folder = tmp_path / str(len(digests))
        vl.Table.create(folder, f"n INT, p {kind}", partition_by=["p"])
        vl.Table.open(folder).append([{"n": 1, "p": None}])
        commit = folder / f"_delta_log/{1:020}.json"
        commit.write_text(commit.read_text().replace('"p":null', f'"p":{json.dumps(written)}'))
        (folder / f"_delta_log/{1:020}.crc").unlink()
        digests.append(vl.Table.open(folder).digest())
    assert digests[0] == digests[1] != digests[2]
