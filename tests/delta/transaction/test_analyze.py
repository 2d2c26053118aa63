"""Files of other writers get their statistics from their footers; no row and no file changes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from tests import corpora, s3_server
from tests.delta.tables import add as line
from tests.delta.tables import known_facts, path, read_stats, write_log
from variantlake.delta.actions.actions import DeletionVectorDescriptor
from variantlake.delta.schema.column_mapping import ID_KEY
from variantlake.delta.transaction.analyze import completed
from variantlake.errors import MissingSource
from variantlake.expressions.tree import Ref
from variantlake.planning.log_files import LogFiles
from variantlake.planning.plan import plan_scan
from variantlake.scan.footers import Footers

DATA = pa.table({"event": ['{"a": 1}', '{"a": 5, "b": "x"}'], "n": pa.array([3, 4], pa.int32())})


def _stripped(root: Path) -> vl.Table:
    """A table of ours, as a writer without statistics would have left it."""
    table = vl.Table.create(root, "event VARIANT, n INT", shredding={"event": "a BIGINT"})
    table.append(DATA, json_columns=["event"])
    path = root / "_delta_log" / f"{1:020d}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            del action["add"]["stats"]
            action["add"]["tags"] = {"THEIRS": "1"}
    path.write_text("\n".join(map(json.dumps, actions)))
    return table.refresh()


def _comparable(tags: Mapping[str, str | None] | None) -> dict[str, Any]:
    """Tags without the count of objects, which only the writer of a file knows."""
    found: dict[str, Any] = dict(tags or {})
    facts = json.loads(found["variantlake.facts.event"])
    return {**found, "variantlake.facts.event": [facts[0][1:], *facts[1:]]}


def test_an_analysis_gives_the_statistics_that_we_would_have_written(tmp_path: Path) -> None:
    ours = vl.Table.create(tmp_path / "a", "event VARIANT, n INT", shredding={"event": "a BIGINT"})
    ours.append(DATA, json_columns=["event"])
    (expected,) = ours.refresh().snapshot.add_files()
    table = _stripped(tmp_path / "b")
    (before,) = table.snapshot.add_files()
    would = table.analyze(dry_run=True)
    assert (would.table_files, would.files_completed, would.version) == (1, 1, None)
    assert table.refresh().version == 1
    done = table.analyze()
    assert (done.table_files, done.files_completed, done.version) == (1, 1, 2)
    (after,) = table.refresh().snapshot.add_files()
    assert json.loads(after.stats or "") == json.loads(expected.stats or "")
    assert _comparable(after.tags) == _comparable({"THEIRS": "1", **(expected.tags or {})})
    assert (after.path, after.size, after.modification_time) == (
        before.path,
        before.size,
        before.modification_time,
    )
    assert known_facts(after, table.schema) is not None
    (line,) = [
        json.loads(line)["add"]
        for line in (tmp_path / "b/_delta_log" / f"{2:020d}.json").read_text().splitlines()
        if '"add"' in line
    ]
    assert line["dataChange"] is False
    assert not table.refresh().history(1)[0].info["isBlindAppend"]
    # Now there is nothing left to do.
    assert table.analyze().files_completed == 0
    assert table.refresh().version == 2


@pytest.mark.parametrize("schema", ["event VARIANT, n INT", "event STRING, n INT"])
def test_columns_that_get_statistics_later_are_completed(tmp_path: Path, schema: str) -> None:
    none = {"delta.dataSkippingNumIndexedCols": "0"}
    table = vl.Table.create(tmp_path, schema, properties=none)
    variants = [] if "STRING" in schema else ["event"]
    table.append(DATA, json_columns=variants)
    (before,) = table.refresh().snapshot.add_files()
    assert table.analyze().files_completed == 0
    table.unset_properties("delta.dataSkippingNumIndexedCols")
    assert table.refresh().analyze().files_completed == 1
    (after,) = table.refresh().snapshot.add_files()
    assert json.loads(before.stats or "")["nullCount"] == {}
    assert json.loads(after.stats or "")["nullCount"] == {"event": 0, "n": 0}
    assert json.loads(after.stats or "")["maxValues"]["n"] == 4
    assert after.tags == before.tags  # the writer of a file knows more than its footer says
    assert table.refresh().analyze().files_completed == 0


def test_other_writers_statistics_stay_where_the_footer_says_less(tmp_path: Path) -> None:
    table = _stripped(tmp_path)
    (add,) = table.snapshot.add_files()
    theirs = {"numRecords": 2, "minValues": {"n": 3, "other": "kept"}, "theirs": True}
    stats = json.loads(
        completed(table.snapshot, replace(add, stats=json.dumps(theirs))).stats or ""
    )
    assert stats["theirs"] is True
    assert stats["minValues"]["other"] == "kept"
    assert stats["maxValues"]["n"] == 4
    assert set(stats["minValues"]) == {"n", "other", "event"}
    assert (
        completed(table.snapshot, replace(add, stats="cut {")).stats
        == completed(table.snapshot, add).stats
    )


def test_statistics_of_a_file_with_deleted_rows_are_not_tight(tmp_path: Path) -> None:
    table = _stripped(tmp_path)
    (add,) = table.snapshot.add_files()
    vector = DeletionVectorDescriptor("i", "x", 1, 1)
    stats = read_stats(
        completed(table.snapshot, replace(add, deletion_vector=vector)).stats, table.schema
    )
    assert not stats.tight
    assert stats.num_records == 2


@pytest.mark.rule(10)
@pytest.mark.parametrize("form", ["legacy", "with fields beside the parts"])
def test_rule_10_tags_do_not_hide_what_only_a_footer_tells(tmp_path: Path, form: str) -> None:
    """A path is read as before, and the whole Variant by our kernels."""
    table = vl.Table.create(tmp_path, "event VARIANT")
    file = tmp_path / "other.parquet"
    event: Any = vl.parquet.variant_array([{"id": 1}, {"id": 2}])
    if form == "legacy":
        rows = pa.table({"event": event})
        vl.parquet.write_table(rows, file, shredding="id BIGINT", layout="legacy")
    else:
        parts = [event.field(0), event.field(1), pa.array([7, 8], pa.int32())]
        names = [*event.type.names, "_x"]
        pq.write_table(pa.table({"event": pa.StructArray.from_arrays(parts, names)}), file)
    write_log(tmp_path, [line(file.name, size=file.stat().st_size)], start=1)

    def groups() -> list[Any]:
        requested = [Ref(("event",), path("$.id"), "bigint"), Ref(("event",), path("$"), "variant")]
        snapshot = table.refresh().snapshot
        files = Footers().with_facts(snapshot, LogFiles(snapshot), requested)
        return [
            (ref.type, group.readings[0][1], group.kernels)
            for ref in requested
            for group in plan_scan(files, [ref]).groups
        ]

    before = groups()
    assert before[-1][-1]
    assert table.refresh().analyze().files_completed == 1
    assert groups() == before
    assert table.refresh().analyze().files_completed == 0


@pytest.mark.rule(24)
def test_rule_24_columns_by_other_names_get_no_statistics(tmp_path: Path) -> None:
    """Mapped by ids, two columns of a file may even have each other's names."""
    by_id = {"delta.columnMapping.mode": "id"}
    table = vl.Table.create(tmp_path, "a INT, b INT", properties=by_id)
    a, b = table.schema.fields
    names = pa.schema(
        [
            pa.field(other.physical_name, pa.int32(), metadata={"PARQUET:field_id": str(own)})
            for other, own in ((b, a.metadata[ID_KEY]), (a, b.metadata[ID_KEY]))
        ]
    )
    numbers: Any = [pa.array([1, 2], pa.int32()), pa.array([100, 200], pa.int32())]
    file = tmp_path / "other.parquet"
    pq.write_table(pa.table(numbers, schema=names), file)
    write_log(tmp_path, [line(file.name, size=file.stat().st_size)], start=1)
    assert table.refresh().analyze().files_completed == 1
    newest = table.refresh()
    (action,) = newest.snapshot.add_files()
    stats = json.loads(action.stats or "")
    assert stats.pop("numRecords") == 2
    assert not any(stats.values())
    assert newest.scan("b", "a = 1").to_arrow().to_pylist() == [{"b": 100}]
    assert newest.analyze().files_completed == 0


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    table = _stripped(tmp_path)
    (file,) = tmp_path.glob("part-*")
    file.unlink()
    with pytest.raises(MissingSource) as caught:
        table.analyze()
    assert caught.value.file == str(file)
    assert table.refresh().version == 1


@pytest.mark.corpus(corpora.DELTA_TABLES)
@pytest.mark.parametrize(
    "name", ["spark-shredded-variant-preview-delta", "spark-variant-checkpoint"]
)
def test_footers_of_sparks_files_are_understood(name: str) -> None:
    root = corpora.DELTA_TABLES / name
    if not (root / "_delta_log").is_dir():
        root = next(path.parent for path in root.rglob("_delta_log"))
    table = vl.Table.open(root)
    adds = list(table.snapshot.add_files())
    assert adds
    for add in adds:
        new = completed(table.snapshot, add)
        assert known_facts(new, table.schema) is not None


def test_footers_are_read_from_an_object_store() -> None:
    with s3_server.running():
        location = f"s3://{s3_server.BUCKET}/t"
        table = vl.Table.create(location, "event VARIANT, n INT")
        table.append(DATA, json_columns=["event"])
        newest = table.refresh()
        (add,) = newest.snapshot.add_files()
        new = completed(newest.snapshot, add)
        assert json.loads(new.stats or "") == json.loads(add.stats or "")
        assert _comparable(new.tags) == _comparable(add.tags)


def test_an_analysis_keeps_every_digit_of_a_bound(tmp_path: Path) -> None:
    wide = Decimal("12345678901234567890123456789012345.67")
    table = vl.Table.create(tmp_path, "x DECIMAL(38, 2), n INT")
    table.append(pa.table({"x": pa.array([wide]), "n": pa.array([1], pa.int32())}))
    log = tmp_path / "_delta_log" / f"{1:020d}.json"
    theirs = f'{{"numRecords":1,"minValues":{{"x":{wide},"gone":0.{"1" * 30}}}}}'
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for action in lines:
        if "add" in action:
            action["add"]["stats"] = theirs
    log.write_text("\n".join(map(json.dumps, lines)))
    assert table.refresh().analyze().files_completed == 1
    after = table.refresh()
    (add,) = after.snapshot.add_files()
    stats = json.loads(add.stats or "", parse_float=Decimal)
    assert (stats["minValues"]["x"], stats["maxValues"]["x"]) == (wide, wide)
    assert stats["minValues"]["gone"] == Decimal(f"0.{'1' * 30}")
    assert after.scan(["n"], where=f"x = {wide}").to_arrow()["n"].to_pylist() == [1]
