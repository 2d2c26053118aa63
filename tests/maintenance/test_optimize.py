"""Small files are joined, no row changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from variantlake.encoding.variant import Variant
from variantlake.errors import InvalidQuery, InvalidValue
from variantlake.maintenance import plan_compaction
from variantlake.table.table import Table

SHREDDED = {"delta.enableVariantShredding": "true"}


def document(number: int) -> str:
    """A document whose numbers are of several types, with lists and missing fields."""
    found: dict[str, Any] = {"id": number, "kind": "abc"[number % 3], "o": {"x": number / 4}}
    if number % 2:
        found["tags"] = ["a", number, None]
    if number % 5 == 0:
        found["kind"] = number
    return json.dumps(found)


def filled(table: Table, files: int, rows: int = 10, **columns: Any) -> Table:
    """The table with so many more files."""
    for number in range(files):
        first = number * rows
        events = [document(first + row) for row in range(rows)]
        data = {"event": events} | {name: [value] * rows for name, value in columns.items()}
        table.append(pa.table(data), json_columns=["event"])
    return table.refresh()


def rows_of(table: Table) -> list[str]:
    """All rows as text, in no order."""
    found = table.scan().to_arrow().to_pylist()
    for row in found:
        event = row["event"]
        row["event"] = (
            None if event is None else Variant(event["metadata"], event["value"]).to_json()
        )
    return sorted(map(repr, found))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table of eight small files."""
    made = Table.create(tmp_path / "t", "event VARIANT, day STRING", properties=SHREDDED)
    return filled(made, 8, day="x")


def test_small_files_become_one_and_no_row_changes(table: Table) -> None:
    before = rows_of(table)
    done = table.optimize()
    newest = table.refresh()
    assert (done.files_read, done.files_written, done.encoded.files) == (8, 1, 8)
    assert newest.files().num_rows == 1
    assert rows_of(newest) == before == rows_of(Table.open(table.uri, table.version))
    assert newest.optimize().versions == ()


def test_a_dry_run_says_what_would_be_done_and_does_nothing(table: Table) -> None:
    expected = table.optimize(dry_run=True)
    assert table.refresh().version == table.version
    done = table.optimize()
    assert expected.dry_run
    assert (expected.files_read, expected.bytes_read) == (done.files_read, done.bytes_read)
    assert (expected.encoded, expected.rows_rewritten) == (done.encoded, done.rows_rewritten)


def test_the_commit_changes_no_data_and_keeps_what_is_known_of_paths(table: Table) -> None:
    table.optimize()
    newest = table.refresh()
    (entry,) = newest.history(1)
    assert entry.operation == "OPTIMIZE"
    log = Path(table.uri) / "_delta_log" / f"{newest.version:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    files = [each[key] for each in actions for key in ("add", "remove") if key in each]
    assert len(files) == 9
    assert not any(each["dataChange"] for each in files)
    (add,) = newest.files().to_pylist()
    stats = json.loads(add["stats"])
    assert stats["numRecords"] == 80
    assert {"event", "day"} <= set(stats["minValues"])
    assert "variantlake.layout.event" in dict(add["tags"])


def test_partitions_are_compacted_each_for_itself(tmp_path: Path) -> None:
    table = Table.create(
        tmp_path / "t", "event VARIANT, day STRING", partition_by="day", properties=SHREDDED
    )
    filled(table, 3, day="a")
    table = filled(table, 2, day="b")
    before = rows_of(table)
    chosen = table.optimize("day = 'b'")
    assert (chosen.files_read, chosen.files_written) == (2, 1)
    rest = table.optimize()
    assert (rest.files_read, rest.files_written) == (3, 1)
    assert rows_of(table.refresh()) == before


def test_files_of_another_layout_are_shredded_anew(table: Table) -> None:
    before = rows_of(table)
    table.set_properties({"variantlake.shredding.event": "kind STRING, id DECIMAL(9,2)"})
    table = filled(table.refresh(), 2, day="y")
    expected = rows_of(table)
    done = table.optimize()
    assert (done.encoded.files, done.reshredded.files, done.files_written) == (2, 8, 1)
    assert rows_of(table.refresh()) == expected
    assert rows_of(Table.open(table.uri, 8)) == before


def test_integers_in_decimals_stay_integers_where_files_are_joined(tmp_path: Path) -> None:
    table = Table.create(
        tmp_path / "t",
        "event VARIANT",
        properties={**SHREDDED, "variantlake.shredding.event": "n DECIMAL(9,2)"},
    )
    for numbers in (["1", "2.5"], ["2.25", "3.75"], ["4.00", "5.5"], ["7"]):
        events = [f'{{"n": {number}}}' for number in numbers]
        table.append(pa.table({"event": events}), json_columns=["event"])
    table = table.refresh()
    before = rows_of(table)
    assert table.optimize().files_read == 4
    assert rows_of(table.refresh()) == before


def test_row_ids_and_commit_versions_survive(tmp_path: Path) -> None:
    table = Table.create(
        tmp_path / "t",
        "event VARIANT",
        properties={**SHREDDED, "delta.enableRowTracking": "true"},
    )
    table = filled(table, 3)
    table.optimize()
    filled(table.refresh(), 1)
    table.optimize()
    table = table.refresh()
    (path,) = table.files()["path"].to_pylist()
    stored = pq.read_table(Path(table.uri) / str(path))
    ids, versions = stored.columns[-2].to_pylist(), stored.columns[-1].to_pylist()
    # The file of the first compaction took ids of its own, which no row has.
    assert ids == [*range(30), *range(60, 70)]
    assert versions == [1] * 10 + [2] * 10 + [3] * 10 + [5] * 10


def test_a_table_of_many_files_is_compacted_in_steps(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows_of(table)
    size = int(table.files()["size"].to_pylist()[0] or 0)
    defaults = plan_compaction.CompactionOptions.__init__.__defaults__ or ()
    monkeypatch.setattr(
        plan_compaction.CompactionOptions.__init__, "__defaults__", (*defaults[:-1], 4)
    )
    target = size * 5 // 2
    plan = table.optimize(target_file_size=target, dry_run=True)
    assert (plan.commits, plan.files_read, plan.files_written) == (2, 8, 4)
    done = table.optimize(target_file_size=target)
    # So small files shrink by much when they are joined: what they become is joined in turn.
    assert done.commits == len(done.versions) > 2
    table = table.refresh()
    assert table.files().num_rows < 4
    assert rows_of(table) == before
    assert table.optimize(target_file_size=target).versions == ()


def test_what_very_many_files_became_is_joined_in_turn(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows_of(table)
    monkeypatch.setattr(plan_compaction, "MAX_FILES", 3)
    done = table.optimize()
    assert (done.commits, done.files_read, done.files_written) == (2, 11, 4)
    assert table.refresh().files().num_rows == 1
    assert rows_of(table.refresh()) == before
    assert table.refresh().optimize().versions == ()


def test_files_that_cannot_be_joined_are_not_rewritten_again(tmp_path: Path) -> None:
    """In some integers stand among decimals, in others decimals that look like integers."""
    table = Table.create(tmp_path / "t", "event VARIANT", shredding={"event": "n DECIMAL(10,2)"})

    def more(count: int) -> None:
        for number in range(count):
            values = ("1", "2.5") if number % 2 else ("3.0", "4.5")
            data = {"event": [f'{{"n": {value}}}' for value in values]}
            table.append(pa.table(data), json_columns=["event"])

    more(5)
    before = rows_of(table.refresh())
    assert table.refresh().optimize().files_written == 2
    assert rows_of(table.refresh()) == before
    assert table.refresh().optimize().versions == ()
    more(2)
    assert table.refresh().optimize().versions
    assert table.refresh().files().num_rows == 2
    assert table.refresh().optimize(dry_run=True).files_read == 0


@pytest.mark.parametrize("row_tracking", ["true", "false"])
def test_rows_stay_in_the_order_that_the_table_wants(tmp_path: Path, row_tracking: str) -> None:
    table = Table.create(
        tmp_path / "t",
        "event VARIANT, day STRING",
        properties={**SHREDDED, "delta.enableRowTracking": row_tracking},
        shredding={"event": "id BIGINT, o STRUCT<x: DECIMAL(9,2)>"},
        cluster_by="day, event:id::bigint",
    )
    for day, start in (("b", 20), ("a", 0), ("b", 0), ("a", 10)):
        events = [document(start + row) for row in reversed(range(10))]
        data = {"event": events, "day": [day] * 10}
        table.append(pa.table(data), json_columns=["event"])
    table = table.refresh()
    before = rows_of(table)
    assert table.optimize().files_written == 1
    table = table.refresh()
    assert rows_of(table) == before
    found = table.scan("day, event:id::bigint AS id").to_arrow().to_pylist()
    assert found == sorted(found, key=lambda row: (row["day"], row["id"]))


def test_what_cannot_be_is_refused(table: Table) -> None:
    with pytest.raises(InvalidQuery):
        table.optimize("nothing = 1")
    with pytest.raises(InvalidValue, match="max deleted share is 2"):
        table.optimize(max_deleted_share=2)
    with pytest.raises(InvalidValue, match="target file size is 0"):
        table.optimize(target_file_size=0)


def test_variants_in_lists_and_maps_are_joined(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "l ARRAY<VARIANT>, m MAP<STRING, VARIANT>")
    first, second = (
        {"metadata": each.metadata, "value": each.value}
        for each in (Variant.of({"a": [1]}), Variant.of({"b": 2}))
    )
    variant = pa.struct(
        [
            pa.field("metadata", pa.binary(), nullable=False),
            pa.field("value", pa.binary(), nullable=False),
        ]
    )
    types: dict[str, Any] = {"l": pa.list_(variant), "m": pa.map_(pa.string(), variant)}
    rows: dict[str, Any] = {
        "l": [None, [first, None, second], [], [second]],
        "m": [[("x", first)], None, [("x", second), ("y", None)], []],
    }
    data = pa.table({name: pa.array(rows[name], kind) for name, kind in types.items()})
    for _ in range(3):
        table.append(data)
    before = table.refresh().digest()
    assert table.optimize().files_read == 3
    assert table.refresh().digest() == before
    assert before.rows == 12


def test_a_table_with_an_identity_column_is_kept_in_shape(table: Table) -> None:
    """No row is new, so no number is given out; those of an append are."""
    log = Path(table.uri) / "_delta_log"
    lines = (log / f"{0:020}.json").read_text().splitlines()
    actions = [json.loads(line) for line in lines if "protocol" in line or "metaData" in line]
    for action in actions:
        if "protocol" in action:
            action["protocol"]["writerFeatures"].append("identityColumns")
        else:
            schema = json.loads(action["metaData"]["schemaString"])
            identity = {"delta.identity.start": 1, "delta.identity.step": 1}
            field = {"name": "i", "type": "long", "nullable": True, "metadata": identity}
            schema["fields"].append(field)
            action["metaData"]["schemaString"] = json.dumps(schema)
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (log / f"{table.version + 1:020}.json").write_text(text)
    newest = table.refresh()
    before, version = newest.digest(), newest.version
    assert newest.optimize().files_read == 8
    assert newest.reshred("kind STRING").files_read == 1
    assert newest.restore(version).files_restored == 8
    assert newest.refresh().vacuum(0, force=True).files_removed == 2
    assert newest.refresh().digest() == before
    filled(newest.refresh(), 1, day="x")
    given = [row["i"] for row in newest.scan("i", where="i IS NOT NULL").to_pylist()]
    assert sorted(given) == list(range(1, len(given) + 1)) != []
